//! The native functions of `prim_file`: files and the file system. Source: `prim_file_nif.c`, `unix_prim_file.c`, OTP
//! 29.
//!
//! A file is closed by `close_nif/1`, or when the last reference to it is collected (with its owner's heap at the
//! latest). Differs: ERTS leaves a file open, whose reference was collected, until its owner dies.
//!
//! Not here: the checks of whoever owns a file, which `prim_file.erl` makes.

mod turns;

use std::ffi::CString;
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use parking_lot::Mutex;
use rustix::buffer::spare_capacity;
use rustix::fs::{self, Access, Advice, FallocateFlags, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

use super::{
    atom, error, inspect_iovec, int, int64, is_number, new_object, object, ok, posix_error,
};
use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::process::Process;
use crate::sys::chance::{files, outside, paths};
use crate::sys::{file, memory};
use crate::term::{Bits, Term, View, am};

bifs! {
    dirty_file prim_file:"open_nif"/2 => open_nif_2, again;
    dirty_io prim_file:"close_nif"/1 => close_nif_1, outside;
    dirty_file prim_file:"read_nif"/2 => read_nif_2, read;
    dirty_file prim_file:"write_nif"/2 => write_nif_2, outside;
    dirty_file prim_file:"pread_nif"/3 => pread_nif_3, read;
    dirty_file prim_file:"pwrite_nif"/3 => pwrite_nif_3, outside;
    dirty_file prim_file:"seek_nif"/3 => seek_nif_3, outside;
    dirty_io prim_file:"sync_nif"/2 => sync_nif_2, outside;
    dirty_file prim_file:"truncate_nif"/1 => truncate_nif_1, outside;
    dirty_file prim_file:"allocate_nif"/3 => allocate_nif_3, outside;
    dirty_io prim_file:"advise_nif"/4 => advise_nif_4, outside;
    dirty_io prim_file:"read_handle_info_nif"/1 => read_handle_info_nif_1, answer;
    dirty_file prim_file:"make_hard_link_nif"/2 => make_hard_link_nif_2, outside;
    dirty_file prim_file:"make_soft_link_nif"/2 => make_soft_link_nif_2, outside;
    dirty_file prim_file:"rename_nif"/2 => rename_nif_2, outside;
    dirty_io prim_file:"read_info_nif"/2 => read_info_nif_2, answer;
    dirty_file prim_file:"set_permissions_nif"/2 => set_permissions_nif_2, outside;
    dirty_file prim_file:"set_owner_nif"/3 => set_owner_nif_3, outside;
    dirty_file prim_file:"set_time_nif"/4 => set_time_nif_4, outside;
    dirty_io prim_file:"read_link_nif"/1 => read_link_nif_1, answer;
    dirty_io prim_file:"list_dir_nif"/1 => list_dir_nif_1, answer;
    dirty_file prim_file:"make_dir_nif"/1 => make_dir_nif_1, outside;
    dirty_file prim_file:"del_file_nif"/1 => del_file_nif_1, outside;
    dirty_file prim_file:"del_dir_nif"/1 => del_dir_nif_1, outside;
    dirty_io prim_file:"get_device_cwd_nif"/1 => get_device_cwd_nif_1, answer;
    dirty_file prim_file:"set_cwd_nif"/1 => set_cwd_nif_1, outside;
    dirty_io prim_file:"get_cwd_nif"/0 => get_cwd_nif_0, answer;
    dirty_file prim_file:"ipread_s32bu_p32bu_nif"/3 => ipread_s32bu_p32bu_nif_3, read;
    dirty_file prim_file:"read_file_nif"/1 => read_file_nif_1, read;
    bif prim_file:"get_handle_nif"/1 => get_handle_nif_1, answer;
    dirty_io prim_file:"delayed_close_nif"/1 => delayed_close_nif_1, again;
    dirty_io prim_file:"altname_nif"/1 => altname_nif_1, answer;
    dirty_io prim_file:"file_desc_to_ref_nif"/1 => file_desc_to_ref_nif_1, again;
}

/// Times that convert freely between universal, local and POSIX time: 1902-01-01 to 9999-12-31.
const FILETIME_RANGE: (i64, i64) = (-2_145_916_800, 253_402_300_799);

/// An open file, or one that was closed.
struct File {
    fd: Mutex<Option<OwnedFd>>,
    ordered: Option<turns::Ordered>,
}

/// Another descriptor of the open file behind `handle`; `None` for what is no file.
pub(super) fn duplicate(handle: Term<'_>) -> Option<Result<OwnedFd, Errno>> {
    let file = object::<File>(handle).ok()?;
    let fd = file.fd.try_lock();
    let open = fd.as_ref().and_then(|fd| fd.as_ref());
    Some(match open {
        Some(fd) => rustix::io::fcntl_dupfd_cloexec(fd, 0),
        None => Err(Errno::INVAL),
    })
}

type OsResult<T> = Result<T, Errno>;

/// A call's error: an exception, or an error number to answer with.
enum Fail {
    Raise(Raise<'static>),
    Os(Errno),
}

impl From<Raise<'static>> for Fail {
    fn from(raise: Raise<'static>) -> Self {
        Fail::Raise(raise)
    }
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Self {
        Fail::Os(errno)
    }
}

/// A call's result, with `{error, Posix}` for an error number.
fn answer<'p>(p: &'p Process, result: Result<Term<'p>, Fail>) -> BifResult<'p> {
    match result {
        Ok(term) => Ok(term),
        Err(Fail::Os(errno)) => Ok(posix_error(p, errno.raw_os_error())),
        Err(Fail::Raise(raise)) => Err(raise.into()),
    }
}

/// `ok`, or `{error, Posix}`.
fn done<'p>(p: &'p Process, result: Result<(), Fail>) -> BifResult<'p> {
    answer(p, result.map(|()| am::ok.term()))
}

