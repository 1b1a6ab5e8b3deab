//! The permission to change code, which a process may keep from all others: OTP's suites do, to see which processes
//! wait for it. Source: `erts_try_seize_code_mod_permission()`, OTP 29.

use parking_lot::Mutex;

use crate::process::Process;
use crate::process::suspension::go_on;
use crate::term::Pid;

/// The processes that wait for the permission, while another one keeps it.
static KEPT: Mutex<Option<Vec<Pid>>> = Mutex::new(None);

/// Keeps the permission; `false` where it is kept already: then `p` is suspended until it is given back, and is to try
/// again.
pub(crate) fn keep(p: &Process) -> bool {
    let mut kept = KEPT.lock();
    if let Some(waiting) = &mut *kept {
        wait(p, waiting);
        return false;
    }
    *kept = Some(Vec::new());
    true
}

/// `p` is about to change code. If the permission is kept, `p` is suspended until it is given back, and is to try
/// again: the result is `true`.
pub(crate) fn waits(p: &Process) -> bool {
    let mut kept = KEPT.lock();
    if let Some(waiting) = &mut *kept {
        wait(p, waiting);
    }
    kept.is_some()
}

fn wait(p: &Process, waiting: &mut Vec<Pid>) {
    waiting.push(p.pid());
    p.suspend_itself();
}

/// Gives the permission back, and wakes the processes that wait for it.
pub(crate) fn give_back() {
    let waiting = KEPT.lock().take();
    waiting.into_iter().flatten().for_each(go_on);
}
