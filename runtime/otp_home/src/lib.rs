//! Finds the Erlang/OTP whose `.beam` files are run.
//!
//! The order is: a directory given by option, `$BEAMLINE_OTP`, an `erl` on PATH of OTP 27 or later, the copy that
//! `cargo xtask fetch` has put under `target/otp`. What a user names is used or refused. Only what nobody named is
//! passed over when it does not fit.
//!
//! This crate uses the standard library only: the task runner depends on it, and no task waits until other crates are
//! built.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The environment variable that names an OTP directory.
pub const ENV: &str = "BEAMLINE_OTP";

/// The oldest OTP release whose code is loaded.
pub const OLDEST_RELEASE: u32 = 27;

/// The release whose own test suites run for every change.
pub const TESTED_RELEASE: u32 = 29;

/// Where an OTP was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Named by the `--otp` option.
    Option,
    /// Named by `$BEAMLINE_OTP`.
    Env,
    /// Belongs to an `erl` on PATH.
    Path,
    /// Fetched by the project's set-up.
    Fetched,
}

/// An OTP installation that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtpHome {
    /// The Erlang root directory, as `code:root_dir()` gives it: holds `bin/`, `lib/`, `releases/`.
    pub root: PathBuf,
    /// The OTP release, such as 29.
    pub release: u32,
    /// How it was found.
    pub source: Source,
}

/// What the finder looks at, apart from the file system.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// The value of `--otp`.
    pub option: Option<PathBuf>,
    /// The value of `$BEAMLINE_OTP`; empty counts as not set.
    pub env: Option<OsString>,
    /// The value of `$PATH`.
    pub path: Option<OsString>,
    /// Directories that a fetched copy may be in, first one first.
    pub fetched: Vec<PathBuf>,
}

impl Lookup {
    /// The lookup of this process: its environment, and the build folder that its executable is in.
    #[must_use]
    pub fn of_process(option: Option<PathBuf>) -> Self {
        Self {
            option,
            env: std::env::var_os(ENV),
            path: std::env::var_os("PATH"),
            fetched: std::env::current_exe()
                .map(|exe| fetched_beside(&exe))
                .unwrap_or_default(),
        }
    }
}

/// Why no OTP was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// A directory that was named is no OTP; `named_by` is the option or the variable.
    NoOtp {
        /// `--otp` or `$BEAMLINE_OTP`.
        named_by: &'static str,
        /// The directory as it was given.
        dir: PathBuf,
    },
    /// A directory that was named holds an OTP that is too old.
    TooOld {
        /// `--otp` or `$BEAMLINE_OTP`.
        named_by: &'static str,
        /// The directory as it was given.
        dir: PathBuf,
        /// The release found there.
        release: u32,
    },
    /// Nothing was named, and nothing was found.
    Nowhere,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOtp { named_by, dir } => write!(
                f,
                "{named_by}: no Erlang/OTP in {} (it should hold lib/ and releases/)",
                dir.display()
            ),
            Self::TooOld {
                named_by,
                dir,
                release,
            } => write!(
                f,
                "{named_by}: OTP {release} in {} is too old; {OLDEST_RELEASE} or later is needed",
                dir.display()
            ),
            Self::Nowhere => write!(
                f,
                "no Erlang/OTP {OLDEST_RELEASE} or later found: install one, give --otp DIR, set ${ENV}, \
                 or run `cargo xtask fetch`"
            ),
        }
    }
}

impl std::error::Error for NotFound {}

/// Finds the OTP to run.
///
/// # Errors
/// See [`NotFound`]. A directory that was named and does not fit is an error, never passed over.
pub fn find(lookup: &Lookup) -> Result<OtpHome, NotFound> {
    if let Some(dir) = &lookup.option {
        return named(dir, "--otp", Source::Option);
    }
    if let Some(dir) = lookup.env.as_deref().filter(|dir| !dir.is_empty()) {
        return named(Path::new(dir), "$BEAMLINE_OTP", Source::Env);
    }
    let on_path = lookup.path.as_deref().and_then(on_path);
    on_path
        .or_else(|| {
            let mut found = lookup.fetched.iter().filter_map(|dir| root_in(dir));
            found.find_map(|(root, release)| fitting(root, release, Source::Fetched))
        })
        .ok_or(NotFound::Nowhere)
}

/// The release of the Erlang root directory `root`, if it is one.
///
/// Read from the last line of `releases/start_erl.data` ("ERTS RELEASE"), or else from the only
/// numbered directory in `releases/` that has an `OTP_VERSION`.
#[must_use]
pub fn release_of(root: &Path) -> Option<u32> {
    if !root.join("lib").is_dir() {
        return None;
    }
    let releases = root.join("releases");
    let started = std::fs::read_to_string(releases.join("start_erl.data")).ok();
    let started = started
        .as_deref()
        .and_then(|text| text.lines().last()?.split_whitespace().nth(1)?.parse().ok());
    started.or_else(|| {
        let entries = std::fs::read_dir(&releases).ok()?;
        entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().join("OTP_VERSION").is_file())
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .max()
    })
}

fn named(dir: &Path, named_by: &'static str, source: Source) -> Result<OtpHome, NotFound> {
    let Some((root, release)) = root_in(dir) else {
        let dir = dir.to_owned();
        return Err(NotFound::NoOtp { named_by, dir });
    };
    fitting(root, release, source).ok_or_else(|| NotFound::TooOld {
        named_by,
        dir: dir.to_owned(),
        release,
    })
}

fn fitting(root: PathBuf, release: u32, source: Source) -> Option<OtpHome> {
    (release >= OLDEST_RELEASE).then_some(OtpHome {
        root,
        release,
        source,
    })
}

