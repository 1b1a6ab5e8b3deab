//! Handles signals, in the context of their receiver.

use beamline_orders::Heard;

use super::event::Event;
use super::nodes::{self, RemoteProcess};
use super::order::director::may_timing_show;
use super::order::{Source, explore};
use super::probe::{happened, probes};
use super::refs::{RefNumbers, reference_of};
use super::relation::{AliasEnd, Monitored};
use super::seq_token::{Mark, Token};
use super::signal::{ExitSignal, Sender, TracedMessage, deliver_to_peer};
use super::{Exiting, Next, Peer, Process, SYSTEM, Signal, WaitFor, trace_flags, user_timers};
use crate::heap::{Heap, Message};
use crate::sched::timers::{self, TimerId};
use crate::sys::chance::clock::monotonic_ns;
use crate::term::{Atom, CodeAddress, Pid, Term, am};

/// Signals handled in one go, before others get a time slice.
const SIGNALS_A_TURN: usize = 20_000;

/// What of handling signals one reduction pays for. Source: `ERTS_SIG_REDS_CNT_FACTOR`.
const WORK_PER_RED: i64 = 4;

/// Work on signals at the start of a time slice, behind which the process's own code runs: whoever sends it signals faster
/// than it handles them cannot keep it from running. Source: `ERTS_SIG_HANDLE_REDS_MAX_PREFERED`.
const WORK_BEFORE_CODE: i64 = 100 * WORK_PER_RED;

/// The timer of the receive that the process is in.
pub(super) struct ReceiveTimer {
    /// Tells its signal from that of an earlier receive.
    id: u64,
    /// The timer in the wheel; `None` once it has gone off.
    wheel: Option<TimerId>,
    armed: bool,
    timed_out: bool,
    timeout_pc: CodeAddress,
    deadline_ns: u64,
    /// Nanoseconds that were left when the process was suspended.
    paused_ns: Option<u64>,
}

/// The message of a monitor that ends: on what, and why.
fn down<'h>(
    heap: &'h Heap,
    reference: Term<'h>,
    tag: Option<Message>,
    [kind, item, reason]: [Term<'h>; 3],
) -> Term<'h> {
    let tag = tag.map_or(Atom::term(am::DOWN), |tag| heap.attach(tag));
    heap.tuple(&[tag, reference, kind, item, reason])
}

/// What is monitored, as a `'DOWN'` tells of it.
#[derive(Clone, Copy)]
enum Item {
    Peer(Peer),
    /// By a name, at a node.
    Name(Atom, Atom),
}

impl Item {
    fn term(self, heap: &Heap) -> Term<'_> {
        match self {
            Item::Peer(peer) => peer.term(heap),
            Item::Name(name, node) => heap.tuple(&[name.term(), node.term()]),
        }
    }
}

/// The kind of what is monitored, and itself.
fn item_of(target: &Monitored) -> Option<(Atom, Item)> {
    Some(match *target {
        Monitored::Process(pid) => (am::process, Item::Peer(pid.into())),
        Monitored::Remote(RemoteProcess::Process(peer)) => (am::process, Item::Peer(peer)),
        Monitored::Name(name, node, _) | Monitored::Remote(RemoteProcess::Name(name, node)) => {
            (am::process, Item::Name(name, node))
        }
        Monitored::Port(port) => (am::port, Item::Peer(port.into())),
        Monitored::NamedPort(name, node, _) => (am::port, Item::Name(name, node)),
        Monitored::Gone | Monitored::TimeOffset => return None,
    })
}

/// The `'DOWN'` of a monitor of the process `pid`.
fn down_message(
    heap: &Heap,
    (reference, pid): (RefNumbers, Pid),
    tag: Option<Message>,
    (kind, item): (Atom, Item),
    reason: Message,
) -> Term<'_> {
    let item = item.term(heap);
    let reference = reference_of(heap, reference, pid);
    let reason = heap.attach(reason);
    down(heap, reference, tag, [kind.term(), item, reason])
}

