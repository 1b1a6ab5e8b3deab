//! Compiles a function: its instructions one after the other, each by its template, and behind them what is seldom
//! needed.

use std::sync::atomic::Ordering;

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::held::{AllHeld, Carried, Edge, Held, Labels, Reload};
use super::known::{Effect, Forgets, Known};
use super::stubs::{Assembler, COLLECT, YIELD_AT_ENTRY, YIELD_AT_RETURN};
use super::templates::floats::{self, Floats};
use super::templates::{self, effects, keeps};
use super::{listing, perf, published};
use crate::code::bif::Bif;
use crate::code::machine_code::{self, BEGINNING, Compiled, PROLOGUE_BYTES};
use crate::code::op::{Op, entry as head, read};
use crate::code::operand::{Instruction, Reg};
use crate::hash::HashMap;
use crate::heap::{Heap, RESERVED_WORDS};
use crate::interp::helpers::word_at;
use crate::loader::module::{Module, module_at};
use crate::process::order::explore;
use crate::term::{Atom, CodeAddress};

/// Held by whoever compiles: a function is compiled once.
static COMPILING: Mutex<()> = Mutex::new(());

/// Compiles the function that the specific instruction at `address` is of, unless it is compiled; gives the
/// instruction's compiled form.
///
/// # Panics
/// Where there is no memory left for machine code, or `address` is in no function.
pub(super) fn compile(address: CodeAddress) -> u64 {
    let _compiling = COMPILING.lock();
    if let Some(compiled) = machine_code::native(address) {
        return compiled;
    }
    let (module, offset) = module_at(address).expect("code is of a module");
    let entry = module.function_at(offset).expect("code is of a function");
    compile_function(&module, entry);
    machine_code::native(address).expect("an instruction of the function")
}

/// Compiles this function, unless it is compiled or not there.
pub(crate) fn compile_now(module: &Module, function: Atom, arity: u8) {
    let _compiling = COMPILING.lock();
    let Some(entry) = module.find(function, arity) else {
        return;
    };
    if machine_code::is_on() && module.word(entry, head::BODY).load(Ordering::SeqCst) == 0 {
        compile_function(module, entry);
    }
}

/// Compiles the function with this entry, for the processes to run.
fn compile_function(module: &Module, entry: u32) {
    let compiled = function(module, entry);
    let start = machine_code::add(&compiled, |start| {
        published::function(module, entry, &compiled, start)
    });
    let start = start.expect("256 MB are enough for compiled code");
    perf::function(module, entry, &compiled, start);
    listing::function(module, entry, &compiled);
    let mfa = module.mfa(entry);
    explore::compiled(mfa.module, mfa.function, mfa.arity);
    let body = start + PROLOGUE_BYTES;
    module.word(entry, head::BODY).store(body, Ordering::SeqCst);
    machine_code::lead_entry(
        module.word(entry, head::NATIVE),
        module.word(entry, head::BODY),
        module.word(entry, 0),
    );
}

/// The compiled form of the function with this entry.
pub(super) fn function(module: &Module, entry: u32) -> Compiled {
    let at = module.functions.partition_point(|&other| other <= entry);
    let end = match module.functions.get(at) {
        Some(next) => next - head::WORDS as u32,
        None => module.code().len() as u32,
    };
    let mut compiler = Compiler::new(module, entry, end);
    compiler.prologue();
    let mut next = entry;
    while next < end {
        next = compiler.instruction(next);
    }
    compiler.finish()
}

