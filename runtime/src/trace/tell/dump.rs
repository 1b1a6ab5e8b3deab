//! All that the emulator tells of a process, as text: for `{process_dump}` of a match specification and for
//! `erlang:system_info(procs)`. Source: `print_process_info()` in `break.c`, OTP 29.

use std::fmt::Write;

use crate::exec::exception::current_call;
use crate::exec::stack_dump::{Doing, stack_dump};
use crate::heap::Heap;
use crate::process::nodes::RemoteProcess;
use crate::process::refs::RefNumbers;
use crate::process::{self, Monitored, Process};
use crate::term::Term;

/// The text of `p`.
pub(crate) fn process_dump(p: &Process, doing: Doing) -> String {
    let mut text = String::new();
    identity(p, doing, &mut text);
    queue(p, &mut text);
    relations(p, &mut text);
    dictionary(p, &mut text);
    sizes(p, &mut text);
    text.push_str("Stack dump:\n");
    text.push_str(&stack_dump(p, doing));
    internal_state(p, doing, &mut text);
    text
}

/// Whether it has a time slice.
fn is_running(doing: Doing) -> bool {
    !matches!(doing, Doing::Rests)
}

fn state(p: &Process, doing: Doing) -> &'static str {
    match doing {
        Doing::Runs | Doing::Calls(_) => "Running",
        Doing::Rests if p.is_suspended() => "Suspended",
        Doing::Rests if p.was_waiting() => "Waiting",
        Doing::Rests => "Scheduled",
    }
}

fn identity(p: &Process, doing: Doing, text: &mut String) {
    let (module, function, arity) = p.initial_call.get();
    let parent = match p.parent() {
        parent if parent == p.pid().into() => Term::NIL,
        parent => parent.term(p),
    };
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        text,
        "=proc:{}\nState: {}",
        p.pid().term().display(),
        state(p, doing)
    );
    if let Some(name) = p.shared().name() {
        let _ = writeln!(text, "Name: {}", name.term().display());
    }
    let (module, function) = (module.term(), function.term());
    let (module, function) = (module.display(), function.display());
    let _ = writeln!(text, "Spawned as: {module}:{function}/{arity}");
    if let Some(mfa) = current_call(p) {
        let what = match is_running(doing) {
            true => "Last scheduled in for",
            false => "Current call",
        };
        let (module, function) = (mfa.module.term(), mfa.function.term());
        let (module, function) = (module.display(), function.display());
        let _ = writeln!(text, "{what}: {module}:{function}/{}", mfa.arity);
    }
    let _ = writeln!(text, "Spawned by: {}", parent.display());
}

fn queue(p: &Process, text: &mut String) {
    let length = p.mailbox.len();
    let _ = writeln!(text, "Message queue length: {length}");
    // OTP's list has the signals alone, and the messages are gone when there is one.
    if length > 0 {
        text.push_str("Message queue: []\n");
    }
    let _ = writeln!(
        text,
        "Number of heap fragments: {}\nHeap fragment data: {}",
        p.fragment_count(),
        p.fragment_words()
    );
}

/// Links and monitors, if there are any.
fn relations(p: &Process, text: &mut String) {
    let Some(relations) = p.some_relations() else {
        return;
    };
    // Beside the heap: it is not for the process itself.
    let heap = Heap::detached();
    let reference = |numbers: &RefNumbers| heap.reference(*numbers).display().to_string();
    let mut items: Vec<String> = relations
        .linked()
        .map(|peer| peer.with_term(|peer| peer.display().to_string()))
        .collect();
    for (numbers, origin) in &relations.origins {
        let target = match origin.target {
            Monitored::Process(pid) => pid.term().display().to_string(),
            Monitored::Port(port) => port.term().display().to_string(),
            Monitored::Remote(RemoteProcess::Process(peer)) => {
                peer.with_term(|peer| peer.display().to_string())
            }
            Monitored::Name(name, node, _)
            | Monitored::NamedPort(name, node, _)
            | Monitored::Remote(RemoteProcess::Name(name, node)) => {
                format!("{{{},{}}}", name.term().display(), node.term().display())
            }
            Monitored::Gone => "undefined".to_owned(),
            Monitored::TimeOffset => "clock_service".to_owned(),
        };
        items.push(format!("{{to,{target},{}}}", reference(numbers)));
    }
    for (numbers, pid) in &relations.targets {
        let pid = pid.term();
        items.push(format!("{{from,{},{}}}", pid.display(), reference(numbers)));
    }
    if !items.is_empty() {
        let _ = writeln!(text, "Link list: [{}]", items.join(", "));
    }
}

fn dictionary(p: &Process, text: &mut String) {
    if p.flags.get().sensitive {
        return;
    }
    let dictionary = p.dictionary();
    let pairs = dictionary.entries().iter();
    let pairs: Vec<String> = pairs.map(|[_, pair]| pair.display().to_string()).collect();
    if !pairs.is_empty() {
        let _ = writeln!(text, "Dictionary: [{}]", pairs.join(","));
    }
}

fn sizes(p: &Process, text: &mut String) {
    let (old, old_used) = p.old_words();
    let [bin, bin_limit, bin_old, bin_old_limit] = p.bin_vheap();
    let _ = writeln!(
        text,
        "Reductions: {}\nStack+heap: {}\nOldHeap: {old}\nHeap unused: {}\nOldHeap unused: {}\n\
         BinVHeap: {bin}\nOldBinVHeap: {bin_old}\nBinVHeap unused: {}\nOldBinVHeap unused: {}\n\
         Memory: {}",
        p.reductions(),
        p.block_words(),
        p.block_words() - p.used_words(),
        old - old_used,
        bin_limit.saturating_sub(bin),
        bin_old_limit.saturating_sub(bin_old),
        p.memory_bytes(),
    );
}

/// Priorities and flags, in the order of ERTS's bits. Source: `erts_dump_extended_process_state()`.
fn internal_state(p: &Process, doing: Doing, text: &mut String) {
    let priority = process::options::priority_name(p.shared().priority());
    let priority = priority.name().to_uppercase();
    let (runs, suspended) = (is_running(doing), p.is_suspended());
    let is_active = runs || suspended || !p.was_waiting();
    let is_queued = is_active && !runs && !suspended;
    let in_queue = format!("IN_PRQ_{priority}");
    let _ = write!(
        text,
        "Internal State: ACT_PRIO_{priority} | USR_PRIO_{priority} | PRQ_PRIO_{priority}"
    );
    for (is, flag) in [
        (is_queued, in_queue.as_str()),
        (is_active, "ACTIVE"),
        (is_queued, "IN_RUNQ"),
        (runs, "RUNNING"),
        (suspended, "SUSPENDED"),
        (p.flags.get().off_heap_messages, "OFF_HEAP_MSGQ"),
    ] {
        if is {
            let _ = write!(text, " | {flag}");
        }
    }
    text.push('\n');
}
