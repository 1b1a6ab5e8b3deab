//! Loaded modules: their code, and the table that finds them by name and by address.
#![expect(unsafe_code, reason = "names of files are literals at rest")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use beamline_formats::name;
use indexmap::IndexMap;
use parking_lot::{Mutex, RwLock};

use super::debug::DebugTable;
use super::types::Types;
use crate::code::entry::{self, FunEntry};
use crate::code::op::entry as head;
use crate::code::record::{self, Defined};
use crate::code::{bif, machine_code};
use crate::hash::FxBuildHasher;
use crate::heap::{Heap, LiteralArea, release};
use crate::hook::Hook;
use crate::term::{Atom, CodeAddress, RawTerm, Term};

/// The code of one version of a module.
///
/// C1, C2: `code` never moves; its words change only by atomic stores of whole instruction words
/// (breakpoints) after it has been made active. It lives as long as this value.
pub struct Module {
    /// Its name.
    pub name: Atom,
    code: Box<[AtomicU64]>,
    /// Breakpoints that stand in it.
    pub(crate) breakpoints: AtomicUsize,
    /// Some of its functions are BIFs.
    pub(crate) has_bifs: bool,
    /// Bytes that its instructions point to.
    strings: Box<[u8]>,
    literals: Mutex<LiteralArea>,
    /// Offsets of function entries, in words, ascending.
    pub functions: Vec<u32>,
    /// Those that may get a NIF for their body, ascending; empty where all may.
    pub(super) nifs: Vec<u32>,
    /// Its library of NIFs, open as long as the code lives.
    pub(crate) library: OnceLock<Box<dyn std::any::Any + Send + Sync>>,
    /// Exported functions: name, arity, offset of the entry.
    pub exports: Vec<(Atom, u8, u32)>,
    /// All functions but the exported ones.
    pub locals: Vec<(Atom, u8, u32)>,
    /// Funs that the module makes, and the offsets of their code.
    pub lambdas: Vec<(&'static FunEntry, u32)>,
    /// Where lines start: offset, and row of `places`; ascending.
    pub lines: Vec<(u32, u32)>,
    /// Places: row of `files`, line.
    pub places: Vec<(u32, u32)>,
    /// Source files.
    pub files: Vec<SourceFile>,
    /// What a debugger can do with it.
    pub(crate) debug: Option<Box<DebugTable>>,
    /// What is known of the registers that its instructions read.
    pub(crate) types: Types,
    /// Offset of the `on_load` function.
    pub on_load: Option<u32>,
    /// `Attr` chunk, in the external term format.
    pub attributes: Vec<u8>,
    /// Native records it defines, by name; see [`record::define`].
    pub records: Vec<(Atom, Defined)>,
    /// `CInf` chunk, in the external term format.
    pub compile_info: Vec<u8>,
    /// Checksum of the code.
    pub md5: [u8; 16],
}

/// A function, as its head names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mfa {
    /// Module.
    pub module: Atom,
    /// Function.
    pub function: Atom,
    /// Arity.
    pub arity: u8,
}

impl Mfa {
    /// As Erlang writes it, with quotes where names need them.
    pub(crate) fn to_text(self) -> String {
        let [module, function] = [self.module, self.function].map(|part| name::atom(part.name()));
        format!("{module}:{function}/{}", self.arity)
    }
}

impl std::fmt::Display for Mfa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}/{}", self.module, self.function, self.arity)
    }
}

impl Module {
    pub(super) fn new(
        name: Atom,
        code: Box<[AtomicU64]>,
        strings: Box<[u8]>,
        md5: [u8; 16],
    ) -> Module {
        Module {
            name,
            code,
            breakpoints: AtomicUsize::new(0),
            has_bifs: bif::has_some_of(name),
            strings,
            literals: Mutex::new(LiteralArea::new()),
            functions: Vec::new(),
            nifs: Vec::new(),
            library: OnceLock::new(),
            exports: Vec::new(),
            locals: Vec::new(),
            lambdas: Vec::new(),
            lines: Vec::new(),
            places: Vec::new(),
            files: Vec::new(),
            debug: None,
            types: Types::default(),
            on_load: None,
            records: Vec::new(),
            attributes: Vec::new(),
            compile_info: Vec::new(),
            md5,
        }
    }

    /// Takes over the literals that its code names.
    pub(super) fn set_literals(&mut self, mut literals: LiteralArea) {
        literals.trim();
        *self.literals.get_mut() = literals;
    }

