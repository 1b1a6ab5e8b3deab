//! Ends a process. Source: `erts_continue_exit_process()` in `erl_process.c`, OTP 29.

use super::event::Event;
use super::incoming::send_demonitor;
use super::order::explore;
use super::probe::{happened, probes};
use super::shared::Together;
use super::signal::{ExitSignal, deliver_to_peer};
use super::watcher::Watcher;
use super::{
    Control, Peer, Process, Signal, deliver, dirty_queues, nodes, order, registry, table,
    user_timers,
};
use crate::heap::Message;
use crate::hook::Hook;
use crate::sched::online::forget_blocker;
use crate::sched::ptab;
use crate::term::{Atom, RawTerm, Term, am};

/// A proof that a process exits: none of its code runs any more, and its time slice ends with [`Outcome::Exit`].
///
/// Whatever may end a process in the middle of its time slice (a collection, signals, tasks of the system) returns it
/// as an error. A caller can only hand it up, and cannot make one for a process that goes on: so none of the ways
/// through instructions, BIFs and tracing can forget it.
///
/// [`Outcome::Exit`]: crate::process::Outcome::Exit
#[must_use = "a process that exits runs no further"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exiting(());

/// Gives up what a process owns.
pub(crate) type GivesUp = fn(&mut Process) -> Result<(), Control<'static>>;

/// Hook: gives up what a process may own (tables), before its links and monitors hear of the end. Where that fails, the
/// process has used up its time, or waits for its turn, and the hook is called again in its next time slice.
pub(crate) static GIVES_UP: Hook<GivesUp> = Hook::new("what a process owns");

impl Process {
    /// The process exits with `reason`, unless it exits already.
    pub(crate) fn exit_with(&self, reason: Term<'_>) -> Exiting {
        debug_assert!(self.owns(reason), "a reason is the process's own term");
        if !self.is_exiting() {
            self.exit_reason.set(reason.raw());
        }
        Exiting(())
    }

    /// Whether its code may go on: what to ask behind all that can set an exit reason.
    ///
    /// # Errors
    /// When an exit reason is set.
    #[inline]
    pub(crate) fn check_exiting(&self) -> Result<(), Exiting> {
        if self.is_exiting() {
            return Err(Exiting(()));
        }
        Ok(())
    }

    /// The stored exception ends the process: nobody catches it. The end of the time slice makes its exit reason of it
    /// (`exec::exception::note_uncaught`).
    pub(crate) fn uncaught(&self) -> Exiting {
        debug_assert!(
            self.exception.value != RawTerm::NONE,
            "an exception is stored"
        );
        Exiting(())
    }

    /// Whether an exit reason is set: its code must run no further.
    #[inline]
    #[must_use]
    pub fn is_exiting(&self) -> bool {
        self.exit_reason.get() != RawTerm::NONE
    }

