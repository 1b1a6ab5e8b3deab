//! Handles what processes send to ports: links, monitors, exit signals, and the messages of the port protocol.

use std::sync::Arc;

use super::{Port, Refused};
use crate::heap::Heap;
use crate::process::ports::Hooks;
use crate::process::signal::ExitSignal;
use crate::process::{NotSent, Peer, Process, Signal, deliver, exists};
use crate::sched::ptab::pin;
use crate::term::{Atom, Pid, Port as PortId, RawTerm, Term, am};
use crate::trace::{Event, flags, sysprof};
use crate::value::iolist::Output;

/// What takes to ports what processes send them.
pub(crate) fn hooks() -> Hooks {
    Hooks {
        signal,
        message,
        exit,
        command: |id, data| {
            if let Some(port) = Port::lookup(id) {
                // One that is going takes no more, which is nobody's fault.
                let _ = port.command(data.into(), None, false, || {});
            }
        },
        serve_connection: |id| {
            if let Some(port) = Port::lookup(id) {
                port.serve_connection();
            }
        },
        exists: |id| Port::lookup(id).is_some(),
        opens_again: super::open::open_again,
        each_tracee: |visit| {
            let guard = pin();
            for port in super::table().iter(&guard) {
                visit(&port.tracee);
            }
        },
    }
}

/// Takes a signal; gives it back when the port is gone.
fn signal(to: PortId, signal: Signal) -> Result<(), Signal> {
    let Some(port) = Port::lookup(to) else {
        return Err(signal);
    };
    let _runs = sysprof::port_runs(to);
    if matches!(signal, Signal::Monitor { .. }) {
        // Behind the call that may end the port.
        let linked = port.state.lock().linked.clone();
        linked.iter().for_each(|linked| linked.wait());
    }
    let mut state = port.state.lock();
    if state.gone {
        return Err(signal);
    }
    match signal {
        Signal::Link { from } => {
            state.links.insert(from);
            port.report_link(from);
        }
        Signal::Unlink { from, id } => {
            let was_linked = state.links.remove(&from);
            drop(state);
            port.traced().ran(am::unlink);
            if was_linked {
                from.with_term(|from| port.traced().happened(Event::GettingUnlinked, from));
            }
            let ack = Signal::UnlinkAck {
                from: port.peer(),
                id,
            };
            if let Some(pid) = from.pid() {
                deliver(pid, ack);
            }
        }
        Signal::Monitor { reference, from } => state.monitors.push((reference, from)),
        Signal::Demonitor { reference } => state.monitors.retain(|row| row.0 != reference),
        Signal::Exit(exit) => {
            let ExitSignal { from, reason, .. } = *exit;
            // From itself: the connection that it controls is to end.
            if state.links.remove(&from) || from == port.peer() {
                port.exit(state, from, reason.term());
            }
        }
        // Ports monitor nobody and are asked nothing.
        _ => {}
    }
    Ok(())
}

/// An exit signal of `exit/2`.
fn exit(p: &Process, to: PortId, reason: Term<'_>) {
    if let Some(port) = Port::lookup(to) {
        port.exit(port.state.lock(), p.pid().into(), reason);
    }
}

impl Port {
    /// An exit signal ends the port, but for `normal` from others than its owner.
    fn exit(
        self: &Arc<Self>,
        state: parking_lot::MutexGuard<'_, super::State>,
        from: Peer,
        reason: Term<'_>,
    ) {
        if reason == am::normal && from != state.owner.into() {
            return;
        }
        let reason = if reason == am::kill {
            Atom::term(am::killed)
        } else {
            reason
        };
        self.close(state, reason, false);
    }

    /// Makes `pid` the owner. With `link`, they are linked. `false` when the port is gone.
    pub(crate) fn connect(&self, pid: Pid, link: bool) -> bool {
        let mut state = self.state.lock();
        if state.gone {
            return false;
        }
        state.owner = pid;
        self.traced().ran(am::connect);
        if link && state.links.insert(pid.into()) {
            // Not under the lock: a process that is gone answers at once.
            drop(state);
            deliver(pid, Signal::Link { from: self.peer() });
            self.traced().happened(Event::GettingLinked, pid.term());
        }
        true
    }

