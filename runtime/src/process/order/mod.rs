//! The order of what processes do to each other: spawns, sendings, deliveries, receives. Each step is an [`OrderEvent`]
//! for the recorder.
//!
//! - `mode`: whether the order of a run is recorded, followed or explored;
//! - [`director`]: what the machine asks before it does what others may see, and tells of what it did;
//! - `event`: the table of what is recorded;
//! - [`access`]: accesses to what processes share, which come one after another;
//! - [`answer`]: what native functions answer from outside of the program;
//! - [`identity`]: references and unique integers that are the same in every run;
//! - [`sockets`]: which ports are sockets, whose ends are recorded;
//! - [`turns`]: steps that wait until the scheduler or the replay lets the process make them;
//! - `receive`: which message a process looks at, and when its receives end;
//! - [`replay`]: follows the steps of a recorded run;
//! - [`explore`]: what an explored run keeps beyond its order, for the choice of the next run.
//!
//! A message is known by its sender and the number of its sending, counted from 1. A message that no process has sent
//! (of a timer, a port, a monitor, a link) is known by its place among those of its receiver.
//!
//! Source of the notions: prefix-based tracing (`docs/replay.md`).

pub(crate) mod access;
pub(crate) mod answer;
pub(crate) mod director;
mod event;
pub(crate) mod explore;
pub(in crate::process) mod identity;
mod mode;
mod receive;
pub(crate) mod replay;
pub(crate) mod sockets;
pub(crate) mod turns;

use std::cell::RefMut;
use std::collections::VecDeque;

use beamline_formats::ring::{Growing, SignalKind};
use beamline_orders::{Heard, Spent};
use parking_lot::Mutex;

pub(crate) use event::{NameIds, OrderEvent};
pub(crate) use mode::begin_recording;
use mode::{
    begin_following, delivers_at_once, is_active, is_explored, is_followed, is_only_recorded,
    is_recorded, is_sited, set_free, tries_others,
};

use super::probe::probes;
use super::refs::RefNumbers;
use super::signal::{ExitSignal, SYSTEM, Sender};
use super::{Peer, Process};
use crate::hash::HashMap;
use crate::heap::Message as HeapMessage;
use crate::term::{Atom, Pid};

/// A message that a process has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sending {
    pub(crate) from: Pid,
    /// Which of the sender's sendings.
    pub(crate) number: u32,
}

/// A timer that a process has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) by: Pid,
    /// Which of its timers, where the order is asked for; else, and in an explored run, 0.
    pub(crate) number: u32,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A process has sent it.
    Sent(Sending),
    /// A timer has, which a process had set.
    Timer(Setting),
    /// No process has: it tells of `of`, if of any, and that it was gone already. It is an exit signal, or of a monitor
    /// or a port, or of a timer that is not known.
    SystemMessage {
        of: Option<Pid>,
        is_gone: bool,
        is_exit: bool,
        /// The monitor that it is of: the number of its reference ([`identity::number_of`]).
        monitor: Option<u32>,
    },
}

impl Source {
    /// A message that tells of no process.
    pub(crate) const NOTICE: Source = Source::SystemMessage {
        of: None,
        is_gone: false,
        is_exit: false,
        monitor: None,
    };

    /// An exit signal of `of`, which may have been gone already.
    pub(crate) fn exit_of(of: Option<Pid>, is_gone: bool) -> Source {
        Source::SystemMessage {
            of,
            is_gone,
            is_exit: true,
            monitor: None,
        }
    }

    /// What the monitor with this reference tells of `of`, as with an exit signal.
    pub(crate) fn down_of(of: Option<Pid>, is_gone: bool, monitor: RefNumbers) -> Source {
        Source::SystemMessage {
            of,
            is_gone,
            is_exit: false,
            // In an explored run, prefixes have the order of messages that tell of one process.
            monitor: identity::number_of(monitor).filter(|_| !is_explored()),
        }
    }

    /// The source of a message that carries this number: 0 where no process has sent it.
    #[inline]
    pub(crate) fn of(sender: Sender, from: Pid, number: u32) -> Source {
        match sender {
            Sender::Timer => Source::Timer(Setting { by: from, number }),
            Sender::Outside | Sender::OtherNode | Sender::TimerProcess if from != SYSTEM => {
                Source::SystemMessage {
                    of: Some(from),
                    is_gone: false,
                    is_exit: false,
                    monitor: None,
                }
            }
            _ if number == 0 => Source::NOTICE,
            _ => Source::Sent(Sending { from, number }),
        }
    }
}