    /// Its exit reason.
    #[must_use]
    pub(crate) fn exit_reason(&self) -> Option<Term<'_>> {
        // SAFETY: T1: a reason lies on this heap, and the collector keeps it.
        self.is_exiting()
            .then(|| unsafe { Term::new(self.exit_reason.get()) })
    }

    /// Whether another process, or what it waits for, has suspended it.
    #[inline]
    pub(crate) fn is_suspended(&self) -> bool {
        self.with_psd(|psd| !psd.suspended.is_empty())
            .unwrap_or(false)
    }

    /// The last time slice, unless it fails: gives up all that the process has and tells all that are bound to it.
    ///
    /// # Errors
    /// It is to be called again: at once, or, with `Wait`, when the process is woken.
    pub(crate) fn terminate(&mut self) -> Result<(), Control<'static>> {
        self.end_receive_timer();
        if self.flags.get().terminating {
            probes().exiting(self, true);
        } else {
            if !self.may_end_by_itself() {
                return Err(Control::Yield);
            }
            self.leave_orphan();
            self.step(order::Step::Exit);
            if let Some(reason) = self.exit_reason() {
                self.change_flags(|flags| flags.terminating = true);
                happened(&self.shared, Event::Exit, reason);
            }
        }
        if forget_blocker(self.pid().0) {
            dirty_queues::limits_changed();
        }
        self.shared.begin_to_give_up();
        let given_up = (GIVES_UP.get())(self)
            .and_then(|()| registry::unregister_exiting(self))
            .and_then(|()| explore::access_own_end(self))
            .and_then(|()| self.tell_nodes());
        if given_up.is_err() {
            if matches!(given_up, Err(Control::Wait)) {
                self.answer_while_it_waits_to_end();
            }
            probes().exiting(self, false);
            return given_up;
        }
        for timer in self.shared.close_timers() {
            user_timers::cancel(timer);
        }
        let pid = self.pid();
        table().remove(pid.0);
        // From here on nothing can be sent to it; what was is answered as by a process that is gone.
        let sent = self.shared.signals.close();
        self.mailbox.middle.append(sent);
        for signal in self.take_deferred() {
            self.answer_while_exiting(signal);
        }
        for signal in self.held_of_links() {
            self.answer_while_exiting(signal);
        }
        while let Some(signal) = self.mailbox.middle.pop() {
            self.answer_while_exiting(signal);
        }
        self.refuse_system_tasks();
        probes().last_slice_ended(self);
        self.tell_relations();
        self.record_untold();
        explore::note_gone_off(self);
        probes().gone(self);
        Ok(())
    }

    /// A signal that was sent before the end: it may change which processes are to be told.
    fn answer_while_exiting(&mut self, signal: Signal) {
        let Some(signal) = self.take_behind_end(signal) else {
            return;
        };
        match signal {
            Signal::Unlink { from, id } => {
                if let Some(mut relations) = self.some_relations() {
                    relations.unlinked_by(from);
                }
                Signal::Unlink { from, id }.answer_for_gone(self.pid());
            }
            Signal::UnlinkAck { from, id } => self.relations().end_unlink(from, id),
            Signal::Exit(exit) if exit.linked => {
                if let Some(mut relations) = self.some_relations() {
                    relations.links.remove(&exit.from);
                }
            }
            Signal::Demonitor { reference } => {
                if let Some(mut relations) = self.some_relations() {
                    relations.targets.remove(&reference);
                }
            }
            Signal::MonitorDown { reference, .. } => {
                if let Some(mut relations) = self.some_relations() {
                    relations.remove_origin(reference);
                }
            }
            other => other.answer_for_gone(self.pid()),
        }
    }

    /// Tells the processes of other nodes that are bound to it, and waits as long as a connection to one of them is busy.
    /// While it is still in the table: it must be woken. What ending processes say waits with them so, and does not pile
    /// up in a queue.
    fn tell_nodes(&mut self) -> Result<(), Control<'static>> {
        let reason = self.exit_reason().unwrap_or(am::normal.term());
        let bound = self.some_relations().map(|mut relations| {
            relations.note_exit_for_children(reason);
            relations.take_remote()
        });
        if let Some((links, watchers)) = bound {
            let me: Peer = self.pid().into();
            let mut nodes: Vec<Atom> = links.iter().filter_map(|peer| peer.node_name()).collect();
            for peer in links {
                let token = match self.flags.get().seq_token {
                    true => peer.with_term(|to| probes().token_of_exit(self, to, reason)),
                    false => None,
                };
                let signal = ExitSignal::of_link(me, reason, token);
                deliver_to_peer(peer, Signal::Exit(Box::new(signal)));
            }
            for Watcher { told, by } in watchers {
                nodes.extend(by.node_name());
                told(reason);
            }
            if !nodes.is_empty() {
                self.psd().told_nodes = nodes;
            }
        }
        let next = |psd: &super::Psd| psd.told_nodes.last().copied();
        while let Some(node) = self.with_psd(next).flatten() {
            if let Some(controller) = nodes::wait_for_room(self, node) {
                probes().blocked_on_node(self, controller);
                return Err(Control::Wait);
            }
            self.psd().told_nodes.pop();
        }
        Ok(())
    }

    fn tell_relations(&mut self) {
        let Some(relations) = self.relations.get_mut().take() else {
            return;
        };
        let me: Peer = self.pid().into();
        let raw = self.exit_reason.get();
        // SAFETY: T1: the reason lies on this heap.
        let reason: Term<'_> = unsafe { Term::new(raw) };
        let guard = ptab::pin();
        let mut together = Together::new(&guard);
        for peer in relations.linked() {
            let token = match peer.pid() {
                Some(pid) if self.flags.get().seq_token => {
                    probes().token_of_exit(self, pid.term(), reason)
                }
                _ => None,
            };
            let mut signal = ExitSignal::of_link(me, reason, token);
            match peer.pid() {
                Some(pid) => {
                    self.note_exit_signal_of_link(pid, &mut signal);
                    together.deliver(pid, Signal::Exit(Box::new(signal)));
                }
                None => deliver_to_peer(peer, Signal::Exit(Box::new(signal))),
            }
        }
        for (reference, from) in &relations.targets {
            let down = Signal::MonitorDown {
                reference: *reference,
                reason: Message::copy_of(reason),
                is_gone: false,
            };
            together.deliver(*from, down);
        }
        drop(together);
        for (_, watcher) in relations.watchers {
            (watcher.told)(reason);
        }
        for (reference, origin) in &relations.origins {
            send_demonitor(&origin.target, *reference, self.pid());
        }
        for pid in relations.suspending.keys() {
            let by = self.pid();
            let resume = move |p: Option<&mut Process>| super::suspension::resume(p, by);
            deliver(*pid, Signal::request(resume));
        }
    }
}
