//! Finds the entries in loaded code that decoded funs refer to.

use super::decode::Reason;
use crate::code::{Export, FunEntry, entry};
use crate::term::Atom;

/// The identity of a fun's entry in the format.
pub(super) struct FunIdentity {
    pub(super) module: Atom,
    pub(super) uniq: [u8; 16],
    pub(super) old_uniq: u32,
    pub(super) index: u32,
    /// Arguments and free variables.
    pub(super) arity: u8,
}

/// The entry of a fun, made where it is not there.
pub(super) fn fun_entry(identity: &FunIdentity) -> &'static FunEntry {
    let FunIdentity {
        module,
        uniq,
        old_uniq,
        index,
        arity,
    } = *identity;
    entry::fun_entry(module, uniq, index, old_uniq, arity)
}

/// The export entry of a function, made where it is not there. With `safe` only one that is there will do, whether the
/// function is loaded or not.
pub(super) fn export(
    module: Atom,
    function: Atom,
    arity: u8,
    safe: bool,
) -> Result<&'static Export, Reason> {
    if !safe {
        return Ok(entry::export(module, function, arity));
    }
    entry::find_export(module, function, arity).ok_or(Reason::NotExisting)
}
