//! In a run by chance, each process waits for its turn before each step that others may see: a sending, an access to what
//! processes share, an exit signal, a link or a monitor, a look for a message that is not there, its end.
//!
//! The scheduler gives turns (`scheduler/turns.rs`). A process that has none gets to its next such step, which it
//! keeps in mind here, and gives up its time slice. With a turn it makes the step, and gets to the next one.
//!
//! A process that follows a prefix in which an exit signal ends it waits for this signal in the same places.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use beamline_orders::Touch;
use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};

use super::access::Access;
use super::{access, explore};
use crate::hash::{HashMap, HashSet};
use crate::process::registry::{Named, whereis};
use crate::process::{Control, Process};
use crate::term::{Atom, Pid};

/// The turns of a run.
struct Turns {
    /// Why processes may wait before their steps: the bits below.
    waits: AtomicU8,
    /// The process that runs may make a step.
    has_turn: AtomicBool,
    /// `None` where no turns are given.
    known: Mutex<Option<Known>>,
}

static TURNS: Turns = Turns {
    waits: AtomicU8::new(0),
    has_turn: AtomicBool::new(false),
    known: Mutex::new(None),
};

/// Turns are given.
const GIVEN: u8 = 1;
/// In the prefix of the run, exit signals end processes.
const SIGNALS: u8 = 2;

/// What is known of the processes of a run.
#[derive(Default)]
struct Known {
    /// These wait for no turn.
    left_out: HashSet<Pid>,
    /// What each process is about to do.
    next: HashMap<Pid, Step>,
}

/// What a step touches; mostly one thing.
pub(crate) type Touches = SmallVec<[Touch; 2]>;

/// What a process is about to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    pub(crate) touches: Touches,
    /// It only computes, or looks for what is not there.
    pub(crate) idles: bool,
}

impl Step {
    /// It sends something to a process.
    pub(in crate::process) fn to(pid: Pid) -> Step {
        Step {
            touches: smallvec![mailbox(pid)],
            idles: false,
        }
    }

    fn of_access(touches: &[access::Touch<'_>]) -> Step {
        let touch = |touch: &access::Touch<'_>| Touch {
            what: std::ptr::from_ref(touch.object).addr() as u64,
            changes: touch.access == Access::Write,
        };
        Step {
            touches: touches.iter().map(touch).collect(),
            idles: false,
        }
    }
}

/// The mailbox of a process. Its number is odd, as no address is.
fn mailbox(pid: Pid) -> Touch {
    Touch {
        what: pid.0 << 1 | 1,
        changes: true,
    }
}

/// A run by chance begins, in which these wait for no turn.
pub(crate) fn begin(left_out: HashSet<Pid>) {
    *TURNS.known.lock() = Some(Known {
        left_out,
        ..Known::default()
    });
    TURNS.waits.fetch_or(GIVEN, Ordering::Relaxed);
}

/// A run begins in whose prefix exit signals end processes.
pub(crate) fn wait_for_signals() {
    TURNS.waits.fetch_or(SIGNALS, Ordering::Relaxed);
}

/// Whether processes wait for their turns.
#[inline(always)]
pub(crate) fn are_given() -> bool {
    TURNS.waits.load(Ordering::Relaxed) & GIVEN != 0
}

/// Whether processes may wait before their steps.
#[inline(always)]
pub(crate) fn may_wait() -> bool {
    TURNS.waits.load(Ordering::Relaxed) != 0
}

fn known<T>(with: impl FnOnce(&mut Known) -> T) -> Option<T> {
    TURNS.known.lock().as_mut().map(with)
}

/// A time slice begins, with a turn or without.
pub(crate) fn give(turn: bool) {
    TURNS.has_turn.store(turn, Ordering::Relaxed);
}

/// The step before which a process waits.
pub(crate) fn next_of(pid: Pid) -> Option<Step> {
    known(|known| known.next.get(&pid).cloned())?
}

/// A process has used up its time slice: it computes, and waits for its next turn, unless it waits for one already.
pub(crate) fn wait_to_go_on(pid: Pid) {
    known(|known| {
        if !known.left_out.contains(&pid) {
            known.next.entry(pid).or_insert(Step {
                idles: true,
                ..Step::default()
            });
        }
    });
}

