//! Sending messages.

use super::{BifResult, Raise, badarg, bifs};
use crate::process::{NotSent, Process, send_to, send_with};
use crate::term::{Port, Term, am};
use crate::trace::sysmon;

bifs! {
    bif erlang:"!"/2 => send_2;
    bif erlang:"send"/2 => send_2;
    bif erlang:"send"/3 => send_3;
}

fn send_2<'p>(p: &'p Process, [to, message]: [Term<'p>; 2]) -> BifResult<'p> {
    send_to(p, to, message).map_err(|why| refused(p, why))?;
    Ok(message)
}

/// A process waits for a busy port, and sends again.
fn refused(p: &Process, why: NotSent) -> Raise<'_> {
    match why {
        NotSent::NoSuchName => badarg(),
        NotSent::Busy(port) => wait_for_port(p, port),
    }
}

/// `p` is suspended until `port`, which has refused its data, takes data again.
pub(crate) fn wait_for_port(p: &Process, port: Port) -> Raise<'_> {
    p.suspend_itself();
    sysmon::busy_port(p, port.term());
    Raise::Wait
}

/// `noconnect` concerns other nodes.
fn send_3<'p>(p: &'p Process, [to, message, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let (mut priority, mut nosuspend) = (false, false);
    for option in options.list_iter() {
        match option.map_err(|_| badarg())?.as_atom() {
            Some(am::noconnect) => {}
            Some(am::nosuspend) => nosuspend = true,
            Some(am::priority) => priority = true,
            _ => return Err(badarg()),
        }
    }
    match send_with(p, to, message, priority) {
        Ok(()) => Ok(am::ok.term()),
        Err(NotSent::Busy(_)) if nosuspend => Ok(am::nosuspend.term()),
        Err(why) => Err(refused(p, why)),
    }
}
