//! Writes the text of `{process_dump}` of a match specification: a process as a crash dump shows it. Source:
//! `print_process_info()` in `break.c`.

use std::fmt::Write;

use crate::process::Process;
use crate::term::am;

/// The text.
pub(super) fn text(p: &Process) -> String {
    let mut text = String::new();
    let (module, function, arity) = p.initial_call.get();
    let (old_block, old) = p.old_words();
    let current = crate::exec::exception::where_is(p, am::current_function);
    let stack = crate::exec::exception::callers(p, 64);
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{key}: {value}");
    };
    line("=proc", &p.pid().term().display());
    line("State", &"Running");
    if let Some(name) = p.shared().name() {
        line("Name", &name);
    }
    line("Spawned as", &format_args!("{module}:{function}/{arity}"));
    line("Current call", &current.display());
    line("Spawned by", &p.parent.get().term().display());
    line("Message queue length", &p.mailbox.len());
    line(
        "Number of heap fragments",
        &u32::from(p.fragment_words() > 0),
    );
    line("Heap fragment data", &p.fragment_words());
    line("Reductions", &p.reductions());
    line("Stack+heap", &p.block_words());
    line("OldHeap", &old_block);
    line("Heap unused", &p.free_words());
    line("OldHeap unused", &(old_block - old));
    line("Stack", &stack.display());
    text
}
