//! The BIFs that send messages.

use super::{BifResult, Control, badarg, badopt, bifs, system_limit};
use crate::process::nodes::{self, Sending};
use crate::process::suspension::Function;
use crate::process::{NotSent, Peer, Process, send_to, send_with};
use crate::term::{Atom, Port, Term, am};
use crate::trace::sysmon;

bifs! {
    all ordered;
    bif erlang:"!"/2 => send_2;
    bif erlang:"send"/2 => send_2;
    bif erlang:"send"/3 => send_3;
}

fn send_2<'p>(p: &'p Process, [to, message]: [Term<'p>; 2]) -> BifResult<'p> {
    match send_to(p, to, message) {
        Ok(()) | Err(NotSent::NotConnected) => Ok(message),
        Err(NotSent::NoSuchName) => Err(badarg().into()),
        Err(NotSent::TooLarge) => Err(system_limit().into()),
        Err(NotSent::NotItsTurn { sleeps }) => Err(later(sleeps).into()),
        Err(NotSent::Encoding) => Err(Control::Yield.into()),
        Err(NotSent::Busy(port)) => {
            let function = (am::erlang, am::send, 2);
            Err(wait_for_port(p, port, function).into())
        }
        Err(NotSent::BusyNode(controller)) => Err(wait_for_node(p, controller, message).into()),
    }
}

/// The call is made again when it is its turn.
fn later(sleeps: bool) -> Control<'static> {
    match sleeps {
        true => Control::Wait,
        false => Control::Yield,
    }
}

/// `p` is suspended until `port`, which has refused its data, takes data again; then it calls `function` again.
pub(crate) fn wait_for_port(p: &Process, port: Port, function: Function) -> Control<'_> {
    p.suspend_in(function);
    sysmon::busy_port(p, port);
    Control::Wait
}

/// `p`, which has sent a signal, is suspended until the connection to the other node takes data again; then its BIF
/// returns `value`.
fn wait_for_node<'p>(p: &'p Process, controller: Peer, value: Term<'p>) -> Control<'p> {
    p.suspend_in((am::erlang, Atom::new("bif_return_trap"), 2));
    sysmon::busy_dist_port(p, controller);
    Control::Return(value)
}

/// What a BIF returns that has sent a signal to this node, or another one: where the connection is busy, not before it
/// takes data again.
pub(super) fn return_when_sent<'p>(
    p: &'p Process,
    node: Option<Atom>,
    value: Term<'p>,
) -> BifResult<'p> {
    match node.and_then(|node| nodes::wait_for_room(p, node)) {
        Some(controller) => Err(wait_for_node(p, controller, value).into()),
        None => Ok(value),
    }
}

fn send_3<'p>(p: &'p Process, [to, message, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let (mut connect, mut suspend, mut priority) = (true, true, false);
    for option in options.list_iter() {
        match option.map_err(|_| badopt())?.as_atom() {
            Some(am::noconnect) => connect = false,
            Some(am::nosuspend) => suspend = false,
            Some(am::priority) => priority = true,
            _ => return Err(badopt().into()),
        }
    }
    let sending = Sending {
        priority,
        connects: connect,
        waits: suspend,
    };
    match send_with(p, to, message, sending) {
        Err(NotSent::NotConnected) if !connect => Ok(am::noconnect.term()),
        Ok(()) | Err(NotSent::NotConnected) => Ok(am::ok.term()),
        Err(NotSent::NoSuchName) => Err(badarg().into()),
        Err(NotSent::TooLarge) => Err(system_limit().into()),
        Err(NotSent::NotItsTurn { sleeps }) => Err(later(sleeps).into()),
        Err(NotSent::Encoding) => Err(Control::Yield.into()),
        Err(NotSent::Busy(port)) if suspend => {
            let function = (am::erlang, am::send, 3);
            Err(wait_for_port(p, port, function).into())
        }
        Err(NotSent::BusyNode(controller)) if suspend => {
            Err(wait_for_node(p, controller, am::ok.term()).into())
        }
        Err(NotSent::Busy(_) | NotSent::BusyNode(_)) => Ok(am::nosuspend.term()),
    }
}
