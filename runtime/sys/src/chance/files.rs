//! Tells programs the properties of files that neither they nor their users determine.

use std::collections::BTreeMap;
use std::ffi::CStr;

use beamline_formats::chance::Chance;
use parking_lot::Mutex;
use rustix::fs::{self, FileType, Stat};

use super::clock::VIRTUAL_SYSTEM_NS;
use super::form;

/// Nanoseconds in a second.
const SECOND_NS: u64 = 1_000_000_000;

/// The time of every file that the run has written, in seconds since 1970: when virtual time starts. It is later than that
/// of any file from before, as programs compare the two.
const WRITTEN_BY_RUN: i64 = VIRTUAL_SYSTEM_NS / SECOND_NS.cast_signed();

/// The kernel stamps files by a clock that lags behind the one that programs read.
const LAG_NS: u64 = 20_000_000;

/// What a folder's own size is told to be: how much room it takes on a disk is its history.
const FOLDER_BYTES: i64 = 4096;

/// What is told of a file whose status is `stat`. In a virtual run:
///
/// * its one time is that of its last change, or the same for all files that the run has written. Every reader changes
///   the time of the last access, and every copy that of the inode;
/// * inodes and devices have numbers in the order in which they are told of;
/// * folders have one size.
pub fn told(stat: Stat) -> Stat {
    match form() {
        Chance::Live => stat,
        Chance::Virtual { begun_ns, .. } => told_virtually(stat, *begun_ns),
    }
}

fn told_virtually(mut stat: Stat, begun_ns: u64) -> Stat {
    (stat.st_dev, stat.st_ino) = NUMBERS.lock().of((stat.st_dev, stat.st_ino));
    let changed_ns =
        i128::from(stat.st_mtime) * i128::from(SECOND_NS) + i128::from(stat.st_mtime_nsec);
    let is_of_run = changed_ns >= i128::from(begun_ns.saturating_sub(LAG_NS));
    if is_of_run || stat.st_mtime > WRITTEN_BY_RUN {
        stat.st_mtime = WRITTEN_BY_RUN;
    }
    stat.st_atime = stat.st_mtime;
    stat.st_ctime = stat.st_mtime;
    if is_folder(&stat) {
        stat.st_size = FOLDER_BYTES;
    }
    stat
}

/// What a file's time is set to when a program sets it to `seconds` since 1970. A time of the run is stored as a real one
/// of the run, so that other programs do not find files of the future.
pub fn stored(seconds: i64) -> i64 {
    match form() {
        Chance::Live => seconds,
        Chance::Virtual { begun_ns, .. } => stored_virtually(seconds, *begun_ns),
    }
}

fn stored_virtually(seconds: i64, begun_ns: u64) -> i64 {
    match seconds >= WRITTEN_BY_RUN {
        true => (begun_ns / SECOND_NS + 1).cast_signed(),
        false => seconds,
    }
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// A device and an inode.
type Id = (u64, u64);

/// The numbers that inodes and devices are told by.
struct Numbers {
    inodes: BTreeMap<Id, u64>,
    devices: BTreeMap<u64, u64>,
    last_inode: u64,
}

impl Numbers {
    const fn new() -> Numbers {
        Numbers {
            inodes: BTreeMap::new(),
            devices: BTreeMap::new(),
            last_inode: 0,
        }
    }

    fn of(&mut self, (device, inode): Id) -> Id {
        let next_device = self.devices.len() as u64 + 1;
        let told_device = *self.devices.entry(device).or_insert(next_device);
        let told_inode = *self.inodes.entry((device, inode)).or_insert_with(|| {
            self.last_inode += 1;
            self.last_inode
        });
        (told_device, told_inode)
    }
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers::new());

/// Does what may take the last name of the file at `path`. Its inode is then free for another file, which gets a number
/// of its own: whether a file system uses an inode again is chance.
pub fn unlinking<E>(path: &CStr, unlink: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    match form() {
        Chance::Live => unlink(),
        Chance::Virtual { .. } => unlinking_virtually(path, unlink),
    }
}

fn unlinking_virtually<E>(path: &CStr, unlink: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    let id = |stat: &Stat| (stat.st_dev, stat.st_ino);
    let before = fs::lstat(path).ok();
    unlink()?;
    if let Some(before) = before {
        let is_last = before.st_nlink <= 1 || is_folder(&before);
        let is_gone = fs::lstat(path).map_or(true, |after| id(&after) != id(&before));
        if is_last && is_gone {
            NUMBERS.lock().inodes.remove(&id(&before));
        }
    }
    Ok(())
}

/// Puts the names in a folder into the order in which a list of them is made, the last one first; the file system's order
/// is as its history was.
pub fn order(names: &mut [Vec<u8>]) {
    match form() {
        Chance::Live => {}
        Chance::Virtual { .. } => names.sort_unstable_by(|a, b| b.cmp(a)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn files_from_before_keep_their_time_and_those_of_the_run_have_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let stat = fs::stat(&file).unwrap();
        let written = stat.st_mtime;
        let after = told_virtually(stat, (written as u64 + 100) * SECOND_NS);
        let during = told_virtually(stat, (written as u64 - 100) * SECOND_NS);
        assert_eq!((after.st_mtime, during.st_mtime), (written, WRITTEN_BY_RUN));
        for told in [after, during] {
            assert_eq!(
                (told.st_atime, told.st_ctime),
                (told.st_mtime, told.st_mtime)
            );
            assert_eq!(told.st_size, 1);
        }
        let told = told_virtually(fs::stat(folder.path()).unwrap(), 0);
        assert_eq!(told.st_size, FOLDER_BYTES);
    }

    #[test]
    fn times_that_the_run_sets_are_told_as_its_own() {
        let mut stat = fs::stat(".").unwrap();
        let begun_ns = 1_800_000_000 * SECOND_NS + 5;
        for (set, told) in [
            (1_000, 1_000),
            (WRITTEN_BY_RUN - 1, WRITTEN_BY_RUN),
            (WRITTEN_BY_RUN, WRITTEN_BY_RUN),
            (WRITTEN_BY_RUN + 10, WRITTEN_BY_RUN),
        ] {
            (stat.st_mtime, stat.st_mtime_nsec) = (stored_virtually(set, begun_ns), 0);
            assert_eq!(told_virtually(stat, begun_ns).st_mtime, told, "{set}");
        }
    }

    #[test]
    fn an_inode_keeps_its_number_until_its_last_name_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path =
            |name: &str| CString::new(folder.path().join(name).as_os_str().as_bytes()).unwrap();
        let number = |name: &str| told_virtually(fs::lstat(&*path(name)).unwrap(), 0).st_ino;
        std::fs::write(folder.path().join("a"), "").unwrap();
        fs::link(&*path("a"), &*path("b")).unwrap();
        let a = number("a");
        assert_eq!(number("b"), a);
        unlinking_virtually(&path("a"), || fs::unlink(&*path("a"))).unwrap();
        assert_eq!(number("b"), a, "it has a name yet");
        unlinking_virtually(&path("b"), || fs::rename(&*path("b"), &*path("b"))).unwrap();
        assert_eq!(number("b"), a, "it is renamed to its own name");
        assert!(unlinking_virtually(&path("b"), || fs::rmdir(&*path("b"))).is_err());
        assert_eq!(number("b"), a, "it could not be removed");
        unlinking_virtually(&path("b"), || fs::unlink(&*path("b"))).unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        assert!(number("a") > a);
    }
}
