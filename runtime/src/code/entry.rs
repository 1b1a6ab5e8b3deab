//! Export and fun entries, through which calls of another module, or of a fun, go.
//!
//! An entry is made once and lives for ever, so that terms and code may point to it.

use crate::hash::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;

use super::op::{Op, entry};
use crate::code::{bif, machine_code};
use crate::heap::LiteralCell;
use crate::term::entry::ACTIVE;
pub(crate) use crate::term::entry::{Export, FunEntry, GENERATIONS, active};
use crate::term::{Atom, Term, am};

/// The generation that the next [`commit`] makes active.
#[must_use]
pub(crate) fn staging() -> usize {
    (active() + 1) % GENERATIONS
}

/// Makes the staged generation active: the one store that changes code.
pub(crate) fn commit() {
    ACTIVE.store(staging(), Ordering::Release);
}

impl Export {
    fn new(module: Atom, function: Atom, arity: u8, number: u32) -> &'static Export {
        let bif = bif::find(module, function, arity).map(|index| index as u32);
        let first = stub_instruction(module, function, arity, bif);
        let second = bif.map_or(0, |index| {
            std::ptr::from_ref(bif::all()[index as usize]) as u64
        });
        let words = [
            Op::FuncInfo.word(0, 0, 0),
            machine_code::generic_entry(),
            0,
            0,
            module.raw().0,
            function.raw().0,
            u64::from(arity),
            first,
            second,
            0,
        ];
        let export: &'static Export = Box::leak(Box::new(Export {
            addresses: Default::default(),
            stub: words.map(AtomicU64::new),
            module,
            function,
            arity,
            bif,
            is_bif_traced: AtomicBool::new(false),
            lambda: LiteralCell::default(),
            number,
        }));
        for address in &export.addresses {
            address.store(export.stub_address(), Ordering::Release);
        }
        export
    }

    /// `fun M:F/A`: a literal, as in ERTS.
    #[must_use]
    pub fn lambda(&'static self) -> Term<'static> {
        self.lambda.get_or_build(|heap| heap.external_fun(self))
    }

    /// Entry of its own stub.
    #[must_use]
    pub(crate) fn stub_address(&self) -> u64 {
        std::ptr::from_ref(&self.stub[entry::WORDS]) as u64
    }

    /// The word of its stub at `at` from the stub's entry on.
    pub(crate) fn stub_word(&'static self, at: isize) -> &'static AtomicU64 {
        &self.stub[(entry::WORDS as isize + at) as usize]
    }

    /// The word that stands at its stub's entry unless it is traced.
    pub(crate) fn own_stub(&self) -> u64 {
        stub_instruction(self.module, self.function, self.arity, self.bif)
    }

    /// Has calls go to `address` from now on. Under the lock for modifications.
    pub(crate) fn redirect(&self, address: u64) {
        self.addresses[active()].store(address, Ordering::Release);
    }

    /// Calls go through the stub to a breakpoint, and from there to the code.
    pub(crate) fn is_breakpoint(&self) -> bool {
        Op::of(self.stub[entry::WORDS].load(Ordering::Acquire)) == Op::Breakpoint
    }

    /// Has code, or is a BIF.
    #[must_use]
    pub fn is_defined(&self) -> bool {
        self.bif.is_some() || self.has_code() || self.is_breakpoint()
    }

    /// Has loaded code.
    pub(crate) fn has_code(&self) -> bool {
        self.address().word() != self.stub_address()
    }
}

/// The first instruction of a function without loaded code, or of one that the runtime gives.
pub(crate) fn stub_instruction(module: Atom, function: Atom, arity: u8, bif: Option<u32>) -> u64 {
    let op = match bif {
        _ if module == am::erlang && function == am::apply && arity == 3 => Op::ApplyEntry,
        _ if module == am::erlang && function == am::apply && arity == 2 => Op::ApplyFunEntry,
        Some(_) => Op::BifEntry,
        None => Op::ErrorHandler,
    };
    op.word(u16::from(arity), 0, 0)
}

type Mfa = (Atom, Atom, u8);

fn exports() -> &'static RwLock<HashMap<Mfa, &'static Export>> {
    static TABLE: OnceLock<RwLock<HashMap<Mfa, &'static Export>>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
}

/// The export entry of `module:function/arity`, made if there is none.
#[must_use]
pub(crate) fn export(module: Atom, function: Atom, arity: u8) -> &'static Export {
    if let Some(export) = find_export(module, function, arity) {
        return export;
    }
    let mut table = exports().write();
    let number = table.len() as u32;
    table
        .entry((module, function, arity))
        .or_insert_with(|| Export::new(module, function, arity, number))
}

/// The export entry of `module:function/arity`, if any code or term has named it.
#[must_use]
pub(crate) fn find_export(module: Atom, function: Atom, arity: u8) -> Option<&'static Export> {
    exports().read().get(&(module, function, arity)).copied()
}

/// All export entries, in no order.
#[must_use]
pub(crate) fn all_exports() -> Vec<&'static Export> {
    exports().read().values().copied().collect()
}

type FunKey = (Atom, [u8; 16], u32, u8);

fn funs() -> &'static RwLock<HashMap<FunKey, &'static FunEntry>> {
    static TABLE: OnceLock<RwLock<HashMap<FunKey, &'static FunEntry>>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
}

/// The entry of fun `index` of the module whose code has the MD5 `uniq`, made if there is none.
/// `arity` counts the free variables. A fun of another arity is another one, as in ERTS: the bytes that name it may be
/// damaged.
#[must_use]
pub(crate) fn fun_entry(
    module: Atom,
    uniq: [u8; 16],
    index: u32,
    old_uniq: u32,
    arity: u8,
) -> &'static FunEntry {
    let mut table = funs().write();
    table
        .entry((module, uniq, index, arity))
        .or_insert_with(|| {
            Box::leak(Box::new(FunEntry {
                addresses: Default::default(),
                module,
                uniq,
                old_uniq,
                index,
                arity,
            }))
        })
}

/// Starts staging: the staged generation begins as a copy of the active one.
pub(crate) fn start_staging() {
    let (from, to) = (active(), staging());
    for export in exports().read().values() {
        export.addresses[to].store(
            export.addresses[from].load(Ordering::Relaxed),
            Ordering::Relaxed,
        );
    }
    for fun in funs().read().values() {
        fun.addresses[to].store(
            fun.addresses[from].load(Ordering::Relaxed),
            Ordering::Relaxed,
        );
    }
}