    /// Address of the word at `offset`.
    #[must_use]
    pub fn address(&self, offset: u32) -> CodeAddress {
        CodeAddress::of(self.code[offset as usize].as_ptr())
    }
    /// Its code's words.
    #[must_use]
    pub fn code(&self) -> &[AtomicU64] {
        &self.code
    }
    /// Which of its strings' bytes this is the address of.
    pub(crate) fn string_offset(&self, address: *const u8) -> Option<usize> {
        let offset = (address as usize).wrapping_sub(self.strings.as_ptr() as usize);
        (offset <= self.strings.len()).then_some(offset)
    }
    /// The word at `at` from an entry on.
    pub(crate) fn word(&self, entry: u32, at: isize) -> &AtomicU64 {
        &self.code[(entry as isize + at) as usize]
    }
    /// The offset of `address`, if it lies in this code (or just behind it, as a return may).
    #[must_use]
    pub(crate) fn offset_of(&self, address: CodeAddress) -> Option<u32> {
        let from = self.code.as_ptr() as usize;
        let offset = (address.word() as usize).wrapping_sub(from) / 8;
        (address.word() as usize >= from && offset <= self.code.len()).then_some(offset as u32)
    }
    /// The entry of the function that the word at `offset` belongs to.
    #[must_use]
    pub fn function_at(&self, offset: u32) -> Option<u32> {
        // A function's head, which raises `function_clause`, stands before its entry.
        let first = offset + head::WORDS as u32;
        let n = self.functions.partition_point(|&entry| entry <= first);
        n.checked_sub(1).map(|i| self.functions[i])
    }
    /// The name of the function with this entry.
    #[must_use]
    pub fn mfa(&self, entry: u32) -> Mfa {
        let word = |at| self.word(entry, at).load(Ordering::Relaxed);
        let atom = |at| {
            Term::immed(RawTerm(word(at)))
                .as_atom()
                .expect("a head names its function")
        };
        Mfa {
            module: atom(head::MODULE),
            function: atom(head::FUNCTION),
            arity: head::arity(word(head::ARITY)),
        }
    }
    /// File, a string, and line of the instruction at `offset`: for the owner of `heap` in its time slice.
    #[must_use]
    pub(crate) fn place_at<'h>(&self, offset: u32, heap: &'h Heap) -> Option<(Term<'h>, u32)> {
        let (file, line) = self.row_and_line_at(offset)?;
        Some((self.file(file, heap), line))
    }
    /// As [`Module::place_at`], with the file's name as text.
    #[must_use]
    pub(crate) fn line_at(&self, offset: u32) -> Option<(&str, u32)> {
        let (file, line) = self.row_and_line_at(offset)?;
        Some((&self.files[file].name, line))
    }
    /// Row of `files`, and line.
    fn row_and_line_at(&self, offset: u32) -> Option<(usize, u32)> {
        let n = self.lines.partition_point(|&(from, _)| from <= offset);
        let (_, place) = *self.lines.get(n.checked_sub(1)?)?;
        let (file, line) = *self.places.get(place as usize)?;
        (place != 0 && line != 0).then_some((file as usize, line))
    }
    fn file<'h>(&self, row: usize, _heap: &'h Heap) -> Term<'h> {
        let SourceFile { name, literal } = &self.files[row];
        let made = || self.literals.lock().build(|heap| heap.string(name)).raw();
        let raw = *literal.get_or_init(made);
        // SAFETY: T1, H6: the module names it, and gives its literals to `release`.
        unsafe { Term::new(raw) }
    }

    /// May the function with this entry get a NIF for its body?
    pub(crate) fn may_be_nif(&self, entry: u32) -> bool {
        self.nifs.is_empty() || self.nifs.binary_search(&entry).is_ok()
    }

    /// Offset of the entry of a function, exported or not.
    #[must_use]
    pub fn find(&self, function: Atom, arity: u8) -> Option<u32> {
        let all = self.exports.iter().chain(&self.locals);
        all.copied()
            .find(|&(f, a, _)| f == function && a == arity)
            .map(|(_, _, offset)| offset)
    }
}

/// The functions that are called where code comes and goes.
pub(crate) struct Watch {
    /// New code cannot be called yet.
    pub(crate) loaded: fn(&Arc<Module>),
    /// The exports of new code are staged in this generation, under the lock for modifications.
    pub(crate) exports_staged: fn(&Module, usize),
    /// Code is current no more, under the lock for modifications.
    pub(crate) unloaded: fn(&Arc<Module>),
    /// The code of the function whose entry is at this place is freed.
    pub(crate) freed: fn(&Module, u32),
}

/// Hook: tracing sets its breakpoints on new code, and frees those of old code.
pub(crate) static WATCH: Hook<Watch> = Hook::new("the watch on code");

