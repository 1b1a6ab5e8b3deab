//! The door to this folder. The machine asks here before it does what other processes may see, and tells here what it
//! has done. What follows depends on the mode of the run ([`mode`](super::mode)), for which nobody outside asks.
//!
//! Each function is a load of one byte where nobody directs the run, and the rest of it is out of the way. Modes go
//! together, and their order matters. A step of a process's own is followed before it is recorded, because a replay may
//! refuse it. A message is recorded before it is followed, because a replay may stop behind it.
//!
//! Where the machine itself has to differ, it asks a question, which is named after what it would do otherwise, and not
//! after a mode. Three are asked at many places: [`may_timing_show`], [`are_accesses_ordered`], [`are_answers_recorded`].

use beamline_formats::ring::SignalKind;

use super::replay::{self, stop};
use super::{
    OrderEvent, Source, Step, explore, is_active, is_explored, is_followed, is_sited, turns,
};
use crate::heap::Message;
use crate::process::outgoing::{is_for_process, receiver_name, receiver_pid};
use crate::process::refs::RefNumbers;
use crate::process::registry::{self, Named, whereis};
use crate::process::signal::{ExitSignal, Sender};
use crate::process::{Control, Exiting, Outcome, ProcShared, Process, Signal, deliver, lookup};
use crate::sched::ptab::pin;
use crate::sys::chance;
use crate::term::{Atom, Pid, Term};

/// Whether what depends on the timing of other processes may show to a process: in what it spends, in what it
/// allocates, in what it is answered. Not where the order of the run is directed: its order is then all that there is of
/// timing, and a replay has to come to the same numbers.
#[inline(always)]
pub(crate) fn may_timing_show() -> bool {
    !is_active()
}

/// Whether accesses to what processes share are steps. Then a call makes one access, and takes its turn with it.
#[inline(always)]
pub(crate) fn are_accesses_ordered() -> bool {
    is_active()
}

/// Whether what native functions take from outside is recorded, or comes from a recording.
#[inline(always)]
pub(crate) fn are_answers_recorded() -> bool {
    is_active()
}

/// Whether recorded answers name tables and other references by their numbers, so that what has one has to be found by
/// it.
#[inline(always)]
pub(crate) fn are_references_recorded() -> bool {
    is_followed()
}

/// Whether each look of a receive at a message is a step, which machine code makes by its helper.
#[inline(always)]
pub(crate) fn are_looks_steps() -> bool {
    is_active()
}

/// Whether accesses to files are steps. An exploration does not reorder them.
#[inline(always)]
pub(crate) fn are_files_ordered() -> bool {
    is_active() && !is_explored()
}

/// Whether the parts of objects that are accessed are recorded, for a reader.
pub(crate) fn are_parts_recorded() -> bool {
    is_sited()
}

/// Whether records of steps may grow: a scheduler ends those that are older than it allows.
#[inline]
pub(crate) fn may_records_grow() -> bool {
    is_active()
}

/// Whether a sender may put its message into the queue of the receiver: nothing decides the order of deliveries.
#[inline(always)]
pub(in crate::process) fn may_place_directly() -> bool {
    super::delivers_at_once()
}

/// Whether receives try other messages than the recorded ones.
#[inline(always)]
pub(crate) fn may_try_others() -> bool {
    super::tries_others()
}

/// Whether this emulator may be a node among others: what comes from other nodes is in no order.
pub(crate) fn may_have_other_nodes() -> bool {
    !is_active()
}

/// Whether the program hears of signals of the operating system as they come. In a replay it hears of those of the
/// recorded run only.
pub(crate) fn may_hear_of_system_signals() -> bool {
    !is_followed()
}

/// Whether code that nobody runs any more may be freed. When a process leaves old code is chance: in a replay, one may
/// still run what none ran in the recorded run.
pub(crate) fn may_free_code() -> bool {
    !is_followed()
}

/// Whether a process that ends may have to wait for what another one has yet to give to it.
pub(crate) fn may_wait_at_end() -> bool {
    is_followed()
}

/// Whether errors are logged. Nobody reads what a run of an exploration logs.
pub(crate) fn may_log() -> bool {
    !is_explored()
}

/// What an exploration alone tells apart, beside the other objects of an access.
pub(crate) fn if_explored<T>(object: impl FnOnce() -> T) -> Option<T> {
    is_explored().then(object)
}

/// Wakes a process that may wait with its end until it has got what another one has just given to it.
pub(crate) fn wake_if_it_may_end(shared: &ProcShared) {
    if is_followed() {
        shared.wake();
    }
}

/// As [`wake_if_it_may_end`], of a pid, which is looked up in a replay only.
pub(crate) fn wake_ending(pid: Pid) {
    if is_followed()
        && let Some(shared) = lookup(pid, &pin())
    {
        shared.wake();
    }
}