impl Process {
    /// As [`Process::fetch_signals`], at the start of a time slice. ERTS leaves messages alone then, unless there are
    /// other signals to handle: they are charged for when they are looked for.
    ///
    /// # Errors
    /// When a signal, or what it asks for, ends the process.
    #[inline]
    pub(crate) fn fetch_at_turn(&mut self) -> Result<(), Exiting> {
        let (before, reds) = (self.mailbox.looked_for(), self.fcalls.get());
        // A built-in function that awaits signals has nothing to run before them.
        let most_work = match self.mailbox.to_flush() {
            None => WORK_BEFORE_CODE,
            Some(_) => i64::MAX,
        };
        self.fetch_due(most_work)?;
        let unlooked_for = self.mailbox.len().saturating_sub(before);
        if unlooked_for > 0 {
            // Messages that were placed directly have not been reported yet.
            probes().queue_grew(self);
        }
        if self.fcalls.get() == reds {
            self.mailbox.not_looked_for(unlooked_for);
        }
        Ok(())
    }

    /// Handles what had been sent to the process when it called a built-in function, which calls this first. `Some`: the
    /// function ends so, because a signal ends the process, or because it is to be called again, when more of the signals
    /// have been handled or the end of the recorded run comes, for which it waits. Later signals may be handled or not: those
    /// that come without end do not hold it up. Source: `erts_proc_sig_init_flush_signals()`.
    pub(crate) fn fetch_in_call(&mut self) -> Option<Next> {
        if self.mailbox.to_flush().is_none() {
            self.take_signals();
            let sent = self.mailbox.middle.len();
            // Fewer are handled in one go.
            let to_flush = (sent > SIGNALS_A_TURN).then_some(sent);
            self.mailbox.set_to_flush(to_flush);
        }
        if let Err(exiting) = self.fetch_due(i64::MAX) {
            return Some(Next::Exit(exiting));
        }
        if self.mailbox.to_flush().is_some_and(|left| left > 0) {
            self.shared.wake();
            return Some(Next::Wait);
        }
        self.mailbox.set_to_flush(None);
        self.must_wait_in_call().then_some(Next::Wait)
    }

    /// [`Process::fetch_signals`], and what has been held until now: a built-in function may wait for it.
    fn fetch_due(&mut self, most_work: i64) -> Result<(), Exiting> {
        self.fetch_some_signals(most_work)?;
        self.deliver_due()
    }

    /// Moves what has been sent so far to the middle queue.
    fn take_signals(&mut self) {
        // Before the look, so that what comes behind it wakes us.
        let _ = self.shared.run_state.take_wake();
        let sent = self.shared.signals.take_all();
        self.mailbox.middle.append(sent);
    }

    /// Takes what has been sent so far and handles it. `false` when there was nothing.
    ///
    /// # Errors
    /// When a signal, or what it asks for, ends the process.
    pub(crate) fn fetch_signals(&mut self) -> Result<bool, Exiting> {
        self.fetch_some_signals(i64::MAX)
    }

    /// As [`Process::fetch_signals`]; what takes more work than `most_work` is left in the middle queue.
    fn fetch_some_signals(&mut self, most_work: i64) -> Result<bool, Exiting> {
        self.mailbox.not_looked_for(0);
        let has_handled = self.handle_deferred()?;
        self.take_signals();
        if self.mailbox.middle.is_empty() {
            return self.check_exiting().map(|()| has_handled);
        }
        let reds = self.fcalls.get();
        let (handled, work) = self.handle_middle(most_work);
        probes().queue_grew(self);
        if work > 0 {
            self.bump_reds(work / WORK_PER_RED + 1);
        }
        // When signals come is chance.
        self.forget_reds(reds);
        handled
            .and_then(|()| self.run_system_tasks())
            .map(|()| true)
    }

