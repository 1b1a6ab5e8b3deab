//! The BIF `process_info`, which tells of the process itself or of another. It asks another process by a signal.
//! Source: `process_info_aux()` in `erl_bif_info.c`, OTP 29.

use super::flags::{max_heap_map, queue_data_name};
use super::process::{ask_and_await, reply};
use super::{Next, bifs, call_again};
use crate::exec::stack_dump::{Doing, stack_dump};
use crate::heap::{Heap, HeldBinary, Message};
use crate::process::nodes::RemoteProcess;
use crate::process::order::answer::are_written_alike;
use crate::process::order::director::may_timing_show;
use crate::process::order::explore;
use crate::process::order::explore::Info;
use crate::process::refs::make_ref;
use crate::process::watcher::WatchedBy;
use crate::process::{Class, Monitored, Process, Signal, options};
use crate::term::counted::node_name;
use crate::term::{Atom, Pid, Term, am, tag};

bifs! {
    all answer;
    hbif erlang:"process_info"/1 => process_info_1;
    hbif erlang:"process_info"/2 => process_info_2;
}

/// The items of `process_info/1`, in their order.
const ITEMS_1: &[Atom] = &[
    am::registered_name,
    am::current_function,
    am::initial_call,
    am::status,
    am::message_queue_len,
    am::links,
    am::dictionary,
    am::trap_exit,
    am::error_handler,
    am::priority,
    am::group_leader,
    am::total_heap_size,
    am::heap_size,
    am::stack_size,
    am::reductions,
    am::garbage_collection,
    am::suspending,
];

/// All items but `{dictionary, Key}`.
pub(super) const ITEMS: &[Atom] = &[
    am::registered_name,
    am::current_function,
    am::initial_call,
    am::status,
    am::messages,
    am::message_queue_len,
    am::links,
    am::monitors,
    am::monitored_by,
    am::dictionary,
    am::trap_exit,
    am::error_handler,
    am::heap_size,
    am::stack_size,
    am::memory,
    am::garbage_collection,
    am::group_leader,
    am::reductions,
    am::priority,
    am::trace,
    am::binary,
    am::sequential_trace_token,
    am::catchlevel,
    am::backtrace,
    am::last_calls,
    am::total_heap_size,
    am::suspending,
    am::min_heap_size,
    am::min_bin_vheap_size,
    am::max_heap_size,
    am::current_location,
    am::current_stacktrace,
    am::message_queue_data,
    am::garbage_collection_info,
    am::magic_ref,
    am::fullsweep_after,
    am::parent,
    am::async_dist,
    am::label,
    am::priority_messages,
];

/// How the items are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `process_info/1`: a name is left out where there is none.
    All,
    /// One item: its pair.
    One,
    /// A list of items: a list of pairs.
    List,
}

fn process_info_1(p: &mut Process) -> Next {
    let items = Message::copy_of(p.list(&ITEMS_1.iter().map(|a| a.term()).collect::<Vec<_>>()));
    answer(p, items, Form::All)
}

fn process_info_2(p: &mut Process) -> Next {
    let wanted = p.x(1);
    let form = if wanted.as_cons().is_some() || wanted.is_nil() {
        Form::List
    } else {
        Form::One
    };
    let valid = match form {
        Form::One => is_item(wanted),
        _ => wanted
            .list_iter()
            .all(|item| item.is_ok_and(|item| is_item(item))),
    };
    if !valid {
        return badarg(p);
    }
    let items = match form {
        // Its list is made beside the heap: it is not the caller's.
        Form::One => Heap::detached().into_message(|heap| heap.list(&[heap.copy_in(wanted)])),
        _ => Message::copy_of(wanted),
    };
    answer(p, items, form)
}

fn badarg(p: &mut Process) -> Next {
    p.store_exception(Class::Error, am::badarg);
    Next::Raise
}

fn is_item(item: Term<'_>) -> bool {
    match item.as_atom() {
        Some(atom) => ITEMS.contains(&atom),
        None => matches!(
            item.as_tuple().map(crate::term::Tuple::elements),
            Some([kind, _]) if *kind == am::dictionary
        ),
    }
}

