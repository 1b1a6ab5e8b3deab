//! The places of breakpoints: in a module's code, or in the stub of an export. Invariant B1 of `breakpoint/mod.rs`.
#![expect(unsafe_code, reason = "breakpoints are reached by address")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::change::find_entry;
use super::generations::Generations;
use super::{BpData, Breakpoint};
use crate::code::entry::{Export, export};
use crate::code::op::{Op, entry as head};
use crate::code::{bif, machine_code};
use crate::loader::module::{self, Mfa, Module};

/// Breakpoints in stubs of exports.
static STUBS: AtomicUsize = AtomicUsize::new(0);

/// Does any export have a breakpoint?
pub(in crate::trace) fn has_stubs() -> bool {
    STUBS.load(Ordering::Acquire) > 0
}

/// The place of a breakpoint.
#[derive(Clone)]
pub(in crate::trace) enum Place {
    /// In a module's code, at this entry.
    Code(Arc<Module>, u32),
    /// In an export's stub.
    Export(&'static Export),
}

impl Place {
    /// The word at `at` from the entry on.
    pub(in crate::trace) fn word(&self, at: isize) -> &AtomicU64 {
        match self {
            Place::Code(code, entry) => code.word(*entry, at),
            Place::Export(export) => export.stub_word(at),
        }
    }

    /// Its breakpoint; null if it has none.
    pub(in crate::trace) fn breakpoint(&self) -> *mut Breakpoint {
        self.word(head::BREAKPOINT).load(Ordering::Acquire) as *mut Breakpoint
    }

    /// How many breakpoints stand in the same module's code, or in stubs of exports.
    fn count(&self) -> &AtomicUsize {
        match self {
            Place::Code(code, _) => &code.breakpoints,
            Place::Export(_) => &STUBS,
        }
    }

    pub(in crate::trace) fn mfa(&self) -> Mfa {
        match self {
            Place::Code(code, entry) => code.mfa(*entry),
            Place::Export(export) => Mfa {
                module: export.module,
                function: export.function,
                arity: export.arity,
            },
        }
    }

    /// Calls reach the breakpoint.
    pub(in crate::trace) fn is_installed(&self) -> bool {
        match self {
            Place::Code(..) => Op::of(self.word(0).load(Ordering::Acquire)) == Op::Breakpoint,
            Place::Export(export) => {
                export.is_breakpoint() && export.address().word() == export.stub_address()
            }
        }
    }

    /// The code that the breakpoint stood in is current no more: it means nothing.
    pub(in crate::trace) fn is_stale(&self) -> bool {
        Op::of(self.word(0).load(Ordering::Acquire)) != Op::Breakpoint
    }

    /// Has calls reach `breakpoint`. An export may name another one meanwhile, of newer code: then nothing happens, here
    /// and in what follows.
    pub(in crate::trace) fn install(&self, breakpoint: *mut Breakpoint) {
        match self {
            Place::Code(..) => {
                let entry = self.word(0);
                let own = entry.load(Ordering::Relaxed);
                let first = u64::from(Op::Breakpoint as u16) | (own & !0xffff);
                entry.store(first, Ordering::Release);
                machine_code::lead_entry(self.word(head::NATIVE), self.word(head::BODY), entry);
            }
            Place::Export(export) => {
                let _permission = module::MODIFICATION.lock();
                if self.breakpoint() == breakpoint
                    && export.address().word() == self.word(head::TARGET).load(Ordering::Relaxed)
                {
                    export.redirect(export.stub_address());
                }
            }
        }
    }

    /// Has calls pass by `breakpoint`, whose entry's own word is `original`.
    pub(in crate::trace) fn uninstall(&self, breakpoint: *mut Breakpoint, original: u64) {
        match self {
            Place::Code(..) => {
                self.word(0).store(original, Ordering::Release);
                machine_code::lead_entry(
                    self.word(head::NATIVE),
                    self.word(head::BODY),
                    self.word(0),
                );
            }
            Place::Export(export) => {
                let _permission = module::MODIFICATION.lock();
                if self.breakpoint() == breakpoint && self.is_installed() {
                    export.redirect(self.word(head::TARGET).load(Ordering::Relaxed));
                }
            }
        }
    }

