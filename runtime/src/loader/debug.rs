//! The debug information of loaded code: lines where a debugger can stop processes, and the variables that live there.
//! Source: `beam_bp.c` and `erl_debugger.c`, OTP 29.
//!
//! Without `+D`, the loader drops all `debug_line` instructions. With it, each becomes [`Op::LineBreakpointOff`], which
//! does nothing, and which a breakpoint makes [`Op::LineBreakpoint`].

#![expect(unsafe_code, reason = "constants are terms at rest")]

use std::sync::atomic::{AtomicBool, Ordering};

use super::module::{self, MODIFICATION, Module, versions};
use crate::code::op::Op;
use crate::heap::Heap;
use crate::term::{Atom, RawTerm, Term, am};
use crate::value::map;

static ENABLED: AtomicBool = AtomicBool::new(false);
static LINE_BREAKPOINTS: AtomicBool = AtomicBool::new(true);

/// Allows debugging (`+D`).
pub(crate) fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// Is debugging allowed?
pub(crate) fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Whether lines of modules that are loaded from now on can have breakpoints, if debugging is allowed (`+Dibpl`).
pub(crate) fn instrument_lines(on: bool) {
    LINE_BREAKPOINTS.store(on, Ordering::Relaxed);
}

/// Can lines of modules that are loaded now have breakpoints?
pub(crate) fn instruments_lines() -> bool {
    is_enabled() && LINE_BREAKPOINTS.load(Ordering::Relaxed)
}

/// The debug information of a module.
#[derive(Default)]
pub(crate) struct DebugTable {
    /// It was loaded with lines that can have breakpoints.
    pub(super) is_instrumented: bool,
    /// The file has debug information.
    pub(super) has_items: bool,
    /// Instructions that are breakpoints or can be: offset and line; ascending.
    pub(super) lines: Vec<(u32, u32)>,
    /// What is known at them, in the order of the file.
    pub(super) items: Vec<Item>,
}

/// The debug information of a line.
pub(super) struct Item {
    /// Its row in the file.
    pub(super) row: usize,
    pub(super) line: u32,
    pub(super) frame_size: RawTerm,
    /// Name, kind of place (`x`, `y` or `value`) and number or value.
    pub(super) vars: Vec<(RawTerm, Atom, RawTerm)>,
    /// A variable; function and arity; or module, function and arity.
    pub(super) calls: Vec<Vec<RawTerm>>,
}

/// A constant of the module, for the owner of `heap` in its time slice.
///
/// # Safety
/// H6: the loader has put the word there, an immediate or a literal of the module, which is at hand.
unsafe fn constant(word: RawTerm, _heap: &Heap) -> Term<'_> {
    // SAFETY: T1: by contract.
    unsafe { Term::new(word) }
}

impl Item {
    /// `{Line, #{frame_size => _, vars => _, calls => _}}`
    fn term<'h>(&self, heap: &'h Heap) -> Term<'h> {
        // SAFETY: H6: the words are those of an item of a module that is at hand.
        let constant = |word: RawTerm| unsafe { constant(word, heap) };
        let var = |&(name, kind, value): &(RawTerm, Atom, RawTerm)| {
            let place = heap.tuple(&[kind.term(), constant(value)]);
            heap.tuple(&[constant(name), place])
        };
        let call = |parts: &Vec<RawTerm>| match parts.as_slice() {
            [variable] => constant(*variable),
            parts => heap.tuple(&parts.iter().map(|part| constant(*part)).collect::<Vec<_>>()),
        };
        let vars: Vec<Term<'h>> = self.vars.iter().map(var).collect();
        let calls: Vec<Term<'h>> = self.calls.iter().map(call).collect();
        let known = [
            (am::frame_size.term(), constant(self.frame_size)),
            (am::vars.term(), heap.list(&vars)),
            (am::calls.term(), heap.list(&calls)),
        ];
        let line = Term::small(i64::from(self.line));
        heap.tuple(&[line, map::from_pairs(heap, &known)])
    }
}

/// What `code:get_debug_info/1` tells of a module; `None` where its file has no such information.
pub(crate) fn info<'h>(module: &Module, heap: &'h Heap) -> Option<Term<'h>> {
    let table = module.debug.as_deref().filter(|table| table.has_items)?;
    let items: Vec<Term<'h>> = table.items.iter().map(|item| item.term(heap)).collect();
    Some(heap.list(&items))
}

/// The lines of the function with this entry that can have breakpoints, and whether they have.
pub(crate) fn breakpoints(module: &Module, entry: u32) -> Vec<(u32, bool)> {
    let lines = module.debug.iter().flat_map(|table| &table.lines);
    lines
        .filter(|(offset, _)| module.function_at(*offset) == Some(entry))
        .map(|&(offset, line)| (line, is_set(module, offset)))
        .collect()
}

fn is_set(module: &Module, offset: u32) -> bool {
    let word = module.code()[offset as usize].load(Ordering::Relaxed);
    Op::of(word) == Op::LineBreakpoint
}

/// Why no breakpoint is set or cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No such module is loaded.
    NoModule,
    /// It was loaded without support for breakpoints.
    UnsupportedModule,
    /// The module has no code of that line.
    NoLine,
    /// Processes cannot be stopped there.
    UnsupportedLine,
}

/// Sets or clears the breakpoints of a line. Processes that run the code see it after their scheduler's next quiescent
/// point at the latest.
pub(crate) fn set_breakpoints(name: Atom, line: u32, on: bool) -> Result<(), Refused> {
    let _permission = MODIFICATION.lock();
    let module = versions(name).current.ok_or(Refused::NoModule)?;
    let table = module
        .debug
        .as_deref()
        .filter(|table| table.is_instrumented);
    let table = table.ok_or(Refused::UnsupportedModule)?;
    let op = if on {
        Op::LineBreakpoint
    } else {
        Op::LineBreakpointOff
    };
    let mut found = false;
    for &(offset, _) in table.lines.iter().filter(|(_, at)| *at == line) {
        found = true;
        let word = &module.code()[offset as usize];
        let operands = word.load(Ordering::Relaxed) & !0xffff;
        word.store(operands | op as u64, Ordering::Release);
    }
    match found {
        true => Ok(()),
        false if has_line(&module, line) => Err(Refused::UnsupportedLine),
        false => Err(Refused::NoLine),
    }
}

fn has_line(module: &module::Module, line: u32) -> bool {
    let places = module.lines.iter();
    places
        .filter_map(|&(_, place)| module.places.get(place as usize))
        .any(|&(_, at)| at == line)
}