    /// Handles signals of the middle queue, and the work that it was.
    fn handle_middle(&mut self, most_work: i64) -> (Result<(), Exiting>, i64) {
        let (mut left, mut work) = (SIGNALS_A_TURN, 0);
        let mut goes_on = self.check_exiting();
        while left > 0
            && work < most_work
            && goes_on.is_ok()
            && let Some(signal) = self.mailbox.middle.pop()
        {
            left -= 1;
            work += signal.work();
            goes_on = self.handle(signal);
        }
        if let Some(to_flush) = self.mailbox.to_flush() {
            let unhandled = to_flush.saturating_sub(SIGNALS_A_TURN - left);
            self.mailbox.set_to_flush(Some(unhandled));
        }
        (goes_on, work)
    }

    /// Whether signals taken from the outer queue are still to be handled.
    pub(crate) fn has_unhandled_signals(&self) -> bool {
        !self.mailbox.middle.is_empty()
    }

    /// Does what a signal asks for.
    ///
    /// # Errors
    /// When it ends the process.
    pub(super) fn handle_at_once(&mut self, signal: Signal) -> Result<(), Exiting> {
        match signal {
            Signal::Message {
                message,
                from,
                sender: Sender::Answer,
                ..
            } => self.handle_answer(from, message),
            Signal::Message {
                message,
                from,
                sender,
                number,
            } => {
                self.tell_arrival((sender, from, number), &message, false);
                let mark = match sender.is_process() {
                    true => Mark::CLEARS,
                    false => Mark::KEEPS,
                };
                self.mailbox.push(message, mark);
            }
            Signal::Traced(traced) => self.handle_traced(*traced),
            Signal::AliasMessage {
                alias,
                message,
                priority,
            } => {
                if let Some(before_others) = self.through_alias((alias, priority)) {
                    let sender = (Sender::Runtime, SYSTEM, 0);
                    self.tell_arrival(sender, &message, before_others);
                    self.mailbox.put(message, Mark::CLEARS, before_others);
                }
            }
            Signal::ToSelf => self.handle_to_self(),
            Signal::Exit(exit) => self.handle_exit(*exit)?,
            Signal::Link { from } => self.handle_link(from),
            Signal::Unlink { from, id } => self.handle_unlink(from, id),
            Signal::UnlinkAck { from, id } => {
                self.record_link_news(Heard::Unlinked, from);
                self.relations().end_unlink(from, id);
            }
            Signal::Monitor { reference, from } => {
                self.relations().targets.insert(reference, from);
            }
            Signal::Demonitor { reference } => {
                if let Some(mut relations) = self.some_relations() {
                    relations.targets.remove(&reference);
                }
            }
            Signal::Watch(watch) => {
                let (reference, watcher) = *watch;
                self.relations().watchers.insert(reference, watcher);
            }
            Signal::GroupLeader { leader } => self.set_group_leader(leader),
            Signal::MonitorDown { .. } => self.handle_down(signal),
            Signal::ReceiveTimeout { id } => {
                if let Some(timer) = self.timer.as_mut().filter(|timer| timer.id == id) {
                    timer.timed_out = timer.armed;
                    timer.wheel = None;
                }
            }
            Signal::Request(run) | Signal::Question { run, .. } => {
                run(Some(self));
                self.check_exiting()?;
            }
        }
        Ok(())
    }

    /// The runtime's answer to a request of this process.
    fn handle_answer(&mut self, from: Pid, message: Message) {
        self.record_reply(message.term());
        self.report_received(from.into(), &message);
        self.mailbox.push(message, Mark::ANSWER);
    }

    /// A message to itself, which lies on its heap already.
    fn handle_to_self(&mut self) {
        let Some(root) = self.mailbox.next_to_self() else {
            return;
        };
        // SAFETY: H8: the mailbox showed the collector where it lies, and shows it from now on.
        let message = unsafe { Message::attached(Term::new(root)) };
        self.report_received(self.pid().into(), &message);
        self.mailbox.push_own(message);
    }

