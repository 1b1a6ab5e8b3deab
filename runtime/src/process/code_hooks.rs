//! The hook by which processes ask the loader about code.

use super::Process;
use crate::hook::Hook;
use crate::term::Atom;

/// Hook: code knows whether a process refers to old code of a module.
pub(crate) static REFERS_TO_OLD_CODE: Hook<fn(&mut Process, Atom) -> bool> =
    Hook::new("the check for old code");