/// Whether `p`, which is about to make a step, has to wait for its turn, or for the signal that ends it.
#[cold]
fn must_wait_for_turn(p: &Process, step: impl FnOnce() -> Step) -> bool {
    if p.is_to_end_first() {
        return true;
    }
    known(|known| {
        if known.left_out.contains(&p.pid()) {
            return false;
        }
        // A turn is for one step.
        if TURNS.has_turn.swap(false, Ordering::Relaxed) {
            known.next.remove(&p.pid());
            return false;
        }
        known.next.insert(p.pid(), step());
        true
    })
    .unwrap_or(false)
}

impl Process {
    /// Waits for its turn before it tells `to` something.
    ///
    /// # Errors
    /// It is to try again when it has its turn.
    #[inline]
    pub(crate) fn wait_for_turn(&self, to: Pid) -> Result<(), Control<'static>> {
        match may_wait() && must_wait_for_turn(self, || Step::to(to)) {
            true => Err(Control::Yield),
            false => Ok(()),
        }
    }

    /// As [`Process::wait_for_turn`], where the step has an access as well.
    ///
    /// # Errors
    /// As [`Process::wait_for_turn`], and those of the access.
    #[inline]
    pub(crate) fn take_turn_with(
        &self,
        to: Pid,
        access: impl FnOnce() -> Result<(), Control<'static>>,
    ) -> Result<(), Control<'static>> {
        if may_wait() {
            // The access takes the turn again: both are one step.
            let has_turn = TURNS.has_turn.load(Ordering::Relaxed);
            self.wait_for_turn(to)?;
            give(has_turn);
        }
        access()
    }

    /// As [`Process::wait_for_turn`], before it sends to the process of this name: one step, which looks for the name,
    /// too.
    ///
    /// # Errors
    /// As [`Process::wait_for_turn`].
    #[inline]
    pub(in crate::process) fn take_turn_by_name(&self, name: Atom) -> Result<(), Control<'static>> {
        if may_wait()
            && let Some(Named::Process(pid)) = whereis(name)
        {
            return self.take_turn_with(pid, || Ok(()));
        }
        Ok(())
    }

    /// As [`Process::wait_for_turn`], before it accesses what processes share.
    #[inline]
    pub(in crate::process) fn take_turn_of(
        &self,
        touches: &[access::Touch<'_>],
    ) -> Result<(), Control<'static>> {
        match may_wait() && must_wait_for_turn(self, || Step::of_access(touches)) {
            true => Err(Control::Yield),
            false => Ok(()),
        }
    }

    /// Gives up its time slice if a signal is to end it first. For steps that need no turn, such as a spawn: no other process
    /// sees them.
    ///
    /// # Errors
    /// A signal is to end it first.
    #[inline]
    pub(crate) fn yield_if_killed_first(&self) -> Result<(), Control<'static>> {
        match may_wait() && self.is_to_end_first() {
            true => Err(Control::Yield),
            false => Ok(()),
        }
    }

    /// It is about to make a step: whether a signal is to end it first.
    fn is_to_end_first(&self) -> bool {
        let ends = self.awaits_end();
        if ends {
            self.note_stands_before_step();
        }
        ends
    }

    /// Whether it has to wait for its turn before its receive times out at once.
    #[inline]
    pub(crate) fn must_wait_before_timeout(&self) -> bool {
        let step = || Step {
            idles: true,
            ..Step::to(self.pid())
        };
        are_given() && !self.is_flushing() && must_wait_for_turn(self, step)
    }

    /// Whether it has to wait for its turn before it ends: linked processes and monitors hear of the end.
    pub(crate) fn must_wait_before_exit(&self) -> bool {
        let step = || {
            let mut touches: Touches = smallvec![mailbox(self.pid())];
            touches.extend(explore::receiver_of_timer(self.pid()).map(mailbox));
            if let Some(relations) = self.some_relations() {
                let linked = relations.linked().filter_map(|peer| peer.pid());
                touches.extend(linked.map(mailbox));
                touches.extend(relations.targets.values().map(|pid| mailbox(*pid)));
            }
            Step {
                touches,
                idles: false,
            }
        };
        are_given() && !self.flags.get().terminating && must_wait_for_turn(self, step)
    }
}