    /// A message with a sequential trace token.
    #[cold]
    fn handle_traced(&mut self, traced: TracedMessage) {
        let (from, before_others) = match traced.alias {
            None => (traced.from, false),
            Some(by) => match self.through_alias(by) {
                None => return,
                Some(before_others) => (SYSTEM.into(), before_others),
            },
        };
        self.report_received(from, &traced.message);
        let source = traced.source();
        let mark = traced
            .token
            .map_or(Mark::CLEARS, |token| probes().token_queued(self, token));
        self.note_delivery(source, before_others);
        self.mailbox.put(traced.message, mark, before_others);
    }

    fn handle_link(&self, from: Peer) {
        self.record_link_news(Heard::Link, from);
        let is_new = self.relations().linked_by(from);
        if is_new {
            from.with_term(|from| happened(&self.shared, Event::GettingLinked, from));
        }
    }

    fn handle_unlink(&self, from: Peer, id: u64) {
        self.record_link_news(Heard::Unlink, from);
        let relations = self.some_relations();
        if relations.is_some_and(|mut relations| relations.unlinked_by(from)) {
            from.with_term(|from| happened(&self.shared, Event::GettingUnlinked, from));
        }
        let me = self.pid().into();
        deliver_to_peer(from, Signal::UnlinkAck { from: me, id });
    }

    /// The alias, if it is active.
    pub(crate) fn alias(&self, reference: RefNumbers) -> Option<super::Alias> {
        let relations = self.some_relations()?;
        relations.aliases.get(&reference).copied()
    }

    /// Whether a message that comes by this alias goes before others, as it asks to: where the alias allows it. `None`: the
    /// alias is not active, and the message does not come. An alias for a single reply ends here. Where a recorded run is
    /// followed, those messages come here that came there: they may be late.
    pub(super) fn through_alias(
        &mut self,
        (reference, priority): (RefNumbers, bool),
    ) -> Option<bool> {
        let Some(alias) = self.alias(reference) else {
            return self.is_replayed().then_some(false);
        };
        if alias.end == AliasEnd::Reply {
            self.relations().aliases.remove(&reference);
            if self.demonitor(reference, false) {
                self.note_replied(reference);
            }
        }
        Some(alias.priority && priority)
    }

    /// A message goes into the queue, with or without priority.
    #[inline]
    fn tell_arrival(
        &self,
        (sender, from, number): (Sender, Pid, u32),
        message: &Message,
        priority: bool,
    ) {
        self.note_arrival((sender, from, number), message.term(), priority);
        let from = if sender == Sender::Timer {
            SYSTEM
        } else {
            from
        };
        self.report_received(from.into(), message);
    }

    /// A message goes into the queue.
    #[inline]
    fn report_received(&self, from: Peer, message: &Message) {
        if self.shared.tracee.has(trace_flags::RECEIVE) {
            probes().received(self, from, message.term());
        }
    }

    /// A message of the runtime's own, which `build` makes on this heap.
    pub(super) fn push_own(
        &mut self,
        mark: Mark,
        source: Source,
        priority: bool,
        build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
    ) {
        self.note_delivery(source, priority);
        if !may_timing_show() {
            // When it comes is chance: it is no part of the heap before the process takes it.
            let message = Heap::detached().into_message(build);
            self.report_received(SYSTEM.into(), &message);
            self.mailbox.put(message, mark, priority);
            return;
        }
        // SAFETY: H8: built on this heap just now; the mailbox shows what is attached.
        let message = unsafe { Message::attached(build(&self.heap)) };
        self.report_received(SYSTEM.into(), &message);
        self.mailbox.push_attached(message, mark, priority);
    }

