//! The BIFs that tell whether a process is alive.

use super::process::{ask_or_answer, is_elsewhere, local_pid, reply};
use super::{BifResult, Next, badarg, bifs, call_again};
use crate::code::entry::export;
use crate::process::order::director::may_timing_show;
use crate::process::order::explore;
use crate::process::{Class, Process, Signal, exists, is_of_old_incarnation};
use crate::term::{Term, am, tag};

bifs! {
    xbif erlang:"is_process_alive"/1 => is_process_alive_1, answer;
    bif erts_internal:"is_process_alive"/2 => is_process_alive_2, unrecorded;
}

fn is_process_alive_1(p: &mut Process) -> Next {
    let pid = p.x(0);
    if is_of_old_incarnation(pid) && is_elsewhere(pid, tag::EXTERNAL_PID) {
        p.set_x(0, Term::bool(false));
        return Next::Return;
    }
    let Some(pid) = pid.as_pid() else {
        p.store_exception(Class::Error, am::badarg);
        return Next::Raise;
    };
    let is_me = pid == p.pid();
    if is_me || may_timing_show() && !exists(pid) {
        p.set_x(0, Term::bool(is_me));
        return Next::Return;
    }
    match explore::ask_alive(p, pid) {
        Ok(None) => {}
        Ok(Some(is_alive)) => {
            p.set_x(0, Term::bool(is_alive));
            return Next::Return;
        }
        Err(control) => return call_again(p, &control),
    }
    // Its answer comes behind the signals already sent to it.
    let ask = export(am::erts_internal, am::is_process_alive, 1);
    p.pc.set(ask.address());
    Next::Call
}

fn is_process_alive_2<'p>(p: &'p Process, [pid, reference]: [Term<'p>; 2]) -> BifResult<'p> {
    let pid = local_pid(pid)?;
    let reference = reference.as_ref().ok_or_else(badarg)?.numbers();
    let asker = p.pid();
    if let Some(recorded) = p.recorded_in_hand() {
        reply(asker, reference, recorded.term());
        return Ok(am::ok.term());
    }
    let request = Signal::question(asker, move |p| {
        let alive = p.is_some_and(|p| !p.is_exiting());
        reply(asker, reference, Term::bool(alive));
    });
    ask_or_answer(p, pid, request);
    Ok(am::ok.term())
}