impl Drop for Module {
    /// Nobody runs the code, and every scheduler has passed a quiescent point since that was so; what has been
    /// read of its literals may still be on heaps.
    fn drop(&mut self) {
        for &entry in &self.functions {
            (WATCH.get().freed)(self, entry);
        }
        let code = self.code.as_ptr_range();
        machine_code::remove(code.start as u64..code.end as u64);
        release::release(std::mem::take(self.literals.get_mut()));
    }
}

/// The name of a source file.
pub struct SourceFile {
    name: String,
    /// The name as a string, a literal as in ERTS: made when a stack trace tells it first.
    literal: OnceLock<RawTerm>,
}

impl SourceFile {
    /// The file of this name.
    #[must_use]
    pub fn new(name: &str) -> SourceFile {
        let (name, literal) = (name.to_owned(), OnceLock::new());
        SourceFile { name, literal }
    }
}

/// No version of the module waits for its `on_load` function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotThere;

/// The module has old code, which must be purged first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HasOldCode;

/// The versions of a module that processes may run.
#[derive(Clone, Default)]
pub(crate) struct Versions {
    /// What calls reach.
    pub current: Option<Arc<Module>>,
    /// What was current before; only processes still in it run it.
    pub old: Option<Arc<Module>>,
    /// Loaded, its `on_load` function not yet done.
    pub pending: Option<Arc<Module>>,
    /// Its `on_load` function has failed: to be purged.
    pub failed: Option<Arc<Module>>,
}

/// All modules that there have ever been, in the order in which they came.
type Modules = IndexMap<Atom, Versions, FxBuildHasher>;

fn modules() -> &'static RwLock<Modules> {
    static TABLE: OnceLock<RwLock<Modules>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
}

/// All code by address, ascending.
fn ranges() -> &'static RwLock<Vec<Arc<Module>>> {
    static TABLE: OnceLock<RwLock<Vec<Arc<Module>>>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
}

/// Held by whoever changes code: loading, purging, breakpoints (ERTS's code modification permission).
pub(crate) static MODIFICATION: Mutex<()> = Mutex::new(());

/// The versions of `name` there are.
#[must_use]
pub(crate) fn versions(name: Atom) -> Versions {
    modules().read().get(&name).cloned().unwrap_or_default()
}

/// Modules with current code, in the order in which they came.
#[must_use]
pub(crate) fn loaded() -> Vec<Arc<Module>> {
    modules()
        .read()
        .values()
        .filter_map(|versions| versions.current.clone())
        .collect()
}

/// All code that processes may run: every version of every module.
#[must_use]
pub(crate) fn all_versions() -> Vec<Arc<Module>> {
    ranges().read().clone()
}

/// The code that `address` lies in.
#[must_use]
pub(crate) fn module_at(address: CodeAddress) -> Option<(Arc<Module>, u32)> {
    let ranges = ranges().read();
    let n =
        ranges.partition_point(|module| module.code.as_ptr() as usize <= address.word() as usize);
    let module = &ranges[n.checked_sub(1)?];
    let offset = module.offset_of(address)?;
    Some((module.clone(), offset))
}

/// The function that the code at `address` belongs to.
#[must_use]
pub(crate) fn function_at(address: CodeAddress) -> Option<Mfa> {
    let (module, offset) = module_at(address)?;
    module.function_at(offset).map(|entry| module.mfa(entry))
}

fn add_range(module: &Arc<Module>) {
    let mut ranges = ranges().write();
    let at =
        ranges.partition_point(|m| (m.code().as_ptr() as usize) < module.code.as_ptr() as usize);
    if !ranges
        .get(at)
        .is_some_and(|there| Arc::ptr_eq(there, module))
    {
        ranges.insert(at, module.clone());
    }
}

/// Makes `module` the current version, as one change with all others in `all`: what was current
/// becomes old. A module with an `on_load` function stays pending until it has run.
///
/// # Errors
/// The modules that have old code already; nothing is changed then.
pub fn make_current(all: Vec<Arc<Module>>) -> Result<(), Vec<Atom>> {
    let _permission = MODIFICATION.lock();
    let mut table = modules().write();
    let has_old = |m: &&Arc<Module>| {
        table
            .get(&m.name)
            .is_some_and(|v| v.old.is_some() && v.current.is_some())
    };
    let not_purged: Vec<Atom> = all.iter().filter(has_old).map(|m| m.name).collect();
    if !not_purged.is_empty() {
        return Err(not_purged);
    }
    entry::start_staging();
    for module in all {
        add_range(&module);
        (WATCH.get().loaded)(&module);
        let versions = table.entry(module.name).or_default();
        if module.on_load.is_some() {
            if let Some(current) = &versions.current {
                untraced(current);
            }
            versions.pending = Some(module);
            continue;
        }
        stage(versions, module);
    }
    entry::commit();
    Ok(())
}