    /// `breakpoint` goes; nobody can be at it any more. The lock for modifications is held.
    pub(in crate::trace) fn clear(&self, breakpoint: *mut Breakpoint) {
        if self.breakpoint() != breakpoint {
            return;
        }
        if let Place::Export(export) = self {
            restore_stub(export);
        }
        self.word(head::BREAKPOINT).store(0, Ordering::Release);
        self.count().fetch_sub(1, Ordering::Release);
    }

    /// Calls of a BIF go past its entries unless one of them is under a breakpoint.
    pub(in crate::trace) fn update_bif(&self) {
        if matches!(self, Place::Code(code, _) if !code.has_bifs) {
            return;
        }
        let mfa = self.mfa();
        let Some(export) = bif_export(mfa) else {
            return;
        };
        let code = module::versions(mfa.module).current;
        let entry = code.and_then(|code| Some(Place::Code(code.clone(), find_entry(&code, mfa)?)));
        let traced =
            Place::Export(export).is_installed() || entry.is_some_and(|entry| entry.is_installed());
        export.is_bif_traced.store(traced, Ordering::Release);
    }
}

/// The export of a BIF; it is made if no code has named it yet, so that code that does so later finds it
/// traced.
pub(in crate::trace) fn bif_export(mfa: Mfa) -> Option<&'static Export> {
    bif::find(mfa.module, mfa.function, mfa.arity)?;
    Some(export(mfa.module, mfa.function, mfa.arity))
}

/// Gives the stub of `export` its own first word back. Where it led to is left as it is, as a thread in the stub may
/// still read it.
pub(in crate::trace) fn restore_stub(export: &'static Export) {
    export
        .stub_word(0)
        .store(export.own_stub(), Ordering::Release);
}

/// Makes a breakpoint with `both` generations the same, and names it in the head at `place`.
pub(in crate::trace) fn new_breakpoint(place: &Place, both: *mut BpData) -> *mut Breakpoint {
    let original = match place {
        Place::Code(..) => place.word(0).load(Ordering::Relaxed),
        Place::Export(_) => Op::JumpTarget.word(0, 0, 0),
    };
    let breakpoint = Box::into_raw(Box::new(Breakpoint {
        original: AtomicU64::new(original),
        generations: Generations::new(both),
    }));
    let before = place
        .word(head::BREAKPOINT)
        .swap(breakpoint as u64, Ordering::AcqRel);
    if before == 0 {
        place.count().fetch_add(1, Ordering::Release);
    }
    breakpoint
}

/// Has the function of `code` with this entry begin with the instruction `word`, under a breakpoint or not. Under the
/// lock for modifications.
pub(crate) fn set_first_word(code: &Module, entry: u32, word: u64) {
    let breakpoint =
        code.word(entry, head::BREAKPOINT).load(Ordering::Acquire) as *const Breakpoint;
    let first = code.word(entry, 0);
    // SAFETY: B1: none is freed under the lock.
    if let Some(breakpoint) = unsafe { breakpoint.as_ref() } {
        breakpoint.original.store(word, Ordering::Release);
        if Op::of(first.load(Ordering::Acquire)) == Op::Breakpoint {
            return;
        }
    }
    first.store(word, Ordering::Release);
    machine_code::lead_entry(
        code.word(entry, head::NATIVE),
        code.word(entry, head::BODY),
        first,
    );
}

/// Has the stub of `export`, which calls do not reach, go on to the code.
pub(in crate::trace) fn prepare_stub(export: &'static Export) {
    lead_to(export, export.address().word());
}

/// Has the stub of `export` hit its breakpoint, and then go on to `code`.
pub(in crate::trace) fn lead_to(export: &'static Export, code: u64) {
    export
        .stub_word(head::TARGET)
        .store(code, Ordering::Release);
    let first = Op::Breakpoint.word(0, 0, 0);
    export.stub_word(0).store(first, Ordering::Release);
}