/// Runs `operation` on the open file behind `handle`; `einval` when it is closed, or busy.
fn with_fd<T>(
    handle: Term<'_>,
    operation: impl FnOnce(&OwnedFd) -> Result<T, Fail>,
) -> Result<T, Fail> {
    let file = object::<File>(handle)?;
    let Some(fd) = file.fd.try_lock() else {
        return Err(Errno::INVAL.into());
    };
    operation(fd.as_ref().ok_or(Errno::INVAL)?)
}

/// A path: a binary that ends in zero bytes and has none before.
fn path(name: Term<'_>) -> OsResult<CString> {
    let bytes = name.as_binary().ok_or(Errno::INVAL)?.bytes();
    let end = bytes.iter().position(|&b| b == 0).ok_or(Errno::INVAL)?;
    if bytes[end..].iter().any(|&b| b != 0) {
        return Err(Errno::INVAL);
    }
    CString::new(paths::real(bytes[..end].to_vec())).map_err(|_| Errno::INVAL)
}

fn retry<T>(mut call: impl FnMut() -> OsResult<T>) -> OsResult<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

#[derive(Default)]
struct Modes {
    read: bool,
    write: bool,
    exclusive: bool,
    append: bool,
    sync: bool,
    skip_type_check: bool,
    directory: bool,
}

impl Modes {
    /// Unknown modes are for the layers above, which have seen to them.
    fn from_list(list: Term<'_>) -> Modes {
        let mut modes = Modes::default();
        for mode in list.list_iter().map_while(Result::ok) {
            let Some(mode) = mode.as_atom() else { continue };
            match mode.name() {
                "read" => modes.read = true,
                "write" => modes.write = true,
                "exclusive" => modes.exclusive = true,
                "append" => modes.append = true,
                "sync" => modes.sync = true,
                "skip_type_check" => modes.skip_type_check = true,
                "directory" => modes.directory = true,
                _ => {}
            }
        }
        if modes.append || modes.exclusive {
            modes.write = true;
        } else if !modes.write {
            modes.read = true;
        }
        modes
    }

    fn flags(&self) -> OFlags {
        let mut flags = match (self.read, self.write) {
            (true, true) => OFlags::RDWR | OFlags::CREATE,
            (false, true) => OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC,
            _ => OFlags::RDONLY,
        };
        if self.append {
            flags.remove(OFlags::TRUNC);
            flags |= OFlags::APPEND;
        }
        flags.set(OFlags::EXCL, self.exclusive);
        flags.set(OFlags::SYNC, self.sync);
        flags.set(OFlags::DIRECTORY, self.directory);
        // Programs that ports start must not get the file.
        flags | OFlags::CLOEXEC
    }
}

