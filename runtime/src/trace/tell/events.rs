//! Tells tracers of the events of processes. The callers look at the process's trace flags first. Source:
//! `erl_trace.c`, OTP 29.

use super::actions;
pub(crate) use crate::process::event::Collection;
use crate::process::{self, Dirty, Peer, ProcShared, Process, SYSTEM};
use crate::term::counted::node_name;
use crate::term::{Atom, Pid, Term, View, am};
use crate::trace::record;
use crate::trace::session::flags::{self, Tracee};
use crate::trace::session::tracer::{Event, Report, TracerId};

/// Tells all sessions that ask for any of `flags` of an event of `id`.
fn tell(tracee: &Tracee, id: Term<'_>, flags: u32, report: &Report<'_>) {
    for r in tracee.asked(id, report.event, flags) {
        r.tracer.report(r.flags, id, report);
    }
}

/// `shared` is asked for events of this kind by some session.
#[inline(always)]
pub(crate) fn is_asked(shared: &ProcShared, event: Event) -> bool {
    shared.tracee.has(event.flags())
}

/// An event of a process that consists of one term.
pub(crate) fn happened(shared: &ProcShared, event: Event, term: Term<'_>) {
    if is_asked(shared, event) {
        let report = Report::new(event, term);
        tell(&shared.tracee, shared.pid().term(), event.flags(), &report);
    }
}

/// `p` sends `message` to `to`, as the sender named it.
#[cold]
pub(crate) fn sent<'p>(p: &'p Process, to: Term<'p>, message: Term<'p>) {
    let me = p.pid().term();
    for r in p.shared().tracee.asked(me, Event::Send, flags::SEND) {
        let pattern = r.session.send.read().clone();
        if !pattern.on {
            continue;
        }
        let matched = actions::run(pattern.spec.as_deref(), p, &r.session, &[to, message]);
        let silent = pattern.spec.is_some()
            && p.shared()
                .tracee
                .of(&r.session)
                .is_some_and(|(flags, _)| flags & flags::SILENT != 0);
        if !matched.reports || silent {
            continue;
        }
        let gone = matches!(to.view(), View::Pid(pid) if !process::exists(pid));
        let event = if gone {
            Event::SendToNonExisting
        } else {
            Event::Send
        };
        let result = matched.result;
        let report = Report {
            result,
            ..Report::new(event, message).with(to)
        };
        r.tracer.report(r.flags, me, &report);
    }
}

/// `message` from `from` gets into the message queue of `p`. Patterns see the node of a sender that is elsewhere, and not
/// which process it is. Source: `trace_receive_session()` in `erl_trace.c`, OTP 29.
#[cold]
pub(crate) fn received<'p>(p: &'p Process, from: Peer, message: Term<'p>) {
    let sender = match from.node_name() {
        Some(node) => [node.term(), am::undefined.term()],
        None if from == SYSTEM.into() => [am::system.term(), am::undefined.term()],
        None => [node_name().term(), from.term(p)],
    };
    received_from(p, sender, message);
}

/// `message` gets into the message queue of `p`, or a timeout to it; patterns see this node and sender.
fn received_from<'p>(p: &'p Process, [node, sender]: [Term<'p>; 2], message: Term<'p>) {
    let me = p.pid().term();
    for r in p.shared().tracee.asked(me, Event::Receive, flags::RECEIVE) {
        let pattern = r.session.receive.read().clone();
        if !pattern.on {
            continue;
        }
        let args = [node, sender, message];
        let matched = actions::run(pattern.spec.as_deref(), p, &r.session, &args);
        if !matched.reports || pattern.spec.is_some() && r.flags & flags::SILENT != 0 {
            continue;
        }
        let result = matched.result;
        let report = Report {
            result,
            ..Report::new(Event::Receive, message)
        };
        r.tracer.report(r.flags, me, &report);
    }
}

/// The receive that `p` is in has timed out.
#[cold]
pub(crate) fn timed_out(p: &Process) {
    let sender = [am::clock_service, am::undefined].map(Atom::term);
    received_from(p, sender, am::timeout.term());
}

/// `p` has made `child`, which does not run yet, linked to it or not.
pub(crate) fn spawned<'p>(p: &'p Process, child: &ProcShared, mfa: [Term<'p>; 3], linked: bool) {
    let (me, other) = (p.pid(), child.pid());
    let mut call = None;
    let mut report = |shared: &ProcShared, event: Event, relative: Pid| {
        if !is_asked(shared, event) {
            return;
        }
        let id = shared.pid();
        for r in shared.tracee.asked(id.term(), event, event.flags()) {
            if r.tracer == TracerId::Recorder {
                record::spawned(id, event, relative, mfa);
                continue;
            }
            let call = *call.get_or_insert_with(|| p.tuple(&mfa));
            let report = Report::new(event, relative.term()).with(call);
            r.tracer.report(r.flags, id.term(), &report);
        }
    };
    report(p.shared(), Event::Spawn, other);
    if linked {
        happened(p.shared(), Event::Link, other.term());
    }
    report(child, Event::Spawned, me);
    if linked {
        happened(child, Event::GettingLinked, me.term());
    }
}

/// Events of the scheduler.
pub(crate) const RUNNING: u32 = flags::RUNNING | flags::RUNNING_PROCS;

/// What is looked at when a process starts a time slice.
pub(crate) const AT_SLICE: u32 = RUNNING | flags::TRACER_MAY_GO;