/// A message that a receive has tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    Sent(Sending),
    /// No process has sent it: its number among those of its receiver.
    SystemMessage(u32),
}

/// A step that a process makes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It makes this process.
    Spawn(Pid),
    /// It sends its message of this number.
    Send(u32),
    /// Its receive times out.
    Timeout,
    /// It calls a function that is not there, of this module.
    Miss(Atom),
    /// It makes a module's code the current one; calls have missed the module `misses` times before.
    Load { module: Atom, misses: u64 },
    /// It ends.
    Exit,
}

/// Whether a process answers a request of `sys` while a shell looks at a stopped replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::process) enum Answers {
    #[default]
    Nothing,
    /// It is about to send the answer.
    Now,
    /// It has sent it, and stands still when it looks for the next message.
    HasSent,
}

/// A message that a process has taken as it came.
#[derive(Clone, Copy)]
struct Taken {
    sending: Sending,
    /// It had sent one message before.
    sends: bool,
    /// The record that tells how often it has done so since, each time with the next message of the same sender.
    again: Option<Growing>,
}

impl Taken {
    /// Whether this is the next one.
    #[inline]
    fn comes_before(&self, sending: Sending, sends: bool) -> bool {
        let is_next = sending.number == self.sending.number.wrapping_add(1);
        is_next && sending.from == self.sending.from && sends == self.sends
    }
}

/// Most monitors remembered after a reply through their alias: most processes do not give up the monitor then.
const REPLIED_MAX: usize = 64;

/// What of the order a process has to keep.
#[derive(Default)]
pub(crate) struct OrderState {
    /// Its sendings so far.
    sent: u32,
    /// Those of them that are not recorded yet.
    untold: u32,
    /// The message at the end of its queue, delivered after those sendings, that is not recorded yet either: if it is
    /// taken next, one record says both.
    fresh: Option<Sending>,
    /// What its last record tells, if that is a message that it took as it came.
    taken: Option<Taken>,
    /// The integer that a native function has given it last.
    pub(in crate::process) integer: i64,
    /// The function for which it waits until another process has answered.
    pub(in crate::process) awaits: Option<&'static answer::Native>,
    /// The recorded answer to what it is about to ask another process or itself.
    pub(in crate::process) given: Option<HeapMessage>,
    /// How many references and unique integers it has made.
    named: u64,
    /// How many timers it has set.
    timers: u32,
    /// The monitors that messages through their aliases have ended last, and which it has not given up since.
    replied: VecDeque<RefNumbers>,
    /// Words returned by a dirty call and not yet charged: its code has not gone on behind the call.
    pub(in crate::process) brought: usize,
    /// What it does while others stand still.
    pub(in crate::process) answers: Answers,
    /// A signal has ended it.
    pub(in crate::process) is_ended: bool,
    /// It is that of a link to a process that was gone already.
    pub(in crate::process) was_gone: bool,
    /// The process that the signal is of, if of one.
    pub(in crate::process) ended_by: Option<Pid>,
    /// In an explored run: its next receive looks for what a monitor has told that it has given up, and drops that.
    flushes: bool,
    /// Signals that are to end it, in an explored run.
    pub(in crate::process) endings: Option<Box<explore::Endings>>,
    /// Its accesses to what processes share.
    pub(in crate::process) made: Option<Box<access::AccessClock>>,
    /// What it follows.
    pub(in crate::process) follows: Option<Box<replay::ReplayState>>,
}

impl OrderState {
    /// Tells what has been put off.
    pub(in crate::process) fn record_rest(&mut self, pid: Pid) {
        self.taken = None;
        match std::mem::take(&mut self.untold) {
            0 => {}
            count => probes().ordered(pid, OrderEvent::Sent(count)),
        }
        if let Some(fresh) = self.fresh.take() {
            probes().ordered(pid, OrderEvent::Delivery(fresh));
        }
    }

    /// A message gets to the end of its queue: whether its record can wait for the next one.
    #[inline(always)]
    fn put_off_delivery(&mut self, sending: Sending) -> bool {
        let is_kept = self.fresh.is_none();
        if is_kept {
            self.fresh = Some(sending);
        }
        is_kept
    }