    /// `{Tag, Reference, Outcome, Result}`, for a request to start a process on another node.
    pub(crate) fn spawn_replied(
        &mut self,
        tag: Message,
        request: RefNumbers,
        outcome: Atom,
        token: Option<Token>,
        result: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
    ) {
        let pid = self.pid();
        let mark = token.map_or(Mark::KEEPS, |token| probes().token_queued(self, token));
        self.push_own(mark, Source::NOTICE, false, |heap| {
            let request = reference_of(heap, request, pid);
            heap.tuple(&[heap.attach(tag), request, outcome.term(), result(heap)])
        });
    }

    fn handle_exit(&mut self, exit: ExitSignal) -> Result<(), Exiting> {
        let ExitSignal {
            from,
            alias,
            reason,
            linked,
            is_gone,
            normal_kills,
            mut priority,
            token,
            access,
            traps,
        } = exit;
        if let Some(alias) = alias {
            match self.alias(alias) {
                None => return Ok(()),
                Some(alias) => priority &= alias.priority,
            }
        } else if !linked {
            priority = false;
        }
        if linked {
            let link = self
                .some_relations()
                .and_then(|mut relations| relations.links.remove(&from));
            explore::note_link_news(self, from.pid());
            match link {
                None => return Ok(()),
                // Unlinked meanwhile: whoever exited acknowledges nothing any more.
                Some(link) if link.unlinking != 0 => return Ok(()),
                Some(link) => priority |= link.priority,
            }
        }
        let unlinked = |p: &Process| {
            if linked {
                from.with_term(|from| happened(&p.shared, Event::GettingUnlinked, from));
            }
        };
        if !linked && reason.term() == am::kill {
            self.record_killed_by(from.pid(), access, is_gone);
            return Err(self.exit_with(Atom::term(am::killed)));
        }
        if traps.unwrap_or(self.flags.get().trap_exit) {
            let mark = token.map_or(Mark::CLEARS, |token| probes().token_queued(self, token));
            explore::note_exit_arrival(self, from.pid(), access);
            let source = Source::exit_of(from.pid(), is_gone);
            if linked {
                self.record_exit_of_socket(from, reason.term());
            }
            self.push_own(mark, source, priority, |p| {
                p.tuple(&[Atom::term(am::EXIT), from.term(p), p.attach(reason)])
            });
            unlinked(self);
            return Ok(());
        }
        if reason.term() == am::normal && !normal_kills {
            self.record_lost_exit(from.pid());
            unlinked(self);
            return Ok(());
        }
        self.record_killed_by(from.pid(), access, is_gone);
        let reason = self.heap.attach(reason);
        Err(self.exit_with(reason))
    }

    fn handle_down(&mut self, signal: Signal) {
        let Signal::MonitorDown {
            reference,
            reason,
            is_gone,
        } = signal
        else {
            return;
        };
        self.record_down_of_socket(reference, reason.term());
        let Some(origin) = self
            .some_relations()
            .and_then(|mut relations| relations.remove_origin(reference))
        else {
            return;
        };
        let Some(item) = item_of(&origin.target) else {
            return;
        };
        let source = Source::down_of(origin.target.process(), is_gone, reference);
        let pid = self.pid();
        self.push_own(Mark::KEEPS, source, origin.priority, |heap| {
            down_message(heap, (reference, pid), origin.tag, item, reason)
        });
    }

    /// What the monitor `reference` would tell with this reason.
    pub(super) fn down_message(&self, reference: RefNumbers, reason: Message) -> Option<Message> {
        let relations = self.some_relations()?;
        let origin = relations.origins.get(&reference)?;
        let item = item_of(&origin.target)?;
        let tag = origin.tag.as_ref().map(|tag| Message::copy_of(tag.term()));
        Some(
            Heap::detached().into_message(|heap| {
                down_message(heap, (reference, self.pid()), tag, item, reason)
            }),
        )
    }

