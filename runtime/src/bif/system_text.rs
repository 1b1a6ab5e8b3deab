//! Writes the texts of `erlang:system_info/1` with `info`, `procs`, `loaded` and `dist`, as ERTS's break handler prints
//! them. Source: `break.c`, `io.c`, OTP 29.

use std::fmt::Write;

use super::Control;
use super::process::reply;
use crate::code::entry::export;
use crate::exec::stack_dump::Doing;
use crate::heap::Heap;
use crate::loader::module::{self, Module};
use crate::port::{self, Port};
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::{self, Process, Signal, registry, send};
use crate::sched::ptab::pin;
use crate::term::counted::node_name;
use crate::term::{Pid, am, atom as atoms};
use crate::trace::dump::process_dump;

/// The text of `item`; `None` for one that there is not.
pub(super) fn text(item: &str) -> Option<String> {
    Some(match item {
        "info" => info(),
        "loaded" => loaded(),
        "dist" => format!("=node:{}\n=no_distribution\n", node_name().term().display()),
        _ => return None,
    })
}

/// Memory, and the table that tells its size. The hash tables and allocators of ERTS have no counterpart.
fn info() -> String {
    let mut text = String::from("=memory\n");
    for (kind, bytes) in super::memory::memory() {
        let _ = writeln!(text, "{kind}: {bytes}");
    }
    let (count, limit) = (atoms::count(), atoms::limit());
    let _ = write!(
        text,
        "=index_table:atom_tab\nsize: {count}\nlimit: {limit}\nentries: {count}\n"
    );
    text
}

/// Bytes of code, and a line for each module.
fn loaded() -> String {
    let bytes = |version: &Option<std::sync::Arc<Module>>| {
        version.as_ref().map_or(0, |module| module.code().len() * 8)
    };
    let mut names: Vec<_> = module::all_versions().iter().map(|m| m.name).collect();
    names.sort_unstable_by_key(|name| name.index());
    names.dedup();
    let (mut lines, mut all, mut all_old) = (String::new(), 0, 0);
    for name in names {
        let versions = module::versions(name);
        let (current, old) = (bytes(&versions.current), bytes(&versions.old));
        (all, all_old) = (all + current, all_old + old);
        let _ = write!(lines, "{} {current}", name.term().display());
        if old > 0 {
            let _ = write!(lines, " ({old} old)");
        }
        lines.push('\n');
    }
    format!("Current code: {all}\nOld code: {all_old}\n{lines}")
}

/// Has every process tell of itself, one after the other, and then `p` of what they have told: the text of `procs`.
/// ERTS stops all others meanwhile, and here each goes on when it has told.
pub(super) fn ask_all<'p>(p: &'p Process) -> Control<'p> {
    let guard = pin();
    let mut others: Vec<Pid> = process::table()
        .iter(&guard)
        .map(|shared| shared.pid())
        .filter(|pid| *pid != p.pid())
        .collect();
    others.reverse();
    let text = process_dump(p, Doing::calls(am::erlang, am::system_info, 1));
    let reference = make_ref();
    Round {
        asker: p.pid(),
        reference,
        others,
        text,
    }
    .go_on();
    let result = export(am::erts_internal, am::await_result, 1);
    Control::Trap(result, vec![p.reference(reference)])
}

/// The text so far, and the processes that are still to tell their part.
struct Round {
    asker: Pid,
    reference: RefNumbers,
    /// The next one last.
    others: Vec<Pid>,
    text: String,
}

impl Round {
    fn go_on(mut self) {
        let Some(pid) = self.others.pop() else {
            for port in port::table().iter(&pin()) {
                describe_port(port, &mut self.text);
            }
            let heap = Heap::detached();
            let text = heap.binary_from_vec(self.text.into_bytes());
            return reply(self.asker, self.reference, text);
        };
        let request = Signal::request(move |p: Option<&mut Process>| {
            if let Some(p) = p.filter(|p| !p.is_exiting()) {
                self.text.push_str(&process_dump(p, Doing::Rests));
            }
            self.go_on();
        });
        if let Err(request) = send(pid, request) {
            request.answer_for_gone(pid);
        }
    }
}

/// As `print_port_info()`.
fn describe_port(port: &Port, text: &mut String) {
    let state = port.state.lock();
    let id = port.id.term();
    let _ = write!(
        text,
        "=port:{}\nState: CONNECTED\nSlot: {}\nConnected: {}\n",
        id.display(),
        port.id.0,
        state.owner.term().display(),
    );
    if let Some(name) = registry::name_of(registry::Named::Port(port.id)) {
        let _ = writeln!(text, "Registered as: {}", name.term().display());
    }
    let _ = writeln!(
        text,
        "Input: {}\nOutput: {}\nQueue: {}",
        state.input_bytes, state.output_bytes, state.queued_bytes
    );
}
