//! Sending messages.

use super::{BifResult, badarg, bifs};
use crate::process::{Process, send_to, send_with};
use crate::term::{Term, am};

bifs! {
    bif erlang:"!"/2 => send_2;
    bif erlang:"send"/2 => send_2;
    bif erlang:"send"/3 => send_3;
}

fn send_2<'p>(p: &'p Process, [to, message]: [Term<'p>; 2]) -> BifResult<'p> {
    send_to(p, to, message).map_err(|_| badarg())?;
    Ok(message)
}

/// `nosuspend` and `noconnect` concern other nodes and busy ports; a local send is `ok` at once.
fn send_3<'p>(p: &'p Process, [to, message, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let mut priority = false;
    for option in options.list_iter() {
        match option.map_err(|_| badarg())?.as_atom() {
            Some(am::nosuspend | am::noconnect) => {}
            Some(am::priority) => priority = true,
            _ => return Err(badarg()),
        }
    }
    send_with(p, to, message, priority).map_err(|_| badarg())?;
    Ok(am::ok.term())
}