/// Code that is seldom needed, and stands behind the rest.
pub(super) enum Cold {
    /// The rest of the prologue.
    YieldAtEntry,
    /// The function's call of itself by its entry, in line where breakpoints count the function that runs on.
    WayByEntry,
    /// A return that ends the time slice.
    YieldAtReturn(DynamicLabel),
    /// An instruction's helper, in place of its template.
    Helper {
        from: DynamicLabel,
        at: u32,
        op: Op,
        fail: Option<DynamicLabel>,
        back: Option<DynamicLabel>,
    },
    /// What is usual enough to have a template of its own.
    Seldom {
        from: DynamicLabel,
        back: DynamicLabel,
        put: Box<dyn FnOnce(&mut Compiler<'_>)>,
    },
    /// A collection.
    Collect {
        from: DynamicLabel,
        need: u32,
        live: u32,
        back: DynamicLabel,
        /// What machine registers hold there.
        loads: SmallVec<[(u8, Reg); 6]>,
        floats: Floats,
    },
    /// A way to an instruction that takes what machine registers hold.
    Reload(Reload),
}

/// A function being compiled.
pub(super) struct Compiler<'m> {
    pub(super) a: Assembler,
    module: &'m Module,
    entry: u32,
    /// Where it begins, where it yields when it is called, and where its first instruction begins.
    start: DynamicLabel,
    yields: DynamicLabel,
    body: DynamicLabel,
    /// See [`Compiled::way_by_entry`].
    way_by_entry: Option<u32>,
    /// Behind its last instruction.
    end: u32,
    /// The instruction that is compiled now.
    pub(super) at: u32,
    labels: HashMap<u32, DynamicLabel>,
    /// For what stands behind the rest: where it goes on. No other jump leads there.
    backs: HashMap<u32, DynamicLabel>,
    /// What machine registers hold behind the instruction that has been compiled last.
    pub(super) held: AllHeld,
    /// The float registers that they hold there.
    pub(super) floats: Floats,
    /// What the instruction that is compiled now may take from there.
    pub(super) carried: Option<Carried>,
    /// What is known where the instruction that is compiled now begins.
    pub(super) known: Known<'m>,
    /// The machine registers that it leaves alone.
    pub(super) kept: keeps::Set,
    /// What that instruction does to registers.
    pub(super) effect: Effect,
    /// By the instructions that they lead to, which are still to be compiled.
    pub(super) edges: HashMap<u32, Edge>,
    /// The instruction before the one that is compiled now does not go on with it.
    is_behind_end: bool,
    /// Each with the instruction that it is of.
    cold: Vec<(u32, Cold)>,
    pub(super) places: Vec<(u32, u32)>,
    starts: Vec<(u32, u32)>,
    returns: Vec<(u32, u32)>,
    calls: Vec<(u32, &'static Bif)>,
}

impl<'m> Compiler<'m> {
    fn new(module: &'m Module, entry: u32, end: u32) -> Compiler<'m> {
        let mut a = Assembler::new(0);
        let [start, yields, body] = std::array::from_fn(|_| a.new_dynamic_label());
        Compiler {
            a,
            module,
            entry,
            start,
            yields,
            body,
            way_by_entry: None,
            end,
            at: entry,
            labels: HashMap::default(),
            backs: HashMap::default(),
            held: AllHeld::new(),
            floats: Floats::default(),
            carried: None,
            known: Known::new(module, entry, end),
            kept: 0,
            edges: HashMap::default(),
            is_behind_end: false,
            effect: Effect {
                forgets: Forgets::All,
                learns: SmallVec::new(),
            },
            cold: Vec::new(),
            places: Vec::new(),
            starts: Vec::new(),
            returns: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Words from the function's head to this offset.
    fn words_to(&self, offset: u32) -> u32 {
        offset + head::WORDS as u32 - self.entry
    }

    /// Code of the instruction that is compiled now, behind all others.
    pub(super) fn put_behind(&mut self, cold: Cold) {
        self.cold.push((self.at, cold));
    }

    pub(super) fn here(&self) -> u32 {
        self.a.offset().0 as u32
    }

    pub(super) fn new_label(&mut self) -> DynamicLabel {
        self.a.new_dynamic_label()
    }

    /// The label of the instruction at this offset.
    fn label_at(&mut self, offset: u32) -> DynamicLabel {
        let a = &mut self.a;
        *self
            .labels
            .entry(offset)
            .or_insert_with(|| a.new_dynamic_label())
    }

    /// The label at which what stands behind the rest goes on with the instruction at this offset, which comes next.
    fn back_at(&mut self, offset: u32) -> DynamicLabel {
        let a = &mut self.a;
        *self
            .backs
            .entry(offset)
            .or_insert_with(|| a.new_dynamic_label())
    }

    /// The label that an operand names.
    pub(super) fn label(&mut self, address: CodeAddress) -> DynamicLabel {
        let offset = self
            .module
            .offset_of(address)
            .expect("a label is in its module");
        self.label_at(offset)
    }

    /// A call is charged for; the one that uses the time slice up yields.
    fn prologue(&mut self) {
        let (start, yields, body) = (self.start, self.yields, self.body);
        dynasm!(self.a; .arch x64; =>start; .bytes &BEGINNING[..BEGINNING.len() - 1]; jle =>yields; =>body);
        assert_eq!(
            u64::from(self.here()),
            PROLOGUE_BYTES,
            "the prologue's size"
        );
        self.put_behind(Cold::YieldAtEntry);
        let arity = self.arity_of(self.module.address(self.entry));
        self.hold_arguments(arity.expect("the entry is a function's"));
    }

    /// Where the function with this entry begins, if that is the one that is compiled: its calls of itself need not look
    /// at the entry.
    pub(super) fn own_start(&mut self, target: CodeAddress) -> Option<DynamicLabel> {
        if self.module.offset_of(target) != Some(self.entry) {
            return None;
        }
        if self.way_by_entry.is_none() {
            self.way_by_entry = Some(0);
            self.put_behind(Cold::WayByEntry);
        }
        Some(self.start)
    }

    /// The entry of the function that is compiled, where it yields when it is called, and where its first instruction begins.
    pub(super) fn beginning(&self) -> (CodeAddress, DynamicLabel, DynamicLabel) {
        (self.module.address(self.entry), self.yields, self.body)
    }

    /// Compiles the instruction at this offset; gives the next one's.
    fn instruction(&mut self, offset: u32) -> u32 {
        let pc = self.module.address(offset);
        self.at = offset;
        // SAFETY: I1: the loader has put an instruction there.
        unsafe {
            let word = word_at(pc);
            let next = offset + Op::words_at(pc, word) as u32;
            let edge = self.edges.remove(&offset);
            let known = edge.as_ref().filter(|_| self.is_behind_end);
            self.known
                .go_on(offset, known.map(|edge| edge.known.clone()));
            self.effect = effects::effect(pc, word, &self.known);
            let kept = keeps::kept(pc, word);
            self.kept = kept.unwrap_or(keeps::ALL);
            self.lead_to(
                offset,
                &templates::first_loads(self, pc, word),
                kept.is_none(),
                edge,
            );
            templates::instruction(self, pc, word);
            debug_assert!(self.carried.is_none(), "a template has begun otherwise");
            let forgets = Forgets::All;
            let learns = SmallVec::new();
            let effect = std::mem::replace(&mut self.effect, Effect { forgets, learns });
            self.known.take(effect);
            self.is_behind_end = effects::is_end(word);
            next
        }
    }

    /// Has labels and places lead to the instruction at this offset, whose template begins by loading these registers, or
    /// takes what is held as it needs it.
    fn lead_to(&mut self, offset: u32, first: &[Reg], passes: bool, edge: Option<Edge>) {
        let mut held = std::mem::take(&mut self.held);
        let mut floats = std::mem::take(&mut self.floats);
        let mut labels = [
            Some(self.label_at(offset)),
            self.backs.get(&offset).copied(),
            None,
        ];
        // Nobody jumps to the entry's label but by way of a reload.
        if self.known.is_target(offset) && offset != self.entry {
            held.clear();
            floats = Floats::default();
        }
        match edge {
            // No other way leads here without a reload.
            Some(edge) if self.is_behind_end => {
                let label = edge.label;
                dynasm!(self.a; .arch x64; =>label);
                (held, floats) = (edge.held, edge.floats);
            }
            Some(edge) => labels[2] = Some(edge.label),
            None => {}
        }
        let at = (self.words_to(offset), self.here());
        self.starts.push(at);
        self.places.push(at);
        let is_of_use =
            |held: &Held| passes || self.kept & 1 << held.at != 0 || first.contains(&held.reg);
        if !passes && self.kept == keeps::NONE {
            floats = Floats::default();
        }
        if held.iter().any(is_of_use) || floats != Floats::default() {
            let place = self.places.len() - 1;
            self.carried = Some(Carried {
                held,
                floats,
                labels,
                place,
            });
            return;
        }
        self.bind(labels);
    }

    /// These labels of an instruction lead here.
    pub(super) fn bind(&mut self, labels: Labels) {
        for label in labels.into_iter().flatten() {
            dynasm!(self.a; .arch x64; =>label);
        }
    }

    /// Offset of the instruction at this address.
    pub(super) fn offset(&self, pc: CodeAddress) -> u32 {
        self.module
            .offset_of(pc)
            .expect("an instruction of the module")
    }

    /// The arity of the function of this module that has this entry; `None` where it is none's.
    pub(super) fn arity_of(&self, target: CodeAddress) -> Option<usize> {
        let offset = self.module.offset_of(target)?;
        self.module.functions.binary_search(&offset).ok()?;
        let word = self.module.word(offset, head::ARITY);
        Some(head::arity(word.load(Ordering::Relaxed)).into())
    }

    /// The instruction is done by its helper.
    pub(super) fn helper(&mut self, pc: CodeAddress, op: Op, i: impl Instruction) {
        if let Some(carried) = self.carried.take() {
            self.bind(carried.labels);
        }
        self.call_helper(pc, op);
        let fail = i.second_next();
        if !fail.is_null() {
            let fail = self.label(fail);
            dynasm!(self.a; .arch x64; test eax, eax; jnz =>fail);
        }
    }

    /// As [`Compiler::helper`], for an instruction that may call: what it calls returns behind it.
    pub(super) fn calling_helper(&mut self, pc: CodeAddress, op: Op, i: impl Instruction) {
        if let Some(carried) = self.carried.take() {
            self.bind(carried.labels);
        }
        self.call_helper(pc, op);
        dynasm!(self.a; .arch x64; .align 4);
        self.note_return_to(i.next());
    }

    fn call_helper(&mut self, pc: CodeAddress, op: Op) {
        let table = 8 * op as i32;
        dynasm!(self.a; .arch x64; mov rsi, QWORD pc.word() as i64; call QWORD [r12 + table]);
        if let Some(bif) = called_bif(pc, op) {
            self.note_return_from(bif);
        }
    }

    /// A call of this BIF has just been put here.
    pub(super) fn note_return_from(&mut self, bif: &'static Bif) {
        self.calls.push((self.here(), bif));
    }

    /// Calls a stub that returns.
    pub(super) fn call_stub(&mut self, stub: i32) {
        dynasm!(self.a; .arch x64; call QWORD [r12 + stub]);
    }

    /// A label from which the instruction's helper does all of it, and goes on behind it.
    pub(super) fn cold_helper(
        &mut self,
        pc: CodeAddress,
        op: Op,
        i: impl Instruction,
    ) -> DynamicLabel {
        let (from, at) = (self.new_label(), self.offset(pc));
        // The last instruction of a function goes nowhere from there.
        let back = Some(self.offset(i.next())).filter(|&next| next < self.end);
        let back = back.map(|next| self.back_at(next));
        let fail = i.second_next();
        let fail = (!fail.is_null()).then(|| self.label(fail));
        self.put_behind(Cold::Helper {
            from,
            at,
            op,
            fail,
            back,
        });
        from
    }

    /// A label from which `put` does the instruction, and goes on behind it.
    pub(super) fn seldom(
        &mut self,
        i: impl Instruction,
        put: impl FnOnce(&mut Compiler<'_>) + 'static,
    ) -> DynamicLabel {
        let (from, next) = (self.new_label(), self.offset(i.next()));
        let back = self.back_at(next);
        let put = Box::new(put);
        self.put_behind(Cold::Seldom { from, back, put });
        from
    }

    /// A call has just been put here: it returns to this instruction.
    pub(super) fn note_return_to(&mut self, next: CodeAddress) {
        let words = self.words_to(self.offset(next));
        debug_assert!(self.here().is_multiple_of(4), "J3");
        self.returns.push((self.here(), words));
    }

    /// Fills up so that an instruction of `bytes` bytes ends at a multiple of 4.
    pub(super) fn pad(&mut self, bytes: usize) {
        match (4 - (self.a.offset().0 + bytes) % 4) % 4 {
            1 => dynasm!(self.a; .arch x64; nop),
            2 => dynasm!(self.a; .arch x64; .bytes [0x66u8, 0x90]),
            3 => dynasm!(self.a; .arch x64; .bytes [0x0fu8, 0x1f, 0x00]),
            _ => {}
        }
    }

    /// Collects if fewer than `need` words are free.
    pub(super) fn ensure(&mut self, need: usize, live: usize) {
        let (from, back) = (self.new_label(), self.new_label());
        let bytes = ((need + RESERVED_WORDS) * 8) as i32;
        match Heap::is_zealous() {
            true => dynasm!(self.a; .arch x64; jmp =>from),
            false => {
                let end = self.free();
                templates::sum(self, end, templates::R15, bytes);
                dynasm!(self.a; .arch x64; cmp Rq(end), rsp; ja =>from);
            }
        }
        dynasm!(self.a; .arch x64; =>back);
        let (need, live) = (need as u32, live as u32);
        self.put_behind(Cold::Collect {
            from,
            need,
            live,
            back,
            loads: self.loads_of_held(),
            floats: self.floats,
        });
    }

    /// Returns to the address on top of the stack; the result is where J5 wants it.
    pub(super) fn return_(&mut self) {
        let yields = self.new_label();
        dynasm!(self.a; .arch x64; dec r14; js =>yields; ret);
        self.put_behind(Cold::YieldAtReturn(yields));
    }

    fn cold(&mut self, cold: Cold) {
        match cold {
            Cold::YieldAtEntry => {
                let from = self.yields;
                let entry = self.module.address(self.entry).word();
                dynasm!(self.a; .arch x64; =>from; mov rax, QWORD entry as i64; jmp QWORD [r12 + YIELD_AT_ENTRY]);
            }
            Cold::WayByEntry => {
                self.way_by_entry = Some(self.here());
                templates::calls::itself_by_entry(self);
            }
            Cold::YieldAtReturn(from) => {
                dynasm!(self.a; .arch x64; =>from; jmp QWORD [r12 + YIELD_AT_RETURN]);
            }
            Cold::Helper {
                from,
                at,
                op,
                fail,
                back,
            } => {
                dynasm!(self.a; .arch x64; =>from);
                self.call_helper(self.module.address(at), op);
                if let Some(fail) = fail {
                    dynasm!(self.a; .arch x64; test eax, eax; jnz =>fail);
                }
                match back {
                    Some(back) => dynasm!(self.a; .arch x64; jmp =>back),
                    None => dynasm!(self.a; .arch x64; ud2),
                }
            }
            Cold::Reload(reload) => self.reload(reload),
            Cold::Seldom { from, back, put } => {
                dynasm!(self.a; .arch x64; =>from);
                put(self);
                dynasm!(self.a; .arch x64; jmp =>back);
            }
            Cold::Collect {
                from,
                need,
                live,
                back,
                loads,
                floats,
            } => {
                dynasm!(self.a
                    ; .arch x64
                    ; =>from
                    ; mov esi, need as i32
                    ; mov edx, live as i32
                    ; call QWORD [r12 + COLLECT]
                );
                floats::load_all(self, floats);
                for (at, reg) in loads {
                    templates::load(self, at, reg);
                }
                dynasm!(self.a; .arch x64; jmp =>back);
            }
        }
    }

    /// The code, where each instruction is in it, and what each return address returns to.
    fn finish(mut self) -> Compiled {
        let mut behind = Vec::new();
        for (offset, cold) in std::mem::take(&mut self.cold) {
            behind.push((self.words_to(offset), self.here()));
            self.cold(cold);
        }
        // The head, which raises `function_clause`.
        let head_at = self.entry - head::WORDS as u32;
        let label = self.label_at(head_at);
        let at = self.here();
        dynasm!(self.a; .arch x64; =>label);
        self.call_helper(self.module.address(head_at), Op::FuncInfo);
        dynasm!(self.a; .arch x64; ud2);
        let (mut places, mut starts) = (self.places, self.starts);
        places.insert(0, (0, at));
        starts.insert(0, (0, at));
        let bytes = self.a.finalize();
        Compiled {
            bytes: bytes.expect("all labels of a function are in it"),
            specific: self.module.address(head_at).word()
                ..self.module.address(self.end - 1).word() + 8,
            places,
            starts,
            way_by_entry: self.way_by_entry,
            returns: self.returns,
            cold: behind,
            calls: self.calls,
        }
    }
}

/// The BIF that the instruction at `pc` calls, if it is such an instruction.
fn called_bif(pc: CodeAddress, op: Op) -> Option<&'static Bif> {
    // SAFETY: I1: an instruction of this kind is there.
    unsafe {
        let word = word_at(pc);
        match op {
            Op::CallBif => Some(read::CallBif::at(pc, word).bif()),
            Op::CallHbif => Some(read::CallHbif::at(pc, word).bif()),
            Op::Send => Some(read::Send::at(pc, word).bif()),
            Op::Bif0 => Some(read::Bif0::at(pc, word).bif()),
            Op::Bif1 => Some(read::Bif1::at(pc, word).bif()),
            Op::Bif2 => Some(read::Bif2::at(pc, word).bif()),
            Op::Bif3 => Some(read::Bif3::at(pc, word).bif()),
            _ => None,
        }
    }
}
