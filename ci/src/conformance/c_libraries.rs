//! Compiling the suites' libraries and programs in C, and the modules that go with them.
//!
//! A suite with such has a makefile, `Makefile.src` in its folder of data, in which OTP's test server replaces names
//! between `@`. We replace them by what compiles on this machine against the headers and `libei` of the OTP that runs
//! the suites. A name that we do not know is an error, as is a target that cannot be made.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Setup;
use crate::{headers, run};

/// The makefile of a folder of data, as OTP's source has it.
const SOURCE: &str = "Makefile.src";
/// Where the makefile that is run stands beside it.
const MADE: &str = "Makefile";
/// The file that says by its contents which makefile has been run to its end.
const DONE: &str = "Makefile.done";

/// Flags of every compilation; the suites' sources come with warnings.
const FLAGS: &str = "-O1 -w -fPIC -pthread";
/// What the suites' configuration would find in this C library.
const FOUND: &str =
    "-DHAVE_STRERROR -DHAVE_ISFINITE -DHAVE_VSNPRINTF -DHAVE_UNISTD_H -DHAVE_POLL_H";

/// For what is linked with `libei`: an OTP that was built for a newer C library than this machine's asks for names that
/// are not here, in functions that the suites do not call.
const NEWER_LIBEI: &str = "-Wl,--unresolved-symbols=ignore-all";

/// What stands for `@SHLIB_RULES@`: how a library comes from one file in C.
fn library_rules(flags: &str) -> String {
    format!(
        "%.o: %.c\n\tcc {flags} $(SHLIB_EXTRA_CFLAGS) -c -o $@ $<\n\
         %.so: %.o\n\tcc -shared -pthread -o $@ $< $(SHLIB_EXTRA_LDLIBS)\n"
    )
}

/// Does this folder of data have parts in C?
pub(super) fn is_in(data: &Path) -> bool {
    data.join(SOURCE).is_file()
}