fn answer(p: &mut Process, items: Message, form: Form) -> Next {
    let Some(pid) = p.x(0).as_pid() else {
        // Of an old incarnation of this node: a process that is gone.
        let external = p.x(0).as_external();
        let old = external.is_some_and(|external| {
            external.kind() == tag::EXTERNAL_PID && external.node().name == node_name()
        });
        if old {
            p.set_x(0, am::undefined.term());
            return Next::Return;
        }
        return badarg(p);
    };
    if pid == p.pid() {
        // What has been sent to it so far is in its mailbox when it looks.
        if let Some(left) = p.fetch_in_call() {
            return left;
        }
        p.set_x(0, info(p, items.term(), form));
        return Next::Return;
    }
    match explore::ask_info(p, pid, || names_of(items.term()), form == Form::All) {
        Ok(None) => ask(p, pid, (items, form), false),
        Ok(Some(Info::Gone)) => {
            p.set_x(0, am::undefined.term());
            Next::Return
        }
        Ok(Some(Info::There)) => look(p, pid, &items, form),
        Ok(Some(Info::Behind)) => ask(p, pid, (items, form), true),
        Err(control) => call_again(p, &control),
    }
}

/// The names of items.
fn names_of(items: Term<'_>) -> Vec<Atom> {
    let items = items.list_iter().flatten();
    items
        .map(|item| item.as_atom().unwrap_or(am::dictionary))
        .collect()
}

/// Asks another process; one that has begun to end answers if `by_exiting`.
fn ask(p: &mut Process, pid: Pid, (items, form): (Message, Form), by_exiting: bool) -> Next {
    let (reference, asker) = (make_ref(), p.pid());
    let question = Signal::question(asker, move |p| {
        match p.filter(|p| by_exiting || !p.is_exiting()) {
            None => reply(asker, reference, am::undefined.term()),
            Some(p) => {
                let told = told(p, p, items.term(), form);
                reply(asker, reference, told.term());
            }
        }
    });
    ask_and_await(p, pid, (reference, question), am::undefined)
}

/// Looks at a process of an explored run, which rests.
fn look(p: &mut Process, pid: Pid, items: &Message, form: Form) -> Next {
    let found = explore::with_resting(pid, |other| told(other, p, items.term(), form));
    let found = found.map_or(am::undefined.term(), |found| p.attach(found));
    p.set_x(0, found);
    Next::Return
}

/// The items, as another process asked for them, for which `by` pays. The heap is described as it is without them.
fn told(p: &Process, by: &Process, items: Term<'_>, form: Form) -> Message {
    Heap::detached().into_message(|heap| {
        let mut pairs = Vec::new();
        for item in items.list_iter().flatten() {
            let Some(value) = p.tell(|p| value_of(p, item, form, true)) else {
                if form == Form::One {
                    return Term::NIL;
                }
                continue;
            };
            pairs.push(heap.tuple(&[heap.copy_in(item), heap.attach(value)]));
        }
        by.bump_reds(pairs.len() as i64);
        match form {
            Form::One => pairs[0],
            _ => heap.list(&pairs),
        }
    })
}

/// The items, as they were asked for; in a replay, with the recorded values.
fn info<'p>(p: &'p Process, items: Term<'_>, form: Form) -> Term<'p> {
    let recorded = p.recorded_in_hand();
    let mut pairs = Vec::new();
    for item in items.list_iter().flatten() {
        let value = match &recorded {
            None => value_of(p, item, form, false),
            Some(recorded) => as_recorded(p, item, form, recorded.term()),
        };
        let Some(value) = value else {
            if form == Form::One {
                return Term::NIL;
            }
            continue;
        };
        pairs.push(p.tuple(&[p.copy_in(item), value]));
    }
    p.bump_reds(pairs.len() as i64);
    match form {
        Form::One => pairs[0],
        _ => p.list(&pairs),
    }
}

/// The value of an item in a recorded answer. Where the process would tell the same, it is made of what it has, as then.
fn as_recorded<'p>(
    p: &'p Process,
    item: Term<'_>,
    form: Form,
    recorded: Term<'_>,
) -> Option<Term<'p>> {
    let recorded = recorded_value(item, recorded)?;
    let now = p.tell(|p| value_of(p, item, form, false));
    match now.is_some_and(|now| are_written_alike(now.term(), recorded)) {
        true => value_of(p, item, form, false),
        false => Some(p.copy_in(recorded)),
    }
}

