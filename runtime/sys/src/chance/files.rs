//! Tells programs the properties of files that neither they nor their users determine.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

use beamline_settings::chance::Chance;
use parking_lot::Mutex;
use rustix::fs::{self, FileType, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::clock::{self, VIRTUAL_SYSTEM_NS};
use super::file_times::{Id, Moment, Times, stored};
use super::form;

/// The size that programs see of a folder: how much room it takes on a disk is its history.
const FOLDER_BYTES: i64 = 4096;

/// What programs see of a file whose status is `stat`. In a virtual run:
///
/// * its times are those of `file_times`;
/// * inodes and devices have numbers in the order in which programs see them;
/// * folders have one size.
pub fn told(stat: Stat) -> Stat {
    match form() {
        Chance::Live | Chance::Linked { .. } => stat,
        Chance::Virtual { begun_ns, .. } => told_virtually(stat, moment(*begun_ns)),
    }
}

fn told_virtually(mut stat: Stat, moment: Moment) -> Stat {
    TIMES.lock().tell(id(&stat), &mut stat, moment);
    (stat.st_dev, stat.st_ino) = NUMBERS.lock().of(id(&stat));
    if is_folder(&stat) {
        stat.st_size = FOLDER_BYTES;
    }
    stat
}

fn id(stat: &Stat) -> Id {
    (stat.st_dev, stat.st_ino)
}

static TIMES: Mutex<Times> = Mutex::new(Times::new());

fn moment(begun_ns: u64) -> Moment {
    Moment {
        begun_ns,
        real_ns: clock::outside_system_ns(),
        start_ns: VIRTUAL_SYSTEM_NS,
        virtual_ns: VIRTUAL_SYSTEM_NS.saturating_add(clock::monotonic_ns().cast_signed()),
    }
}

/// The program has written the open file `fd`.
pub fn written(fd: &OwnedFd) {
    match form() {
        Chance::Live | Chance::Linked { .. } => {}
        Chance::Virtual { begun_ns, .. } => note_written(fs::fstat(fd).ok(), *begun_ns),
    }
}

/// The program has added a name to the folder of `path`, or taken one out: that writes the folder.
pub fn name_changed(path: &CStr) {
    match form() {
        Chance::Live | Chance::Linked { .. } => {}
        Chance::Virtual { begun_ns, .. } => {
            note_written(fs::stat(&*folder_of(path)).ok(), *begun_ns);
        }
    }
}

fn note_written(stat: Option<Stat>, begun_ns: u64) {
    if let Some(stat) = stat {
        TIMES.lock().written(id(&stat), &stat, moment(begun_ns));
    }
}

fn folder_of(path: &CStr) -> CString {
    let bytes = path.to_bytes();
    let end = bytes
        .iter()
        .rposition(|&b| b != b'/')
        .map_or(0, |at| at + 1);
    let folder = match bytes[..end].iter().rposition(|&b| b == b'/') {
        Some(0) => &b"/"[..],
        Some(at) => &bytes[..at],
        None if end == 0 && !bytes.is_empty() => b"/",
        None => b".",
    };
    CString::new(folder).unwrap_or_default()
}

/// Opens the file at `path` with `open`, which makes it or cuts it to nothing if `is_emptied`.
pub fn opening<E>(
    path: &CStr,
    is_emptied: bool,
    open: impl FnOnce() -> Result<OwnedFd, E>,
) -> Result<OwnedFd, E> {
    match form() {
        Chance::Live | Chance::Linked { .. } => open(),
        Chance::Virtual { .. } => {
            let is_new = fs::stat(path).is_err();
            let fd = open()?;
            if is_new || is_emptied {
                written(&fd);
            }
            if is_new {
                name_changed(path);
            }
            Ok(fd)
        }
    }
}

/// Sets the times of the file at `path`, in seconds since 1970.
///
/// # Errors
/// What the system says.
pub fn set_times(path: &CStr, accessed: i64, modified: i64) -> Result<(), Errno> {
    match form() {
        Chance::Live | Chance::Linked { .. } => {
            let time = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
            set_disk(path, [accessed, modified].map(time))
        }
        Chance::Virtual { begun_ns, .. } => {
            set_virtually(path, accessed, modified, moment(*begun_ns))
        }
    }
}

fn set_virtually(path: &CStr, accessed: i64, modified: i64, moment: Moment) -> Result<(), Errno> {
    set_disk(path, [accessed, modified].map(|time| stored(time, moment)))?;
    if let Ok(stat) = fs::stat(path) {
        let times = (accessed, modified);
        TIMES.lock().set(id(&stat), &stat, times, moment);
    }
    Ok(())
}

fn set_disk(path: &CStr, [last_access, last_modification]: [Timespec; 2]) -> Result<(), Errno> {
    let times = Timestamps {
        last_access,
        last_modification,
    };
    fs::utimensat(fs::CWD, path, &times, fs::AtFlags::empty())
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// The numbers that stand for inodes and devices.
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
        Chance::Live | Chance::Linked { .. } => unlink(),
        Chance::Virtual { .. } => unlinking_virtually(path, unlink),
    }
}

