//! The mailbox: messages that have been taken from the signal queue, and where `receive` stands in it.
//!
//! The interpreter makes these calls for these instructions:
//!
//! | instruction | call |
//! |---|---|
//! | `loop_rec L` | [`Process::peek_message`]: the message at the save pointer; signals are fetched when there is none. `None`: jump to `L` (but end the time slice first if [`Process::is_exiting`]) |
//! | `loop_rec_end` | [`Process::next_message`] |
//! | `remove_message` | [`Process::remove_message`] |
//! | `timeout` | [`Process::timeout_reset_save`] |
//! | `wait L` | `pc` = `L`, no live registers; [`Process::wait`], and end the time slice with `Outcome::Wait` |
//! | `wait_timeout L T` | [`Process::wait_timeout`], and do as it says |
//! | `recv_marker_reserve` | [`Process::recv_marker_reserve`] |
//! | `recv_marker_bind` | [`Process::recv_marker_bind`] |
//! | `recv_marker_clear` | [`Process::recv_marker_clear`] |
//! | `recv_marker_use` | [`Process::recv_marker_use`] |
//!
//! Compiled code passes messages over by itself, in a walk ([`Mailbox::WALK`]): as `loop_rec_end` and `loop_rec` would do
//! it where there is nothing to fetch.
//!
//! A message keeps its fragment until the process takes it out of the mailbox: then its terms are the heap's. While the
//! process examines a message, registers hold its terms. So a collection meanwhile takes over the fragment first, and
//! the slot is a root of the collector from then on. Compiled code keeps no term of a message that it has passed over,
//! as in ERTS (`fragile` in `beam_validator`).

mod queue;

use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::offset_of;

use super::probe::probes;
use super::refs::RefNumbers;
use super::seq_token::Mark;
use super::{Exiting, Process, Signal, order};
use crate::heap::{Heap, Literals, Message, size};
use crate::process::order::director::{are_looks_steps, may_timing_show};
use crate::sched::sig_queue::Batch;
use crate::term::{CodeAddress, RawTerm, Term, View, am, tag};
use queue::Queue;

/// Receive markers a process may have at once; the oldest gives way. Source: `erl_proc_sig_queue.h`.
const MARKERS: usize = 8;

/// What a look into the outer signal queue costs. Source: `erts_proc_sig_receive_helper()`.
const FETCH_REDS: i64 = 4;

/// A position in the mailbox before which no message holds a certain reference.
struct Marker {
    id: u64,
    reference: Option<RefNumbers>,
    at: usize,
}

/// A message in the queue.
struct Slot {
    message: Message,
    /// Words of its fragment, where that became the heap's before the process took the message: it has not
    /// allocated them until then. [`OWN`] for a message to itself.
    attached_words: u32,
    mark: Mark,
}

/// In the place of a message's attached words: the process sent it to itself.
const OWN: u32 = u32::MAX;

/// Attached words as a slot holds them.
fn attached_words(words: usize) -> u32 {
    u32::try_from(words).unwrap_or(OWN).min(OWN - 1)
}

const _: () = assert!(size_of::<Slot>() == 24, "marks have no room of their own");

impl Slot {
    fn new(message: Message, mark: Mark) -> Slot {
        Slot {
            message,
            attached_words: 0,
            mark,
        }
    }
}

/// The messages that a process has received and not taken.
#[derive(Default)]
pub(crate) struct Mailbox {
    queue: Queue,
    /// How many at the front are priority messages.
    priority: usize,
    /// The message at the save pointer is being examined: registers hold its terms.
    is_examining: bool,
    /// No message from here on is a root.
    attached: usize,
    /// Messages at its end that came without being looked for.
    unlooked_for: u32,
    /// The receive has looked for messages.
    has_looked: bool,
    /// Messages passed over and charged for.
    passed: u32,
    /// It has begun behind a marker, or behind what was there.
    is_marked: bool,
    /// Queued replies of the runtime, invisible to user code.
    answers: u32,
    /// Signals taken from the outer queue and not handled yet.
    pub(super) middle: Batch<Signal>,
    /// Few processes have any.
    to_self: Cell<Option<Box<ToSelf>>>,
    rare: Option<Box<Rare>>,
    next_marker: u64,
}