    /// The monitor `reference` was set on `item`, which was of an old incarnation of this node.
    pub(crate) fn down_of_old(&mut self, reference: RefNumbers, kind: Atom, item: Message) {
        let origin = self
            .some_relations()
            .and_then(|mut relations| relations.remove_origin(reference));
        let Some(origin) = origin else {
            return;
        };
        let pid = self.pid();
        self.push_own(Mark::KEEPS, Source::NOTICE, origin.priority, |heap| {
            let what = [kind.term(), heap.attach(item), Atom::term(am::noproc)];
            let reference = reference_of(heap, reference, pid);
            down(heap, reference, origin.tag, what)
        });
    }

    /// The exit signal of a link to `other`, of an old incarnation of this node. Nothing comes where the link has been
    /// given up meanwhile.
    pub(super) fn link_lost(&mut self, other: Message) {
        let was_linked = self
            .some_relations()
            .is_some_and(|mut relations| relations.unlink_gone(other.term()));
        if !was_linked {
            return;
        }
        if !self.flags.get().trap_exit {
            let _ = self.exit_with(Atom::term(am::noproc));
            return;
        }
        self.push_own(Mark::CLEARS, Source::NOTICE, false, |p| {
            p.tuple(&[
                Atom::term(am::EXIT),
                p.attach(other),
                Atom::term(am::noproc),
            ])
        });
    }