/// The Erlang root that `dir` is, or that it holds as an installation prefix or an unpacked system.
fn root_in(dir: &Path) -> Option<(PathBuf, u32)> {
    ["", "lib/erlang", "usr/lib/erlang"].iter().find_map(|sub| {
        let root = dir.join(sub);
        let release = release_of(&root)?;
        // Links are not followed: programs see the name that was given.
        let root = std::path::absolute(&root).unwrap_or(root);
        Some((root.components().collect(), release))
    })
}

/// The first `erl` on `path` that belongs to an OTP that fits. Not an `erl` that is this executable:
/// Beamline puts itself on PATH under that name, and would ask itself without end.
fn on_path(path: &OsStr) -> Option<OtpHome> {
    let this = std::env::current_exe().and_then(|exe| exe.canonicalize());
    let this = this.ok();
    std::env::split_paths(path)
        .map(|dir| dir.join("erl"))
        .filter(|erl| erl.is_file() && (this.is_none() || erl.canonicalize().ok() != this))
        .find_map(|erl| {
            let (root, release) = root_by_link(&erl).or_else(|| root_by_asking(&erl))?;
            fitting(root, release, Source::Path)
        })
}

/// `erl` is mostly a symbolic link to ROOT/bin/erl: then nothing needs to be started.
fn root_by_link(erl: &Path) -> Option<(PathBuf, u32)> {
    let file = erl.canonicalize().ok()?;
    let bin = file.parent().filter(|bin| bin.ends_with("bin"))?;
    let root = bin.parent()?;
    // PREFIX/bin/erl may be a copy of the script that belongs to PREFIX/lib/erlang.
    root_in(root)
}

/// Version managers put scripts on PATH that choose an OTP by the current directory: ask them.
fn root_by_asking(erl: &Path) -> Option<(PathBuf, u32)> {
    let answer = Command::new(erl)
        .args(["-noshell", "-eval"])
        .arg("io:put_chars(code:root_dir()), halt().")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let root = PathBuf::from(String::from_utf8(answer.stdout).ok()?);
    let release = answer.status.success().then(|| release_of(&root))??;
    Some((root, release))
}

/// Where the set-up's copy is for an executable at `exe`: an `otp` folder in the build folder, which
/// is at most three levels up (`target/release/beamline`, `target/debug/deps/NAME`).
fn fetched_beside(exe: &Path) -> Vec<PathBuf> {
    let above = exe.ancestors().skip(1).take(3);
    above.map(|dir| dir.join("otp")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty directory of this test's own, below the system's temporary directory.
    #[expect(
        clippy::disallowed_methods,
        reason = "this file names nothing of its crate"
    )]
    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("otp_home-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir.canonicalize().unwrap()
    }

    fn make_otp(root: &Path, release: u32) -> PathBuf {
        let version = root.join(format!("releases/{release}/OTP_VERSION"));
        std::fs::create_dir_all(version.parent().unwrap()).unwrap();
        std::fs::write(version, format!("{release}.1\n")).unwrap();
        std::fs::create_dir_all(root.join("lib")).unwrap();
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::write(root.join("bin/erl"), "").unwrap();
        root.to_owned()
    }

    #[test]
    fn the_order_is_option_env_path_fetched() {
        let dir = scratch("order");
        let roots: Vec<_> = ["a", "b", "c", "d"]
            .iter()
            .map(|name| make_otp(&dir.join(name), 29))
            .collect();
        let mut lookup = Lookup {
            option: Some(roots[0].clone()),
            env: Some(roots[1].clone().into()),
            path: Some(roots[2].join("bin").into()),
            fetched: vec![roots[3].clone()],
        };
        let found = |lookup: &Lookup| find(lookup).map(|home| (home.root, home.source));
        assert_eq!(found(&lookup), Ok((roots[0].clone(), Source::Option)));
        lookup.option = None;
        assert_eq!(found(&lookup), Ok((roots[1].clone(), Source::Env)));
        lookup.env = Some(OsString::new());
        assert_eq!(found(&lookup), Ok((roots[2].clone(), Source::Path)));
        lookup.path = None;
        assert_eq!(found(&lookup), Ok((roots[3].clone(), Source::Fetched)));
        lookup.fetched.clear();
        assert_eq!(found(&lookup), Err(NotFound::Nowhere));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_old_release_is_refused_where_named_and_passed_over_on_path() {
        let dir = scratch("old");
        let (old, new) = (dir.join("old"), dir.join("new"));
        make_otp(&old, OLDEST_RELEASE - 1);
        make_otp(&new, OLDEST_RELEASE);
        let mut lookup = Lookup {
            env: Some(old.clone().into()),
            path: Some(std::env::join_paths([old.join("bin"), new.join("bin")]).unwrap()),
            ..Lookup::default()
        };
        assert!(matches!(find(&lookup), Err(NotFound::TooOld { .. })));
        lookup.env = None;
        assert_eq!(find(&lookup).unwrap().root, new);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_prefix_counts_as_its_lib_erlang() {
        let dir = scratch("prefix");
        let root = make_otp(&dir.join("usr/lib/erlang"), 29);
        std::fs::create_dir_all(root.join("releases")).unwrap();
        std::fs::write(root.join("releases/start_erl.data"), "16.9 28\n17.1 29\n").unwrap();
        let lookup = Lookup {
            option: Some(dir.join("usr")),
            ..Lookup::default()
        };
        let home = find(&lookup).unwrap();
        assert_eq!((home.root, home.release), (root, 29));
        let lookup = Lookup {
            option: Some(dir.join("usr/lib")),
            ..Lookup::default()
        };
        assert!(matches!(find(&lookup), Err(NotFound::NoOtp { .. })));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
