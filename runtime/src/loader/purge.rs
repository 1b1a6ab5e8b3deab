//! Purges old code: asks whether processes refer to it, and frees it when none does. Source:
//! `erts_internal_purge_module_2()` and `check_process_code()` in `beam_bif_load.c`, OTP 29.
//!
//! 1. [`prepare`]: funs of old code lead nowhere from now on, so that no process gets into it. A process that calls one
//!    waits.
//! 2. Each process is asked ([`refers_to_old_code`]).
//! 3. [`abort`]: the funs lead to the code again. Or [`complete`]: the code is in no table any more, and is freed when
//!    every scheduler has passed a quiescent point since; its literals are released (`heap::release`). A replay keeps it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::module::{self, MODIFICATION, Module, versions};
use crate::code::entry::{self, FunEntry};
use crate::code::stubs::for_each_return;
use crate::process::Process;
use crate::process::dirty::give_up;
use crate::process::order::director::may_free_code;
use crate::process::suspension::go_on;
use crate::sched;
use crate::term::{Atom, CodeAddress, Pid};

/// The purge under way, of which there is one at a time.
struct Purge {
    module: Atom,
    /// Funs that lead nowhere meanwhile, and where they led.
    funs: Vec<(&'static FunEntry, u64)>,
    /// The old version, where that of a failed `on_load` function is purged.
    saved: Option<Arc<Module>>,
    /// Processes that have called one of the funs: suspended until the purge has ended.
    waiting: Vec<Pid>,
}

static PURGE: Mutex<Option<Purge>> = Mutex::new(None);

/// Which version is purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// What was current before.
    Old,
    /// The one whose `on_load` function has failed.
    OnLoad,
}

/// Begins to purge a version of `name`; `false` where there is none.
///
/// # Errors
/// When another purge is under way.
pub(crate) fn prepare(name: Atom, which: Which) -> Result<bool, ()> {
    let _permission = MODIFICATION.lock();
    let mut purge = PURGE.lock();
    if purge.is_some() {
        return Err(());
    }
    let saved = match which {
        Which::Old => None,
        Which::OnLoad => match module::failed_as_old(name) {
            Some(saved) => saved,
            None => return Ok(false),
        },
    };
    let Some(old) = versions(name).old else {
        return Ok(false);
    };
    let leads_there = |&(fun, offset): &(&'static FunEntry, u32)| {
        let address = old.address(offset).word();
        (fun.address().word() == address).then_some((fun, address))
    };
    let funs: Vec<_> = old.lambdas.iter().filter_map(leads_there).collect();
    redirect(&funs, |_| 0);
    *purge = Some(Purge {
        module: name,
        funs,
        saved,
        waiting: Vec::new(),
    });
    Ok(true)
}

/// Has funs lead to what `to` says, all at once.
fn redirect(funs: &[(&'static FunEntry, u64)], to: impl Fn(u64) -> u64) {
    if funs.is_empty() {
        return;
    }
    entry::start_staging();
    let staging = entry::staging();
    for (fun, address) in funs {
        fun.addresses[staging].store(to(*address), Ordering::Release);
    }
    entry::commit();
}

/// The purge of `name` that is under way.
fn take(name: Atom) -> Option<Purge> {
    PURGE.lock().take_if(|purge| purge.module == name)
}

/// Ends the purge of `name` with nothing changed.
///
/// # Errors
/// When there is none.
pub(crate) fn abort(name: Atom) -> Result<(), ()> {
    let _permission = MODIFICATION.lock();
    let purge = take(name).ok_or(())?;
    // Code of the same funs may have been loaded meanwhile.
    let funs = purge.funs.into_iter();
    let funs: Vec<_> = funs.filter(|(fun, _)| fun.address().is_null()).collect();
    redirect(&funs, |address| address);
    module::end_purge(name, false, purge.saved);
    purge.waiting.into_iter().for_each(go_on);
    Ok(())
}

/// Ends the purge of `name`: its old code goes. No process may run it any more. `false` where there is none.
pub(crate) fn complete(name: Atom) -> bool {
    let _permission = MODIFICATION.lock();
    let Some(purge) = take(name) else {
        return false;
    };
    let old = module::end_purge(name, true, purge.saved);
    purge.waiting.into_iter().for_each(go_on);
    let done = old.is_some();
    if let Some(old) = old.filter(|_| may_free_code()) {
        module::forget(&old);
        // Whoever looks up an address, or is at a breakpoint, may be there still.
        sched::thread_progress().later(move || give_up(old));
    }
    done
}

/// `p` calls `fun`, which leads nowhere. If its code is being purged, `p` is suspended until that has ended, and
/// then tries again: the result is `true`.
pub(crate) fn waits_for(p: &Process, fun: &FunEntry) -> bool {
    let mut purge = PURGE.lock();
    let Some(purge) = purge.as_mut().filter(|purge| purge.module == fun.module) else {
        return false;
    };
    let is_pending = purge.funs.iter().any(|(it, _)| std::ptr::eq(*it, fun));
    if is_pending {
        purge.waiting.push(p.pid());
        p.suspend_itself();
    }
    is_pending
}

/// Does `p` run, or will it return to, the old code of the module `name`?
///
/// Funs of old code are no reason to keep it: a call of one whose code is purged goes to the error
/// handler. Nor are literals: processes get copies of them.
pub(crate) fn refers_to_old_code(p: &mut Process, name: Atom) -> bool {
    let Some(old) = versions(name).old else {
        return false;
    };
    let mut found = lies_in(&old, p.pc.get());
    for_each_return(p, |address| {
        found |= lies_in(&old, address);
        !found
    });
    found
}

fn lies_in(module: &Module, address: CodeAddress) -> bool {
    module.offset_of(address).is_some()
}
