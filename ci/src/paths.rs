//! Where things are: the clone, the build folder.

use std::path::{Path, PathBuf};

/// The top of the clone.
pub(crate) fn workspace() -> PathBuf {
    // Cargo sets the variable for `cargo run`; the value at compile time serves a bare executable.
    let ci = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    ci.parent().map(Path::to_owned).unwrap_or(ci)
}

/// Cargo's build folder, absolute.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => workspace().join(dir),
        None => workspace().join("target"),
    }
}
