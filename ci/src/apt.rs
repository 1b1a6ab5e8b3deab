//! apt, with lists and configuration of our own.
//!
//! What is taken from the machine: the mirror (from its `sources.list` files), the keys it trusts,
//! and how it reaches the network (apt's `Acquire::http` and `https` settings, `auth.conf`), and whether it looks at dates.
//! What is left alone: everything. Lists, caches and state are under the build folder, and the
//! machine's configuration files are not read by the apt we start, so none of its hooks run.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run;

/// A Debian mirror as a `sources.list` file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mirror {
    /// Base address, without a slash at its end.
    pub(crate) uri: String,
    /// The file of keys that its entry names.
    pub(crate) signed_by: Option<String>,
}

/// One apt of our own: one suite of one mirror.
pub(crate) struct Apt {
    dir: PathBuf,
}

impl Apt {
    /// Writes the configuration into `dir` and reads the suite's lists.
    ///
    /// `unverified` takes packages whose signatures this machine's keys cannot check.
    pub(crate) fn update(
        dir: &Path,
        mirror: &Mirror,
        suite: &str,
        unverified: bool,
    ) -> Result<Self> {
        for sub in ["lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(dir.join(sub))
                .with_context(|| format!("making {}", dir.display()))?;
        }
        fs::write(dir.join("status"), "")?;
        let trust = match (&mirror.signed_by, unverified) {
            (_, true) => " trusted=yes".to_owned(),
            (Some(keys), false) => format!(" signed-by={keys}"),
            (None, false) => String::new(),
        };
        let uri = &mirror.uri;
        let list = format!(
            "deb [target=Packages{trust}] {uri} {suite} main\n\
             deb-src [target=Sources{trust}] {uri} {suite} main\n"
        );
        fs::write(dir.join("etc/sources.list"), list)?;
        fs::write(dir.join("etc/apt.conf"), config(dir)?)?;
        let apt = Self {
            dir: dir.to_owned(),
        };
        // Without this, apt takes old lists and exits with 0 where it cannot reach the mirror.
        run::output(
            apt.get()
                .args(["-o", "APT::Update::Error-Mode=any", "update"]),
        )?;
        Ok(apt)
    }

    /// The version of `package` in the suite, epoch and Debian revision included.
    pub(crate) fn version(&self, package: &str) -> Result<String> {
        let mut command = self.command("apt-cache");
        let shown = run::output(command.args(["show", "--no-all-versions", package]))?;
        let version = shown
            .lines()
            .find_map(|line| line.strip_prefix("Version: "));
        Ok(version
            .with_context(|| format!("{package} has no version"))?
            .to_owned())
    }

    /// Downloads binary packages into the directory `into`.
    pub(crate) fn download(&self, packages: &[&str], into: &Path) -> Result<()> {
        let mut command = self.get();
        run::output(command.arg("download").args(packages).current_dir(into)).map(drop)
    }

    /// Downloads the upstream archives of a source package into the directory `into`.
    pub(crate) fn download_source(&self, package: &str, into: &Path) -> Result<()> {
        let mut command = self.get();
        command.args(["source", "--download-only", "--tar-only", package]);
        run::output(command.current_dir(into)).map(drop)
    }

    fn get(&self) -> Command {
        let mut command = self.command("apt-get");
        command.args(["-q", "-y"]);
        command
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.dir.join("etc/apt.conf"));
        command.env("LC_ALL", "C.UTF-8");
        command
    }
}

/// The text of our `apt.conf`. apt reads the file named by `$APT_CONFIG` first, so the settings of
/// `Dir::Etc` in it keep it from reading the machine's.
fn config(dir: &Path) -> Result<String> {
    let machine = run::output(Command::new("apt-config").arg("dump"))?;
    let mut text = String::new();
    for line in machine.lines() {
        if is_wanted_setting(line) {
            writeln!(text, "{line}")?;
        }
    }
    let dir = dir
        .to_str()
        .context("the build folder's name is not UTF-8")?;
    // The user apt would switch to may not reach the build folder.
    let user = run::output(Command::new("id").arg("-un"))?;
    write!(
        text,
        "Dir::Etc::main \"/dev/null\";\n\
         Dir::Etc::parts \"/dev/null\";\n\
         Dir::Etc::sourcelist \"{dir}/etc/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\n\
         Dir::State \"{dir}\";\n\
         Dir::State::lists \"{dir}/lists\";\n\
         Dir::State::status \"{dir}/status\";\n\
         Dir::Cache \"{dir}/cache\";\n\
         APT::Sandbox::User \"{}\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"2\";\n",
        user.trim()
    )?;
    Ok(text)
}

fn is_wanted_setting(line: &str) -> bool {
    let wanted = [
        "Acquire::http::",
        "Acquire::https::",
        "Acquire::ForceIPv",
        // A machine whose clock is off says so here.
        "Acquire::Check-",
    ];
    wanted.iter().any(|start| line.starts_with(start)) && !line.ends_with(" \"\";")
}