    /// A message that is not kept gets to the place `at` of a queue of `length` messages.
    fn record_delivery(&mut self, pid: Pid, source: Source, at: usize, length: usize) {
        self.record_rest(pid);
        if at != length {
            probes().ordered(pid, OrderEvent::Ahead(at));
        }
        let told = match source {
            Source::Sent(sending) => OrderEvent::Delivery(sending),
            Source::Timer(setting) => OrderEvent::Timer(setting),
            Source::SystemMessage {
                of,
                is_gone,
                is_exit,
                monitor,
            } => OrderEvent::Notice {
                of,
                is_gone,
                is_exit,
                monitor,
            },
        };
        probes().ordered(pid, told);
    }

    /// The message at the place `at` is taken; `length` messages are left.
    fn record_receive(&mut self, pid: Pid, at: usize, length: usize) {
        match self.fresh {
            Some(sending) if at == length => {
                self.fresh = None;
                self.record_take(pid, sending);
            }
            _ => {
                self.record_rest(pid);
                probes().ordered(pid, OrderEvent::Receive(at));
            }
        }
    }

    /// It takes a message that has just come to the end of its queue.
    fn record_take(&mut self, pid: Pid, sending: Sending) {
        let sends = self.untold == 1;
        // A record that grows has no room for a second sending.
        if self.untold <= 1
            && let Some(taken) = &mut self.taken
            && taken.comes_before(sending, sends)
            && probes().ordered_again(pid, &mut taken.again)
        {
            taken.sending.number = sending.number;
            self.untold = 0;
            return;
        }
        if sends {
            self.untold = 0;
            probes().ordered(pid, OrderEvent::SendTake(sending));
        } else {
            self.record_rest(pid);
            probes().ordered(pid, OrderEvent::Take(sending));
        }
        self.taken = is_only_recorded().then_some(Taken {
            sending,
            sends,
            again: None,
        });
    }
}

