//! Purging: does a process still run old code?

use super::module::{Module, versions};
use crate::interp::exception::for_each_return;
use crate::process::Process;
use crate::term::Atom;

/// Does `p` run, or will it return to, the old code of the module `name`?
///
/// Funs of old code are no reason to keep it: a call of one whose code is purged goes to the error
/// handler. Literals are never freed. Source: `check_process_code()` in `beam_bif_load.c`.
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

fn lies_in(module: &Module, address: *const u64) -> bool {
    module.offset_of(address).is_some()
}
