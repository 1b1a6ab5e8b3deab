//! The order in which processes access files, where that of a run is recorded or followed.
//!
//! A call is one access: to the names of files, to the contents of one, or to both. It takes its turn on the scheduler of
//! its process, before it leaves for a dirty one. Until it has ended, whoever is not to see it half done sleeps.
//!
//! Devices and pipes are not ordered: to open a pipe waits until its other end is opened, perhaps by another process of
//! the run.

use std::any::Any;
use std::ffi::CString;

use parking_lot::Mutex;
use rustix::fs::{self, FileType, OFlags, Stat};
use smallvec::SmallVec;

use super::{File, Modes, path};
use crate::heap::Heap;
use crate::otp_nifs::object;
use crate::process::order::access::{Access, Object, Part, Shared, Touch};
use crate::process::order::director::{
    are_accesses_ordered, are_files_ordered, are_parts_recorded,
};
use crate::process::{Control, Holds, Process, lookup};
use crate::sched::ptab::pin;
use crate::term::{Pid, Term, View};

/// What is ordered: the names of all files, and their contents. Files whose objects are the same are in one order.
const OBJECTS: usize = 256;
/// The names.
const NAMES: usize = 0;

static ALL: [Object; OBJECTS] = [const { Object::new() }; OBJECTS];

/// The object of the contents of this file, if that is a regular one.
fn contents_of(stat: &Stat) -> Option<usize> {
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let number = stat.st_ino.wrapping_mul(31).wrapping_add(stat.st_dev);
    is_regular.then_some(1 + number as usize % (OBJECTS - 1))
}

/// An open file whose contents are ordered.
pub(super) struct Ordered {
    object: usize,
    path: Vec<u8>,
}

impl Ordered {
    /// What has been opened by this name, where the order is asked for.
    pub(super) fn of(fd: impl std::os::fd::AsFd, path: &CString) -> Option<Ordered> {
        let stat = are_accesses_ordered()
            .then(|| fs::fstat(fd).ok())
            .flatten()?;
        Some(Ordered {
            object: contents_of(&stat)?,
            path: path.as_bytes().to_vec(),
        })
    }
}

/// An access of a call: to which object, how, and to what it calls so.
struct One {
    object: usize,
    access: Access,
    path: Vec<u8>,
}

type Accesses = SmallVec<[One; 2]>;

/// The accesses of a call of this function.
fn accesses(function: &str, args: &[Term<'_>]) -> Accesses {
    match function {
        "read_nif" | "pread_nif" | "ipread_s32bu_p32bu_nif" | "seek_nif" => {
            to_contents(args[0], Access::Read)
        }
        "write_nif" | "pwrite_nif" | "truncate_nif" | "allocate_nif" => {
            to_contents(args[0], Access::Write)
        }
        "open_nif" => to_opened(args[0], args[1]),
        "read_file_nif" => to_file(args[0], &Modes::default(), Some(Access::Read)),
        _ => {
            let paths = args.iter().filter_map(|arg| path(*arg).ok());
            let to = |path: CString| to_names(&path, Access::Write);
            paths.map(to).collect()
        }
    }
}

fn to_names(path: &CString, access: Access) -> One {
    One {
        object: NAMES,
        access,
        path: path.as_bytes().to_vec(),
    }
}

fn to_contents(handle: Term<'_>, access: Access) -> Accesses {
    let file = object::<File>(handle).ok();
    let ordered = file.as_ref().and_then(|file| file.ordered.as_ref());
    let one = ordered.map(|ordered| One {
        object: ordered.object,
        access,
        path: ordered.path.clone(),
    });
    one.into_iter().collect()
}

fn to_opened(name: Term<'_>, modes: Term<'_>) -> Accesses {
    if !matches!(modes.view(), View::Nil | View::Cons(_)) {
        return Accesses::new();
    }
    let modes = Modes::from_list(modes);
    let empties = modes.flags().contains(OFlags::TRUNC) && !modes.exclusive;
    to_file(name, &modes, empties.then_some(Access::Write))
}

/// A file is opened, and its contents accessed.
fn to_file(name: Term<'_>, modes: &Modes, contents: Option<Access>) -> Accesses {
    let Ok(path) = path(name) else {
        return Accesses::new();
    };
    let Ok(stat) = fs::stat(&path) else {
        let creates = modes.flags().contains(OFlags::CREATE);
        let access = if creates { Access::Write } else { Access::Read };
        return Accesses::from_iter([to_names(&path, access)]);
    };
    let object = contents_of(&stat);
    if object.is_none() && FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Accesses::new();
    }
    let contents = object.zip(contents).map(|(object, access)| One {
        object,
        access,
        path: path.as_bytes().to_vec(),
    });
    let names = to_names(&path, Access::Read);
    [names].into_iter().chain(contents).collect()
}

/// The objects that calls have in hand.
struct InHand {
    /// For each object, how many calls read it, or that one writes it.
    calls: [u32; OBJECTS],
    /// Processes that sleep until one of them has ended.
    waiting: Vec<Pid>,
}

const WRITTEN: u32 = u32::MAX;

static IN_HAND: Mutex<InHand> = Mutex::new(InHand {
    calls: [0; OBJECTS],
    waiting: Vec::new(),
});

impl InHand {
    fn may(&self, one: &One) -> bool {
        match (self.calls[one.object], one.access) {
            (0, _) => true,
            (WRITTEN, _) | (_, Access::Write) => false,
            (_, Access::Read) => true,
        }
    }
}

/// A turn: while it is kept, no call that must not see it begins.
struct Turn(SmallVec<[(usize, Access); 2]>);