    /// A reference of this process's with these numbers, as it was made.
    pub(crate) fn reference_of(&self, numbers: RefNumbers) -> Term<'_> {
        reference_of(&self.heap, numbers, self.pid())
    }

    /// Ends the monitor `reference`: no `'DOWN'` comes from now on. `false` when there was none. With `keeps`, one that came
    /// before would have stayed.
    pub(crate) fn demonitor(&self, reference: RefNumbers, keeps: bool) -> bool {
        let ends_alias = |alias: super::Alias| alias.end != AliasEnd::Explicit;
        if self.alias(reference).is_some_and(ends_alias) {
            explore::note_alias_given_up(self.pid(), reference);
        }
        let Some(origin) = self
            .some_relations()
            .and_then(|mut relations| relations.remove_origin(reference))
        else {
            return false;
        };
        self.note_demonitor(reference, origin.target.process(), keeps);
        send_demonitor(&origin.target, reference, self.pid());
        true
    }

    /// Gives up the stack and collects; the process goes on with a call of `x(0):x(1)` with the
    /// arguments `x(2)`, when it has a message.
    pub(crate) fn hibernate(&mut self) -> crate::process::Next {
        probes().hibernating(self);
        self.heap.stop.set(self.heap.hend());
        self.catches.set(0);
        self.trace_frames.set(0);
        self.pc.set(CodeAddress::NULL);
        self.live.set(3);
        self.rest(3);
        crate::process::Next::Sleep
    }

    /// Waits for a message, with the least memory if there is none; `x(0)` to `x(live-1)` are kept. A
    /// message that is there already wakes it at once, also one that a `receive` has looked at.
    pub(crate) fn rest(&mut self, live: usize) {
        self.mailbox.restart();
        // Whether a message is there is chance: then it collects in any case.
        if !self.mailbox.has_new() || !may_timing_show() {
            self.collect_hibernate(live);
        }
        self.prepare_to_rest();
        self.wait();
    }

    /// How the time slice of a process ends that waits: with a message there already, it is run again.
    pub(crate) fn outcome_of_wait(&self) -> crate::process::Outcome {
        if self.is_ready() {
            crate::process::Outcome::Yield
        } else {
            crate::process::Outcome::Wait
        }
    }

    /// Does it sleep in `hibernate/3`?
    pub(crate) fn is_hibernated(&self) -> bool {
        self.pc.get().is_null() && self.wait_for == WaitFor::Message
    }

    /// Whether a process at rest has something to run for, now that its signals are handled.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        match self.wait_for {
            WaitFor::Signal => true,
            WaitFor::Message => self.mailbox.has_new() || self.receive_timed_out(),
        }
    }

    /// The timer of the receive has been started.
    pub(super) fn receive_timer_runs(&self) -> bool {
        self.timer.as_ref().is_some_and(|timer| timer.armed)
    }

    /// The timer runs, and will go off.
    pub(super) fn receive_may_time_out(&self) -> bool {
        let timer = self.timer.as_ref();
        timer.is_some_and(|timer| timer.armed && timer.wheel.is_some())
    }

    pub(super) fn receive_timed_out(&self) -> bool {
        self.timer.as_ref().is_some_and(|timer| timer.timed_out)
    }

    /// Starts the timer of the receive; with no time it never ends.
    pub(super) fn start_receive_timer(
        &mut self,
        milliseconds: Option<u64>,
        timeout_pc: CodeAddress,
    ) {
        let pid = self.pid();
        let timer = self.timer.get_or_insert_with(|| {
            Box::new(ReceiveTimer {
                id: 0,
                wheel: None,
                armed: false,
                timed_out: false,
                timeout_pc,
                deadline_ns: 0,
                paused_ns: None,
            })
        });
        timer.id += 1;
        timer.armed = true;
        timer.timeout_pc = timeout_pc;
        if let Some(milliseconds) = milliseconds {
            timer.deadline_ns = timers::deadline_after(milliseconds);
            timer.wheel = Some(timers::set_receive(timer.deadline_ns, pid.0, timer.id));
        }
    }

    /// The process is suspended: its timers, and those that are for it, stand still.
    pub(crate) fn pause_timers(&mut self) {
        if let Some(timer) = &mut self.timer
            && let Some(wheel) = timer.wheel
            && timers::cancel(wheel)
        {
            timer.wheel = None;
            timer.paused_ns = Some(timer.deadline_ns.saturating_sub(monotonic_ns()));
        }
        for timer in self.shared.pause_timers(true) {
            user_timers::pause(timer);
        }
    }

    /// The process is suspended no more.
    pub(crate) fn resume_timers(&mut self) {
        let pid = self.pid();
        if let Some(timer) = &mut self.timer
            && let Some(left_ns) = timer.paused_ns.take()
        {
            timer.deadline_ns = monotonic_ns().saturating_add(left_ns);
            timer.wheel = Some(timers::set_receive(timer.deadline_ns, pid.0, timer.id));
        }
        for timer in self.shared.pause_timers(false) {
            user_timers::resume(timer);
        }
    }

    /// The receive has ended.
    #[inline]
    pub(super) fn end_receive_timer(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.armed = false;
            timer.timed_out = false;
            timer.paused_ns = None;
            if let Some(id) = timer.wheel.take() {
                timers::cancel(id);
            }
        }
    }

    /// Sets where to go on: behind the `wait_timeout` if the receive's time is up and no message came.
    #[inline]
    pub(crate) fn resume_receive(&mut self) {
        let waited = std::mem::take(&mut self.wait_for);
        if waited == WaitFor::Message
            && !self.mailbox.has_new()
            && let Some(timer) = self.timer.as_ref().filter(|timer| timer.timed_out)
        {
            self.pc.set(timer.timeout_pc);
        }
    }
}

/// Tells what was monitored that it is so no more.
pub(super) fn send_demonitor(target: &Monitored, reference: RefNumbers, by: Pid) {
    let target: Option<Pid> = match target {
        Monitored::Process(pid) => Some(*pid),
        Monitored::Name(_, _, pid) => *pid,
        Monitored::Port(port) | Monitored::NamedPort(_, _, Some(port)) => {
            super::ports::deliver(*port, Signal::Demonitor { reference });
            None
        }
        Monitored::TimeOffset => {
            super::time_offset::demonitor(reference);
            None
        }
        Monitored::Remote(target) => {
            nodes::demonitor(*target, reference, by);
            None
        }
        Monitored::NamedPort(_, _, None) | Monitored::Gone => None,
    };
    if let Some(pid) = target {
        // Gone: then its 'DOWN' finds no monitor.
        let _ = super::send(pid, Signal::Demonitor { reference });
    }
}