    /// `p` has the port take data in the name of `from`, and waits for it where it is busy: tracers hear of it.
    pub(crate) fn command_from(
        self: &Arc<Self>,
        p: &Process,
        from: RawTerm,
        data: Output,
        force: bool,
    ) -> Result<(), Refused> {
        let is_heard = self.tracee.has(flags::RECEIVE | flags::RUNNING_PORTS);
        let copy = is_heard.then(|| (data.clone(), self.state.lock().has_outputv()));
        self.command(data, Some(p.pid()), force, || {
            if let Some((data, is_vector)) = copy {
                self.report_command(from, &data, is_vector);
            }
        })
    }

    /// It gets a command: a binary, or as a vector a list of binaries.
    fn report_command(&self, from: RawTerm, data: &Output, is_vector: bool) {
        self.traced().received(Term::immed(from), |heap| {
            let data = if is_vector {
                let elements = data.elements().filter(|element| !element.is_empty());
                let elements: Vec<_> = elements.map(|element| heap.binary(element)).collect();
                heap.list(&elements)
            } else {
                heap.binary(&data.bytes())
            };
            heap.tuple(&[am::command.term(), data])
        });
        self.traced().ran(am::command);
    }

    /// It is linked to `peer`.
    pub(super) fn report_link(&self, peer: Peer) {
        self.traced().ran(am::link);
        peer.with_term(|peer| self.traced().happened(Event::GettingLinked, peer));
    }

    /// `from` has made `owner` its owner, by `port_connect/2`: as if by messages.
    pub(crate) fn report_connect(&self, from: Pid, owner: Pid) {
        let connected = crate::term::atom::atom("connected");
        self.traced().received(from.term(), |heap| {
            heap.tuple(&[am::connect.term(), owner.term()])
        });
        let heap = Heap::detached();
        self.traced()
            .sent(from, heap.tuple(&[self.term(), connected]));
    }

    /// `from` has the port close.
    pub(crate) fn report_close(&self, from: RawTerm) {
        self.traced()
            .received(Term::immed(from), |_| am::close.term());
        // It does not come to an end of that.
        self.traced().begin(am::close.term());
    }
}

/// `Port ! Message`: the port protocol. Everything else is answered with exit signal `badsig`.
fn message(p: &Process, to: PortId, message: Term<'_>) -> Result<(), NotSent> {
    let Some(port) = Port::lookup(to) else {
        return Ok(());
    };
    protocol(p, &port, message).unwrap_or_else(|| {
        let signal = ExitSignal::new(port.peer(), crate::term::atom::atom("badsig"));
        deliver(p.pid(), Signal::Exit(Box::new(signal)));
        Ok(())
    })
}

/// `{Owner, Request}`, sent by `p`; `None` when it is none, or not of the owner.
fn protocol(p: &Process, port: &Arc<Port>, message: Term<'_>) -> Option<Result<(), NotSent>> {
    let [owner, request] = message.as_tuple()?.elements() else {
        return None;
    };
    if owner.as_pid()? != port.owner() {
        return None;
    }
    if request.same(crate::term::atom::atom("close")) {
        port.report_close((*owner).raw());
        port.close(port.state.lock(), am::normal.term(), true);
        return Some(Ok(()));
    }
    let [tag, argument] = request.as_tuple()?.elements() else {
        return None;
    };
    match tag.as_atom()?.name() {
        "command" => {
            let data = Output::of(*argument).ok()?;
            // A port that is going takes no more, which is nobody's fault.
            if port.command_from(p, (*owner).raw(), data, false) == Err(Refused::Busy) {
                return Some(Err(NotSent::Busy(port.id)));
            }
        }
        "connect" => {
            let new = argument.as_pid().filter(|pid| exists(*pid))?;
            let old = port.owner();
            port.traced()
                .received(*owner, |heap| heap.tuple(&[am::connect.term(), new.term()]));
            if port.connect(new, false) {
                port.tell(old, |heap| {
                    heap.tuple(&[port.id.term(), crate::term::atom::atom("connected")])
                });
            }
        }
        _ => return None,
    }
    Some(Ok(()))
}