fn unlinking_virtually<E>(path: &CStr, unlink: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    let before = fs::lstat(path).ok();
    unlink()?;
    if let Some(before) = before {
        let is_last = before.st_nlink <= 1 || is_folder(&before);
        let is_gone = fs::lstat(path).map_or(true, |after| id(&after) != id(&before));
        if is_last && is_gone {
            NUMBERS.lock().inodes.remove(&id(&before));
            TIMES.lock().forget(id(&before));
        }
    }
    name_changed(path);
    Ok(())
}

/// Puts the names in a folder into the order in which a list of them is made, the last one first; the file system's order
/// is as its history was.
pub fn order(names: &mut [Vec<u8>]) {
    match form() {
        Chance::Live | Chance::Linked { .. } => {}
        Chance::Virtual { .. } => names.sort_unstable_by(|a, b| b.cmp(a)),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn now() -> Moment {
        Moment {
            begun_ns: clock::outside_system_ns() - 1_000_000_000,
            real_ns: clock::outside_system_ns(),
            start_ns: VIRTUAL_SYSTEM_NS,
            virtual_ns: VIRTUAL_SYSTEM_NS + 5_000_000_000,
        }
    }

    #[test]
    fn what_a_program_sets_reads_back_and_the_disk_has_a_real_date() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let path = CString::new(file.as_os_str().as_bytes()).unwrap();
        let start = VIRTUAL_SYSTEM_NS / 1_000_000_000;
        for set in [1_000, start - 10, start, start + 3, start + 9999] {
            set_virtually(&path, set + 1, set, now()).unwrap();
            let disk = fs::stat(&*path).unwrap();
            let told = told_virtually(disk, now());
            assert_eq!((told.st_atime, told.st_mtime), (set + 1, set));
            let real = clock::outside_system_ns() / 1_000_000_000;
            assert!(
                disk.st_mtime <= real.cast_signed(),
                "{set}: {}",
                disk.st_mtime
            );
            assert!(
                disk.st_atime <= real.cast_signed(),
                "{set}: {}",
                disk.st_atime
            );
        }
        let told = told_virtually(fs::stat(folder.path()).unwrap(), now());
        assert_eq!(told.st_size, FOLDER_BYTES);
    }

    #[test]
    fn the_folder_of_a_path() {
        for (path, folder) in [
            (c"a", c"."),
            (c"a/b", c"a"),
            (c"/a", c"/"),
            (c"/a/b/", c"/a"),
            (c"/", c"/"),
            (c"", c"."),
        ] {
            assert_eq!(&*folder_of(path), folder, "{path:?}");
        }
    }

    #[test]
    fn an_inode_keeps_its_number_until_its_last_name_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path =
            |name: &str| CString::new(folder.path().join(name).as_os_str().as_bytes()).unwrap();
        let number = |name: &str| told_virtually(fs::lstat(&*path(name)).unwrap(), now()).st_ino;
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