/// The value of an item in a recorded answer, which is a pair, a list of pairs, or an empty list.
fn recorded_value<'r>(item: Term<'_>, recorded: Term<'r>) -> Option<Term<'r>> {
    let value_in = |pair: Term<'r>| match pair.as_tuple()?.elements() {
        [name, value] if are_written_alike(*name, item) => Some(*value),
        _ => None,
    };
    value_in(recorded).or_else(|| recorded.list_iter().flatten().find_map(value_in))
}

/// The value of an item; `None` for a name that is not there, where that is not said.
fn value_of<'p>(p: &'p Process, item: Term<'_>, form: Form, for_other: bool) -> Option<Term<'p>> {
    let Some(name) = item.as_atom() else {
        let key = item.as_tuple()?.get(1);
        return Some(super::dictionary::get(p, key).unwrap_or(am::undefined.term()));
    };
    Some(match name {
        am::registered_name => match p.shared().name() {
            Some(name) => name.term(),
            None if form == Form::List => Term::NIL,
            None => return None,
        },
        am::links | am::monitors | am::monitored_by | am::suspending => relations(p, name),
        am::status => status(p, for_other),
        am::messages => messages(p),
        am::message_queue_len => Term::small(p.mailbox.len() as i64),
        am::dictionary => {
            if p.flags.get().sensitive {
                Term::NIL
            } else {
                super::dictionary::pairs(p)
            }
        }
        am::initial_call => {
            let (module, function, arity) = p.initial_call.get();
            let arity = Term::small(i64::from(arity));
            p.tuple(&[module.term(), function.term(), arity])
        }
        am::group_leader => p.group_leader().term(p),
        am::parent => match p.parent() {
            parent if parent == p.pid().into() => am::undefined.term(),
            parent => parent.term(p),
        },
        am::trap_exit => Term::bool(p.flags.get().trap_exit),
        am::async_dist => Term::bool(p.flags.get().async_dist),
        am::priority_messages => Term::bool(p.accepts_priority_messages()),
        am::error_handler => {
            let handler = p.with_psd(|psd| psd.error_handler).flatten();
            handler.unwrap_or(am::error_handler).term()
        }
        am::priority => options::priority_name(p.shared().priority()).term(),
        am::message_queue_data => queue_data_name(p.flags.get().off_heap_messages).term(),
        am::max_heap_size => max_heap_map(p, &p.max_heap()),
        am::binary => binaries(p),
        am::garbage_collection => garbage_collection(p),
        am::garbage_collection_info => crate::trace::events::gc_info(p, p),
        am::last_calls => p.saved_calls(),
        am::label => {
            let key = Atom::term(am::process_label);
            super::dictionary::get(p, key).unwrap_or(am::undefined.term())
        }
        am::backtrace => {
            let doing = match for_other {
                true => Doing::Runs,
                false => Doing::calls(am::erlang, am::process_info, 2),
            };
            p.binary(stack_dump(p, doing).as_bytes())
        }
        am::sequential_trace_token => crate::trace::seq::token_term(p, p),
        am::magic_ref => Term::NIL,
        am::current_function | am::current_location | am::current_stacktrace => {
            crate::exec::exception::where_is(p, name)
        }
        _ => p.unsigned(count(p, name) as u64),
    })
}

/// Items that are numbers.
fn count(p: &Process, name: Atom) -> usize {
    let (old, _) = p.old_words();
    match name {
        am::heap_size => p.block_words(),
        am::stack_size => p.stack_words(),
        am::total_heap_size => p.block_words() + old + p.fragment_words() + p.mailbox_words(),
        am::memory => p.memory_bytes(),
        am::reductions => p.reductions() as usize,
        am::catchlevel => p.catches.get() as usize,
        am::min_heap_size => p.min_heap_words(),
        am::min_bin_vheap_size => p.min_bin_vheap_words(),
        am::fullsweep_after => p.fullsweep_after(),
        // `trace`: no flags of the first trace session are kept here.
        _ => 0,
    }
}

pub(super) fn status(p: &Process, for_other: bool) -> Term<'static> {
    let status = if p.runs_dirty() {
        am::running
    } else if p.is_suspended() {
        am::suspended
    } else if !for_other {
        am::running
    } else if p.was_waiting() {
        am::waiting
    } else {
        am::runnable
    };
    status.term()
}