fn open(path: &CString, modes: &Modes) -> OsResult<OwnedFd> {
    let permissions = if modes.directory { 0o777 } else { 0o666 };
    let mode = Mode::from_bits_truncate(permissions);
    let flags = modes.flags();
    let open = || retry(|| fs::open(path, flags, mode));
    let fd = match flags.contains(OFlags::CREATE) {
        true => files::opening(path, flags.contains(OFlags::TRUNC), open)?,
        false => open()?,
    };
    if !modes.skip_type_check && !modes.directory {
        // A directory can be opened for reading, which other systems refuse.
        let is_dir = fs::fstat(&fd)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        if is_dir {
            return Err(Errno::ISDIR);
        }
    }
    Ok(fd)
}

fn new_file(p: &Process, fd: OwnedFd, ordered: Option<turns::Ordered>) -> Term<'_> {
    let fd = Mutex::new(Some(fd));
    ok(p, new_object(p, File { fd, ordered }))
}

/// A deterministic run names the files it opens, but for code.
fn note_opened(path: &CString) {
    let path = path.to_string_lossy();
    if !path.ends_with(".beam") && !path.ends_with(".app") {
        outside::take(|| format!("file {path}"));
    }
}

fn open_nif_2<'p>(p: &'p Process, [name, modes]: [Term<'p>; 2]) -> BifResult<'p> {
    if !matches!(modes.view(), View::Nil | View::Cons(_)) {
        return Err(badarg().into());
    }
    let open = || -> Result<Term<'p>, Fail> {
        let path = path(name)?;
        let fd = open(&path, &Modes::from_list(modes))?;
        note_opened(&path);
        let ordered = turns::Ordered::of(&fd, &path);
        Ok(new_file(p, fd, ordered))
    };
    answer(p, open())
}

