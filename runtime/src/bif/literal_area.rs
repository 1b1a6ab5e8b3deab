//! The BIFs of `erts_literal_area_collector`, the process that has other processes give up literals. Source:
//! `beam_bif_load.c`, OTP 29. [`release`] describes how literals are released.

use std::sync::OnceLock;

use parking_lot::Mutex;

use super::{BifResult, Control, Raise, badarg, bifs, notsup};
use crate::heap::Message;
use crate::heap::release::{self, Batch};
use crate::process::dirty::give_up;
use crate::process::order::director::may_timing_show;
use crate::process::system_tasks::{SystemTask, Task};
use crate::process::{self, Process, SYSTEM, Signal};
use crate::sched;
use crate::term::{Pid, Term, am};

bifs! {
    all unrecorded;
    bif erts_literal_area_collector:"release_area_switch"/0 => release_area_switch_0;
    bif erts_literal_area_collector:"send_copy_request"/3 => send_copy_request_3;
}

static COLLECTOR: OnceLock<Pid> = OnceLock::new();

/// Says which process collects. The first call counts.
pub(crate) fn set_collector(pid: Pid) {
    let _ = COLLECTOR.set(pid);
}

/// Tells it that there is something to collect, if it is there yet.
///
/// Where the order of a run is recorded or followed, areas wait until its end: when processes would make copies of their
/// literals is chance, and shows in the words that they allocate.
pub(crate) fn notice() {
    if let Some(pid) = COLLECTOR.get().filter(|_| may_timing_show()) {
        let notice = Signal::message(am::copy_literals.term(), SYSTEM);
        // The machine ends with the collector.
        let _ = process::send(*pid, notice);
    }
}

fn check_caller(p: &Process) -> Result<(), Raise<'static>> {
    match COLLECTOR.get() {
        Some(pid) if *pid == p.pid() => Ok(()),
        _ => Err(notsup()),
    }
}

/// A switch that waits for thread progress.
struct Switch {
    /// What processes have given up.
    given_up: Option<Batch>,
    /// There is something under release now.
    any: bool,
    /// Every scheduler has passed a quiescent point since.
    done: bool,
}

static SWITCH: Mutex<Option<Switch>> = Mutex::new(None);

/// Frees what processes have been asked for; whether there is something else that they must be asked for.
fn release_area_switch_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    check_caller(p)?;
    let mut state = SWITCH.lock();
    match state.take() {
        Some(switch) if switch.done => {
            switch.given_up.into_iter().for_each(give_up);
            return Ok(Term::bool(switch.any));
        }
        Some(switch) => {
            // Woken by something else.
            *state = Some(switch);
            return Err(Control::Wait.into());
        }
        None => {}
    }
    let (given_up, any) = release::switch();
    if given_up.is_none() && !any {
        return Ok(Term::bool(false));
    }
    *state = Some(Switch {
        given_up,
        any,
        done: false,
    });
    drop(state);
    let pid = p.pid();
    sched::thread_progress().later(move || {
        if let Some(switch) = SWITCH.lock().as_mut() {
            switch.done = true;
        }
        process::deliver(pid, Signal::request(|_| ()));
    });
    Err(Control::Wait.into())
}

/// Has a process give up literals; it answers `{copy_literals, {Area, How, Pid}, ok}`.
fn send_copy_request_3<'p>(p: &'p Process, [pid, area, how]: [Term<'p>; 3]) -> BifResult<'p> {
    check_caller(p)?;
    let to = pid.as_pid().ok_or_else(badarg)?;
    if ![am::init, am::check_gc, am::need_gc].contains(&how.as_atom().ok_or_else(badarg)?) {
        return Err(badarg().into());
    }
    let task = SystemTask {
        task: Task::CopyLiterals,
        requester: p.pid(),
        of: to,
        id: Message::copy_of(p.tuple(&[area, how, pid])),
    };
    let priority = p.shared().priority();
    let signal = Signal::request(move |p| match p.filter(|p| !p.is_exiting()) {
        Some(p) => p.add_system_task(task, priority),
        None => task.answer(true),
    });
    process::deliver(to, signal);
    Ok(am::ok.term())
}
