//! Handles programs that start an emulator by another way than `erl` on PATH: releases, and OTP's own programs.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{Otp, symlink};

/// The programs in the `bin` folder of an emulator that are this executable.
const OURS: [&str; 5] = ["beam.smp", "erl", "erlc", "erlexec", "escript"];

/// The emulator that a program starts because it lies beside it: `erts-VERSION` in the folder above the program's own.
/// A release that was made with its emulator has one, and OTP has.
pub(super) fn own_emulator(program: &Path) -> Option<PathBuf> {
    let program = program.canonicalize().ok()?;
    let base = program.ancestors().nth(2)?;
    let entries = fs::read_dir(base).ok()?.filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"erts-"))
        .map(|entry| entry.path())
        .find(|erts| erts.join("bin/erlexec").exists())
}

/// Is it a script that starts `erlexec` of the OTP that `erl` names? So do releases that `relx` made.
pub(super) fn starts_erlexec(program: &Path) -> bool {
    let read = || -> io::Result<bool> {
        let mut file = fs::File::open(program)?;
        let mut start = [0; 2];
        file.read_exact(&mut start)?;
        // Most programs are none, and large.
        if start != *b"#!" {
            return Ok(false);
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text.contains("/erlexec"))
    };
    read().unwrap_or(false)
}

/// Makes an OTP in which the emulator is this executable, and all else is as in the other: by links to it.
///
/// # Errors
/// One line when a link cannot be made.
pub(super) fn mirror(otp: &Otp, to: &Path, this: &Path) -> Result<(), String> {
    let bin = Path::new(&otp.bindir);
    let erts = bin.parent().unwrap_or(bin);
    let root = Path::new(&otp.root);
    let name = erts.file_name().unwrap_or_default();
    let (to_erts, to_bin) = (to.join(name), to.join(name).join("bin"));
    fs::create_dir_all(&to_bin).map_err(|e| format!("{}: {e}", to_bin.display()))?;
    link_all(root, to, &[name.to_str().unwrap_or_default()])?;
    link_all(erts, &to_erts, &["bin"])?;
    link_all(bin, &to_bin, &OURS)?;
    for name in OURS {
        symlink(this, &to_bin.join(name))?;
    }
    Ok(())
}

/// Links to all in a folder but what is named.
fn link_all(from: &Path, to: &Path, but: &[&str]) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", from.display());
    // An OTP that is there only to be run has no emulator of its own.
    if !from.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(from).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        if but.iter().all(|one| name != *one) {
            symlink(&entry.path(), &to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn emulators_beside_programs_are_found() {
        let folder = folder(&[
            ("with/erts-17.1/bin/erlexec", ""),
            ("with/bin/app", "#!/bin/sh\n"),
            ("without/bin/app", "#!/bin/sh\nexec \"$BINDIR/erlexec\"\n"),
            ("without/erts-17.1/doc", ""),
        ]);
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        assert_eq!(
            own_emulator(&at("with/bin/app")),
            Some(at("with/erts-17.1"))
        );
        symlink(&at("with/bin/app"), &at("app")).unwrap();
        assert_eq!(own_emulator(&at("app")), Some(at("with/erts-17.1")));
        assert_eq!(own_emulator(&at("without/bin/app")), None);
        assert!(starts_erlexec(&at("without/bin/app")));
        assert!(!starts_erlexec(&at("with/bin/app")));
    }

    #[test]
    fn a_mirror_is_ours_where_it_matters() {
        let files = [
            "erts-1/bin/erlexec",
            "erts-1/bin/epmd",
            "erts-1/doc/x",
            "lib/a/x",
            "COPYRIGHT",
        ];
        let folder = folder(&files.map(|name| (name, "theirs")));
        let this = folder.path().join("this");
        fs::write(&this, "ours").unwrap();
        let root = folder.path().to_str().unwrap().to_owned();
        let bindir = format!("{root}/erts-1/bin");
        let to = tempfile::tempdir().unwrap();
        mirror(&Otp { root, bindir }, &to.path().join("otp"), &this).unwrap();
        for (name, whose) in [
            ("erts-1/bin/erlexec", "ours"),
            ("erts-1/bin/beam.smp", "ours"),
            ("erts-1/bin/epmd", "theirs"),
            ("erts-1/doc/x", "theirs"),
            ("lib/a/x", "theirs"),
            ("COPYRIGHT", "theirs"),
        ] {
            let path = to.path().join("otp").join(name);
            assert_eq!(fs::read_to_string(path).unwrap(), whose, "{name}");
        }
    }
}