/// The name that a process gives up as it ends. It gets no other; but in an explored run it may until its end is made.
pub(in crate::process) fn take_last_name(shared: &ProcShared) -> Option<Atom> {
    match is_explored() {
        true => shared.take_name(),
        false => shared.refuse_names(),
    }
}

/// The emulator ends: no other thread of it does anything that is chance. A run of an exploration has one thread, which
/// still tells what the run was.
pub(crate) fn stop_here() {
    if !is_explored() {
        chance::stop_here(is_active());
    }
}

// What comes to a process.

impl Process {
    /// Handles a signal, or puts it off where others come first.
    ///
    /// # Errors
    /// When it ends the process.
    #[inline]
    pub(in crate::process) fn handle(&mut self, signal: Signal) -> Result<(), Exiting> {
        match is_active() {
            false => self.handle_at_once(signal),
            true => self.handle_directed(signal),
        }
    }

    fn handle_directed(&mut self, signal: Signal) -> Result<(), Exiting> {
        // While a shell looks nothing is followed any more, so this question comes before that one.
        if stop::is_asked() && self.is_looked_at() {
            return self.handle_standing(signal);
        }
        if is_followed() {
            return self.handle_in_turn(signal);
        }
        self.handle_now(signal)
    }

    /// Handles a signal whose turn it is; in an explored run it may still wait for a place where it may end the process.
    pub(super) fn handle_now(&mut self, signal: Signal) -> Result<(), Exiting> {
        if is_explored() && self.defers(&signal) {
            self.defer(signal);
            return Ok(());
        }
        self.handle_at_once(signal)
    }

    /// A signal came before the end of the process, which has ended by now; it is returned where it is to be answered as
    /// by a process that is gone. In an explored run, a process that asked before the end gets the reason of the end.
    pub(in crate::process) fn take_behind_end(&mut self, signal: Signal) -> Option<Signal> {
        if !is_explored() {
            return Some(signal);
        }
        match signal {
            Signal::Monitor { reference, from } => {
                self.relations().targets.insert(reference, from);
            }
            Signal::Link { from } => drop(self.relations().linked_by(from)),
            Signal::Question { run, .. } => run(Some(self)),
            signal => return Some(signal),
        }
        None
    }

    /// Answers what asks the process, which waits for its turn with what it gives up: in a replay, it may have to wait for
    /// what another process does that asks it before. In an exploration, it has been asked before.
    pub(in crate::process) fn answer_while_it_waits_to_end(&mut self) {
        if !is_followed() || is_explored() {
            return;
        }
        let sent = self.shared.signals.take_all();
        self.mailbox.middle.append(sent);
        for signal in std::mem::take(&mut self.mailbox.middle) {
            match signal {
                Signal::Question { run, .. } => run(Some(self)),
                Signal::Request(_) | Signal::Watch(_) => signal.answer_for_gone(self.pid()),
                other => self.mailbox.middle.push(other),
            }
        }
        self.refuse_system_tasks();
    }

    /// A message goes into the queue, behind the others or among those of priority.
    #[inline]
    pub(in crate::process) fn note_arrival(
        &self,
        (sender, from, number): (Sender, Pid, u32),
        message: Term<'_>,
        priority: bool,
    ) {
        if !is_active() {
            return;
        }
        if sender.is_outside() {
            self.record_content(message);
        }
        self.note_delivery(Source::of(sender, from, number), priority);
    }

    /// A signal ends it: of this process, sent with this access, or by its end where `access` is 0. `is_gone`: by its end,
    /// before there was the link.
    pub(in crate::process) fn record_killed_by(
        &self,
        from: Option<Pid>,
        access: u64,
        is_gone: bool,
    ) {
        if !is_active() {
            return;
        }
        explore::record_killed_by(self, from, access);
        let own = &mut *self.own_order();
        (own.is_ended, own.ended_by, own.was_gone) = (true, from, is_gone);
    }
}

// What a process does to others.

