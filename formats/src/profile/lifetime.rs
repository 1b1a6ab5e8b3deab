//! How a command and the emulators that measure for it know of each other's end: by locks on files in the folder of the
//! request. The system takes a lock from whoever ends, however that happens, and no process number that is used again
//! can be mistaken.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::files_in;

/// The file that the command locks.
const COMMAND: &str = "command";

/// How the names of the files end that emulators lock.
const FILE_EXTENSION: &str = "emulator";

/// Says that a command runs, from its making until it is dropped. A command that is killed does not drop it.
#[derive(Debug)]
pub struct CommandLock(File);

impl CommandLock {
    /// Locks the command's file in this folder: call before an emulator starts.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn take(folder: &Path) -> io::Result<CommandLock> {
        let file = File::create_new(folder.join(COMMAND))?;
        file.lock()?;
        Ok(CommandLock(file))
    }
}

impl Drop for CommandLock {
    fn drop(&mut self) {
        // Before the lock goes: who gets it looks for this.
        let _ = self.0.set_len(1);
        // To close the file is not enough: a process between its fork and its exec has the lock, too.
        let _ = self.0.unlock();
    }
}

/// Blocks until the command of this folder has ended. Returns whether it did so by itself: behind one that was killed, an
/// emulator goes on measuring.
///
/// # Errors
/// What the operating system says; that there is no such file where no command waits for emulators.
pub fn wait_for_command(folder: &Path) -> io::Result<bool> {
    let file = File::open(folder.join(COMMAND))?;
    file.lock_shared()?;
    Ok(file.metadata()?.len() > 0)
}

/// Says that an emulator measures, as long as its process lives.
#[derive(Debug)]
pub struct EmulatorLock(File);

impl EmulatorLock {
    /// Locks the file of the emulator with this process number.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn take(folder: &Path, os_pid: u32) -> io::Result<EmulatorLock> {
        let path = file_of(folder, os_pid);
        let new = path.with_extension("starts");
        let file = File::create_new(&new)?;
        file.lock()?;
        // Under its name it is always locked: a look at it cannot take a start for an end.
        fs::rename(&new, path)?;
        Ok(EmulatorLock(file))
    }

    /// Notes that the emulator has written all that it will.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn note_written(&self) -> io::Result<()> {
        self.0.set_len(1)
    }
}

/// The file that the emulator with this process number locks.
fn file_of(folder: &Path, os_pid: u32) -> PathBuf {
    folder.join(format!("{os_pid}.{FILE_EXTENSION}"))
}

/// An emulator that has measured for a command, as the command sees it.
#[derive(Debug)]
pub struct Measuring {
    /// Its process number.
    pub os_pid: u32,
    file: File,
}

impl Measuring {
    /// Whether the emulator with this process number has said that it measures.
    #[must_use]
    pub fn has_begun(folder: &Path, os_pid: u32) -> bool {
        file_of(folder, os_pid).exists()
    }

    /// All emulators that have said in this folder that they measure, in order of their process numbers.
    ///
    /// # Errors
    /// One line when the folder or a file cannot be read.
    pub fn all(folder: &Path) -> Result<Vec<Measuring>, String> {
        let mut all = Vec::new();
        for path in files_in(folder, FILE_EXTENSION)? {
            let number = path
                .file_stem()
                .and_then(|name| name.to_str()?.parse().ok());
            let os_pid =
                number.ok_or_else(|| format!("{}: not a process number", path.display()))?;
            let file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            all.push(Measuring { os_pid, file });
        }
        all.sort_by_key(|one| one.os_pid);
        Ok(all)
    }

    /// Whether its process lives.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let locked = self.file.try_lock_shared();
        let is_running = matches!(locked, Err(TryLockError::WouldBlock));
        if locked.is_ok() {
            let _ = self.file.unlock();
        }
        is_running
    }

    /// Whether it has written all that it will.
    #[must_use]
    pub fn has_written(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.len() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_runs_until_its_lock_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!Measuring::has_begun(folder.path(), 7));
        let lock = EmulatorLock::take(folder.path(), 7).unwrap();
        assert!(Measuring::has_begun(folder.path(), 7));
        let all = Measuring::all(folder.path()).unwrap();
        let [seen] = all.as_slice() else {
            panic!("{all:?}")
        };
        assert_eq!(
            (seen.os_pid, seen.is_running(), seen.has_written()),
            (7, true, false)
        );
        lock.note_written().unwrap();
        assert!(seen.is_running() && seen.has_written());
        drop(lock);
        assert!(!seen.is_running() && seen.has_written());
    }

    #[test]
    fn a_command_that_was_killed_has_not_ended_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        File::create_new(folder.path().join(COMMAND)).unwrap();
        assert!(!wait_for_command(folder.path()).unwrap());
    }

    #[test]
    fn emulators_are_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let _locks = [10, 9, 100].map(|os_pid| EmulatorLock::take(folder.path(), os_pid).unwrap());
        let all = Measuring::all(folder.path()).unwrap();
        let numbers: Vec<u32> = all.iter().map(|one| one.os_pid).collect();
        assert_eq!(numbers, [9, 10, 100]);
    }

    #[test]
    fn an_emulator_waits_for_the_end_of_the_command() {
        let folder = tempfile::tempdir().unwrap();
        assert!(wait_for_command(folder.path()).is_err(), "there is none");
        let lock = CommandLock::take(folder.path()).unwrap();
        let file = File::open(folder.path().join(COMMAND)).unwrap();
        assert!(matches!(
            file.try_lock_shared(),
            Err(TryLockError::WouldBlock)
        ));
        let path = folder.path().to_owned();
        let waiting = std::thread::spawn(move || wait_for_command(&path));
        drop(lock);
        assert!(waiting.join().unwrap().unwrap());
    }
}