impl Turn {
    fn begin(all: &Accesses, in_hand: &mut InHand) -> Turn {
        let mut turn = SmallVec::<[(usize, Access); 2]>::new();
        for One { object, access, .. } in all {
            // A call may access the names by two of them.
            if turn.iter().all(|(other, _)| other != object) {
                turn.push((*object, *access));
                in_hand.calls[*object] = match access {
                    Access::Read => in_hand.calls[*object] + 1,
                    Access::Write => WRITTEN,
                };
            }
        }
        Turn(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let waiting = {
            let mut in_hand = IN_HAND.lock();
            for (object, access) in &self.0 {
                in_hand.calls[*object] = match access {
                    Access::Read => in_hand.calls[*object] - 1,
                    Access::Write => 0,
                };
            }
            std::mem::take(&mut in_hand.waiting)
        };
        let guard = pin();
        for pid in waiting {
            if let Some(process) = lookup(pid, &guard) {
                process.wake();
            }
        }
    }
}

/// The turn of a call of this function, which the caller keeps until the call has ended. `None` if the call needs no
/// turn, has it already, or the run neither records nor replays the order.
///
/// # Errors
/// The function is to be called again, when the process is woken.
pub(super) fn take(
    p: &Process,
    function: &str,
    args: &[Term<'_>],
) -> Result<Holds, Control<'static>> {
    if !are_files_ordered() || p.has_work() {
        return Ok(None);
    }
    let mut in_hand = IN_HAND.lock();
    let all = accesses(function, args);
    if all.is_empty() {
        return Ok(None);
    }
    if let Some(later) = p.wait_to_collect_in_call() {
        return Err(later);
    }
    if !all.iter().all(|one| in_hand.may(one)) {
        in_hand.waiting.push(p.pid());
        return Err(Control::Wait);
    }
    let heap = Heap::detached();
    let touch = |one: &One| Touch {
        object: &ALL[one.object],
        access: one.access,
        shared: Shared::Files,
        name: None,
        part: match are_parts_recorded() {
            true => Part::Key(heap.string(&String::from_utf8_lossy(&one.path))),
            false => Part::All,
        },
    };
    let touches: SmallVec<[Touch<'_>; 2]> = all.iter().map(touch).collect();
    p.access_all(&touches)?;
    let turn: Box<dyn Any + Send> = Box::new(Turn::begin(&all, &mut in_hand));
    Ok(Some(turn))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn one(object: usize, access: Access) -> Accesses {
        let path = Vec::new();
        Accesses::from_iter([One {
            object,
            access,
            path,
        }])
    }

    #[test]
    fn reads_are_together_and_writes_alone() {
        let mut in_hand = InHand {
            calls: [0; OBJECTS],
            waiting: Vec::new(),
        };
        let [read, write] = [Access::Read, Access::Write].map(|access| one(7, access));
        let may = |in_hand: &InHand| [&read, &write].map(|all| in_hand.may(&all[0]));
        assert_eq!(may(&in_hand), [true, true]);
        let reads = [(); 2].map(|()| Turn::begin(&read, &mut in_hand));
        assert_eq!(may(&in_hand), [true, false]);
        assert!(in_hand.may(&one(8, Access::Write)[0]));
        // These are turns of another table than the one that they are given back to.
        reads.into_iter().for_each(std::mem::forget);
        in_hand.calls[7] = 0;
        std::mem::forget(Turn::begin(&write, &mut in_hand));
        assert_eq!(may(&in_hand), [false, false]);
    }

    #[test]
    fn a_call_accesses_names_and_contents() {
        use Access::{Read, Write};
        let folder = tempfile::tempdir().expect("a temporary folder");
        let there = folder.path().join("there");
        std::fs::write(&there, "text").expect("it is written");
        let contents = contents_of(&fs::stat(&there).expect("it is there")).expect("it is regular");
        let p = Process::new(0);
        let name =
            |path: &std::path::Path| p.binary(&[path.as_os_str().as_bytes(), b"\0"].concat());
        let mode = |mode: &str| p.list(&[crate::otp_nifs::atom(mode)]);
        let (there, missing) = (name(&there), name(&folder.path().join("missing")));
        let (folder, device) = (name(folder.path()), name("/dev/null".as_ref()));
        let (read, write) = (mode("read"), mode("write"));
        let (append, exclusive) = (mode("append"), mode("exclusive"));
        for (function, args, expected) in [
            ("open_nif", &[missing, read][..], &[(NAMES, Read)][..]),
            ("open_nif", &[missing, write], &[(NAMES, Write)]),
            ("open_nif", &[there, read], &[(NAMES, Read)]),
            ("open_nif", &[there, append], &[(NAMES, Read)]),
            ("open_nif", &[there, exclusive], &[(NAMES, Read)]),
            (
                "open_nif",
                &[there, write],
                &[(NAMES, Read), (contents, Write)],
            ),
            ("open_nif", &[folder, read], &[(NAMES, Read)]),
            ("open_nif", &[device, write], &[]),
            ("open_nif", &[p.integer(7), write], &[]),
            ("open_nif", &[there, there], &[]),
            (
                "read_file_nif",
                &[there],
                &[(NAMES, Read), (contents, Read)],
            ),
            ("read_file_nif", &[missing], &[(NAMES, Read)]),
            ("rename_nif", &[there, missing], &[(NAMES, Write); 2]),
            ("del_file_nif", &[missing], &[(NAMES, Write)]),
            ("read_nif", &[p.integer(7), p.integer(1)], &[]),
        ] {
            let all = accesses(function, args);
            let found: Vec<_> = all.iter().map(|one| (one.object, one.access)).collect();
            assert_eq!(found, expected, "{function}");
        }
    }
}