/// The messages that wait. Those that lie on the heap already are not copied, as in ERTS.
/// Source: `erts_prep_msgq_for_inspection()`.
fn messages<'p>(p: &'p Process) -> Term<'p> {
    /// Messages prefetched ahead: each may lie in a fragment of its own, in no cache.
    const AHEAD: usize = 5;
    if p.flags.get().sensitive {
        return Term::NIL;
    }
    let mut ahead = p.mailbox.messages().skip(AHEAD);
    let own = |message: &'p Message| {
        if let Some(next) = ahead.next() {
            next.fetch();
        }
        // Which lie on the heap may be chance.
        let of_heap = message.term_of_heap().filter(|_| may_timing_show());
        of_heap.unwrap_or_else(|| p.copy_in(message.term()))
    };
    let messages: Vec<Term<'_>> = p.mailbox.messages().map(own).collect();
    p.bump_reds(messages.len() as i64 / 4);
    p.list(&messages)
}

fn relations(p: &Process, name: Atom) -> Term<'_> {
    let Some(relations) = p.some_relations() else {
        return Term::NIL;
    };
    let items: Vec<Term<'_>> = match name {
        am::links => relations.linked().map(|peer| peer.term(p)).collect(),
        am::monitored_by => {
            let watchers = relations.watchers.values();
            let others = watchers.filter_map(|watcher| match &watcher.by {
                WatchedBy::Object(object) => Some(p.magic_reference(object.upgrade()?)),
                WatchedBy::Port(port) => Some(port.term()),
                WatchedBy::Process(process, _) => Some(process.term(p)),
                WatchedBy::Runtime => None,
            });
            let processes = relations.targets.values().map(|pid| pid.term());
            processes.chain(others).collect()
        }
        am::monitors => {
            let targets = relations.origins.values().map(|origin| origin.target);
            targets.map(|target| monitored(p, target)).collect()
        }
        _ => relations
            .suspending
            .iter()
            .filter(|(_, suspending)| !suspending.is_over())
            .map(|(pid, suspending)| {
                let (count, none) = (Term::small(suspending.count.into()), Term::small(0));
                let is_active = suspending.is_active();
                let [active, outstanding] = if is_active {
                    [count, none]
                } else {
                    [none, count]
                };
                p.tuple(&[pid.term(), active, outstanding])
            })
            .collect(),
    };
    p.list(&items)
}

fn monitored(p: &Process, target: Monitored) -> Term<'_> {
    let (kind, item) = match target {
        Monitored::Process(pid) => (am::process, pid.term()),
        Monitored::Remote(RemoteProcess::Process(peer)) => (am::process, peer.term(p)),
        Monitored::Name(name, node, _) | Monitored::Remote(RemoteProcess::Name(name, node)) => {
            (am::process, p.tuple(&[name.term(), node.term()]))
        }
        Monitored::Port(port) => (am::port, port.term()),
        Monitored::NamedPort(name, node, _) => (am::port, p.tuple(&[name.term(), node.term()])),
        Monitored::Gone => (am::process, am::undefined.term()),
        Monitored::TimeOffset => (am::time_offset, am::clock_service.term()),
    };
    p.tuple(&[kind.term(), item])
}

/// `[{Address, Bytes, Holders}]`.
fn binaries(p: &Process) -> Term<'_> {
    let all: Vec<HeldBinary> = p.binaries().collect();
    let all: Vec<Term<'_>> = all
        .into_iter()
        .map(|of| {
            let numbers = [of.address, of.bytes, of.holders];
            p.tuple(&numbers.map(|n| p.unsigned(n as u64)))
        })
        .collect();
    p.list(&all)
}

fn pair_list<'p>(p: &'p Process, pairs: &[(Atom, Term<'p>)]) -> Term<'p> {
    let pairs: Vec<Term<'_>> = pairs
        .iter()
        .map(|(key, value)| p.tuple(&[key.term(), *value]))
        .collect();
    p.list(&pairs)
}

fn garbage_collection(p: &Process) -> Term<'_> {
    let number = |n: usize| p.unsigned(n as u64);
    pair_list(
        p,
        &[
            (am::max_heap_size, max_heap_map(p, &p.max_heap())),
            (am::min_bin_vheap_size, number(p.min_bin_vheap_words())),
            (am::min_heap_size, number(p.min_heap_words())),
            (am::fullsweep_after, number(p.fullsweep_after())),
            (am::minor_gcs, number(p.collections_since_fullsweep())),
        ],
    )
}