/// Has `with` run code that no name leads to. It has the breakpoints that sessions want on new code, and is found by its
/// addresses. Nobody runs it afterwards.
pub(crate) fn apart<T>(module: &Arc<Module>, with: impl FnOnce() -> T) -> T {
    {
        let _permission = MODIFICATION.lock();
        add_range(module);
        (WATCH.get().loaded)(module);
    }
    let result = with();
    forget(module);
    result
}

/// Stages that code which stays current for the time being is traced no more, as in ERTS, where another version
/// is about to run its `on_load` function.
fn untraced(current: &Arc<Module>) {
    (WATCH.get().unloaded)(current);
    let staging = entry::staging();
    for &(function, arity, offset) in &current.exports {
        let export = entry::export(current.name, function, arity);
        export.addresses[staging].store(current.address(offset).word(), Ordering::Release);
    }
}

/// Stages all that a call of `module` goes through, and moves its versions on.
fn stage(versions: &mut Versions, module: Arc<Module>) {
    let staging = entry::staging();
    if let Some(current) = versions.current.take() {
        (WATCH.get().unloaded)(&current);
        for &(function, arity, _) in &current.exports {
            let export = entry::export(module.name, function, arity);
            export.addresses[staging].store(export.stub_address(), Ordering::Relaxed);
        }
        versions.old = Some(current);
    }
    for &(function, arity, offset) in &module.exports {
        let export = entry::export(module.name, function, arity);
        export.addresses[staging].store(module.address(offset).word(), Ordering::Release);
    }
    for &(fun, offset) in &module.lambdas {
        fun.addresses[staging].store(module.address(offset).word(), Ordering::Release);
    }
    (WATCH.get().exports_staged)(&module, staging);
    // SAFETY: R1: the module is dropped when others are current, or none.
    unsafe { record::publish(module.name, &module.records) };
    versions.current = Some(module);
}

/// Ends loading of a module whose `on_load` function has run: it becomes current if `keep`.
///
/// # Errors
/// When nothing is pending.
pub(crate) fn finish_on_load(name: Atom, keep: bool) -> Result<(), NotThere> {
    let _permission = MODIFICATION.lock();
    let mut table = modules().write();
    let versions = table.get_mut(&name).ok_or(NotThere)?;
    let module = versions.pending.take().ok_or(NotThere)?;
    if keep {
        entry::start_staging();
        stage(versions, module);
        entry::commit();
    } else {
        versions.failed = Some(module);
    }
    Ok(())
}

/// Makes the current version, if there is one, old, so that calls find no code; `false` for a module that was
/// never loaded.
///
/// # Errors
/// When there is old code already.
pub(crate) fn delete(name: Atom) -> Result<bool, HasOldCode> {
    let _permission = MODIFICATION.lock();
    let mut table = modules().write();
    let Some(versions) = table.get_mut(&name) else {
        return Ok(false);
    };
    if versions.old.is_some() {
        return Err(HasOldCode);
    }
    let Some(current) = versions.current.take() else {
        return Ok(true);
    };
    entry::start_staging();
    let staging = entry::staging();
    (WATCH.get().unloaded)(&current);
    for &(function, arity, _) in &current.exports {
        let export = entry::export(name, function, arity);
        export.addresses[staging].store(export.stub_address(), Ordering::Relaxed);
    }
    versions.old = Some(current);
    // SAFETY: R1: there are none.
    unsafe { record::publish(name, &[]) };
    entry::commit();
    Ok(true)
}

/// Has the version whose `on_load` function has failed take the place of the old one, to be purged; the old one, which
/// takes its place again when that is done. `None` when there is none that failed.
pub(super) fn failed_as_old(name: Atom) -> Option<Option<Arc<Module>>> {
    let mut table = modules().write();
    let versions = table.get_mut(&name)?;
    let failed = versions.failed.take()?;
    Some(versions.old.replace(failed))
}

/// Ends a purge: the old version, if it `goes`, is one of the module's no more, and `saved` takes its place.
pub(super) fn end_purge(name: Atom, goes: bool, saved: Option<Arc<Module>>) -> Option<Arc<Module>> {
    let mut table = modules().write();
    let versions = table.get_mut(&name)?;
    if !goes {
        if saved.is_some() {
            versions.failed = std::mem::replace(&mut versions.old, saved);
        }
        return None;
    }
    std::mem::replace(&mut versions.old, saved)
}

/// Nothing runs this code any more, and its addresses are of no module.
pub(super) fn forget(old: &Arc<Module>) {
    ranges().write().retain(|module| !Arc::ptr_eq(module, old));
}
