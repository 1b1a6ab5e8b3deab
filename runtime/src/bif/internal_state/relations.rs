//! Gives the links and monitors of processes and ports to OTP's test suites, as records `erl_link` and `erl_monitor`.
//! Source: `make_link_list()` and `make_monitor_list()` in `erl_bif_info.c`, OTP 29.

use super::super::process::{ask_and_await, reply};
use super::super::{Next, Raise, badarg};
use crate::heap::Heap;
use crate::port::Port;
use crate::process::nodes::RemoteProcess;
use crate::process::refs::{make_ref, reference_of};
use crate::process::{Monitored, Peer, Process, Signal};
use crate::term::counted::node_name;
use crate::term::{Atom, Pid, Term, am};

/// The item that is asked of a process.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    Links,
    Monitors,
    Status,
}

impl Asked {
    /// What `{Asked, Of}` asks, and of what.
    pub(super) fn of(item: Term<'_>) -> Option<(Asked, Term<'_>)> {
        let pair = item.as_tuple().filter(|pair| pair.arity() == 2)?;
        let asked = match pair.get(0).as_atom()?.name() {
            "link_list" => Asked::Links,
            "monitor_list" => Asked::Monitors,
            "process_status" => Asked::Status,
            _ => return None,
        };
        Some((asked, pair.get(1)))
    }
}

/// Puts into `x(0)` what is asked there: of a process, a port, or of the links and monitors of a node, which has none
/// without distribution. `None` where something else is asked.
///
/// # Errors
/// `badarg`.
pub(super) fn answer(p: &mut Process) -> Option<Result<Next, Raise<'static>>> {
    let (asked, of) = Asked::of(p.x(0))?;
    if let Some(pid) = of.as_pid() {
        return Some(Ok(answer_of_process(p, asked, pid)));
    }
    let found = match (of.as_port(), asked) {
        (Some(port), Asked::Links) => match Port::lookup(port) {
            Some(port) => {
                let state = port.state.lock();
                link_list(p, state.links.iter().map(|peer| (*peer, false)))
            }
            None => am::undefined.term(),
        },
        (_, Asked::Links | Asked::Monitors) if of == node_name() => Term::NIL,
        _ => return Some(Err(badarg())),
    };
    p.set_x(0, found);
    Some(Ok(Next::Return))
}

fn answer_of_process(p: &mut Process, asked: Asked, pid: Pid) -> Next {
    if pid == p.pid() {
        // What has been sent to it so far counts.
        if let Some(left) = p.fetch_in_call() {
            return left;
        }
        let told = match asked {
            Asked::Status => am::running.term(),
            _ => told(p, p, asked),
        };
        p.set_x(0, told);
        return Next::Return;
    }
    let (reference, asker) = (make_ref(), p.pid());
    let request = Signal::request(move |p| match p.filter(|p| !p.is_exiting()) {
        None => reply(asker, reference, am::undefined.term()),
        Some(p) => {
            let heap = Heap::detached();
            reply(asker, reference, told(&heap, p, asked));
        }
    });
    ask_and_await(p, pid, (reference, request), am::undefined)
}

/// What `p` says of itself, on `heap`.
fn told<'h>(heap: &'h Heap, p: &Process, asked: Asked) -> Term<'h> {
    match asked {
        Asked::Status => super::super::process_info::status(p, true),
        Asked::Links => match p.some_relations() {
            Some(relations) => {
                let links = relations.links.iter();
                link_list(heap, links.map(|(peer, link)| (*peer, link.unlinking != 0)))
            }
            None => Term::NIL,
        },
        Asked::Monitors => monitor_list(heap, p),
    }
}

/// Records of links, each to what and whether it ends. A link has no address: what stands for it is a number that
/// no other link of the list has.
fn link_list<'h>(heap: &'h Heap, links: impl Iterator<Item = (Peer, bool)>) -> Term<'h> {
    let records = (1..).zip(links).map(|(number, (peer, is_ending))| {
        let kind = if peer.pid().is_some() {
            am::process
        } else {
            am::port
        };
        let state = if is_ending { "unlinking" } else { "linked" };
        heap.tuple(&[
            Atom::new("erl_link").term(),
            kind.term(),
            peer.term(heap),
            Atom::new(state).term(),
            Term::small(number),
        ])
    });
    heap.list(&records.collect::<Vec<_>>())
}

fn monitor_list<'h>(heap: &'h Heap, p: &Process) -> Term<'h> {
    let Some(relations) = p.some_relations() else {
        return Term::NIL;
    };
    let record = |kind: Atom, direction: &str, rest: [Term<'h>; 3]| {
        let head = [
            Atom::new("erl_monitor").term(),
            kind.term(),
            Atom::new(direction).term(),
        ];
        heap.tuple(&[&head[..], &rest].concat())
    };
    let mut records = Vec::new();
    for (numbers, origin) in &relations.origins {
        let (kind, item, name) = monitored(heap, origin.target);
        let reference = reference_of(heap, *numbers, p.pid());
        records.push(record(kind, "origin", [reference, item, name]));
    }
    for (numbers, pid) in &relations.targets {
        let reference = reference_of(heap, *numbers, *pid);
        let rest = [reference, pid.term(), Term::NIL];
        records.push(record(am::process, "target", rest));
    }
    let suspending = relations.suspending.iter().filter(|(_, it)| !it.is_over());
    for (pid, _) in suspending {
        let rest = [Term::NIL, pid.term(), Term::NIL];
        records.push(record(Atom::new("suspend"), "origin", rest));
    }
    heap.list(&records)
}

/// The kind of what is monitored, what it is, and the name that it was monitored by.
fn monitored(heap: &Heap, target: Monitored) -> (Atom, Term<'_>, Term<'_>) {
    let or_undefined = |term: Option<Term<'static>>| term.unwrap_or(am::undefined.term());
    match target {
        Monitored::Process(pid) => (am::process, pid.term(), Term::NIL),
        Monitored::Name(name, _, pid) => {
            (am::process, or_undefined(pid.map(Pid::term)), name.term())
        }
        Monitored::Port(port) => (am::port, port.term(), Term::NIL),
        Monitored::NamedPort(name, _, port) => {
            let port = port.map(crate::term::Port::term);
            (am::port, or_undefined(port), name.term())
        }
        Monitored::Remote(RemoteProcess::Process(peer)) => {
            (am::process, peer.term(heap), Term::NIL)
        }
        Monitored::Remote(RemoteProcess::Name(name, node)) => {
            (am::process, node.term(), name.term())
        }
        Monitored::Gone => (am::process, am::undefined.term(), Term::NIL),
        Monitored::TimeOffset => (am::time_offset, am::clock_service.term(), Term::NIL),
    }
}
