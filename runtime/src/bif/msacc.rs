//! Microstate accounting, for programs: what `erlang:statistics/1` and `system_flag/2` answer. Source: `erl_msacc.c`, OTP 29.

use super::{BifResult, badarg};
use crate::port::pool;
use crate::process::Process;
use crate::sched;
use crate::sys::msacc;
use crate::term::Term;
use crate::term::atom::atom;
use crate::value::map;

/// Makes an account for each scheduler, dirty scheduler and thread for drivers. Before these are started.
pub(crate) fn start() {
    let dirty = sched::dirty_schedulers();
    let first = sched::schedulers() + dirty.cpu + dirty.io;
    msacc::start(&[
        ("scheduler", 1, sched::schedulers()),
        ("dirty_cpu_scheduler", 1, dirty.cpu),
        ("dirty_io_scheduler", 1, dirty.io),
        ("async", 0, pool::threads()),
    ]);
    pool::set_first_account(first);
}

/// Does what the flag `microstate_accounting` is set to; whether the accounting was on.
pub(super) fn set(value: Term<'_>) -> BifResult<'static> {
    let was_on = match value.as_bool() {
        Some(is_on) => msacc::set_on(is_on),
        None if value.same(atom("reset")) => msacc::reset(),
        None => return Err(badarg().into()),
    };
    Ok(was_on.into())
}

/// The accounts of all threads, each a map.
pub(super) fn accounts(p: &Process) -> Term<'_> {
    let account = |account: msacc::Account| {
        let spent = account
            .spent
            .map(|(state, ns)| (atom(state.name()), p.unsigned(ns)));
        let pairs = [
            (atom("type"), atom(account.kind)),
            (atom("id"), p.unsigned(account.id as u64)),
            (atom("counters"), map::from_pairs(p, &spent)),
        ];
        map::from_pairs(p, &pairs)
    };
    let accounts = msacc::accounts().into_iter().map(account);
    p.list(&accounts.collect::<Vec<_>>())
}