/// The Debian mirror that this machine's apt uses: the first one that an enabled entry names.
pub(crate) fn machine_mirror() -> Result<Mirror> {
    for program in ["apt-get", "apt-cache", "apt-config", "dpkg-deb"] {
        if !run::on_path(program) {
            bail!("this machine has no {program}");
        }
    }
    let etc = Path::new("/etc/apt");
    let parts = fs::read_dir(etc.join("sources.list.d"));
    let mut files: Vec<_> = parts
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files.insert(0, etc.join("sources.list"));
    let found = files.iter().find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        let mirrors = match file.extension()?.to_str()? {
            "list" => one_line(&text),
            "sources" => deb822(&text),
            _ => return None,
        };
        mirrors.into_iter().find(is_debian)
    });
    found.context("this machine's apt names no Debian mirror")
}

/// The main archive: its address ends in `/debian`, wherever the mirror is.
fn is_debian(mirror: &Mirror) -> bool {
    mirror.uri.ends_with("/debian") && !mirror.uri.starts_with("cdrom:")
}

fn mirror(uri: &str, signed_by: Option<&str>) -> Mirror {
    Mirror {
        uri: uri.trim_end_matches('/').to_owned(),
        // An entry may carry the key itself; that one is not taken over.
        signed_by: signed_by
            .filter(|keys| keys.starts_with('/'))
            .map(str::to_owned),
    }
}

/// The mirrors in a file of one-line entries: `deb [OPTION=VALUE ...] URI SUITE COMPONENT ...`.
fn one_line(text: &str) -> Vec<Mirror> {
    let entries = text.lines().filter_map(|line| {
        let line = line.split('#').next()?.trim();
        let mut rest = line
            .strip_prefix("deb")?
            .strip_prefix([' ', '\t'])?
            .trim_start();
        let mut options = "";
        if let Some(bracket) = rest.strip_prefix('[') {
            (options, rest) = bracket.split_once(']')?;
        }
        let signed_by = options
            .split_whitespace()
            .find_map(|option| option.strip_prefix("signed-by="));
        Some(mirror(rest.split_whitespace().next()?, signed_by))
    });
    entries.collect()
}

/// The mirrors in a file of deb822 stanzas.
fn deb822(text: &str) -> Vec<Mirror> {
    let mut mirrors = Vec::new();
    let uncommented: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for stanza in uncommented.split(|line| line.trim().is_empty()) {
        let field = |name| field(stanza, name);
        let binary =
            field("types").is_some_and(|types| types.split_whitespace().any(|kind| kind == "deb"));
        let off = field("enabled").is_some_and(|enabled| enabled.trim().eq_ignore_ascii_case("no"));
        if !binary || off {
            continue;
        }
        let signed_by = field("signed-by");
        let uris = field("uris").unwrap_or_default();
        let signed_by = signed_by
            .as_deref()
            .and_then(|keys| keys.split_whitespace().next());
        mirrors.extend(uris.split_whitespace().map(|uri| mirror(uri, signed_by)));
    }
    mirrors
}

/// The value of the field `name` (in lower case) of a stanza, its continuation lines joined.
fn field(stanza: &[&str], name: &str) -> Option<String> {
    let start = stanza.iter().position(|line| {
        line.split_once(':')
            .is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
    })?;
    let mut value = stanza[start].split_once(':')?.1.trim().to_owned();
    for line in &stanza[start + 1..] {
        if !line.starts_with([' ', '\t']) {
            break;
        }
        value.push(' ');
        value.push_str(line.trim());
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(uri: &str, signed_by: Option<&str>) -> Mirror {
        mirror(uri, signed_by)
    }

    #[test]
    fn one_line_entries() {
        let text = "# deb http://old.example/debian stable main\n\
                    deb-src http://mirror.example/debian stable main\n\
                    deb [arch=amd64 signed-by=/keys/a.gpg] http://tools.example/apt stable main # x\n\
                    deb\thttp://mirror.example/debian/ stable main\n\
                    deb [ signed-by=/keys/b.gpg ] https://mirror.example/debian-security stable main\n";
        let expected = vec![
            named("http://tools.example/apt", Some("/keys/a.gpg")),
            named("http://mirror.example/debian", None),
            named(
                "https://mirror.example/debian-security",
                Some("/keys/b.gpg"),
            ),
        ];
        assert_eq!(one_line(text), expected);
        let debian: Vec<_> = expected.iter().filter(|mirror| is_debian(mirror)).collect();
        assert_eq!(debian, [&expected[1]]);
    }

    #[test]
    fn deb822_stanzas() {
        let text = "Types: deb-src\nURIs: http://sources.example/debian\n\n\
                    Enabled: no\nTypes: deb\nURIs: http://off.example/debian\n\n\
                    types: deb deb-src\n# a comment within\nURIs: http://a.example/debian/\n  http://b.example/x\n\
                    Suites: stable\nSigned-By: /keys/a.gpg\n\n\
                    Types: deb\nURIs: http://c.example/debian\nSigned-By:\n -----BEGIN PGP-----\n";
        let expected = vec![
            named("http://a.example/debian", Some("/keys/a.gpg")),
            named("http://b.example/x", Some("/keys/a.gpg")),
            named("http://c.example/debian", None),
        ];
        assert_eq!(deb822(text), expected);
    }

    #[test]
    fn only_settings_of_the_network_are_taken_over() {
        assert!(is_wanted_setting(
            "Acquire::http::Proxy \"http://proxy.example:3128\";"
        ));
        assert!(!is_wanted_setting("Acquire::http::Proxy \"\";"));
        assert!(!is_wanted_setting(
            "APT::Update::Post-Invoke:: \"rm -f x\";"
        ));
    }
}
