//! Which functions are native code: what recordings say of it, and what both recordings and profiles learn at a call of a
//! driver.

use beamline_formats::profile::Native;
use beamline_formats::ring::{Name, NameId};

use super::{Recorder, namer};
use crate::loader::module::Mfa;
use crate::process::Process;
use crate::trace::breakpoint::Called;
use crate::trace::measure::meters::all_of;

/// `p` asks something of a port. Where a driver in C does it, `mfa` gives the BIF that calls it: from now on that is native
/// code, and its time the driver's.
#[inline]
pub(crate) fn note_driver_call(p: &Process, mfa: impl FnOnce() -> Option<Mfa>) {
    if (is_named() || p.meters.is_some())
        && let Some(mfa) = mfa()
    {
        note_native(p, mfa, Native::Ordinary);
    }
}

#[cold]
fn note_native(p: &Process, mfa: Mfa, native: Native) {
    function_is_native(mfa, native);
    for meter in all_of(p) {
        if let Some(profile) = &meter.session.profile {
            profile.note_native(mfa, native);
        }
    }
}

/// The function of `called` has become native code.
#[cold]
pub(in crate::trace) fn found_native(called: &Called, mfa: Mfa, native: Native) {
    if let Some(recorder) = namer() {
        let function = called.name(recorder, || mfa);
        recorder.native(function, native);
    }
}

/// Records that a function is native code.
pub(in crate::trace) fn function_is_native(mfa: Mfa, native: Native) {
    if let Some(recorder) = namer() {
        recorder.native(recorder.function(mfa), native);
    }
}

/// Are functions named in a recording?
#[inline]
pub(in crate::trace) fn is_named() -> bool {
    namer().is_some()
}

impl Recorder {
    /// A function is native code. It is dirty if it ever was.
    pub(super) fn native(&self, function: NameId, native: Native) {
        let is_known = |known: Option<&Native>| known.is_some_and(|known| *known >= native);
        if function == NameId::NONE || is_known(self.natives.read().get(&function)) {
            return;
        }
        self.natives.write().insert(function, native);
        self.ring.name(Name::Native { function, native });
    }
}
