//! What process BIFs ask of those who know code: whether a process holds old code.

use std::sync::OnceLock;

use super::Process;
use crate::term::Atom;

type Check = fn(&mut Process, Atom) -> bool;

static CHECK: OnceLock<Check> = OnceLock::new();

/// Says who knows whether a process refers to old code of a module. The first call counts.
pub(crate) fn set_check_process_code(check: Check) {
    let _ = CHECK.set(check);
}

/// Whether the process refers to old code of `module`. Where nobody purges code, none is old.
pub(crate) fn check_process_code(p: &mut Process, module: Atom) -> bool {
    CHECK.get().is_some_and(|check| check(p, module))
}