/// Messages of a process to itself, which lie on its heap: each waits for a `Signal::ToSelf` in the outer or the middle
/// queue, which keeps its place among others.
#[derive(Default)]
struct ToSelf(VecDeque<RawTerm>);

/// What most mailboxes have not at any time.
#[derive(Default)]
struct Rare {
    markers: Vec<Marker>,
    /// While a built-in function waits for the signals that had been sent when it was called: how many of the middle queue
    /// are left of them.
    to_flush: Option<usize>,
    /// The y registers of whoever examines a message that is lent.
    lent_to: Vec<RawTerm>,
}

/// A larger message keeps its fragment where the order of a run is recorded or followed: it may have come in one, and to
/// copy it again would take longer than is gained where it has not.
const PLACED_WORDS: usize = 12;

/// Room that an empty mailbox keeps.
const KEPT_CAPACITY: usize = 64;

impl Mailbox {
    /// Offsets of what compiled code needs that passes messages over: of where a walk is and ends, of the save pointer,
    /// and of what has been recorded of the receive.
    pub(crate) const WALK: usize = offset_of!(Mailbox, queue) + Queue::AT;
    pub(crate) const WALK_END: usize = offset_of!(Mailbox, queue) + Queue::END;
    pub(crate) const SAVE: usize = offset_of!(Mailbox, queue) + Queue::SAVE;
    pub(crate) const IS_EXAMINING: usize = offset_of!(Mailbox, is_examining);
    pub(crate) const PASSED: usize = offset_of!(Mailbox, passed);
    /// Bytes from a slot to the next, and from a slot to its message's term.
    pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();
    pub(crate) const TERM: usize = offset_of!(Slot, message) + Message::ROOT;

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
    pub(crate) fn push(&mut self, message: Message, mark: Mark) {
        self.answers += u32::from(mark == Mark::ANSWER);
        self.queue.push_back(Slot::new(message, mark));
    }
    /// Puts a message into the queue, as a priority message or not.
    pub(crate) fn put(&mut self, message: Message, mark: Mark, priority: bool) {
        if priority {
            self.push_priority(message, mark);
        } else {
            self.push(message, mark);
        }
    }
    /// The place that the next message gets, as a priority message or not, and how many there are; answers do not
    /// count.
    pub(super) fn place_of_next(&self, priority: bool) -> (usize, usize) {
        let length = self.queue.len() - self.answers as usize;
        (if priority { self.priority } else { length }, length)
    }
    /// The message at this place; answers do not count.
    pub(super) fn at_place(&self, place: usize) -> Option<&Message> {
        let counts = |slot: &&Slot| slot.mark != Mark::ANSWER;
        let slot = self.queue.iter().filter(counts).nth(place)?;
        Some(&slot.message)
    }
    /// The place of the message at the save pointer, if it counts.
    pub(super) fn place_of_current(&self) -> Option<usize> {
        if self.answers == 0 {
            return Some(self.queue.save());
        }
        let counts = |slot: &&Slot| slot.mark != Mark::ANSWER;
        self.queue.get(self.queue.save()).filter(counts)?;
        Some(
            self.queue
                .iter()
                .take(self.queue.save())
                .filter(counts)
                .count(),
        )
    }
    /// A priority message goes behind the other priority messages, before all others.
    pub(crate) fn push_priority(&mut self, message: Message, mark: Mark) {
        let at = self.priority;
        self.queue.insert(at, Slot::new(message, mark));
        self.priority += 1;
        if self.attached > at {
            self.attached += 1;
        }
        // What was passed over stays so; the new message is still to be looked at.
        self.queue.set_save(self.queue.save().min(at));
        for marker in self.markers_mut() {
            marker.at = marker.at.min(at);
        }
    }
    /// A message that lies on the process's heap already: a root from now on.
    pub(super) fn push_attached(&mut self, message: Message, mark: Mark, priority: bool) {
        self.put(message, mark, priority);
        self.attached = if priority {
            self.attached.max(self.priority)
        } else {
            self.queue.len()
        };
    }
    /// The process sends itself a message, and no copy.
    pub(super) fn send_to_self(&self, message: Term<'_>) {
        let mut all = self.to_self.take().unwrap_or_default();
        all.0.push_back(message.raw());
        self.to_self.set(Some(all));
    }
    /// Queues such a message.
    pub(super) fn push_own(&mut self, message: Message) {
        self.push_attached(message, Mark::CLEARS, false);
        if let Some(slot) = self.queue.back_mut() {
            slot.attached_words = OWN;
        }
    }
    /// The message that a `Signal::ToSelf` stands for.
    pub(super) fn next_to_self(&mut self) -> Option<RawTerm> {
        self.to_self.get_mut().as_mut()?.0.pop_front()
    }
    /// Puts the first message into the queue, of `words` words, which its sender has laid on the process's heap. The
    /// process has not allocated them yet.
    pub(super) fn push_placed(
        &mut self,
        message: Message,
        mark: Mark,
        priority: bool,
        words: usize,
    ) {
        self.push_attached(message, mark, priority);
        if let Some(slot) = self.queue.back_mut() {
            slot.attached_words = attached_words(words);
        }
        self.unlooked_for += 1;
    }
    /// Whether a first message of `words` words may be laid on the heap where the order of a run is recorded or
    /// followed. Not in a receive that begins behind a marker: which messages it looks at is chance.
    pub(super) fn may_place_first(&self, words: usize) -> bool {
        !self.is_marked && words <= PLACED_WORDS
    }
    /// Whether the current `receive` has looked for a message, where the order of a run is recorded or followed: one that
    /// only has a time to wait looks for none.
    pub(super) fn has_looked(&self) -> bool {
        self.has_looked
    }
    /// Lays the message at the save pointer on the heap, which has room for its `words` words. The process has not
    /// allocated them until it takes the message.
    fn place_current(&mut self, heap: &Heap, words: usize) {
        let save = self.queue.save();
        if let Some(slot) = self.queue.get_mut(save) {
            heap.copy_in_place(&mut slot.message, words);
            heap.claim_later(words);
            slot.attached_words = attached_words(words);
            self.attached = self.attached.max(save + 1);
        }
    }
    /// How many signals of the middle queue a built-in function waits for that is to be called again.
    pub(super) fn to_flush(&self) -> Option<usize> {
        self.rare.as_ref()?.to_flush
    }
    /// A built-in function waits for that many.
    pub(super) fn set_to_flush(&mut self, signals: Option<usize>) {
        if signals.is_some() || self.rare.is_some() {
            self.rare.get_or_insert_default().to_flush = signals;
        }
    }
    /// Messages at its end that came without being looked for.
    pub(super) fn not_looked_for(&mut self, count: usize) {
        self.unlooked_for = u32::try_from(count).unwrap_or(u32::MAX);
    }
    /// How many there are beside those.
    pub(super) fn looked_for(&self) -> usize {
        self.queue.len().saturating_sub(self.unlooked_for as usize)
    }
    /// Is a message looked at for which nobody has looked? Then for no other after it.
    fn looks_for_more(&mut self) -> bool {
        let is_more = self.unlooked_for > 0
            && self.queue.save() + self.unlooked_for as usize >= self.queue.len();
        if is_more {
            self.unlooked_for = 0;
        }
        is_more
    }
    /// Is there a message that the current `receive` has not looked at?
    pub(crate) fn has_new(&self) -> bool {
        self.queue.save() < self.queue.len()
    }
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.queue.iter().map(|slot| &slot.message)
    }
    fn markers_mut(&mut self) -> impl Iterator<Item = &mut Marker> {
        self.rare.iter_mut().flat_map(|rare| &mut rare.markers)
    }

    /// The next receive starts at the first message.
    pub(crate) fn restart(&mut self) {
        self.queue.set_save(0);
        (self.has_looked, self.passed, self.is_marked) = (false, 0, false);
    }

    /// The next receive starts behind the messages that are there: for one that waits for the answer to
    /// what is asked now.
    pub(crate) fn skip_all(&mut self) {
        self.queue.set_save(self.queue.len());
        self.is_marked = true;
    }

    /// Do registers hold terms of a message that is no part of the heap?
    pub(crate) fn is_examining(&self) -> bool {
        self.is_examining
    }

    /// Gives the message that is being examined to its process's heap, before a collection.
    pub(super) fn attach_examined(&mut self, heap: &Heap) {
        if !self.is_examining {
            return;
        }
        let save = self.queue.save();
        if let Some(slot) = self.queue.get_mut(save) {
            self.attached = self.attached.max(save + 1);
            let words = slot.message.words();
            if words != 0 {
                slot.attached_words = attached_words(slot.attached_words as usize + words);
            }
            heap.claim_later(words);
            heap.attach_in_place(&mut slot.message);
        }
    }

    /// Visits the slots that refer to the heap.
    pub(crate) fn visit(&mut self, visit: &mut dyn FnMut(&mut [RawTerm])) {
        for slot in self.queue.iter_mut().take(self.attached) {
            if let Some(root) = slot.message.attached_root() {
                visit(std::slice::from_mut(root));
            }
        }
        if let Some(to_self) = self.to_self.get_mut() {
            let (older, newer) = to_self.0.as_mut_slices();
            visit(older);
            visit(newer);
        }
        if let Some(rare) = &mut self.rare {
            visit(&mut rare.lent_to);
        }
    }

    /// A message that is no part of it is examined in the place of the one at the save pointer, by code with these y
    /// registers.
    pub(super) fn lend(&mut self, message: Message, frame: Vec<RawTerm>) {
        let slot = Slot::new(message, Mark::KEEPS);
        let save = self.queue.save();
        self.queue.insert(save, slot);
        self.attached += usize::from(save < self.attached);
        self.is_examining = true;
        self.rare.get_or_insert_default().lent_to = frame;
    }

    /// That message is gone; the y registers that the code had.
    pub(super) fn take_lent(&mut self) -> Vec<RawTerm> {
        let save = self.queue.save();
        self.queue.remove(save);
        self.attached -= usize::from(save < self.attached);
        self.stop_examining();
        let rare = self.rare.as_mut();
        rare.map_or_else(Vec::new, |rare| std::mem::take(&mut rare.lent_to))
    }

    /// Registers hold no terms of a message any more.
    pub(super) fn stop_examining(&mut self) {
        self.is_examining = false;
    }

    /// The message at the save pointer.
    pub(super) fn current(&self) -> Option<&Message> {
        self.queue.get(self.queue.save()).map(|slot| &slot.message)
    }

    /// Takes the message at the save pointer out.
    fn take_current(&mut self) -> Option<Slot> {
        let at = self.queue.save();
        let slot = self.queue.remove(at)?;
        self.answers -= u32::from(slot.mark == Mark::ANSWER);
        if at < self.priority {
            self.priority -= 1;
        }
        if at < self.attached {
            self.attached -= 1;
        }
        for marker in self.markers_mut() {
            if marker.at > at {
                marker.at -= 1;
            }
        }
        self.restart();
        if self.queue.is_empty() && self.queue.capacity() > KEPT_CAPACITY {
            *self.queue = VecDeque::new();
        }
        Some(slot)
    }
}