impl Process {
    /// What has the name that it is about to send to, if it is a name; it may have to wait for its turn first, whatever it
    /// sends to.
    ///
    /// # Errors
    /// It is to try again when it has its turn.
    #[inline]
    pub(in crate::process) fn find_receiver(
        &self,
        to: Term<'_>,
    ) -> Result<Option<Named>, Control<'static>> {
        match is_active() {
            false => Ok(receiver_name(to).and_then(whereis)),
            true => self.find_receiver_in_turn(to),
        }
    }

    fn find_receiver_in_turn(&self, to: Term<'_>) -> Result<Option<Named>, Control<'static>> {
        if stop::is_asked() && is_for_process(to) {
            self.stop_before_sending()?;
        }
        if let Some(name) = receiver_name(to) {
            self.take_turn_by_name(name)?;
            return registry::find(self, name);
        }
        if turns::may_wait()
            && let Some(pid) = receiver_pid(to)
        {
            self.wait_for_turn(pid)?;
        }
        Ok(None)
    }

    /// The number of its next sending, as [`Process::next_sending`], by an alias of the receiver's.
    pub(in crate::process) fn next_sending_by_alias(&self, to: Pid, alias: RefNumbers) -> u32 {
        let number = self.next_sending(to);
        explore::note_send_through(self, number, to, alias);
        number
    }

    /// Sends what the runtime has to say for it: one of its sendings, but in an explored run a message of nobody.
    pub(crate) fn send_for_runtime(&self, to: Pid, message: Message) {
        let from = self.pid();
        let signal = match is_explored() {
            true => Signal::message(message.term(), from),
            false => Signal::Message {
                message,
                from,
                sender: Sender::Runtime,
                number: self.next_sending(to),
            },
        };
        deliver(to, signal);
    }

    /// It links to `other`, which hears of it next.
    pub(in crate::process) fn note_link(&self, other: Pid) {
        explore::note_link(self, other);
        self.record_signal(SignalKind::Link, other);
    }

    /// It gives up its link to `other`, which hears of it next.
    pub(in crate::process) fn note_unlink(&self, other: Pid) {
        self.record_signal(SignalKind::Unlink, other);
    }

    /// It monitors `other`, which hears of it next.
    pub(in crate::process) fn note_monitor(&self, other: Pid, reference: RefNumbers) {
        explore::note_monitor(self, other, reference);
        self.record_signal(SignalKind::Monitor, other);
    }

    /// It gives up its monitor of `other`, if that is a process. With `keeps`, a `'DOWN'` that came before would have
    /// stayed.
    pub(in crate::process) fn note_demonitor(
        &self,
        reference: RefNumbers,
        other: Option<Pid>,
        keeps: bool,
    ) {
        explore::note_monitor_given_up(self.pid(), reference, keeps);
        if let Some(other) = other {
            self.record_signal(SignalKind::Demonitor, other);
        }
    }

    /// It is about to send this exit signal, as `exit/2`.
    pub(in crate::process) fn note_exit_signal(&self, to: Pid, signal: &mut ExitSignal) {
        explore::note_exit_call(self, to, signal);
        self.record_exit_signal(signal, to);
    }

    /// It ends, and is about to send this exit signal to a process that it is linked to.
    pub(in crate::process) fn note_exit_signal_of_link(&self, to: Pid, signal: &mut ExitSignal) {
        explore::settle(to, signal);
        self.record_exit_signal(signal, to);
    }

    /// It has made `child`, which does not run yet.
    pub(in crate::process) fn note_spawn(&self, child: &Process) {
        self.step(Step::Spawn(child.pid()));
        replay::follow_spawned(child);
        if stop::has_stopped() {
            self.give_up_slice();
        }
    }

    /// It is about to trap exits, or to cease to.
    pub(crate) fn note_trap_exit(&self, traps: bool) {
        if traps != self.flags.get().trap_exit && self.record_site() {
            self.record_annotation(OrderEvent::Traps(traps));
        }
    }
}

// What a process spends.

impl Process {
    /// Takes back what it was charged since it had `reds` reductions left, where that depends on when others act.
    #[inline]
    pub(crate) fn forget_reds(&self, reds: i64) {
        if !may_timing_show() {
            self.fcalls.set(reds);
        }
    }

    /// Charges the words that a dirty call returned, where its code goes on behind the call. Where timing is not to show,
    /// this is no sooner: whether they come before a signal that ends the process is chance.
    #[inline]
    pub(crate) fn claim_dirty_words(&self) {
        if is_active()
            && let Some(own) = self.order.get()
            && own.borrow().brought > 0
        {
            self.heap
                .claim(std::mem::take(&mut own.borrow_mut().brought));
        }
    }

    /// A dirty call has returned so many words, for [`Process::claim_dirty_words`].
    pub(in crate::process) fn put_off_dirty_words(&self, words: usize) {
        if is_active() {
            self.heap.claim_later(words);
            self.own_order().brought += words;
        }
    }

    /// Its time slice has ended so.
    #[inline]
    pub(crate) fn note_end_of_slice(&self, outcome: &Outcome) {
        if stop::has_stopped() && matches!(outcome, Outcome::Wait) {
            self.end_answers();
        }
    }
}

/// The answer of the process `of` to a request whose sender goes on meanwhile. When it comes is chance, and what it says
/// may be.
pub(crate) fn reply_to_request(message: Message, of: Pid) -> Signal {
    match replay::records_answers() {
        true => Signal::outside_of(of, message),
        false => Signal::answer(message, of),
    }
}