fn file_desc_to_ref_nif_1<'p>(p: &'p Process, [fd]: [Term<'p>; 1]) -> BifResult<'p> {
    let fd = int(fd)?;
    Ok(match file::adopt(fd) {
        Ok(fd) => new_file(p, fd, None),
        Err(e) => super::io_error(p, &e),
    })
}

fn close_nif_1<'p>(p: &'p Process, [handle]: [Term<'p>; 1]) -> BifResult<'p> {
    let file = object::<File>(handle)?;
    let fd = file.fd.try_lock().and_then(|mut fd| fd.take());
    Ok(match fd.map(file::close) {
        None => posix_error(p, libc::EINVAL),
        Some(Ok(())) => am::ok.term(),
        Some(Err(e)) => super::io_error(p, &e),
    })
}

/// What `prim_file`'s helper process calls for files whose owner has died.
fn delayed_close_nif_1<'p>(_p: &'p Process, [handle]: [Term<'p>; 1]) -> BifResult<'p> {
    let fd = object::<File>(handle)?.fd.lock().take();
    drop(fd);
    Ok(am::ok.term())
}

/// Room for `size` bytes.
fn buffer(size: i64) -> OsResult<Vec<u8>> {
    let size = usize::try_from(size).map_err(|_| Errno::INVAL)?;
    let mut bytes = Vec::new();
    memory::try_reserve(&mut bytes, size).ok_or(Errno::NOMEM)?;
    Ok(bytes)
}

/// Fills the room in `bytes`, up to `end`, as far as there is data; at `offset`, or at the file's position.
fn fill(fd: &OwnedFd, bytes: &mut Vec<u8>, end: usize, mut offset: Option<u64>) -> OsResult<()> {
    while bytes.len() < end {
        let n = retry(|| match offset {
            None => rustix::io::read(fd, spare_capacity(bytes)),
            Some(at) => rustix::io::pread(fd, spare_capacity(bytes), at),
        })?;
        if n == 0 {
            break;
        }
        offset = offset.map(|at| at + n as u64);
    }
    bytes.truncate(end);
    Ok(())
}

/// `{ok, Binary}` of what was read, or `eof`.
fn read_result(p: &Process, mut bytes: Vec<u8>) -> Term<'_> {
    if bytes.is_empty() {
        return atom("eof");
    }
    bytes.shrink_to_fit();
    ok(p, p.binary_from_vec(bytes))
}

fn read_nif_2<'p>(p: &'p Process, [handle, size]: [Term<'p>; 2]) -> BifResult<'p> {
    let read = with_fd(handle, |fd| {
        if !is_number(size) {
            return Err(badarg().into());
        }
        let size = int64(size).ok_or(Errno::INVAL)?;
        let mut bytes = buffer(size)?;
        fill(fd, &mut bytes, size as usize, None)?;
        Ok(read_result(p, bytes))
    });
    answer(p, read)
}

/// A file offset or a size: not negative.
fn position(t: Term<'_>) -> OsResult<u64> {
    int64(t)
        .and_then(|n| u64::try_from(n).ok())
        .ok_or(Errno::INVAL)
}

fn numbers(terms: &[Term<'_>]) -> Result<(), Fail> {
    if terms.iter().all(|&t| is_number(t)) {
        Ok(())
    } else {
        Err(badarg().into())
    }
}

fn pread_nif_3<'p>(p: &'p Process, [handle, offset, size]: [Term<'p>; 3]) -> BifResult<'p> {
    let read = with_fd(handle, |fd| {
        numbers(&[offset, size])?;
        let (offset, size) = (position(offset)?, position(size)?);
        let mut bytes = buffer(size as i64)?;
        fill(fd, &mut bytes, size as usize, Some(offset))?;
        Ok(read_result(p, bytes))
    });
    answer(p, read)
}

/// Writes all of `pieces`, at `offset` or at the file's position. Gives the number of bytes.
fn write_all(fd: &OwnedFd, pieces: &[Bits<'_>], mut offset: Option<u64>) -> OsResult<u64> {
    let bytes: Vec<_> = pieces.iter().map(|bits| bits.bytes()).collect();
    let mut slices: Vec<IoSlice<'_>> = bytes.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut slices = &mut slices[..];
    IoSlice::advance_slices(&mut slices, 0);
    let mut written = 0;
    while !slices.is_empty() {
        let n = retry(|| match offset {
            None => rustix::io::writev(fd, slices),
            Some(at) => rustix::io::pwritev(fd, slices, at),
        })?;
        written += n as u64;
        offset = offset.map(|at| at + n as u64);
        IoSlice::advance_slices(&mut slices, n);
    }
    files::written(fd);
    Ok(written)
}

fn write_nif_2<'p>(p: &'p Process, [handle, iovec]: [Term<'p>; 2]) -> BifResult<'p> {
    let write = with_fd(handle, |fd| {
        let (pieces, tail) = inspect_iovec(iovec)?;
        write_all(fd, &pieces, None)?;
        Ok(tail)
    });
    answer(
        p,
        write.map(|tail| match tail.view() {
            View::Nil => am::ok.term(),
            _ => p.tuple(&[atom("continue"), tail]),
        }),
    )
}

fn pwrite_nif_3<'p>(p: &'p Process, [handle, offset, iovec]: [Term<'p>; 3]) -> BifResult<'p> {
    let write = with_fd(handle, |fd| {
        numbers(&[offset])?;
        let (pieces, tail) = inspect_iovec(iovec)?;
        let written = write_all(fd, &pieces, Some(position(offset)?))?;
        Ok((written, tail))
    });
    answer(
        p,
        write.map(|(written, tail)| match tail.view() {
            View::Nil => am::ok.term(),
            _ => p.tuple(&[atom("continue"), p.unsigned(written), tail]),
        }),
    )
}

fn seek_nif_3<'p>(p: &'p Process, [handle, mark, offset]: [Term<'p>; 3]) -> BifResult<'p> {
    let seek = with_fd(handle, |fd| {
        let offset = int64(offset).ok_or_else(badarg)?;
        let mark = mark.as_atom().ok_or_else(badarg)?;
        let to = match mark.name() {
            "bof" => SeekFrom::Start(u64::try_from(offset).map_err(|_| Errno::INVAL)?),
            "cur" => SeekFrom::Current(offset),
            "eof" => SeekFrom::End(offset),
            _ => return Err(badarg().into()),
        };
        let position = fs::seek(fd, to)?;
        Ok(ok(p, p.unsigned(position)))
    });
    answer(p, seek)
}

fn sync_nif_2<'p>(p: &'p Process, [handle, data_only]: [Term<'p>; 2]) -> BifResult<'p> {
    let sync = with_fd(handle, |fd| {
        if int(data_only)? == 0 {
            fs::fsync(fd)?;
        } else {
            fs::fdatasync(fd)?;
        }
        Ok(())
    });
    done(p, sync)
}

fn truncate_nif_1<'p>(p: &'p Process, [handle]: [Term<'p>; 1]) -> BifResult<'p> {
    let truncate = with_fd(handle, |fd| {
        let here = fs::tell(fd)?;
        fs::ftruncate(fd, here)?;
        files::written(fd);
        Ok(())
    });
    done(p, truncate)
}

fn allocate_nif_3<'p>(p: &'p Process, [handle, offset, length]: [Term<'p>; 3]) -> BifResult<'p> {
    let allocate = with_fd(handle, |fd| {
        numbers(&[offset, length])?;
        let (offset, length) = (position(offset)?, position(length)?);
        retry(|| fs::fallocate(fd, FallocateFlags::empty(), offset, length))?;
        files::written(fd);
        Ok(())
    });
    done(p, allocate)
}

fn advise_nif_4<'p>(
    p: &'p Process,
    [handle, offset, length, advice]: [Term<'p>; 4],
) -> BifResult<'p> {
    let advise = with_fd(handle, |fd| {
        numbers(&[offset, length])?;
        let (offset, length) = (position(offset)?, position(length)?);
        let advice = match advice.as_atom().map_or("", |a| a.name()) {
            "normal" => Advice::Normal,
            "random" => Advice::Random,
            "sequential" => Advice::Sequential,
            "will_need" => Advice::WillNeed,
            "dont_need" => Advice::DontNeed,
            "no_reuse" => Advice::NoReuse,
            _ => return Err(Errno::INVAL.into()),
        };
        // ERTS looks for a result below zero, which `posix_fadvise` never gives.
        let _ = fs::fadvise(fd, offset, NonZeroU64::new(length), advice);
        Ok(())
    });
    done(p, advise)
}

/// Reads a block through a pointer to it: `<<Size:32, Offset:32>>`.
fn ipread_s32bu_p32bu_nif_3<'p>(
    p: &'p Process,
    [handle, offset, max_size]: [Term<'p>; 3],
) -> BifResult<'p> {
    let read = with_fd(handle, |fd| {
        numbers(&[offset, max_size])?;
        let offset = position(offset)?;
        let max_size = int64(max_size).ok_or(Errno::INVAL)?;
        if max_size >= 1 << 31 {
            return Err(Errno::INVAL.into());
        }
        let mut pointer = buffer(8)?;
        fill(fd, &mut pointer, 8, Some(offset))?;
        let Ok(pointer) = <[u8; 8]>::try_from(&pointer[..]) else {
            return Ok(atom("eof"));
        };
        let pointer = u64::from_be_bytes(pointer);
        let (size, at) = (pointer >> 32, pointer & 0xffff_ffff);
        if i64::try_from(size).is_ok_and(|size| size > max_size) {
            return Ok(atom("eof"));
        }
        let mut payload = buffer(size as i64)?;
        fill(fd, &mut payload, size as usize, Some(at))?;
        let payload = if payload.is_empty() {
            atom("eof")
        } else {
            p.binary_from_vec(payload)
        };
        Ok(ok(p, p.tuple(&[p.unsigned(size), p.unsigned(at), payload])))
    });
    answer(p, read)
}

fn get_handle_nif_1<'p>(p: &'p Process, [handle]: [Term<'p>; 1]) -> BifResult<'p> {
    let fd = with_fd(handle, |fd| Ok(p.binary(&fd.as_raw_fd().to_ne_bytes())));
    answer(p, fd)
}

/// `#file_info{}` as `file.hrl` declares it, times in POSIX seconds.
fn file_info<'p>(p: &'p Process, stat: Stat, readable: bool, writable: bool) -> Term<'p> {
    let stat = files::told(stat);
    let file_type = match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        FileType::Directory => "directory",
        FileType::RegularFile => "regular",
        FileType::Symlink => "symlink",
        _ => "other",
    };
    let access = match (readable, writable) {
        (true, true) => "read_write",
        (true, false) => "read",
        (false, true) => "write",
        (false, false) => "none",
    };
    let time = |t: i64| p.integer(t.clamp(FILETIME_RANGE.0, FILETIME_RANGE.1));
    // ERTS keeps these as C unsigned integers.
    let unsigned = |n: u64| p.unsigned(n & 0xffff_ffff);
    p.tuple(&[
        atom("file_info"),
        p.integer(stat.st_size),
        atom(file_type),
        atom(access),
        time(stat.st_atime),
        time(stat.st_mtime),
        time(stat.st_ctime),
        unsigned(stat.st_mode.into()),
        unsigned(stat.st_nlink),
        unsigned(stat.st_dev),
        unsigned(stat.st_rdev),
        unsigned(stat.st_ino),
        unsigned(stat.st_uid.into()),
        unsigned(stat.st_gid.into()),
    ])
}

fn read_info_nif_2<'p>(p: &'p Process, [name, follow_links]: [Term<'p>; 2]) -> BifResult<'p> {
    let follow_links = int(follow_links)? != 0;
    let info = || -> Result<Term<'p>, Fail> {
        let path = path(name)?;
        let stat = if follow_links {
            fs::stat(&path)?
        } else {
            fs::lstat(&path)?
        };
        let may = |access| fs::access(&path, access).is_ok();
        Ok(file_info(
            p,
            stat,
            may(Access::READ_OK),
            may(Access::WRITE_OK),
        ))
    };
    answer(p, info())
}

fn read_handle_info_nif_1<'p>(p: &'p Process, [handle]: [Term<'p>; 1]) -> BifResult<'p> {
    let info = with_fd(handle, |fd| {
        let stat = fs::fstat(fd)?;
        let shift = if stat.st_uid == rustix::process::geteuid().as_raw() {
            6
        } else if stat.st_gid == rustix::process::getegid().as_raw() {
            3
        } else {
            0
        };
        let bits = stat.st_mode >> shift;
        Ok(file_info(p, stat, bits & 4 != 0, bits & 2 != 0))
    });
    answer(p, info)
}

fn set_permissions_nif_2<'p>(p: &'p Process, [name, mode]: [Term<'p>; 2]) -> BifResult<'p> {
    let mode = mode
        .as_small()
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(badarg)?;
    let set = || -> Result<(), Fail> {
        let path = path(name)?;
        let chmod = |mask| fs::chmod(&path, Mode::from_bits_truncate(mode & mask));
        Ok(chmod(0o6777).or_else(|_| chmod(0o777))?)
    };
    done(p, set())
}

fn set_owner_nif_3<'p>(p: &'p Process, [name, uid, gid]: [Term<'p>; 3]) -> BifResult<'p> {
    let id = |t| int(t).map(|id| (id != -1).then_some(id as u32));
    let (uid, gid) = (id(uid)?, id(gid)?);
    let set = || -> Result<(), Fail> {
        let uid = uid.map(fs::Uid::from_raw);
        let gid = gid.map(fs::Gid::from_raw);
        Ok(fs::chown(&path(name)?, uid, gid)?)
    };
    done(p, set())
}

fn set_time_nif_4<'p>(
    p: &'p Process,
    [name, accessed, modified, created]: [Term<'p>; 4],
) -> BifResult<'p> {
    let time = |t| int64(t).ok_or_else(badarg);
    let (accessed, modified) = (time(accessed)?, time(modified)?);
    time(created)?;
    let set = || -> Result<(), Fail> { Ok(files::set_times(&path(name)?, accessed, modified)?) };
    done(p, set())
}

fn read_link_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let read = || -> Result<Term<'p>, Fail> {
        let target = fs::readlink(&path(name)?, Vec::new())?;
        Ok(ok(p, p.binary(&paths::told(target.into_bytes()))))
    };
    answer(p, read())
}

fn list_dir_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let list = || -> Result<Term<'p>, Fail> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(&path(name)?, flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in fs::Dir::new(fd)? {
            let Ok(entry) = entry else { break };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        files::order(&mut names);
        let onto = |list, name: &Vec<u8>| p.cons(p.binary(name), list);
        Ok(ok(p, names.iter().fold(Term::NIL, onto)))
    };
    answer(p, list())
}

/// A call on two paths.
fn two_paths<'p>(
    p: &'p Process,
    names: [Term<'p>; 2],
    call: impl FnOnce(&CString, &CString) -> OsResult<()>,
) -> BifResult<'p> {
    let run = || -> Result<(), Fail> {
        let (a, b) = (path(names[0])?, path(names[1])?);
        Ok(call(&a, &b)?)
    };
    done(p, run())
}

fn rename_nif_2<'p>(p: &'p Process, names: [Term<'p>; 2]) -> BifResult<'p> {
    two_paths(p, names, |old, new| {
        let renamed = files::unlinking(new, || fs::rename(old, new));
        if renamed.is_ok() {
            files::name_changed(old);
        }
        renamed.map_err(|errno| match errno {
            Errno::NOTEMPTY => Errno::EXIST,
            _ if old.as_bytes() == b"/" => Errno::INVAL,
            _ => errno,
        })
    })
}

fn make_hard_link_nif_2<'p>(p: &'p Process, names: [Term<'p>; 2]) -> BifResult<'p> {
    two_paths(p, names, |existing, new| {
        fs::link(existing, new)?;
        files::name_changed(new);
        Ok(())
    })
}

fn make_soft_link_nif_2<'p>(p: &'p Process, names: [Term<'p>; 2]) -> BifResult<'p> {
    two_paths(p, names, |existing, new| {
        fs::symlink(existing, new)?;
        files::name_changed(new);
        Ok(())
    })
}

/// A call on one path.
fn one_path<'p>(
    p: &'p Process,
    name: Term<'p>,
    call: impl FnOnce(&CString) -> OsResult<()>,
) -> BifResult<'p> {
    let run = || -> Result<(), Fail> { Ok(call(&path(name)?)?) };
    done(p, run())
}

fn make_dir_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    one_path(p, name, |path| {
        fs::mkdir(path, Mode::from_bits_truncate(0o777))?;
        files::name_changed(path);
        Ok(())
    })
}

fn del_file_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    one_path(p, name, |path| {
        files::unlinking(path, || fs::unlink(path)).map_err(|errno| match errno {
            Errno::ISDIR => Errno::PERM,
            _ => errno,
        })
    })
}

fn del_dir_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    one_path(p, name, |path| {
        files::unlinking(path, || fs::rmdir(path)).map_err(|errno| match errno {
            Errno::NOTEMPTY | Errno::EXIST if is_cwd(path) => Errno::INVAL,
            Errno::NOTEMPTY => Errno::EXIST,
            _ => errno,
        })
    })
}

fn is_cwd(path: &CString) -> bool {
    match (fs::stat(path), fs::stat(c".")) {
        (Ok(a), Ok(b)) => (a.st_ino, a.st_dev) == (b.st_ino, b.st_dev),
        _ => false,
    }
}

fn set_cwd_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    one_path(p, name, |path| rustix::process::chdir(path))
}

fn get_cwd_nif_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(match paths::current_dir() {
        Ok(dir) => ok(p, p.binary(&dir.into_os_string().into_vec())),
        Err(e) => super::io_error(p, &e),
    })
}

fn get_device_cwd_nif_1<'p>(p: &'p Process, [device]: [Term<'p>; 1]) -> BifResult<'p> {
    int(device)?;
    Ok(error(p, atom("enotsup")))
}

fn altname_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let unsupported = path(name).and(Err(Errno::NOTSUP));
    answer(p, unsupported.map_err(Fail::Os))
}

/// The smallest buffer for a file that does not tell its size.
const UNKNOWN_SIZE_BUFFER: usize = 16 << 10;

fn read_file_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let read = || -> Result<Term<'p>, Fail> {
        let modes = Modes {
            read: true,
            ..Modes::default()
        };
        let path = path(name)?;
        let fd = open(&path, &modes)?;
        note_opened(&path);
        let size = fs::fstat(&fd).map_or(0, |stat| stat.st_size);
        let mut bytes;
        if size > 0 {
            bytes = buffer(size)?;
            fill(&fd, &mut bytes, size as usize, None)?;
        } else {
            bytes = Vec::new();
            loop {
                let end = (bytes.len() * 2).max(UNKNOWN_SIZE_BUFFER);
                let room = end - bytes.len();
                memory::try_reserve(&mut bytes, room).ok_or(Errno::NOMEM)?;
                fill(&fd, &mut bytes, end, None)?;
                if bytes.len() < end {
                    break;
                }
            }
        }
        bytes.shrink_to_fit();
        Ok(ok(p, p.binary_from_vec(bytes)))
    };
    answer(p, read())
}

#[cfg(test)]
mod tests;
