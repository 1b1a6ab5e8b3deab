//! Where exit signals end the processes of an explored run. Unless the prefix says otherwise, a signal ends its process
//! as late as possible: in a receive that finds no message that was sent before the signal. What comes behind the
//! signal waits with it. The reason: what a process would have done later cannot be reordered if no run shows it. A
//! process that computes for ever is ended all the same, after a time slice.
//!
//! A process whose end is in the prefix of the run is ended right before the step that it says, or in a receive.

use std::collections::VecDeque;

use beamline_orders::EndedAt;

use super::{Killed, kept, note_unexplored};
use crate::process::order::is_explored;
use crate::process::order::turns;
use crate::process::signal::ExitSignal;
use crate::process::{CONTEXT_REDS, Exiting, Process, Signal, WaitFor};
use crate::term::{Atom, Pid, RawTerm, am};

/// The signals that are to end a process, and where it stands.
#[derive(Default)]
pub(in crate::process) struct Endings {
    /// An exit signal that would end it, and the signals behind it, which wait with it.
    deferred: VecDeque<Signal>,
    /// It stands right before the step in front of which a signal is to end it.
    stands: bool,
    /// The receive in which a signal is to end it has a time-out, whose timer does not run yet.
    has_time: bool,
    /// Its reductions when a signal first had to wait.
    refused_at: Option<u64>,
}

/// Records that a signal of another process is about to end `p`: that process sent it with this access, or has ended
/// where `access` is 0.
pub(in crate::process) fn record_killed_by(p: &Process, by: Option<Pid>, access: u64) {
    if !is_explored() || p.is_exiting() {
        return;
    }
    let at = p.place_of_end();
    if at == EndedAt::Elsewhere && !turns::are_given() {
        note_unexplored("exit signals to processes that compute for long");
    }
    let has_time = p.receive_may_time_out() || p.endings(|endings| endings.has_time);
    let is_in_receive = matches!(at, EndedAt::Receive | EndedAt::BeforeReceive);
    if is_in_receive && has_time {
        super::could_time_out(p.pid());
    }
    match by.filter(|by| *by != p.pid()) {
        Some(by) => {
            let killed = Killed {
                process: p.pid(),
                by,
                access,
                at,
            };
            kept(|kept| kept.ended.push(killed));
        }
        None => note_unexplored("exit signals of ports"),
    }
}

impl Process {
    fn endings<T>(&self, with: impl FnOnce(&mut Endings) -> T) -> T {
        with(self.own_order().endings.get_or_insert_default())
    }

    fn has_deferred(&self) -> bool {
        let own = self.own_order();
        own.endings
            .as_ref()
            .is_some_and(|own| !own.deferred.is_empty())
    }

    /// Whether a signal has to wait: it would end the process here, or comes behind one that would. Only messages wait
    /// behind it, signals that become messages, and questions of the sender of a signal that waits: others have no
    /// order with it.
    pub(in crate::process) fn defers(&self, signal: &Signal) -> bool {
        if !self.has_deferred() {
            return self.is_deferred(signal);
        }
        match signal {
            Signal::Question { from, .. } => self.has_deferred_of(*from),
            signal => self.source_of(signal).is_some(),
        }
    }

    /// Whether an exit signal of this process waits.
    fn has_deferred_of(&self, from: Pid) -> bool {
        let is_it =
            |signal: &Signal| matches!(signal, Signal::Exit(exit) if exit.from.pid() == Some(from));
        self.endings(|endings| endings.deferred.iter().any(is_it))
    }

    fn is_deferred(&self, signal: &Signal) -> bool {
        match signal {
            Signal::Exit(exit) => self.would_be_ended(exit) && !self.may_end_here(),
            _ => false,
        }
    }

    pub(in crate::process) fn defer(&self, signal: Signal) {
        self.endings(|endings| endings.deferred.push_back(signal));
    }

    /// Handles the signals that waited, up to the first one that still has to; whether there was one.
    ///
    /// # Errors
    /// When a signal ends the process.
    #[inline]
    pub(in crate::process) fn handle_deferred(&mut self) -> Result<bool, Exiting> {
        match is_explored() && !self.is_exiting() {
            true => self.handle_those_deferred(),
            false => Ok(false),
        }
    }

    fn handle_those_deferred(&mut self) -> Result<bool, Exiting> {
        let mut has_handled = false;
        while let Some(signal) = self.endings(|endings| endings.deferred.pop_front()) {
            // Those behind it wait, too: signals of one sender come in their order.
            if self.is_deferred(&signal) {
                self.endings(|endings| endings.deferred.push_front(signal));
                break;
            }
            self.handle_at_once(signal)?;
            has_handled = true;
        }
        Ok(has_handled)
    }

    /// Takes the signals that waited: the process ends, and they are answered as those that come behind its end.
    pub(in crate::process) fn take_deferred(&self) -> VecDeque<Signal> {
        match is_explored() {
            true => self.endings(|endings| std::mem::take(&mut endings.deferred)),
            false => VecDeque::new(),
        }
    }

    /// Whether this signal would end the process if it was handled now.
    fn would_be_ended(&self, exit: &ExitSignal) -> bool {
        let is_there = match (exit.alias, exit.linked) {
            (Some(alias), _) => self.alias(alias).is_some(),
            (None, true) => self.some_relations().is_some_and(|relations| {
                let link = relations.links.get(&exit.from);
                link.is_some_and(|link| link.unlinking == 0)
            }),
            (None, false) => true,
        };
        is_there && exit.ends(self.flags.get().trap_exit)
    }

