//! Implements the probes through which processes tell tracing of their events.

use beamline_formats::ring::Growing;

use super::record::spent;
use super::session::tracer::Event;
use super::session::{flags, monitor};
use super::tell::events::{self, Collection};
use super::tell::seq::{self, Mark, Token};
use super::tell::{sysmon, sysprof};
use super::{calls, record};
use crate::exec::exception::where_is;
use crate::heap::{Heap, Message};
use crate::process::dirty::DirtyTicks;
use crate::process::order::{access, explore};
use crate::process::probe::Probes;
use crate::process::{Dirty, Peer, ProcShared, Process, order};
use crate::term::{Atom, Pid, Term, am};

/// Tracing, as processes see it.
pub(crate) struct Tracing;

impl Probes for Tracing {
    fn happened(&self, shared: &ProcShared, event: Event, term: Term<'_>) {
        events::happened(shared, event, term);
    }
    fn sent<'p>(&self, p: &'p Process, to: Term<'p>, message: Term<'p>) {
        events::sent(p, to, message);
    }
    fn received<'p>(&self, p: &'p Process, from: Peer, message: Term<'p>) {
        events::received(p, from, message);
    }
    fn timed_out(&self, p: &Process) {
        events::timed_out(p);
    }
    fn linking(&self, me: &ProcShared, peer: Pid) {
        flags::linking(me, peer);
    }
    fn made(&self, child: &ProcShared) {
        flags::born(child);
    }
    fn inherited(&self, parent: &ProcShared, child: &ProcShared, linked: bool) {
        flags::inherit(parent, child, linked);
    }
    fn born(&self, pid: Pid, parent: Option<Pid>, call: (Atom, Atom, u8), args: Term<'_>) {
        explore::born(pid, || record::first_called(call, args).to_text());
        record::born(pid, parent, call, args);
    }
    fn registered(&self, pid: Pid, name: Atom) {
        record::registered(pid, name);
    }
    fn unwinding(&self, p: &mut Process) {
        calls::unwinding(p);
    }
    fn ordered(&self, pid: Pid, told: order::OrderEvent) {
        if !explore::keep_step(pid, told) {
            record::ordered(pid, told);
        }
    }
    fn ordered_again(&self, pid: Pid, again: &mut Option<Growing>) -> bool {
        record::ordered_again(pid, again)
    }
    fn sited(&self, p: &Process) {
        record::sited(p);
    }
    fn is_in_application(&self, p: &Process) -> bool {
        record::is_in_application(p)
    }
    fn accessed(&self, pid: Pid, number: u64, touch: &access::Touch<'_>) {
        let is_kept = explore::keep_access(pid, || {
            let how = record::how_of(number, touch);
            (how, touch.object.number(), record::part_of(touch))
        });
        if !is_kept {
            record::accessed(pid, number, touch);
        }
    }
    fn hibernating(&self, p: &Process) {
        record::record_hibernation(p);
    }
    fn exiting(&self, p: &Process, goes_on: bool) {
        events::exiting(p, goes_on);
    }
    fn last_slice_ended(&self, p: &Process) {
        sysprof::last_slice_ended(p);
    }
    fn blocked_on_node(&self, p: &Process, controller: Peer) {
        sysmon::busy_dist_port(p, controller);
    }
    fn charge_dirty(&self, p: &mut Process, dirty: Dirty, times: &DirtyTicks) {
        calls::charge_dirty(p, dirty, times);
    }
    fn gone(&self, p: &Process) {
        events::exited(p);
        monitor::exited(p.pid());
        sysprof::exited(p.pid());
    }

    fn collection_begins(&self) -> Option<i64> {
        sysmon::collection_begins()
    }
    fn collection_ended(&self, p: &Process, start: i64) {
        sysmon::collected(p, start);
    }
    fn collecting(&self, p: &Process, collection: Collection, need: usize) {
        events::collecting(p, collection, need);
    }
    fn collected(&self, p: &Process, collection: Collection, reclaimed: usize) {
        events::collected(p, collection, reclaimed);
    }
    fn past_max_heap(&self, p: &Process) {
        events::collection_event(p, Event::GcMaxHeapSize, 0);
    }
    fn heap_info<'h>(&self, heap: &'h Heap, p: &Process) -> Term<'h> {
        events::gc_info(heap, p)
    }
    fn location<'p>(&self, p: &'p Process) -> Term<'p> {
        where_is(p, am::current_location)
    }
    fn stacktrace<'p>(&self, p: &'p Process) -> Term<'p> {
        where_is(p, am::current_stacktrace)
    }
    fn queue_grew(&self, p: &mut Process) {
        sysmon::queue_grew(p);
    }
    fn queue_shrank(&self, p: &mut Process) {
        sysmon::queue_shrank(p);
    }
    fn own_message_taken(&self, p: &mut Process, message: Term<'_>) {
        spent::own_message_taken(p, message);
    }

    fn token_sent(&self, p: &Process, to: Term<'_>, message: Term<'_>) -> Option<Token> {
        seq::sent(p, to, message)
    }
    fn token_of_exit(&self, p: &Process, to: Term<'_>, reason: Term<'_>) -> Option<Token> {
        seq::exit_sent(p, to, reason)
    }
    fn token_queued(&self, p: &Process, token: Token) -> Mark {
        seq::queued(p, token)
    }
    fn token_received(&self, p: &Process, mark: Mark, message: Term<'_>) {
        seq::received(p, mark, message);
    }

    fn place(&self, p: &Process) -> Message {
        sysprof::place(p)
    }
    fn wake(&self, pid: Pid, wake: &dyn Fn() -> bool, place: &dyn Fn() -> Option<Message>) -> bool {
        sysprof::wake(pid, wake, place)
    }
}