impl Process {
    #[inline]
    pub(in crate::process) fn own_order(&self) -> RefMut<'_, OrderState> {
        self.order.get_or_init(Box::default).borrow_mut()
    }

    /// How many references and unique integers it has made.
    pub(in crate::process) fn names_made(&self) -> u64 {
        self.order.get().map_or(0, |own| own.borrow().named)
    }

    /// Sets how many references and unique integers it has made.
    pub(in crate::process) fn set_names_made(&self, made: u64) {
        if made != self.names_made() {
            self.own_order().named = made;
        }
    }

    /// Keeps in mind that a message through its alias has ended this monitor.
    pub(in crate::process) fn note_replied(&self, monitor: RefNumbers) {
        if !is_active() {
            return;
        }
        let replied = &mut self.own_order().replied;
        if replied.len() == REPLIED_MAX {
            replied.pop_front();
        }
        replied.push_back(monitor);
    }

    /// Whether that is kept in mind of this monitor; it is no more from now on.
    pub(crate) fn take_replied(&self, monitor: RefNumbers) -> bool {
        let replied = &mut self.own_order().replied;
        let at = replied.iter().rposition(|one| *one == monitor);
        at.and_then(|at| replied.remove(at)).is_some()
    }

    /// It follows what its parent's next spawn, or the recorded process of the same number, did.
    pub(in crate::process) fn follow(&self, follows: replay::ReplayState) {
        self.own_order().follows = Some(Box::new(follows));
    }

    /// What it follows, as long as there is something left.
    pub(in crate::process) fn replay_state(&self) -> Option<RefMut<'_, replay::ReplayState>> {
        let own = self.order.get()?.borrow_mut();
        RefMut::filter_map(own, |own| own.follows.as_deref_mut()).ok()
    }

    /// The number of its next sending.
    pub(in crate::process) fn number_of_next_sending(&self) -> u32 {
        next_number(self.own_order().sent)
    }

    /// It sends: the number of the sending, 0 where nobody asks for the order.
    #[inline]
    pub(in crate::process) fn next_sending(&self, to: Pid) -> u32 {
        match is_active() {
            false => 0,
            true if is_only_recorded() => self.own_order().send(self.pid()),
            true => self.send_in_order(to),
        }
    }

    fn send_in_order(&self, to: Pid) -> u32 {
        self.record_site();
        let number = self.own_order().send(self.pid());
        if is_explored() {
            explore::sent(self.pid(), to);
        }
        self.follow_step(Step::Send(number));
        self.note_answer();
        number
    }

    /// It sets a timer.
    pub(crate) fn note_timer(&self) -> Setting {
        let number = match is_active() && !is_explored() {
            true => {
                let own = &mut *self.own_order();
                own.timers = own.timers.wrapping_add(1).max(1);
                own.timers
            }
            false => 0,
        };
        let by = self.pid();
        Setting { by, number }
    }

    /// Tells what has been put off until its next step: it makes none for now.
    pub(crate) fn record_untold(&self) {
        if is_recorded() && self.order.get().is_some() {
            self.own_order().record_rest(self.pid());
        }
    }

    /// Records where it is in its code, before a step, if sites are recorded; whether they are.
    #[inline]
    fn record_site(&self) -> bool {
        if is_sited() {
            self.own_order().record_rest(self.pid());
            probes().sited(self);
        }
        is_sited()
    }

    /// Records where it is in its code, before an access, if sites are recorded; whether what the access is to is
    /// recorded, too.
    pub(in crate::process) fn record_access_site(&self) -> bool {
        if is_explored() {
            self.record_untold();
        }
        self.record_site() || is_explored()
    }

    /// Records a signal other than a message that it sends, if sites are recorded.
    fn record_signal(&self, kind: SignalKind, to: Pid) {
        if to != self.pid() && self.record_site() {
            self.record_annotation(OrderEvent::Signal(kind, to));
        }
    }

    /// Records an exit signal that it sends, if sites are recorded.
    fn record_exit_signal(&self, signal: &ExitSignal, to: Pid) {
        if is_sited() {
            self.record_signal(signal.kind(), to);
        }
    }

    /// Records whether its next receive would take this message.
    pub(in crate::process) fn record_trial(&self, message: Tried, takes: bool) {
        self.own_order().record_rest(self.pid());
        self.record_annotation(match message {
            Tried::Sent(sending) => OrderEvent::Tried(sending, takes),
            Tried::SystemMessage(number) => OrderEvent::TriedNotice(number, takes),
        });
    }

    fn record_annotation(&self, annotation: OrderEvent) {
        debug_assert!(annotation.is_annotation(), "{annotation:?}");
        probes().ordered(self.pid(), annotation);
    }

    /// It makes a step of its own, other than sending.
    pub(crate) fn step(&self, step: Step) {
        if !is_active() {
            return;
        }
        if step == Step::Timeout && self.end_flush() {
            return;
        }
        // Followed first: a step that is not the recorded one ends the replay, and is in no recording.
        self.follow_step(step);
        if !is_recorded() {
            return;
        }
        if step == Step::Timeout {
            self.record_site();
            if is_explored() {
                explore::note_timeout(self.pid());
            }
        }
        let mut own = self.own_order();
        own.record_rest(self.pid());
        if step == Step::Exit {
            // Others that come after one of these accesses wait for its number, also when this process is gone.
            own.record_accesses(self.pid());
        }
        let (by_signal, gone, ended_by) = (own.is_ended, own.was_gone, own.ended_by);
        drop(own);
        // Both belong to the exit that follows them: behind it, the process has no records.
        if step == Step::Exit {
            if let Some(of) = ended_by {
                probes().ordered(self.pid(), OrderEvent::EndedBy(of));
            }
            let (reductions, words) = (self.reductions(), self.allocated_words());
            let spent = Spent {
                reductions,
                words,
                by_signal,
                of: None,
                gone,
            };
            probes().ordered(self.pid(), OrderEvent::Spent(spent));
        }
        let told = match step {
            Step::Spawn(child) => OrderEvent::Spawn(child),
            Step::Send(_) => return,
            Step::Timeout => OrderEvent::Timeout,
            Step::Miss(module) => OrderEvent::Miss(module),
            Step::Load { module, misses } => OrderEvent::Load { module, misses },
            Step::Exit => OrderEvent::Exit,
        };
        probes().ordered(self.pid(), told);
        if step == Step::Exit && is_explored() {
            explore::note_exit(self);
        }
    }

    /// Records an exit signal that changes nothing: its reason is `normal`, and the process does not trap exits.
    pub(in crate::process) fn record_lost_exit(&self, of: Option<Pid>) {
        if is_recorded()
            && let Some(of) = of
        {
            self.own_order().record_rest(self.pid());
            probes().ordered(self.pid(), OrderEvent::Lost(of));
        }
    }

    /// Records what the process hears of its link to another one.
    pub(in crate::process) fn record_link_news(&self, what: Heard, from: Peer) {
        if is_recorded()
            && !is_explored()
            && let Some(of) = from.pid()
        {
            self.own_order().record_rest(self.pid());
            probes().ordered(self.pid(), OrderEvent::Heard(what, of));
        }
    }

    /// Records a collection that another process has asked for, before it begins.
    pub(in crate::process) fn record_collection(&self, major: bool) {
        if is_recorded() && !is_explored() {
            let mut own = self.own_order();
            own.record_rest(self.pid());
            own.record_accesses_so_far(self.pid());
            drop(own);
            let reductions = self.reductions();
            probes().ordered(self.pid(), OrderEvent::Collect { reductions, major });
        }
    }

    /// A message is about to get into its queue, behind the others or among those of priority.
    #[inline(always)]
    pub(in crate::process) fn note_delivery(&self, source: Source, priority: bool) {
        if !is_active() {
            return;
        }
        let (at, length) = self.mailbox.place_of_next(priority);
        let is_kept = match source {
            Source::Sent(sending) if at == length && is_recorded() => {
                self.own_order().put_off_delivery(sending)
            }
            _ => false,
        };
        // Recorded before it is followed: a replay that is to stop behind this delivery stops in there.
        if is_recorded() && !is_kept {
            let mut own = self.own_order();
            own.record_delivery(self.pid(), source, at, length);
        }
        if is_followed() {
            self.follow_delivery(source, at);
        }
    }

    /// The message at the place `at` has been taken out of its queue.
    #[inline]
    fn note_receive_at(&self, at: usize) {
        if is_only_recorded() {
            self.record_receive(at);
        } else {
            self.note_receive_in_order(at);
        }
    }

    fn note_receive_in_order(&self, at: usize) {
        // Whether there was a message to drop depends on when it came, so this receive is no step.
        if self.end_flush() {
            explore::note_flush(self.pid());
            self.record_receive(at);
            self.follow_flush(at);
            return;
        }
        if is_explored() {
            explore::note_receive(self.pid());
        }
        if is_recorded() {
            self.record_site();
            self.record_receive(at);
        }
        if is_followed() {
            self.follow_receive(at);
        }
    }

    /// Its next receive, in an explored run, looks for what a monitor has told that it has given up. Whether that has come
    /// shows to nobody, so this receive is no step, and waits for nothing.
    pub(crate) fn begin_flush(&self) {
        if is_explored() {
            self.own_order().flushes = true;
        }
    }

    /// Whether the receive that it is in is such a one.
    pub(crate) fn is_flushing(&self) -> bool {
        is_explored() && self.own_order().flushes
    }

    fn end_flush(&self) -> bool {
        is_explored() && std::mem::take(&mut self.own_order().flushes)
    }

    #[inline]
    fn record_receive(&self, at: usize) {
        let left = self.mailbox.place_of_next(false).1;
        self.own_order().record_receive(self.pid(), at, left);
    }
}