/// `p` starts a time slice. Sessions whose tracers are gone are let go.
#[cold]
pub(crate) fn scheduled_in(p: &Process) {
    let me = p.pid().term();
    // Whatever it asks for: here a session without a tracer is found out.
    for r in p.shared().tracee.asked(me, Event::In, flags::ALL) {
        if r.flags & RUNNING != 0 && r.tracer == TracerId::Recorder {
            record::scheduled_in(p);
        } else if r.flags & RUNNING != 0 {
            let report = Report::new(Event::In, current(p));
            r.tracer.report(r.flags, me, &report);
        }
    }
}

/// The time slice of `p` ends.
#[cold]
pub(crate) fn scheduled_out(p: &Process) {
    if !p.is_exiting() {
        let me = p.pid().term();
        for r in p.shared().tracee.asked(me, Event::Out, RUNNING) {
            if r.tracer == TracerId::Recorder {
                record::scheduled_out(p);
            } else {
                let report = Report::new(Event::Out, current(p));
                r.tracer.report(r.flags, me, &report);
            }
        }
    }
}

/// A dirty scheduler begins to run the call that `p` stands in for.
pub(crate) fn dirty_in(p: &Process) {
    tell_dirty_switch(p, Event::In);
}

/// It has run that call.
pub(crate) fn dirty_out(p: &Process) {
    tell_dirty_switch(p, Event::Out);
}

/// `p` is about to wait for a dirty scheduler. Tracers are not told of that.
#[cold]
pub(crate) fn dirty_waits(p: &Process, dirty: Dirty) {
    let me = p.pid().term();
    let mut asked = p.shared().tracee.asked(me, Event::Out, RUNNING).into_iter();
    if asked.any(|r| r.tracer == TracerId::Recorder) {
        record::dirty_waits(p, dirty);
    }
}

fn tell_dirty_switch(p: &Process, event: Event) {
    if p.shared().tracee.has(RUNNING) {
        let me = p.pid().term();
        for r in p.shared().tracee.asked(me, event, RUNNING) {
            if r.tracer == TracerId::Recorder {
                record::record_dirty_switch(p, event);
            } else {
                let report = Report::new(event, current(p));
                r.tracer.report(r.flags, me, &report);
            }
        }
    }
}

/// The function that `p` is in; 0 where that cannot be said.
fn current(p: &Process) -> Term<'_> {
    if p.pc.get().is_null() {
        let (module, function, arity) = p.initial_call.get();
        let arity = Term::small(i64::from(arity));
        return p.tuple(&[module.term(), function.term(), arity]);
    }
    let current = crate::exec::exception::where_is(p, am::current_function);
    if current == am::undefined {
        return Term::small(0);
    }
    current
}

/// `p`, which is exiting, goes on giving up what it has, or gives way before all is given up.
pub(crate) fn exiting(p: &Process, goes_on: bool) {
    let event = if goes_on {
        Event::InExiting
    } else {
        Event::OutExiting
    };
    happened(p.shared(), event, Term::small(0));
}

/// `p` is no more.
pub(crate) fn exited(p: &Process) {
    happened(p.shared(), Event::OutExited, Term::small(0));
}

/// The heap of `p` is about to be collected, for `need` words.
#[cold]
pub(crate) fn collecting(p: &Process, collection: Collection, need: usize) {
    if collection != Collection::Major {
        collection_event(p, Event::GcMinorStart, need);
    }
    if collection == Collection::Both {
        collection_event(p, Event::GcMinorEnd, 0);
    }
    if collection != Collection::Minor {
        collection_event(p, Event::GcMajorStart, need);
    }
}

/// It has been collected, which has given back `reclaimed` words.
#[cold]
pub(crate) fn collected(p: &Process, collection: Collection, reclaimed: usize) {
    let event = match collection {
        Collection::Minor => Event::GcMinorEnd,
        _ => Event::GcMajorEnd,
    };
    collection_event(p, event, reclaimed);
}

/// `words` is the need, or what was reclaimed.
pub(crate) fn collection_event(p: &Process, event: Event, words: usize) {
    let me = p.pid().term();
    for r in p.shared().tracee.asked(me, event, event.flags()) {
        if r.tracer == TracerId::Recorder {
            record::collection(p, event, words);
            continue;
        }
        let heap = crate::heap::Heap::detached();
        let word = heap.tuple(&[am::wordsize.term(), heap.unsigned(words as u64)]);
        let info = heap.cons(word, gc_info(&heap, p));
        r.tracer.report(r.flags, me, &Report::new(event, info));
    }
}

/// `[{heap_size, _}, ...]`. Source: `erts_process_gc_info()`.
pub(crate) fn gc_info<'h>(heap: &'h crate::heap::Heap, p: &Process) -> Term<'h> {
    let (old_block, old) = p.old_words();
    let [bin, bin_limit, bin_old, bin_old_limit] = p.bin_vheap();
    let rows = [
        (am::old_heap_block_size, old_block),
        (am::heap_block_size, p.block_words()),
        (am::mbuf_size, p.fragment_words() + p.mailbox_words()),
        (am::recent_size, p.mature_words()),
        (am::stack_size, p.stack_words()),
        (am::old_heap_size, old),
        (am::heap_size, p.used_words()),
        (am::bin_vheap_size, bin),
        (am::bin_vheap_block_size, bin_limit),
        (am::bin_old_vheap_size, bin_old),
        (am::bin_old_vheap_block_size, bin_old_limit),
    ];
    let pair =
        |(key, value): &(Atom, usize)| heap.tuple(&[key.term(), heap.unsigned(*value as u64)]);
    heap.list(&rows.iter().map(pair).collect::<Vec<_>>())
}
