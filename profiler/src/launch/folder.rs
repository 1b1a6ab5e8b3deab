//! The folder of a launch, which holds links, compiled files, and what emulators write. It is removed when the launch
//! ends.

use std::fs::{self, File, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use beamline_settings::chance::folder_of_run;

/// The most deterministic runs at once. Each takes the first name that is free.
const FIXED_MAX: u32 = 1000;

/// The folder of a launch.
pub(super) enum Folder {
    /// With a name of its own.
    Own(tempfile::TempDir),
    /// With a name that is the same in every run.
    Fixed {
        path: PathBuf,
        /// Locked as long as the folder is in use.
        _lock: File,
    },
}

impl Folder {
    /// A new folder, empty.
    pub(super) fn new(fixed: bool) -> Result<Folder> {
        if fixed {
            return Folder::fixed();
        }
        let made = tempfile::Builder::new().prefix("beamline-").tempdir();
        made.map(Folder::Own)
    }

    fn fixed() -> Result<Folder> {
        for number in 0..FIXED_MAX {
            let path = folder_of_run(number);
            let lock = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
                .open(path.with_extension("lock"));
            let lock = match lock {
                // Another user's.
                Err(e) if e.kind() == ErrorKind::PermissionDenied => continue,
                lock => lock?,
            };
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                locked => locked?,
            }
            match fs::remove_dir_all(&path) {
                // Of a run that was killed.
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            return Ok(Folder::Fixed { path, _lock: lock });
        }
        Err(Error::other("too many deterministic runs at once"))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        match self {
            Folder::Own(folder) => folder.path(),
            Folder::Fixed { path, .. } => path,
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Folder::Fixed { path, .. } = self {
            // What cannot be removed is, by the next run that takes the name.
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_at_once_have_folders_of_their_own_and_leave_none() {
        let (a, b) = (Folder::new(true).unwrap(), Folder::new(true).unwrap());
        assert_ne!(a.path(), b.path());
        assert_eq!(a.path().as_os_str().len(), b.path().as_os_str().len());
        let path = a.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(a);
        assert!(!path.exists());
    }
}
