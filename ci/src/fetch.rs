//! `cargo xtask fetch`: OTP 29 and Elixir into the build folder, from Debian's packages.
//!
//! `.beam` files are the same on every machine, so packages of another suite than the machine's own
//! are unpacked, never installed. Signatures are checked with the keys that the machine's apt
//! trusts; `--unverified` is for machines whose keys are older than the suite's. Libraries of NIFs are for the machines of
//! their suite; those that do not open here are compiled again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt::{self, Apt};
use crate::otp_home::{self, Lookup, OtpHome, Source};
use crate::{libraries, outside, paths, run};

/// The OTP release that is fetched.
const RELEASE: u32 = 29;

/// Suites that may have it, first one first.
const SUITES: [&str; 2] = ["forky", "sid"];

const PACKAGES: [&str; 14] = [
    "erlang-asn1",
    "erlang-base",
    "erlang-crypto",
    "erlang-dev",
    "erlang-eunit",
    "erlang-inets",
    "erlang-parsetools",
    "erlang-public-key",
    "erlang-runtime-tools",
    "erlang-ssh",
    "erlang-ssl",
    "erlang-syntax-tools",
    "erlang-tools",
    "elixir",
];

/// Options of `cargo xtask fetch`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Fetch OTP's source too, with its test suites
    #[arg(long)]
    source: bool,
    /// Accept packages whose signatures this machine's keys cannot check
    #[arg(long)]
    unverified: bool,
}

/// Fetches what is not there yet.
pub(crate) fn main(options: &Options) -> Result<()> {
    let otp = fetched_otp(options.unverified)?;
    eprintln!("OTP {} in {}", otp.release, otp.root.display());
    if options.source {
        let source = source(options.unverified)?;
        eprintln!("OTP's source in {}", source.display());
    }
    Ok(())
}

/// The OTP to run: one that is found, or else the copy that is then fetched.
pub(crate) fn otp() -> Result<OtpHome> {
    let lookup = lookup();
    match otp_home::find(&lookup) {
        Err(otp_home::NotFound::Nowhere) => fetched_otp(false),
        Ok(found) if found.source == Source::Fetched => whole(found, false),
        found => Ok(found?),
    }
}

/// The fetched copy, its libraries compiled where the packages' own do not open.
fn whole(otp: OtpHome, unverified: bool) -> Result<OtpHome> {
    libraries::compile_those_that_do_not_open(&otp, || source(unverified))?;
    Ok(otp)
}

fn lookup() -> Lookup {
    let mut lookup = Lookup::of_process(None);
    lookup.fetched = vec![paths::target().join("otp")];
    lookup
}

/// The copy in the build folder, fetched if it is not there.
fn fetched_otp(unverified: bool) -> Result<OtpHome> {
    let dir = paths::target().join("otp");
    let lookup = Lookup {
        fetched: vec![dir.clone()],
        ..Lookup::default()
    };
    if let Ok(found) = otp_home::find(&lookup) {
        return whole(found, unverified);
    }
    fetch_otp(&dir, unverified).with_context(|| {
        format!(
            "OTP {RELEASE} cannot be fetched; install Erlang/OTP {} or later, or name one by ${}",
            otp_home::OLDEST_RELEASE,
            otp_home::ENV
        )
    })?;
    whole(otp_home::find(&lookup)?, unverified)
}

fn fetch_otp(dir: &Path, unverified: bool) -> Result<()> {
    let (apt, version) = suite_with_release(unverified)?;
    eprintln!("fetching OTP {version} and Elixir");
    staged(dir, |stage| {
        unpack(&apt, &PACKAGES, stage)?;
        match otp_home::release_of(&stage.join("usr/lib/erlang")) {
            Some(RELEASE) => Ok(()),
            other => bail!("the packages hold no OTP {RELEASE} but {other:?}"),
        }
    })
}

/// Downloads these packages and unpacks them in the directory `into`.
pub(crate) fn unpack(apt: &Apt, packages: &[&str], into: &Path) -> Result<()> {
    let debs = into.join("debs");
    fs::create_dir(&debs)?;
    apt.download(packages, &debs)?;
    for deb in fs::read_dir(&debs)? {
        let deb = deb?.path();
        run::output(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(into))?;
    }
    Ok(fs::remove_dir_all(&debs)?)
}