/// The other folders of data that the makefile in `data` takes files from, as names beside it.
pub(super) fn neighbours(data: &Path) -> Result<Vec<String>> {
    if !is_in(data) {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(data.join(SOURCE))?;
    let words = text.split_whitespace();
    let named = words.filter_map(|word| word.strip_prefix("../"));
    let named = named.filter(|name| name.ends_with("_SUITE_data"));
    Ok(named.map(str::to_owned).collect())
}

/// Makes what the makefiles in `folders`, which are below `setup.dir`, ask for.
pub(super) fn build(setup: &Setup, folders: &[PathBuf]) -> Result<()> {
    let folders: Vec<_> = folders.iter().filter(|folder| is_in(folder)).collect();
    if folders.is_empty() {
        return Ok(());
    }
    let root = otp_root(setup)?;
    let mut failed = Vec::new();
    for folder in folders {
        if !make(setup, &root, folder)? {
            failed.push(log(folder).display().to_string());
        }
    }
    if !failed.is_empty() {
        bail!("not compiled; see {}", failed.join(", "));
    }
    Ok(())
}

fn log(folder: &Path) -> PathBuf {
    folder.join("make.log")
}

/// The root directory of the OTP that runs the suites, which has headers.
fn otp_root(setup: &Setup) -> Result<PathBuf> {
    let mut command = setup.place.command(&setup.dir, &setup.erl)?;
    command.args(["-noinput", "-eval"]);
    command.arg("io:put_chars(code:root_dir()), halt().");
    let root = run::output(&mut command).context("asking for OTP's root directory")?;
    let root = setup.place.outside(root.trim());
    headers::of(&root).context("the suites have parts in C")?;
    Ok(root)
}

/// Runs the makefile in `folder`, unless that is done. False: it failed.
fn make(setup: &Setup, root: &Path, folder: &Path) -> Result<bool> {
    let source = fs::read_to_string(folder.join(SOURCE))?;
    let makefile = makefile(&source, &values(setup, root, folder)?)
        .with_context(|| folder.join(SOURCE).display().to_string())?;
    let done = folder.join(DONE);
    if fs::read_to_string(&done).is_ok_and(|before| before == makefile) {
        return Ok(true);
    }
    fs::write(folder.join(MADE), &makefile)?;
    let log = File::create(log(folder))?;
    let mut make = Command::new("make");
    // All of it: what is there may be from another makefile.
    let jobs = format!("--jobs={}", setup.jobs);
    make.args(["--keep-going", "--always-make", &jobs]);
    // What an outer make would tell its inner ones is not for this one.
    make.env_remove("MAKEFLAGS").env_remove("MFLAGS");
    make.current_dir(folder).stdin(Stdio::null());
    make.stdout(log.try_clone()?).stderr(log);
    let status = make.status().context("starting make")?;
    if status.success() {
        fs::write(done, makefile)?;
    }
    Ok(status.success())
}

/// What the names of a makefile in `folder` stand for.
fn values(setup: &Setup, root: &Path, folder: &Path) -> Result<Vec<(&'static str, String)>> {
    let path = |path: PathBuf| {
        let path = path.to_str().context("OTP's directory is not UTF-8")?;
        anyhow::Ok(quoted(path))
    };
    let include = path(headers::of(root)?)?;
    let libei = path(root.join("usr/lib/libei.a"))?;
    let flags = format!("{FLAGS} {FOUND} -I. -I{include}");
    let erl = setup.place.command(folder, &setup.erl)?;
    let erl = std::iter::once(erl.get_program()).chain(erl.get_args());
    let erl: Option<Vec<_>> = erl.map(|word| word.to_str().map(quoted)).collect();
    let erl = erl.context("the command that runs suites is not UTF-8")?;
    let mut values = vec![
        ("CC", "cc".to_owned()),
        ("LD", "cc".to_owned()),
        ("SHLIB_RULES", library_rules(&flags)),
        ("SHLIB_CFLAGS", flags.clone()),
        ("CFLAGS", flags),
        ("LIBS", "-lm -pthread".to_owned()),
        ("dll", ".so".to_owned()),
        ("obj", ".o".to_owned()),
        ("erl_include", include.clone()),
        ("erl_interface_include", include),
        ("erl_interface_eilib", libei),
        ("erl_interface_threadlib", "-pthread".to_owned()),
        ("erl_interface_sock_libs", NEWER_LIBEI.to_owned()),
        ("erl_name", erl.join(" ")),
        ("EMULATOR", "beam".to_owned()),
    ];
    // What other systems need.
    let nothing = [
        "CROSSLDFLAGS",
        "DEFS",
        "EI_CFLAGS",
        "WSL",
        "erl_interface_mk_include",
        "exe",
    ];
    values.extend(nothing.map(|name| (name, String::new())));
    Ok(values)
}

/// The makefile for this machine.
fn makefile(source: &str, values: &[(&str, String)]) -> Result<String> {
    let mut text = String::new();
    let mut rest = source;
    while let Some((before, after)) = rest.split_once('@') {
        text.push_str(before);
        rest = match name_before_at(after) {
            Some((name, after)) => {
                let value = values.iter().find(|(known, _)| *known == name);
                let (_, value) = value.with_context(|| format!("no value for @{name}@"))?;
                text.push_str(value);
                after
            }
            None => {
                text.push('@');
                after
            }
        };
    }
    text.push_str(rest);
    Ok(text)
}

/// A name up to the next `@`, and what is behind it. None: that `@` is one of the makefile's own, as in `$@`.
fn name_before_at(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.split_once('@')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    is_name.then_some((name, after))
}

/// A word as it stands in a makefile's command.
fn quoted(word: &str) -> String {
    let word = word.replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &'static str, value: &str) -> (&'static str, String) {
        (name, value.to_owned())
    }

    #[test]
    fn names_are_replaced_and_the_rest_stays() {
        let values = [
            value("CFLAGS", "-w"),
            value("dll", ".so"),
            value("erl_name", "erl"),
        ];
        let source = "all: a@dll@ b@dll@\n\t@erl_name@ -compile b\n\tcat $@.tmp > $@\n";
        assert_eq!(
            makefile(source, &values).unwrap(),
            "all: a.so b.so\n\terl -compile b\n\tcat $@.tmp > $@\n"
        );
        let unknown = makefile("a@exe@", &values).unwrap_err();
        assert_eq!(unknown.to_string(), "no value for @exe@");
    }

    #[test]
    fn words_in_a_command() {
        assert_eq!(quoted("/usr/bin/erl"), "/usr/bin/erl");
        assert_eq!(quoted("cd \"$1\""), "'cd \"$$1\"'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