impl OrderState {
    fn send(&mut self, pid: Pid) -> u32 {
        // The delivery is written before this sending: behind it, the sending would be read as one that knew nothing of the
        // message, and a race that there is not would be found.
        if self.fresh.is_some() {
            self.record_rest(pid);
        }
        if is_recorded() {
            self.untold += 1;
        }
        self.sent = next_number(self.sent);
        self.sent
    }
}

/// The number of the sending behind the one of this number. 0 is no sending's: they are counted from 1 again after 2^32.
fn next_number(sent: u32) -> u32 {
    sent.wrapping_add(1).max(1)
}

/// How often calls have missed each module. The lock orders misses and loads.
static MISSES: Mutex<Option<HashMap<Atom, u64>>> = Mutex::new(None);

/// A call by `p` has met a function that is not there: has it to do with that? `false`: it is to look again, as the
/// function `is_there` meanwhile, or will be where a recorded run is followed.
pub(crate) fn note_miss(p: &Process, module: Atom, is_there: impl FnOnce() -> bool) -> bool {
    if !is_active() {
        return true;
    }
    let mut all = MISSES.lock();
    if is_there() || is_followed() && !p.may_miss(module) {
        return false;
    }
    *all.get_or_insert_default().entry(module).or_default() += 1;
    p.step(Step::Miss(module));
    true
}

/// `p` is about to make the code of `modules` the current one, by `load`; `None` where it has to wait, as calls are to
/// miss them first in the run that is followed.
pub(crate) fn load_in_turn<T>(
    p: &Process,
    modules: &[Atom],
    load: impl FnOnce() -> T,
) -> Option<T> {
    if !is_active() {
        return Some(load());
    }
    let mut all = MISSES.lock();
    let all = all.get_or_insert_default();
    let misses = |module| all.get(&module).copied().unwrap_or(0);
    if is_followed() && !p.may_load(modules.iter().map(|module| (*module, misses(*module)))) {
        return None;
    }
    for module in modules {
        let (module, misses) = (*module, misses(*module));
        p.step(Step::Load { module, misses });
    }
    Some(load())
}
