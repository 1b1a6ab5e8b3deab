//! Writes the texts of `erlang:system_info/1` with `info`, `procs`, `loaded` and `dist`, as ERTS's break handler prints
//! them. Source: `break.c`, `io.c`, OTP 29.

use std::fmt::Write;

use super::Control;
use super::process::reply;
use crate::code::entry::export;
use crate::exec::exception::backtrace;
use crate::heap::Heap;
use crate::loader::module::{self, Module};
use crate::port::{self, Port};
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::{self, Monitored, Process, Signal, registry, send};
use crate::sched::ptab::pin;
use crate::term::{Pid, Term, am, atom as atoms};

/// The text of `item`; `None` for one that there is not.
pub(super) fn text(item: &str) -> Option<String> {
    Some(match item {
        "info" => info(),
        "loaded" => loaded(),
        "dist" => format!(
            "=node:{}\n=no_distribution\n",
            am::nonode_at_nohost.term().display()
        ),
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
    let mut text = String::new();
    describe(p, "Running", &mut text);
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
                let state = match p.is_suspended() {
                    true => "Suspended",
                    false if p.was_waiting() => "Waiting",
                    false => "Scheduled",
                };
                describe(p, state, &mut self.text);
            }
            self.go_on();
        });
        if let Err(request) = send(pid, request) {
            request.answer_for_gone(pid);
        }
    }
}

/// As `print_process_info()`.
fn describe(p: &Process, state: &str, text: &mut String) {
    let (module, function, arity) = p.initial_call.get();
    let parent = match p.parent.get() {
        parent if parent == p.pid() => Term::NIL,
        parent => parent.term(),
    };
    let _ = writeln!(text, "=proc:{}\nState: {state}", p.pid().term().display());
    if let Some(name) = p.shared().name() {
        let _ = writeln!(text, "Name: {}", name.term().display());
    }
    let (module, function) = (module.term(), function.term());
    let _ = writeln!(
        text,
        "Spawned as: {}:{}/{arity}\nSpawned by: {}\nMessage queue length: {}",
        module.display(),
        function.display(),
        parent.display(),
        p.mailbox.len(),
    );
    let fragments = p.fragment_words();
    let _ = writeln!(
        text,
        "Number of heap fragments: {}\nHeap fragment data: {fragments}",
        p.fragment_count(),
    );
    describe_relations(p, text);
    if !p.flags.get().sensitive {
        let pairs = p.tell(|p| Some(super::dictionary::pairs(p)));
        if let Some(pairs) = pairs.filter(|pairs| !pairs.term().is_nil()) {
            let _ = writeln!(text, "Dictionary: {}", pairs.term().display());
        }
    }
    let (old, old_used) = p.old_words();
    let [bin, bin_limit, bin_old, bin_old_limit] = p.bin_vheap();
    let _ = write!(
        text,
        "Reductions: {}\nStack+heap: {}\nOldHeap: {old}\nHeap unused: {}\nOldHeap unused: {}\n\
         BinVHeap: {bin}\nOldBinVHeap: {bin_old}\nBinVHeap unused: {}\nOldBinVHeap unused: {}\n\
         Memory: {}\nStack dump:\n",
        p.reductions(),
        p.block_words(),
        p.block_words() - p.used_words(),
        old - old_used,
        bin_limit.saturating_sub(bin),
        bin_old_limit.saturating_sub(bin_old),
        p.memory_bytes(),
    );
    if !p.flags.get().sensitive {
        text.push_str(&backtrace(p));
    }
    let priority = process::options::priority_name(p.shared().priority());
    let priority = priority.name().to_uppercase();
    let _ = writeln!(
        text,
        "Internal State: ACT_PRIO_{priority} | USR_PRIO_{priority} | PRQ_PRIO_{priority}"
    );
}

/// Links and monitors, if there are any.
fn describe_relations(p: &Process, text: &mut String) {
    let Some(relations) = p.some_relations() else {
        return;
    };
    // Beside the heap: it is not for the process itself.
    let heap = Heap::detached();
    let reference = |numbers: &RefNumbers| heap.reference(*numbers).display().to_string();
    let mut items: Vec<String> = relations
        .linked()
        .map(|peer| peer.term().display().to_string())
        .collect();
    for (numbers, origin) in &relations.origins {
        let target = match origin.target {
            Monitored::Process(pid) => pid.term().display().to_string(),
            Monitored::Port(port) => port.term().display().to_string(),
            Monitored::Name(name, node, _) | Monitored::NamedPort(name, node, _) => {
                format!("{{{},{}}}", name.term().display(), node.term().display())
            }
            Monitored::Elsewhere => "undefined".to_owned(),
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