/// The source tree of OTP, with its test suites, in the build folder; fetched if it is not there.
pub(crate) fn source(unverified: bool) -> Result<PathBuf> {
    let dir = paths::target().join("otp-src");
    if dir.join("OTP_VERSION").is_file() {
        return Ok(dir);
    }
    fetch_source(&dir, unverified).with_context(|| {
        format!(
            "OTP's source cannot be fetched; give the source tree of OTP {RELEASE} by --source DIR"
        )
    })?;
    Ok(dir)
}

fn fetch_source(dir: &Path, unverified: bool) -> Result<()> {
    let (apt, version) = suite_with_release(unverified)?;
    eprintln!("fetching the source of OTP {version}");
    staged(dir, |stage| {
        apt.download_source("erlang", stage)?;
        let archives = fs::read_dir(stage)?.flatten().map(|entry| entry.path());
        let archives: Vec<_> = archives.filter(|path| is_main_archive(path)).collect();
        let [archive] = archives.as_slice() else {
            bail!("the source package holds {} main archives", archives.len());
        };
        let mut tar = Command::new("tar");
        tar.arg("xf")
            .arg(archive)
            .arg("-C")
            .arg(stage)
            .arg("--strip-components=1");
        run::output(&mut tar)?;
        fs::remove_file(archive)?;
        if !stage.join("OTP_VERSION").is_file() {
            bail!("the archive holds no OTP");
        }
        Ok(())
    })
}

/// `erlang_29.1+dfsg.orig.tar.xz`, and not `erlang_29.1+dfsg.orig-vendor.tar.xz`.
fn is_main_archive(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains(".orig.tar.") && !name.ends_with(".asc"))
}

/// The first suite that has the release we want, and the version of OTP in it.
fn suite_with_release(unverified: bool) -> Result<(Apt, String)> {
    let mirror = apt::machine_mirror()?;
    let mut versions = Vec::new();
    for suite in SUITES {
        let dir = paths::target().join("apt").join(suite);
        let apt = Apt::update(&dir, &mirror, suite, unverified)?;
        let version = upstream(&apt.version("erlang-base")?).to_owned();
        if version.split('.').next() == Some(&RELEASE.to_string()) {
            return Ok((apt, version));
        }
        versions.push(format!("{suite} has {version}"));
    }
    bail!("no suite has OTP {RELEASE}: {}", versions.join(", "))
}

/// `1:29.1.1+dfsg-1` without epoch, Debian revision and repacking suffix.
fn upstream(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    version.split(['+', '-', '~']).next().unwrap_or(version)
}

/// Makes the directory `dir` whole or not at all: `fill` fills another one, which is then renamed.
pub(crate) fn staged(dir: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let stage = dir.with_extension(format!("new-{}", outside::os_pid()));
    let _ = fs::remove_dir_all(&stage);
    fs::create_dir_all(&stage).with_context(|| format!("making {}", stage.display()))?;
    let done = fill(&stage).and_then(|()| {
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::rename(&stage, dir).with_context(|| format!("renaming to {}", dir.display()))
    });
    if done.is_err() {
        let _ = fs::remove_dir_all(&stage);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_versions() {
        assert_eq!(upstream("1:29.1.1+dfsg-1"), "29.1.1");
        assert_eq!(upstream("29.2~rc1-2"), "29.2");
        assert_eq!(upstream("29.0"), "29.0");
    }

    #[test]
    fn the_main_archive_of_a_source_package() {
        for (name, main) in [
            ("erlang_29.1.1+dfsg.orig.tar.xz", true),
            ("erlang_29.1.1+dfsg.orig-docs.tar.xz", false),
            ("erlang_29.1.1+dfsg.orig.tar.xz.asc", false),
            ("erlang_29.1.1+dfsg-1.debian.tar.xz", false),
        ] {
            assert_eq!(is_main_archive(Path::new(name)), main, "{name}");
        }
    }

    #[test]
    fn a_failed_fill_leaves_nothing() {
        let dir = std::env::temp_dir().join(format!("xtask-staged-{}", outside::os_pid()));
        let failed = staged(&dir, |stage| {
            fs::write(stage.join("half"), "")?;
            bail!("the network is gone")
        });
        assert!(failed.is_err() && !dir.exists());
        staged(&dir, |stage| Ok(fs::write(stage.join("whole"), "")?)).unwrap();
        assert!(dir.join("whole").is_file());
        fs::remove_dir_all(&dir).unwrap();
    }
}
