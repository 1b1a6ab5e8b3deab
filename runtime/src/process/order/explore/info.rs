//! What a process of an explored run learns of another one by `process_info/1,2`.
//!
//! Whether it gets an answer is a read of whether the other one is alive. Items that stay the same as long as a process
//! lives need no more. A name, and whether exits are trapped, are objects of their own, of which the call is a read,
//! too. All else changes with what the other process does, or what comes to it, and has no order: such an item is named
//! among what is not explored.

use super::traps::whether_trapping;
use super::watches::{asks_behind_an_exit, whether_alive};
use super::{Kept, kept};
use crate::hash::HashSet;
use crate::process::order::access::{Access, Touch};
use crate::process::order::is_explored;
use crate::process::registry::all_names;
use crate::process::{Control, Process, exists};
use crate::term::{Atom, Pid, am};

/// How a process learns of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Info {
    /// That one has ended.
    Gone,
    /// It looks at the other one: all that it asks for is as it is now.
    There,
    /// It asks the other one, which has not ended, and answers behind all that was sent to it.
    Behind,
}

/// What an item depends on, beside the end of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// On nothing else.
    Fixed,
    /// What `process_flag/2` or `group_leader/2` set.
    Set,
    Name,
    Trapping,
    /// On what is not reordered.
    Other,
}

fn kind_of(item: Atom) -> Kind {
    match item {
        am::initial_call | am::parent | am::magic_ref | am::trace => Kind::Fixed,
        am::registered_name => Kind::Name,
        am::trap_exit => Kind::Trapping,
        am::async_dist
        | am::error_handler
        | am::fullsweep_after
        | am::group_leader
        | am::max_heap_size
        | am::message_queue_data
        | am::min_bin_vheap_size
        | am::min_heap_size
        | am::priority => Kind::Set,
        _ => Kind::Other,
    }
}

/// Items of processes that were set, and those that others have read.
#[derive(Default)]
pub(super) struct Settings {
    set: HashSet<(Pid, Atom)>,
    told: HashSet<(Pid, Atom)>,
}

/// `p` is about to ask for items of another process; with `is_whole`, by `process_info/1`. `None` where it has to ask as
/// without an exploration: none is on, or it has sent an exit signal that may end that process, and the answer comes behind
/// that.
///
/// # Errors
/// As [`Process::access`].
pub(crate) fn ask_info(
    p: &Process,
    of: Pid,
    items: impl FnOnce() -> Vec<Atom>,
    is_whole: bool,
) -> Result<Option<Info>, Control<'static>> {
    if !is_explored() || asks_behind_an_exit(p, of) {
        return Ok(None);
    }
    let items = items();
    let has = |kind| items.iter().any(|item| kind_of(*item) == kind);
    let mut touches: Vec<Touch<'static>> = vec![whether_alive(of, Access::Read)];
    touches.extend(has(Kind::Name).then(all_names));
    touches.extend(has(Kind::Trapping).then(|| whether_trapping(of, Access::Read)));
    p.access_all(&touches)?;
    let is_nameless = kept(|kept| {
        kept.record_info(of, &items, is_whole);
        kept.nameless.contains(&of)
    });
    // An exiting process unregisters first, so one without its name is gone for whoever sees that.
    let is_gone = !exists(of) || has(Kind::Name) && is_nameless == Some(true);
    Ok(Some(match is_gone {
        true => Info::Gone,
        false if has(Kind::Other) => Info::Behind,
        false => Info::There,
    }))
}

impl Kept {
    fn record_info(&mut self, of: Pid, items: &[Atom], is_whole: bool) {
        for item in items {
            match kind_of(*item) {
                Kind::Set => {
                    self.settings.told.insert((of, *item));
                    self.note_set(of, *item);
                }
                Kind::Other if is_whole => {
                    self.note_unexplored("process_info/1 of another process")
                }
                Kind::Other => self.note_unexplored_item(*item),
                Kind::Fixed | Kind::Name | Kind::Trapping => {}
            }
        }
    }

    fn set_item(&mut self, of: Pid, item: Atom) {
        self.settings.set.insert((of, item));
        self.note_set(of, item);
    }

    /// An item that is set, and that another process has read, is not reordered.
    fn note_set(&mut self, of: Pid, item: Atom) {
        let settings = &self.settings;
        if settings.set.contains(&(of, item)) && settings.told.contains(&(of, item)) {
            self.note_unexplored_item(item);
        }
    }

    fn note_unexplored_item(&mut self, item: Atom) {
        self.note_unexplored(&format!(
            "process_info(_, {}) of another process",
            item.name()
        ));
    }
}

/// An item of a process is set.
pub(crate) fn note_item_set(pid: Pid, item: Atom) {
    if is_explored() {
        kept(|kept| kept.set_item(pid, item));
    }
}

/// `p` ends, and gives up its names.
pub(in crate::process) fn note_nameless(p: &Process) {
    if is_explored() {
        kept(|kept| kept.nameless.insert(p.pid()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not explored, in words, after these calls: `Some` reads items of the process, `None` sets its priority.
    fn beyond(calls: &[Option<(Atom, bool)>]) -> Vec<String> {
        let mut kept = Kept::default();
        for call in calls {
            match call {
                Some((item, is_whole)) => kept.record_info(Pid(1), &[*item], *is_whole),
                None => kept.set_item(Pid(1), am::priority),
            }
        }
        kept.beyond
    }

    #[test]
    fn items_that_change_are_told_and_those_that_are_only_read_or_set_are_not() {
        let priority = "process_info(_, priority) of another process";
        let reads = Some((am::priority, false));
        for (calls, told) in [
            (&[reads][..], &[][..]),
            (&[None], &[]),
            (&[reads, None], &[priority]),
            (&[None, reads, reads], &[priority]),
            (&[Some((am::initial_call, false))], &[]),
            (&[Some((am::registered_name, false))], &[]),
            (
                &[Some((am::messages, false))],
                &["process_info(_, messages) of another process"],
            ),
            (
                &[Some((am::messages, true))],
                &["process_info/1 of another process"],
            ),
        ] {
            assert_eq!(beyond(calls), told, "{calls:?}");
        }
    }
}
