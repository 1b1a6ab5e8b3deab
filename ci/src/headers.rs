//! OTP's headers for libraries in C, and the compiler that is called with them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

/// The folder of headers of the OTP in `root`.
pub(crate) fn of(root: &Path) -> Result<PathBuf> {
    let headers = root.join("usr/include");
    ensure!(
        headers.join("erl_nif.h").is_file(),
        "the OTP in {} has no erl_nif.h (Debian's package is erlang-dev)",
        root.display()
    );
    Ok(headers)
}

/// A command that makes the library `to` against the headers of the OTP in `root`; sources and further flags are to be
/// added.
pub(crate) fn cc(root: &Path, to: &Path) -> Result<Command> {
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-fPIC", "-shared", "-I"]).arg(of(root)?);
    cc.arg("-o").arg(to);
    Ok(cc)
}