    /// Whether the process is at a place where a signal may end it.
    pub(in crate::process) fn may_end_here(&self) -> bool {
        if turns::are_given() || self.place_of_end() != EndedAt::Elsewhere {
            return true;
        }
        let made = self.reductions();
        let since = self.endings(|endings| *endings.refused_at.get_or_insert(made));
        made - since >= CONTEXT_REDS as u64
    }

    fn place_of_end(&self) -> EndedAt {
        if self.endings(|endings| endings.stands) {
            return EndedAt::Step;
        }
        let is_asking = self.is_flushing() || self.own_order().awaits.is_some();
        match self.wait_for == WaitFor::Message && !is_asking {
            true if !self.is_ready() => EndedAt::Receive,
            true if self.awaits_end() => EndedAt::BeforeReceive,
            _ => EndedAt::Elsewhere,
        }
    }

    /// A receive has found no message: whether the process has to wait, because a signal is to end it there.
    pub(in crate::process) fn waits_for_its_end(&self) -> bool {
        let waits = self.has_deferred() && self.own_order().awaits.is_none();
        if waits {
            self.shared.wake();
        }
        waits
    }

    /// Notes whether the receive, in which a signal may end the process, has a time-out.
    pub(crate) fn note_receive_that_may_end(&self, has_time: impl FnOnce() -> bool) {
        if is_explored() {
            let has_time = has_time();
            self.endings(|endings| endings.has_time = has_time);
        }
    }

    /// Notes that the process stands right before a step in front of which a signal is to end it.
    pub(in crate::process) fn note_stands_before_step(&self) {
        self.endings(|endings| endings.stands = true);
    }

    /// Its code goes on: it does not stand there any more.
    #[inline]
    pub(crate) fn note_goes_on(&self) {
        if is_explored()
            && let Some(endings) = &mut self.own_order().endings
        {
            (endings.stands, endings.has_time) = (false, false);
        }
    }

    /// Whether it waits at the place where a signal is to end it.
    #[inline]
    pub(crate) fn waits_to_end(&self) -> bool {
        self.awaits_end() && (!is_explored() || self.place_of_end() != EndedAt::Elsewhere)
    }

    /// Whether a built-in function that has fetched its signals waits for the one that ended the recorded process in it.
    #[inline]
    pub(in crate::process) fn must_wait_in_call(&self) -> bool {
        !is_explored() && self.awaits_end()
    }

    /// It is about to end by itself: whether it may. If a signal was to end it first, it may when that one has come,
    /// which is then the reason of its end.
    pub(in crate::process) fn may_end_by_itself(&mut self) -> bool {
        if !is_explored() || self.own_order().is_ended || !self.awaits_end() {
            return true;
        }
        self.note_stands_before_step();
        let sent = self.shared.signals.take_all();
        self.mailbox.middle.append(sent);
        let mut found = self.take_end();
        while let Some(signal) = self.mailbox.middle.pop() {
            match signal {
                Signal::Exit(exit) if found.is_none() && self.is_to_be_ended_by(&exit) => {
                    found = Some(exit);
                }
                // The signal of a link counts only if the link is there by then.
                Signal::Link { from } => drop(self.relations().linked_by(from)),
                signal => self.defer(signal),
            }
        }
        let Some(exit) = found.filter(|exit| self.would_be_ended(exit)) else {
            return false;
        };
        self.exit_reason.set(RawTerm::NONE);
        self.record_killed_by(exit.from.pid(), exit.access, false);
        let reason = match exit.linked {
            false if exit.reason.term() == am::kill => Atom::term(am::killed),
            _ => self.heap.attach(exit.reason),
        };
        self.exit_reason.set(reason.raw());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Term;

    const KILLER: Pid = Pid(1);
    const OTHER: Pid = Pid(2);

    fn exit(from: Pid, reason: Atom) -> Signal {
        Signal::Exit(Box::new(ExitSignal::new(from.into(), reason.term())))
    }

    fn question(from: Pid) -> Signal {
        let run = Box::new(|_: Option<&mut Process>| ());
        Signal::Question { from, run }
    }

    #[test]
    fn a_signal_that_would_end_a_process_that_computes_waits() {
        for (reason, traps, waits) in [
            (am::shutdown, false, true),
            (am::kill, true, true),
            // It becomes a message, or nothing.
            (am::shutdown, true, false),
            (am::normal, false, false),
        ] {
            let p = Process::new(0);
            p.change_flags(|flags| flags.trap_exit = traps);
            assert_eq!(p.defers(&exit(KILLER, reason)), waits, "{reason:?} {traps}");
        }
    }

    #[test]
    fn what_has_an_order_with_a_signal_that_waits_does_too() {
        let p = Process::new(0);
        assert!(!p.defers(&Signal::message(Term::NIL, KILLER)));
        p.defer(exit(KILLER, am::shutdown));
        assert!(p.defers(&Signal::message(Term::NIL, OTHER)));
        assert!(p.defers(&question(KILLER)));
        assert!(!p.defers(&question(OTHER)));
    }

    #[test]
    fn a_process_that_computes_for_ever_is_ended_behind_a_time_slice() {
        let p = Process::new(0);
        p.fcalls.set(CONTEXT_REDS - 7);
        assert!(!p.may_end_here());
        p.new_slice();
        p.fcalls.set(8);
        assert!(!p.may_end_here());
        p.fcalls.set(0);
        assert!(p.may_end_here());
    }
}