/// The result of a `wait_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitTimeout {
    /// The process waits: end the time slice with `Outcome::Wait`.
    Wait,
    /// The time is up: go on behind the instruction.
    Elapsed,
    /// The time is no timeout: raise `error:timeout_value`.
    BadTimeout,
}

/// A receive's time to wait, unless it is for ever; `None` where it is none.
pub(crate) fn timeout_ms(timeout: Term<'_>) -> Option<u32> {
    match timeout.view() {
        View::Small(time) => u32::try_from(time).ok(),
        _ => None,
    }
}

impl Process {
    /// As [`Process::peek_message`], where messages are looked at as they come.
    ///
    /// # Errors
    /// When a signal ends the process.
    #[inline]
    pub(super) fn peek_at_once(&mut self) -> Result<Option<Term<'_>>, Exiting> {
        loop {
            if self.mailbox.looks_for_more() {
                self.bump_reds(FETCH_REDS);
            }
            if self.mailbox.has_new() {
                break;
            }
            self.bump_reds(FETCH_REDS);
            let has_fetched = self.fetch_signals()?;
            if !has_fetched || self.is_suspended() {
                return Ok(None);
            }
        }
        Ok(self.examine())
    }

    /// What is charged for the look that a receive begins with, where the order of a run is recorded or followed: how
    /// often it has to look until a message comes is chance, and costs no more.
    /// `None` where each look is charged for by itself.
    #[inline]
    pub(crate) fn first_look_reds(&mut self) -> Option<i64> {
        if !are_looks_steps() {
            return None;
        }
        let has_looked = std::mem::replace(&mut self.mailbox.has_looked, true);
        Some(if has_looked { 0 } else { FETCH_REDS })
    }

    /// Lays the first message of the queue on the heap, where the order of a run is recorded or followed, if a receive looks
    /// at it that has begun there: that it does is no chance, so it may cost words of the heap. Where one waits and there
    /// is no other message, its sender does the same when it sends.
    pub(super) fn place_first(&mut self) {
        if self.mailbox.place_of_current() != Some(0) || self.flags.get().off_heap_messages {
            return;
        }
        let current = self.mailbox.current();
        let fragment = current.filter(|it| (1..=PLACED_WORDS).contains(&it.words()));
        let Some(words) = fragment.map(|it| size(it.term(), Literals::Count)) else {
            return;
        };
        if words <= self.heap.free_words() && self.mailbox.may_place_first(words) {
            self.mailbox.place_current(&self.heap, words);
        }
    }

    /// The message at the save pointer, for the registers.
    pub(super) fn examine(&mut self) -> Option<Term<'_>> {
        self.mailbox.is_examining = true;
        let slot = self.mailbox.queue.get(self.mailbox.queue.save());
        slot.map(|slot| slot.message.term())
    }

    /// The save pointer moves on (`loop_rec_end`); the reductions that this costs.
    #[inline]
    pub fn next_message(&mut self) -> i64 {
        let mailbox = &mut self.mailbox;
        mailbox.is_examining = false;
        mailbox.queue.set_save(mailbox.queue.save() + 1);
        // A look at more is charged for.
        let looked_for = mailbox.looked_for();
        mailbox.queue.walk(looked_for);
        // How many messages have come since a marker was set is chance.
        let costs = !mailbox.is_marked || may_timing_show();
        mailbox.passed += u32::from(costs);
        costs.into()
    }

    /// Takes the message at the save pointer out of the mailbox, and ends the receive's timer.
    #[inline]
    pub fn remove_message(&mut self) {
        self.mailbox.is_examining = false;
        let place = self.place_of_receive();
        let passed = self.mailbox.passed;
        if let Some(mut slot) = self.mailbox.take_current() {
            self.note_receive(place, passed);
            self.heap.attach_in_place(&mut slot.message);
            match slot.attached_words {
                0 => {}
                OWN => probes().own_message_taken(self, slot.message.term()),
                words => self.heap.claim(words as usize),
            }
            if slot.mark.acts_on(self) {
                probes().token_received(self, slot.mark, slot.message.term());
            }
        }
        if !self.long_queues.is_empty() {
            probes().queue_shrank(self);
        }
        self.end_receive_timer();
    }

    /// Words of the heap count as allocated once more.
    pub(crate) fn count_again(&mut self, words: usize) {
        self.heap.count_again(words);
    }

    /// The receive has timed out: the next one starts at the first message.
    #[inline]
    pub fn timeout_reset_save(&mut self) {
        if self.shared.tracee.has(super::trace_flags::RECEIVE) {
            probes().timed_out(self);
        }
        self.step(order::Step::Timeout);
        self.mailbox.restart();
        self.end_receive_timer();
    }

    /// The process is about to wait for a message, at `pc`.
    #[inline]
    pub fn wait(&mut self) {
        self.wait_for = super::WaitFor::Message;
    }

    /// As [`Process::wait`], but not longer than `timeout` (milliseconds or `infinity`) from the first
    /// time it is asked in this receive. When the time is up, the process goes on at `timeout_pc`.
    pub fn wait_timeout(&mut self, timeout: Term<'_>, timeout_pc: CodeAddress) -> WaitTimeout {
        let moves_not = timeout.as_small().is_some() || timeout == am::infinity;
        if moves_not && self.collect_in_turn(true).is_err() {
            // It ends when it is woken.
            self.shared.wake();
            return self.wait_in_time();
        }
        let awaits_collection = self.awaits_collection();
        if self.receive_timer_runs() {
            if awaits_collection {
                return self.wait_in_time();
            }
            // Woken by something else: where `timeout` was is not kept then. A receive that takes no message comes here when
            // all have come that came first in the recorded run.
            if self.has_timed_out_as_recorded() || self.receive_timed_out() {
                return WaitTimeout::Elapsed;
            }
            return self.wait_in_time();
        }
        if !awaits_collection && self.times_out_as_recorded(timeout) {
            return WaitTimeout::Elapsed;
        }
        if timeout == am::infinity {
            self.start_receive_timer(None, timeout_pc);
            self.wait();
            return WaitTimeout::Wait;
        }
        let Some(milliseconds) = timeout_ms(timeout) else {
            self.mailbox.restart();
            return WaitTimeout::BadTimeout;
        };
        if milliseconds == 0 && !awaits_collection {
            return WaitTimeout::Elapsed;
        }
        self.start_receive_timer(Some(milliseconds.into()), timeout_pc);
        self.wait_in_time()
    }

    fn wait_in_time(&mut self) -> WaitTimeout {
        self.wake_if_held_is_due();
        // Before a collection, it comes here again with each signal.
        if !self.awaits_collection() {
            self.wait();
        }
        WaitTimeout::Wait
    }

    /// Reserves a receive marker here: no message behind which it stands holds a reference made later.
    /// The handle, an integer, is for [`Process::recv_marker_bind`].
    pub fn recv_marker_reserve(&mut self) -> Term<'_> {
        let mailbox = &mut self.mailbox;
        let id = mailbox.next_marker;
        mailbox.next_marker = id.wrapping_add(1);
        let at = mailbox.queue.len();
        let markers = &mut mailbox.rare.get_or_insert_default().markers;
        if markers.len() == MARKERS {
            markers.remove(0);
        }
        markers.push(Marker {
            id,
            reference: None,
            at,
        });
        marker_handle(&self.heap, id)
    }

    /// Markers are counted from `count` on.
    pub(crate) fn set_marker_count(&mut self, count: u64) {
        self.mailbox.next_marker = count;
    }

    /// Binds the marker to a reference made since it was reserved.
    pub fn recv_marker_bind(&mut self, marker: Term<'_>, reference: Term<'_>) {
        let id = marker_of(marker);
        let (Some(id), Some(reference)) = (id, numbers_of(reference)) else {
            return;
        };
        for marker in self.mailbox.markers_mut() {
            if marker.id == id {
                marker.reference = Some(reference);
            }
        }
    }

    /// Drops the marker of `reference`.
    pub fn recv_marker_clear(&mut self, reference: Term<'_>) {
        let Some(reference) = numbers_of(reference) else {
            return;
        };
        if let Some(rare) = &mut self.mailbox.rare {
            let markers = &mut rare.markers;
            markers.retain(|marker| marker.reference != Some(reference));
            if markers.is_empty() && rare.lent_to.is_empty() && rare.to_flush.is_none() {
                self.mailbox.rare = None;
            }
        }
    }

    /// The save pointer goes to the marker of `reference`, if there is one.
    pub fn recv_marker_use(&mut self, reference: Term<'_>) {
        let Some(reference) = numbers_of(reference) else {
            return;
        };
        let markers = self.mailbox.rare.iter().flat_map(|rare| &rare.markers);
        let at = markers
            .filter(|marker| marker.reference == Some(reference))
            .map(|marker| marker.at)
            .next_back();
        if let Some(at) = at {
            let save = self.mailbox.queue.save().max(at);
            self.mailbox.queue.set_save(save);
            self.mailbox.is_marked = true;
        }
    }
}

/// What a program holds of the marker `id`: counted from the smallest small integer, as in ERTS, so
/// that it takes a heap's words only after 2^60 markers.
fn marker_handle(heap: &Heap, id: u64) -> Term<'_> {
    match i64::try_from(i128::from(id) + i128::from(tag::MIN_SMALL)) {
        Ok(handle) => heap.integer(handle),
        Err(_) => heap.unsigned(id.wrapping_add_signed(tag::MIN_SMALL)),
    }
}

/// The marker that a handle stands for.
fn marker_of(handle: Term<'_>) -> Option<u64> {
    let count = match handle.view() {
        View::Small(n) => i128::from(n),
        View::Big(big) if !big.is_negative() && big.limbs().len() == 1 => big.limbs()[0].into(),
        _ => return None,
    };
    u64::try_from(count - i128::from(tag::MIN_SMALL)).ok()
}

fn numbers_of(reference: Term<'_>) -> Option<RefNumbers> {
    reference.as_ref().map(|r| r.numbers())
}
