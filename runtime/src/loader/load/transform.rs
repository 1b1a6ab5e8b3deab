//! Generic instructions to specific ones: operands decoded, common neighbours fused. The part of
//! ERTS's `ops.tab`.

use super::debug;
use super::emit::Emitter;
use super::slow;
use super::{LoadError, Tables, lambdas};
use crate::beam::module::{Export, Instr};
use crate::beam::{Arg, Op as Gen};
use crate::code::FunEntry;
use crate::code::bif::{self, Bif};
use crate::code::entry::{export, stub_instruction};
use crate::code::op::{Op, SCRATCH, entry as head};
use crate::loader::debug::DebugTable;
use crate::loader::module::{Module, SourceFile};
use crate::process::X_REGISTERS;
use crate::term::{Atom, RawTerm, am};

/// Transforms a whole module.
pub(super) fn module(tables: &Tables<'_>) -> Result<Module, LoadError> {
    let beam = tables.beam;
    let mut t = Transform {
        tables,
        e: Emitter::new(beam.label_count),
        lambdas: lambdas(tables),
        functions: Vec::with_capacity(beam.functions.len()),
        lines: Vec::new(),
        debug: debug::table(tables),
        on_load: None,
        at: 0,
    };
    while t.at < beam.code.len() {
        t.instruction()?;
    }
    t.finish()
}

struct Transform<'a> {
    tables: &'a Tables<'a>,
    e: Emitter,
    lambdas: Vec<&'static FunEntry>,
    functions: Vec<u32>,
    lines: Vec<(u32, u32)>,
    debug: Option<Box<DebugTable>>,
    on_load: Option<u32>,
    /// The next generic instruction.
    at: usize,
}

type Done = Result<(), LoadError>;

impl<'a> Transform<'a> {
    fn finish(mut self) -> Result<Module, LoadError> {
        let beam = self.tables.beam;
        let strings = beam.strings.clone().into_boxed_slice();
        let entry_of = |label: u32| {
            self.e
                .offset(label)
                .expect("entries were checked on reading")
        };
        let row = |row: &Export| {
            (
                self.tables.atom(row.function),
                row.arity,
                entry_of(row.label),
            )
        };
        let exports = beam.exports.iter().map(row).collect();
        let locals = beam.locals.iter().map(row).collect();
        let offsets: Vec<u32> = beam.lambdas.iter().map(|l| entry_of(l.label)).collect();
        let code = self.e.finish(&strings).map_err(|label| {
            LoadError::Badfile(format!("chunk Code: label {label} is used and not defined"))
        })?;
        let mut module = Module::new(self.tables.name, code, strings, beam.md5);
        module.exports = exports;
        module.locals = locals;
        module.lambdas = self.lambdas.into_iter().zip(offsets).collect();
        module.functions = self.functions;
        if let Some(debug) = &mut self.debug {
            debug.items.sort_by_key(|item| item.row);
        }
        module.debug = self.debug;
        module.on_load = self.on_load;
        module.lines = self.lines;
        if let Some(lines) = &beam.lines {
            module.places = lines
                .items
                .iter()
                .map(|item| (item.file, item.line))
                .collect();
            let files = lines.files.iter();
            module.files = files.map(|name| SourceFile::new(name)).collect();
        }
        module.records.clone_from(&self.tables.records);
        module.attributes.clone_from(&beam.attributes);
        module.compile_info.clone_from(&beam.compile_info);
        Ok(module)
    }

    fn bad(&self, instr: &Instr, what: &str) -> LoadError {
        let name = instr.op.name();
        LoadError::Badfile(format!(
            "chunk Code, offset {}: {name}: {what}",
            instr.offset
        ))
    }

    /// The instruction `ahead` of the current one, lines left out.
    fn peek(&self, ahead: usize) -> Option<(&'a Instr, &'a [Arg])> {
        let instr = self.tables.beam.code.get(self.at + ahead)?;
        Some((instr, self.tables.beam.args(instr)))
    }

    /// A register's code; `None` for a constant.
    fn reg(arg: Arg) -> Option<u16> {
        match arg {
            Arg::X(n) | Arg::TypedX(n, _) => Some(n * 8),
            Arg::Y(n) | Arg::TypedY(n, _) => Some(n * 8 + 4),
            _ => None,
        }
    }

    /// A source operand as a word.
    fn src(&self, arg: Arg) -> Result<u64, LoadError> {
        match Self::reg(arg) {
            Some(code) => Ok(u64::from(code)),
            None => self
                .tables
                .constant(arg)
                .map(|term| term.0)
                .ok_or_else(|| self.here("a source")),
        }
    }

    fn dst(&self, arg: Arg) -> Result<u16, LoadError> {
        Self::reg(arg).ok_or_else(|| self.here("a destination"))
    }

    fn label(&self, arg: Arg) -> Result<u32, LoadError> {
        match arg {
            Arg::Label(label) => Ok(label),
            _ => Err(self.here("a label")),
        }
    }

    fn number(&self, arg: Arg) -> Result<u64, LoadError> {
        match arg {
            Arg::U(n) => Ok(n),
            Arg::I(n) => Ok(n as u64),
            _ => Err(self.here("a number")),
        }
    }

    fn small_number(&self, arg: Arg) -> Result<u16, LoadError> {
        u16::try_from(self.number(arg)?).map_err(|_| self.here("a smaller number"))
    }

    fn arity(&self, arg: Arg) -> Result<u16, LoadError> {
        let arity = u8::try_from(self.number(arg)?).map_err(|_| self.here("an arity"))?;
        Ok(arity.into())
    }

    fn freg(&self, arg: Arg) -> Result<u16, LoadError> {
        match arg {
            Arg::FReg(n) => Ok(n),
            _ => Err(self.here("a float register")),
        }
    }

    /// Heap need in words.
    fn need(&self, arg: Arg) -> Result<u64, LoadError> {
        match arg {
            Arg::Alloc {
                words,
                floats,
                funs,
            } => Ok(u64::from(words) + 2 * u64::from(floats) + 2 * u64::from(funs)),
            _ => self.number(arg),
        }
    }

    fn here(&self, expected: &str) -> LoadError {
        let instr = &self.tables.beam.code[self.at - 1];
        self.bad(instr, &format!("{expected} was expected as operand"))
    }

    /// A register that holds `arg`: a constant is moved to the loader's own.
    fn in_reg(&mut self, arg: Arg) -> Result<u16, LoadError> {
        if let Some(code) = Self::reg(arg) {
            return Ok(code);
        }
        let word = self.src(arg)?;
        self.e.op(Op::MoveCR, 0, SCRATCH, 0);
        self.e.word(word);
        Ok(SCRATCH)
    }

    fn import(&self, arg: Arg) -> Result<(Atom, Atom, u8), LoadError> {
        let row = self.number(arg)? as usize;
        let import = self.tables.beam.imports[row];
        let (module, function) = (
            self.tables.atom(import.module),
            self.tables.atom(import.function),
        );
        Ok((module, function, import.arity))
    }

    fn guard_bif(&self, arg: Arg) -> Result<(Atom, u8, u64), LoadError> {
        let (module, function, arity) = self.import(arg)?;
        let found = bif::find(module, function, arity);
        let row: &'static Bif =
            found.map_or_else(|| bif::missing(arity), |index| bif::all()[index]);
        Ok((function, arity, std::ptr::from_ref(row) as u64))
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each generic instruction"
    )]
    fn instruction(&mut self) -> Done {
        let instr = &self.tables.beam.code[self.at];
        let args = self.tables.beam.args(instr);
        self.at += 1;
        match instr.op {
            Gen::Label => {
                let label = self
                    .number(args[0])
                    .or_else(|_| self.label(args[0]).map(u64::from))?;
                self.e.bind(label as u32);
            }
            Gen::FuncInfo => self.func_info(args)?,
            Gen::Line => {
                let row = self.number(args[0])? as u32;
                self.lines.push((self.e.here(), row));
            }
            Gen::DebugLine => self.debug_line(args)?,
            Gen::ExecutableLine | Gen::IntCodeEnd | Gen::NifStart => {}
            Gen::OnLoad => self.on_load = self.functions.last().copied(),

            Gen::Call => {
                self.e.op(Op::Call, 0, 0, 0);
                self.label_word(args[1])?;
            }
            Gen::CallLast => {
                let frame = self.small_number(args[2])?;
                self.e.op(Op::CallLast, frame, 0, 0);
                self.label_word(args[1])?;
            }
            Gen::CallOnly => {
                self.e.op(Op::CallOnly, 0, 0, 0);
                self.label_word(args[1])?;
            }
            Gen::CallExt => self.call_ext(args[1], Tail::No)?,
            Gen::CallExtLast => {
                let frame = self.small_number(args[2])?;
                self.call_ext(args[1], Tail::Frame(frame))?;
            }
            Gen::CallExtOnly => self.call_ext(args[1], Tail::NoFrame)?,
            Gen::Apply => {
                let arity = self.arity(args[0])?;
                self.e.op(Op::Apply, arity, 0, 0);
            }
            Gen::ApplyLast => {
                let (arity, frame) = (self.arity(args[0])?, self.small_number(args[1])?);
                self.e.op(Op::ApplyLast, arity, frame, 0);
            }
            Gen::CallFun => {
                let arity = self.arity(args[0])?;
                self.call_fun(arity, arity * 8)?;
            }
            Gen::CallFun2 => {
                let arity = self.arity(args[1])?;
                let fun = self.in_reg(args[2])?;
                self.call_fun(arity, fun)?;
            }
            Gen::Return => self.e.op(Op::Return, 0, 0, 0),

            Gen::Allocate => {
                let (frame, live) = (self.small_number(args[0])?, self.small_number(args[1])?);
                self.e.op(Op::Allocate, frame, live, 0);
            }
            Gen::AllocateHeap => {
                let (frame, live) = (self.small_number(args[0])?, self.small_number(args[2])?);
                let need = self.need(args[1])?;
                self.e.op(Op::AllocateHeap, frame, live, 0);
                self.e.word(need);
            }
            Gen::TestHeap => {
                let live = self.small_number(args[1])?;
                let need = self.need(args[0])?;
                self.e.op(Op::TestHeap, 0, live, 0);
                self.e.word(need);
            }
            Gen::Deallocate => self.deallocate(args)?,
            Gen::Trim => {
                let words = self.small_number(args[0])?;
                self.e.op(Op::Trim, words, 0, 0);
            }
            Gen::InitYregs => {
                for &y in &args[1..] {
                    let y = self.dst(y)?;
                    self.e.op(Op::InitY, y, 0, 0);
                }
            }

            Gen::Move => self.move_(args[0], args[1])?,
            Gen::Swap => {
                let (a, b) = (self.dst(args[0])?, self.dst(args[1])?);
                self.e.op(Op::SwapRR, a, b, 0);
            }
            Gen::GetList => {
                let cell = self.in_reg(args[0])?;
                let (head, tail) = (self.dst(args[1])?, self.dst(args[2])?);
                self.e.op(Op::GetList, cell, head, tail);
            }
            Gen::GetHd => self.reg_to_reg(Op::GetHd, args)?,
            Gen::GetTl => self.reg_to_reg(Op::GetTl, args)?,
            Gen::GetTupleElement => self.get_tuple_element(args)?,
            Gen::SetTupleElement => {
                let value = self.in_reg(args[0])?;
                let tuple = self.dst(args[1])?;
                let index = self.number(args[2])?;
                match u16::try_from(index) {
                    Ok(index) => self.e.op(Op::SetTupleElement, tuple, index, value),
                    Err(_) => {
                        self.e.op(Op::SetTupleElementWide, tuple, 0, value);
                        self.e.word(index);
                    }
                }
            }
            Gen::PutList => self.put_list(args)?,
            Gen::PutTuple2 => self.put_tuple(args)?,

            Gen::IsInteger => self.type_test(Op::IsInteger, args)?,
            Gen::IsFloat => self.type_test(Op::IsFloat, args)?,
            Gen::IsNumber => self.type_test(Op::IsNumber, args)?,
            Gen::IsAtom => self.type_test(Op::IsAtom, args)?,
            Gen::IsBoolean => self.type_test(Op::IsBoolean, args)?,
            Gen::IsPid => self.type_test(Op::IsPid, args)?,
            Gen::IsPort => self.type_test(Op::IsPort, args)?,
            Gen::IsReference => self.type_test(Op::IsReference, args)?,
            Gen::IsNil => self.type_test(Op::IsNil, args)?,
            Gen::IsList => self.type_test(Op::IsList, args)?,
            Gen::IsNonemptyList => self.is_nonempty_list(args)?,
            Gen::IsTuple => self.is_tuple(args)?,
            Gen::IsBinary => self.type_test(Op::IsBinary, args)?,
            Gen::IsBitstr => self.type_test(Op::IsBitstr, args)?,
            Gen::IsMap => self.type_test(Op::IsMap, args)?,
            Gen::IsFunction => self.type_test(Op::IsFunction, args)?,
            Gen::IsFunction2 => self.compare(Op::IsFunction2, args)?,
            Gen::TestArity => self.tuple_of_arity(Op::TestArity, args)?,
            Gen::IsTaggedTuple => self.is_tagged_tuple(args)?,
            Gen::IsLt => self.order(Op::IsLtSS, Op::IsLtRR, Op::IsLtRC, Op::IsLtCR, args)?,
            Gen::IsGe => self.order(Op::IsGeSS, Op::IsGeRR, Op::IsGeRC, Op::IsGeCR, args)?,
            Gen::IsEqExact => self.eq_exact(args)?,
            Gen::IsNeExact => self.ne_exact(args)?,
            Gen::IsEq => self.compare(Op::IsEqSS, args)?,
            Gen::IsNe => self.compare(Op::IsNeSS, args)?,
            Gen::Jump => {
                self.e.op(Op::Jump, 0, 0, 0);
                self.label_word(args[0])?;
            }
            Gen::SelectVal => self.select_val(args)?,
            Gen::SelectTupleArity => self.select_tuple_arity(args)?,

            Gen::Bif0 => {
                let (function, _, row) = self.guard_bif(args[0])?;
                let dst = self.dst(args[1])?;
                if function == am::self_ {
                    self.e.op(Op::SelfR, dst, 0, 0);
                } else {
                    self.e.op(Op::Bif0, 0, 0, dst);
                    self.e.word(0);
                    self.e.word(row);
                }
            }
            Gen::Bif1 => self.bif(args[0], None, args[1], &args[2..3], args[3])?,
            Gen::Bif2 => self.bif(args[0], None, args[1], &args[2..4], args[4])?,
            Gen::Bif3 => self.bif(args[0], None, args[1], &args[2..5], args[5])?,
            Gen::GcBif1 => self.bif(args[0], Some(args[1]), args[2], &args[3..4], args[4])?,
            Gen::GcBif2 => self.bif(args[0], Some(args[1]), args[2], &args[3..5], args[5])?,
            Gen::GcBif3 => self.bif(args[0], Some(args[1]), args[2], &args[3..6], args[6])?,

            Gen::Fmove => self.fmove(args)?,
            Gen::Fconv => {
                let (src, dst) = (self.src(args[0])?, self.freg(args[1])?);
                self.e.op(Op::Fconv, 0, dst, 0);
                self.e.word(src);
            }
            Gen::Fadd => self.float_op(Op::Fadd, args)?,
            Gen::Fsub => self.float_op(Op::Fsub, args)?,
            Gen::Fmul => self.float_op(Op::Fmul, args)?,
            Gen::Fdiv => self.float_op(Op::Fdiv, args)?,
            Gen::Fnegate => {
                let (src, dst) = (self.freg(args[1])?, self.freg(args[2])?);
                self.e.op(Op::Fnegate, src, 0, dst);
            }

            Gen::Catch | Gen::Try => {
                let y = self.dst(args[0])?;
                self.e.op(Op::Catch, y, 0, 0);
                self.label_word(args[1])?;
            }
            Gen::CatchEnd => self.one_reg(Op::CatchEnd, args[0])?,
            Gen::TryEnd => self.one_reg(Op::TryEnd, args[0])?,
            Gen::TryCase => self.one_reg(Op::TryCase, args[0])?,
            Gen::TryCaseEnd => self.sources(Op::TryCaseEnd, args)?,
            Gen::Badmatch => self.sources(Op::Badmatch, args)?,
            Gen::CaseEnd => self.sources(Op::CaseEnd, args)?,
            Gen::Badrecord => self.sources(Op::Badrecord, args)?,
            Gen::Raise => self.sources(Op::Raise, args)?,
            Gen::IfEnd => self.e.op(Op::IfEnd, 0, 0, 0),
            Gen::RawRaise => self.e.op(Op::RawRaise, 0, 0, 0),
            Gen::BuildStacktrace => self.e.op(Op::BuildStacktrace, 0, 0, 0),

            Gen::MakeFun3 => self.make_fun(args)?,
            Gen::Send => self.e.op(Op::Send, 0, 0, 0),
            Gen::LoopRec => self.labelled(Op::LoopRec, args[0])?,
            Gen::LoopRecEnd => self.labelled(Op::LoopRecEnd, args[0])?,
            Gen::Wait => self.labelled(Op::Wait, args[0])?,
            Gen::WaitTimeout => {
                let time = self.src(args[1])?;
                self.labelled(Op::WaitTimeout, args[0])?;
                self.e.word(time);
            }
            Gen::Timeout => self.e.op(Op::Timeout, 0, 0, 0),
            Gen::RemoveMessage => self.e.op(Op::RemoveMessage, 0, 0, 0),
            Gen::RecvMarkerReserve => self.one_reg(Op::RecvMarkerReserve, args[0])?,
            Gen::RecvMarkerBind => self.sources(Op::RecvMarkerBind, args)?,
            Gen::RecvMarkerClear => self.sources(Op::RecvMarkerClear, args)?,
            Gen::RecvMarkerUse => self.sources(Op::RecvMarkerUse, args)?,
            Gen::BsStartMatch4 => self.bs_start_match4(args)?,
            _ => self.slow(instr, args)?,
        }
        Ok(())
    }

    /// A line where processes can be stopped, if lines are instrumented. A function's entry is no such place.
    fn debug_line(&mut self, args: &[Arg]) -> Done {
        const MAX_ARG: u16 = 255;
        let is_instrumented = self.debug.as_ref().is_some_and(|d| d.is_instrumented);
        let is_entry = matches!(args[0], Arg::Atom(row) if self.tables.atom(row) == am::entry);
        let places = self.tables.beam.lines.as_ref();
        let Some(places) = places.filter(|_| is_instrumented && !is_entry) else {
            return Ok(());
        };
        let [_, Arg::U(place), Arg::U(row), Arg::U(live)] = *args else {
            return Err(self.here("a number"));
        };
        let line = places.items[place as usize].line;
        let item = (row as usize)
            .checked_sub(1)
            .and_then(|row| debug::item(self.tables, row, line));
        let (Some(item), Ok(live @ ..=MAX_ARG)) = (item, u16::try_from(live)) else {
            return Err(self.here("a row of the debug table, or fewer live registers"));
        };
        let here = self.e.here();
        if let Some(debug) = &mut self.debug {
            debug.lines.push((here, line));
            debug.items.push(item);
        }
        self.lines.push((here, place as u32));
        self.e.op(Op::LineBreakpointOff, live, 0, 0);
        Ok(())
    }

    fn label_word(&mut self, arg: Arg) -> Done {
        let label = self.label(arg)?;
        self.e.label_ref(label);
        Ok(())
    }

    fn labelled(&mut self, op: Op, label: Arg) -> Done {
        self.e.op(op, 0, 0, 0);
        self.label_word(label)
    }

    fn one_reg(&mut self, op: Op, arg: Arg) -> Done {
        let reg = self.dst(arg)?;
        self.e.op(op, reg, 0, 0);
        Ok(())
    }

    fn sources(&mut self, op: Op, args: &[Arg]) -> Done {
        self.e.op(op, 0, 0, 0);
        for &arg in args {
            let word = self.src(arg)?;
            self.e.word(word);
        }
        Ok(())
    }

    fn reg_to_reg(&mut self, op: Op, args: &[Arg]) -> Done {
        let (src, dst) = (self.in_reg(args[0])?, self.dst(args[1])?);
        self.e.op(op, src, dst, 0);
        Ok(())
    }

    fn func_info(&mut self, args: &[Arg]) -> Done {
        let arity = self.small_number(args[2])?;
        let (module, function) = (self.src(args[0])?, self.src(args[1])?);
        self.e.op(Op::FuncInfo, arity, 0, 0);
        for word in [0, module, function, u64::from(arity)] {
            self.e.word(word);
        }
        self.functions.push(self.e.here());
        debug_assert_eq!(head::WORDS, 5, "what was emitted just now");
        self.bif_body(args, arity as u8)
    }

    /// A function that the runtime gives has that for its code, whatever the module says. Its entry
    /// label follows the head.
    fn bif_body(&mut self, args: &[Arg], arity: u8) -> Done {
        let Arg::Atom(function) = args[1] else {
            return Err(self.here("a function's name"));
        };
        let (module, function) = (self.tables.name, self.tables.atom(function));
        let Some(index) = bif::find(module, function, arity) else {
            return Ok(());
        };
        if let Some((instr, label)) = self.peek(0).filter(|(instr, _)| instr.op == Gen::Label) {
            let label = self
                .number(label[0])
                .map_err(|_| self.bad(instr, "a label"))?;
            self.e.bind(label as u32);
            self.at += 1;
        }
        self.e.word(stub_instruction(
            module,
            function,
            arity,
            Some(index as u32),
        ));
        self.e.word(std::ptr::from_ref(bif::all()[index]) as u64);
        Ok(())
    }

    fn call_ext(&mut self, import: Arg, tail: Tail) -> Done {
        let (module, function, arity) = self.import(import)?;
        if module == am::erlang && function == am::apply && (arity == 2 || arity == 3) {
            self.call_apply(arity, tail);
            return Ok(());
        }
        if module == am::erlang
            && arity == 0
            && (function == am::yield_ || function == am::hibernate)
        {
            let op = if function == am::hibernate {
                Op::Hibernate
            } else {
                Op::Yield
            };
            self.e.op(op, 0, 0, 0);
            self.return_of(tail);
            return Ok(());
        }
        let entry = export(module, function, arity);
        let Some(row) = entry.bif.map(|index| bif::all()[index as usize]) else {
            match tail {
                Tail::No => self.e.op(Op::CallExt, 0, 0, 0),
                Tail::NoFrame => self.e.op(Op::CallExtOnly, 0, 0, 0),
                Tail::Frame(words) => self.e.op(Op::CallExtLast, words, 0, 0),
            }
            self.e.word(std::ptr::from_ref(entry) as u64);
            return Ok(());
        };
        let op = if row.kind == bif::Kind::Hbif {
            Op::CallHbif
        } else {
            Op::CallBif
        };
        self.e.op(op, u16::from(arity), 0, 0);
        self.e.word(std::ptr::from_ref(row) as u64);
        self.e.word(std::ptr::from_ref(entry) as u64);
        self.return_of(tail);
        Ok(())
    }

    /// What a tail call that is done in place still has to do.
    fn return_of(&mut self, tail: Tail) {
        match tail {
            Tail::No => {}
            Tail::NoFrame => self.e.op(Op::Return, 0, 0, 0),
            Tail::Frame(words) => self.e.op(Op::DeallocateReturn, words, 0, 0),
        }
    }

    fn call_apply(&mut self, arity: u8, tail: Tail) {
        let (call, last) = if arity == 3 {
            (Op::CallApply, Op::CallApplyLast)
        } else {
            (Op::CallApplyFun, Op::CallApplyFunLast)
        };
        match tail {
            Tail::No => self.e.op(call, 0, 0, 0),
            Tail::NoFrame => self.e.op(last, 0, 0, 0),
            Tail::Frame(words) => self.e.op(last, words, 0, 0),
        }
    }

    /// A call of a fun that is followed by the end of the function is a tail call.
    fn call_fun(&mut self, arity: u16, fun: u16) -> Done {
        let words = match (self.peek(0), self.peek(1)) {
            (Some((next, args)), Some((end, _)))
                if next.op == Gen::Deallocate && end.op == Gen::Return =>
            {
                Some(self.small_number(args[0])?)
            }
            _ => None,
        };
        match words {
            Some(words) => {
                self.at += 2;
                self.e.op(Op::CallFunLast, arity, fun, words);
            }
            None => self.e.op(Op::CallFun, arity, fun, 0),
        }
        Ok(())
    }

    fn deallocate(&mut self, args: &[Arg]) -> Done {
        let words = self.small_number(args[0])?;
        if self.peek(0).is_some_and(|(next, _)| next.op == Gen::Return) {
            self.at += 1;
            self.e.op(Op::DeallocateReturn, words, 0, 0);
        } else {
            self.e.op(Op::Deallocate, words, 0, 0);
        }
        Ok(())
    }

    fn move_(&mut self, src: Arg, dst: Arg) -> Done {
        let to = self.dst(dst)?;
        let Some(from) = Self::reg(src) else {
            let word = self.src(src)?;
            self.e.op(Op::MoveCR, 0, to, 0);
            self.e.word(word);
            return Ok(());
        };
        if let Some((next, args)) = self.peek(0)
            && next.op == Gen::Move
            && let (Some(from2), Some(to2)) = (Self::reg(args[0]), Self::reg(args[1]))
        {
            self.at += 1;
            self.e.op(Op::Move2RR, from, to, 0);
            self.e.word(u64::from(from2) | (u64::from(to2) << 16));
            return Ok(());
        }
        self.e.op(Op::MoveRR, from, to, 0);
        Ok(())
    }

    fn get_tuple_element(&mut self, args: &[Arg]) -> Done {
        let tuple = self.in_reg(args[0])?;
        let dst = self.dst(args[2])?;
        let index = self.number(args[1])?;
        let Ok(index) = u16::try_from(index) else {
            self.e.op(Op::GetTupleElementWide, tuple, dst, 0);
            self.e.word(index);
            return Ok(());
        };
        if let Some((next, more)) = self.peek(0)
            && next.op == Gen::GetTupleElement
            && Self::reg(more[0]) == Some(tuple)
            && dst != tuple
            && more[1] == Arg::U(u64::from(index) + 1)
        {
            self.at += 1;
            let second = self.dst(more[2])?;
            self.e.op(Op::GetTupleElement2, tuple, dst, index);
            self.e.word(u64::from(second));
            return Ok(());
        }
        self.e.op(Op::GetTupleElement, tuple, dst, index);
        Ok(())
    }

    fn put_list(&mut self, args: &[Arg]) -> Done {
        let dst = self.dst(args[2])?;
        match (Self::reg(args[0]), Self::reg(args[1])) {
            (Some(head), Some(tail)) => self.e.op(Op::PutListRR, head, tail, dst),
            (None, tail) => {
                let tail = match tail {
                    Some(tail) => tail,
                    None => self.in_reg(args[1])?,
                };
                let head = self.src(args[0])?;
                self.e.op(Op::PutListCR, 0, tail, dst);
                self.e.word(head);
            }
            (Some(head), None) => {
                let tail = self.src(args[1])?;
                self.e.op(Op::PutListRC, head, 0, dst);
                self.e.word(tail);
            }
        }
        Ok(())
    }

    fn put_tuple(&mut self, args: &[Arg]) -> Done {
        let dst = self.dst(args[0])?;
        let elements = &args[2..];
        if elements.is_empty() {
            let empty = self.tables.literal(|heap| heap.tuple(&[]));
            self.e.op(Op::MoveCR, 0, dst, 0);
            self.e.word(empty.raw().0);
            return Ok(());
        }
        match u16::try_from(elements.len()) {
            Ok(arity) => self.e.op(Op::PutTuple, dst, arity, 0),
            Err(_) => {
                self.e.op(Op::PutTupleWide, dst, 0, 0);
                self.e.word(elements.len() as u64);
            }
        }
        for &element in elements {
            let word = self.src(element)?;
            self.e.word(word);
        }
        Ok(())
    }

    fn type_test(&mut self, op: Op, args: &[Arg]) -> Done {
        let reg = self.in_reg(args[1])?;
        self.e.op(op, reg, 0, 0);
        self.label_word(args[0])
    }

    fn is_nonempty_list(&mut self, args: &[Arg]) -> Done {
        if let Some((next, more)) = self.peek(0)
            && next.op == Gen::GetList
            && let Some(cell) = Self::reg(args[1])
            && Self::reg(more[0]) == Some(cell)
        {
            self.at += 1;
            let (head, tail) = (self.dst(more[1])?, self.dst(more[2])?);
            self.e.op(Op::IsNonemptyListGetList, cell, head, tail);
            return self.label_word(args[0]);
        }
        self.type_test(Op::IsNonemptyList, args)
    }

    fn is_tuple(&mut self, args: &[Arg]) -> Done {
        if let Some((next, more)) = self.peek(0)
            && next.op == Gen::TestArity
            && more[0] == args[0]
            && Self::reg(more[1]).is_some()
            && Self::reg(more[1]) == Self::reg(args[1])
        {
            self.at += 1;
            return self.tuple_of_arity(Op::IsTupleOfArity, more);
        }
        self.type_test(Op::IsTuple, args)
    }

    /// `test_arity`, or with what `op` does as well.
    fn tuple_of_arity(&mut self, op: Op, args: &[Arg]) -> Done {
        let tuple = self.in_reg(args[1])?;
        let arity = self.number(args[2])?;
        if let Ok(arity) = u16::try_from(arity) {
            self.e.op(op, tuple, arity, 0);
            return self.label_word(args[0]);
        }
        self.e.op(Op::IsTupleOfArityWide, tuple, 0, 0);
        self.label_word(args[0])?;
        self.e.word(arity);
        Ok(())
    }

    fn is_tagged_tuple(&mut self, args: &[Arg]) -> Done {
        let tuple = self.in_reg(args[1])?;
        let arity = self.number(args[2])?;
        let tag = self.src(args[3])?;
        let packed = u16::try_from(arity);
        match packed {
            Ok(arity) => self.e.op(Op::IsTaggedTuple, tuple, arity, 0),
            Err(_) => self.e.op(Op::IsTaggedTupleWide, tuple, 0, 0),
        }
        self.label_word(args[0])?;
        self.e.word(tag);
        if packed.is_err() {
            self.e.word(arity);
        }
        Ok(())
    }

    /// `L S S`
    fn compare(&mut self, op: Op, args: &[Arg]) -> Done {
        let (a, b) = (self.src(args[1])?, self.src(args[2])?);
        self.e.op(op, 0, 0, 0);
        self.label_word(args[0])?;
        self.e.word(a);
        self.e.word(b);
        Ok(())
    }

    fn order(&mut self, ss: Op, rr: Op, rc: Op, cr: Op, args: &[Arg]) -> Done {
        let small = |arg| self.tables.constant(arg).filter(|term| term.is_small());
        let (op, a, b, constant) = match (Self::reg(args[1]), Self::reg(args[2])) {
            (Some(a), Some(b)) => (rr, a, b, None),
            (Some(a), None) => match small(args[2]) {
                Some(constant) => (rc, a, 0, Some(constant)),
                None => return self.compare(ss, args),
            },
            (None, Some(b)) => match small(args[1]) {
                Some(constant) => (cr, b, 0, Some(constant)),
                None => return self.compare(ss, args),
            },
            (None, None) => return self.compare(ss, args),
        };
        self.e.op(op, a, b, 0);
        self.label_word(args[0])?;
        if let Some(constant) = constant {
            self.e.word(constant.0);
        }
        Ok(())
    }

    fn eq_exact(&mut self, args: &[Arg]) -> Done {
        match (Self::reg(args[1]), Self::reg(args[2])) {
            (Some(a), Some(b)) => {
                self.e.op(Op::IsEqExactRR, a, b, 0);
                self.label_word(args[0])
            }
            (Some(a), None) => {
                self.with_constant(Op::IsEqExactRC, Op::IsEqExactSS, a, args[2], args)
            }
            (None, Some(b)) => {
                self.with_constant(Op::IsEqExactRC, Op::IsEqExactSS, b, args[1], args)
            }
            (None, None) => self.compare(Op::IsEqExactSS, args),
        }
    }

    fn ne_exact(&mut self, args: &[Arg]) -> Done {
        match (Self::reg(args[1]), Self::reg(args[2])) {
            (Some(a), None) => {
                self.with_constant(Op::IsNeExactRC, Op::IsNeExactSS, a, args[2], args)
            }
            (None, Some(b)) => {
                self.with_constant(Op::IsNeExactRC, Op::IsNeExactSS, b, args[1], args)
            }
            _ => self.compare(Op::IsNeExactSS, args),
        }
    }

    fn with_constant(&mut self, rc: Op, ss: Op, reg: u16, constant: Arg, args: &[Arg]) -> Done {
        let word = self.src(constant)?;
        if !RawTerm(word).is_immed() {
            return self.compare(ss, args);
        }
        self.e.op(rc, reg, 0, 0);
        self.label_word(args[0])?;
        self.e.word(word);
        Ok(())
    }

    fn select_val(&mut self, args: &[Arg]) -> Done {
        let src = self.in_reg(args[0])?;
        let mut pairs = Vec::with_capacity(args.len() / 2);
        for pair in args[3..].chunks_exact(2) {
            pairs.push((RawTerm(self.src(pair[0])?), self.label(pair[1])?));
        }
        if !pairs.iter().all(|(value, _)| value.is_immed()) {
            self.e.op(Op::SelectTerm, src, 0, 0);
            self.label_word(args[1])?;
            self.e.word(pairs.len() as u64);
            for (value, label) in pairs {
                self.e.word(value.0);
                self.e.label_ref(label);
            }
            return Ok(());
        }
        pairs.sort_by_key(|(value, _)| value.0 as i64);
        if let Some((least, count)) = dense(&pairs) {
            return self.jump_table(src, args[1], least, count, &pairs);
        }
        self.e.op(Op::SelectVal, src, 0, 0);
        self.label_word(args[1])?;
        self.e.word(pairs.len() as u64);
        pairs.iter().for_each(|(value, _)| self.e.word(value.0));
        pairs.iter().for_each(|&(_, label)| self.e.label_ref(label));
        Ok(())
    }

    fn jump_table(
        &mut self,
        src: u16,
        otherwise: Arg,
        least: i64,
        count: usize,
        pairs: &[(RawTerm, u32)],
    ) -> Done {
        let otherwise = self.label(otherwise)?;
        self.e.op(Op::JumpTable, src, 0, 0);
        self.e.label_ref(otherwise);
        self.e.word(least as u64);
        self.e.word(count as u64);
        let mut next = pairs.iter().peekable();
        for value in least..least + count as i64 {
            let label = next
                .next_if(|(term, _)| term.small_value() == value)
                .map(|&(_, label)| label);
            self.e.label_ref(label.unwrap_or(otherwise));
        }
        Ok(())
    }

    fn select_tuple_arity(&mut self, args: &[Arg]) -> Done {
        let src = self.in_reg(args[0])?;
        self.e.op(Op::SelectTupleArity, src, 0, 0);
        self.label_word(args[1])?;
        self.e.word((args.len() as u64 - 3) / 2);
        for pair in args[3..].chunks_exact(2) {
            let arity = self.number(pair[0])?;
            self.e.word(arity);
            self.label_word(pair[1])?;
        }
        Ok(())
    }

    fn fmove(&mut self, args: &[Arg]) -> Done {
        match (args[0], args[1]) {
            (src, Arg::FReg(dst)) => {
                let src = self.in_reg(src)?;
                self.e.op(Op::FmoveFrom, src, dst, 0);
            }
            (Arg::FReg(src), dst) => {
                let dst = self.dst(dst)?;
                self.e.op(Op::FmoveTo, src, dst, 0);
            }
            _ => return Err(self.here("a float register")),
        }
        Ok(())
    }

    fn float_op(&mut self, op: Op, args: &[Arg]) -> Done {
        let (a, b, dst) = (
            self.freg(args[1])?,
            self.freg(args[2])?,
            self.freg(args[3])?,
        );
        self.e.op(op, a, b, dst);
        Ok(())
    }

    fn make_fun(&mut self, args: &[Arg]) -> Done {
        let row = self.number(args[0])? as usize;
        let dst = self.dst(args[1])?;
        let fun = *self
            .lambdas
            .get(row)
            .ok_or_else(|| self.here("a row of the fun table"))?;
        let env = &args[3..];
        if env.is_empty() {
            let literal = self.tables.literal(|heap| heap.local_fun(fun, &[]));
            self.e.op(Op::MoveCR, 0, dst, 0);
            self.e.word(literal.raw().0);
            return Ok(());
        }
        self.e.op(Op::MakeFun, dst, 0, 0);
        self.e.word(std::ptr::from_ref(fun) as u64);
        self.e.word(env.len() as u64);
        for &arg in env {
            let word = self.src(arg)?;
            self.e.word(word);
        }
        Ok(())
    }

    /// A guard BIF, or the instruction that does its work.
    fn bif(&mut self, fail: Arg, live: Option<Arg>, import: Arg, src: &[Arg], dst: Arg) -> Done {
        let (function, arity, row) = self.guard_bif(import)?;
        let dst = self.dst(dst)?;
        let live = match live {
            Some(live) => self.small_number(live)?,
            None => NO_LIVE,
        };
        // `+ A` is `A + 0`, as in ERTS: its exception tells so.
        let sum;
        let src = match (function, src) {
            (am::plus, &[only]) => {
                sum = [only, Arg::I(0)];
                &sum
            }
            _ => src,
        };
        if self.mul_add(function, fail, src, dst)?
            || self.arithmetic(function, fail, live, src, dst)?
            || self.access(function, fail, row, src, dst)?
        {
            return Ok(());
        }
        let op = match arity {
            1 => Op::Bif1,
            2 => Op::Bif2,
            _ => Op::Bif3,
        };
        let mut words = [0; 3];
        for (word, &arg) in words.iter_mut().zip(src) {
            *word = self.src(arg)?;
        }
        self.e.op(op, live, 0, dst);
        self.label_word(fail)?;
        self.e.word(row);
        words[..src.len()]
            .iter()
            .for_each(|&word| self.e.word(word));
        Ok(())
    }

    /// A product to which the next instruction adds, in the same register.
    fn mul_add(
        &mut self,
        function: Atom,
        fail: Arg,
        src: &[Arg],
        dst: u16,
    ) -> Result<bool, LoadError> {
        let &[a, b] = src else { return Ok(false) };
        let Some((_, &[next_fail, live, import, left, right, sum])) = self
            .peek(0)
            .filter(|(next, _)| function == am::times && next.op == Gen::GcBif2)
        else {
            return Ok(false);
        };
        let is_product = |arg| Self::reg(arg) == Some(dst);
        let addend = match (is_product(left), is_product(right)) {
            (true, false) => right,
            (false, true) => left,
            _ => return Ok(false),
        };
        if self.guard_bif(import)?.0 != am::plus || !is_product(sum) || next_fail != fail {
            return Ok(false);
        }
        self.at += 1;
        let words = [self.src(a)?, self.src(b)?, self.src(addend)?];
        let live = self.small_number(live)?;
        self.e.op(Op::MulAdd, 0, 0, dst);
        self.label_word(fail)?;
        self.e.word(u64::from(live));
        words.iter().for_each(|&word| self.e.word(word));
        Ok(true)
    }

    /// Integer operators with an instruction of their own.
    fn arithmetic(
        &mut self,
        function: Atom,
        fail: Arg,
        live: u16,
        src: &[Arg],
        dst: u16,
    ) -> Result<bool, LoadError> {
        let [a, b] = *src else { return Ok(false) };
        let Some(op) = arithmetic_op(function) else {
            return Ok(false);
        };
        let small = |arg| self.tables.constant(arg).filter(|term| term.is_small());
        let (ra, rb, ca, cb) = (Self::reg(a), Self::reg(b), small(a), small(b));
        match (op, ra, rb, ca, cb) {
            (Op::Add, Some(reg), _, _, Some(constant))
            | (Op::Add, _, Some(reg), Some(constant), _) => {
                self.arithmetic_constant(Op::AddRC, fail, live, reg, constant, dst)?;
            }
            (Op::Sub, Some(reg), _, _, Some(constant)) => {
                self.arithmetic_constant(Op::SubRC, fail, live, reg, constant, dst)?;
            }
            (Op::Add | Op::Sub, Some(ra), Some(rb), ..) => {
                self.e.op(
                    if op == Op::Add { Op::AddRR } else { Op::SubRR },
                    ra,
                    rb,
                    dst,
                );
                self.label_word(fail)?;
                self.e.word(u64::from(live));
            }
            _ => {
                let (a, b) = (self.src(a)?, self.src(b)?);
                self.e.op(op, 0, 0, dst);
                self.label_word(fail)?;
                self.e.word(u64::from(live));
                self.e.word(a);
                self.e.word(b);
            }
        }
        Ok(true)
    }

    fn arithmetic_constant(
        &mut self,
        op: Op,
        fail: Arg,
        live: u16,
        reg: u16,
        constant: RawTerm,
        dst: u16,
    ) -> Done {
        self.e.op(op, reg, 0, dst);
        self.label_word(fail)?;
        self.e.word(u64::from(live));
        self.e.word(constant.0);
        Ok(())
    }

    /// `element/2` with a constant index, `hd/1`, `tl/1` of a register.
    fn access(
        &mut self,
        function: Atom,
        fail: Arg,
        row: u64,
        src: &[Arg],
        dst: u16,
    ) -> Result<bool, LoadError> {
        match (function, src) {
            (am::element, &[Arg::I(index @ 1..=0xffff), tuple]) if Self::reg(tuple).is_some() => {
                let tuple = self.in_reg(tuple)?;
                self.e.op(Op::ElementRC, tuple, index as u16, dst);
            }
            (am::hd | am::tl, &[list]) if Self::reg(list).is_some() => {
                let list = self.in_reg(list)?;
                let op = if function == am::hd { Op::HdR } else { Op::TlR };
                self.e.op(op, list, 0, dst);
            }
            _ => return Ok(false),
        }
        self.label_word(fail)?;
        self.e.word(row);
        Ok(true)
    }

    /// As `bs_start_match3`: label, source, live, destination. `no_fail` and `resume` have no label.
    fn bs_start_match4(&mut self, args: &[Arg]) -> Done {
        let (src, dst) = (self.src(args[2])?, self.dst(args[3])?);
        let live = self.number(args[1])?;
        self.e.op(Op::BsStartMatch, 4, 0, 0);
        match args[0] {
            Arg::Label(label) => self.e.label_ref(label),
            _ => self.e.word(0),
        }
        for word in [src, live, u64::from(dst)] {
            self.e.word(word);
        }
        Ok(())
    }

    /// A slow instruction: all operands as words.
    fn slow(&mut self, instr: &Instr, args: &[Arg]) -> Done {
        if let Some(what) = slow::unknown(self.tables, instr.op, args) {
            return Err(self.bad(instr, what));
        }
        let args = &*slow::sorted(self.tables, instr.op, args);
        let op = slow_op(instr.op).ok_or_else(|| {
            self.bad(
                instr,
                "compilers before OTP 27 emit this instruction; compile the module again",
            )
        })?;
        let start = self.e.here();
        self.e.op(op, 0, 0, 0);
        let is_create = op == Op::BsCreateBin;
        let replacement = slow::replacement(self.tables, instr.op, args);
        for (i, &arg) in args.iter().enumerate() {
            match arg {
                _ if replacement.is_some_and(|(at, _)| at == i) => {
                    self.e.word(replacement.map_or(0, |(_, word)| word));
                }
                Arg::Label(label) => self.e.label_ref(label),
                Arg::Alloc { .. } => {
                    let need = self.need(arg)?;
                    self.e.word(need);
                }
                Arg::List(n) => self.e.word(u64::from(n)),
                Arg::U(offset) if op == Op::BsMatchString && i == 3 => self.e.string_ref(offset),
                Arg::U(_) | Arg::I(_) if is_create && self.is_string(args, i) => {
                    let offset = self.number(arg)?;
                    self.e.string_ref(offset);
                }
                Arg::U(n) => self.e.word(n),
                Arg::Overflow => self.e.word(u64::MAX >> 1),
                _ => {
                    let word = self.src(arg)?;
                    self.e.word(word);
                }
            }
        }
        self.e.end_slow(start);
        Ok(())
    }

    /// Is operand `i` of a `bs_create_bin` the value of a `string` segment?
    fn is_string(&self, args: &[Arg], i: usize) -> bool {
        const SEGMENT: usize = 6;
        let Some(at) = i.checked_sub(Gen::BsCreateBin.arity()) else {
            return false;
        };
        let kind = args[i - at % SEGMENT];
        at % SEGMENT == 4 && matches!(kind, Arg::Atom(row) if self.tables.atom(row) == am::string)
    }
}

enum Tail {
    No,
    NoFrame,
    Frame(u16),
}

/// For BIFs that the compiler emits without a count of live registers: they cannot collect.
pub(crate) const NO_LIVE: u16 = X_REGISTERS as u16;

/// Least value and length of a jump table for these pairs, where one pays.
fn dense(pairs: &[(RawTerm, u32)]) -> Option<(i64, usize)> {
    if pairs.len() < 4 || !pairs.iter().all(|(value, _)| value.is_small()) {
        return None;
    }
    let (least, most) = (
        pairs[0].0.small_value(),
        pairs[pairs.len() - 1].0.small_value(),
    );
    let span = usize::try_from(most.checked_sub(least)?)
        .ok()?
        .checked_add(1)?;
    (span <= pairs.len() * 2 + 8).then_some((least, span))
}

fn arithmetic_op(function: Atom) -> Option<Op> {
    Some(match function {
        am::plus => Op::Add,
        am::minus => Op::Sub,
        am::times => Op::Mul,
        am::div => Op::IntDiv,
        am::rem => Op::Rem,
        am::band => Op::Band,
        am::bor => Op::Bor,
        am::bxor => Op::Bxor,
        am::bsl => Op::Bsl,
        am::bsr => Op::Bsr,
        _ => return None,
    })
}

fn slow_op(op: Gen) -> Option<Op> {
    Some(match op {
        Gen::UpdateRecord => Op::UpdateRecord,
        Gen::PutMapAssoc => Op::PutMapAssoc,
        Gen::PutMapExact => Op::PutMapExact,
        Gen::HasMapFields => Op::HasMapFields,
        Gen::GetMapElements => Op::GetMapElements,
        Gen::BsGetInteger2 => Op::BsGetInteger,
        Gen::BsGetFloat2 => Op::BsGetFloat,
        Gen::BsGetBinary2 => Op::BsGetBinary,
        Gen::BsSkipBits2 => Op::BsSkipBits,
        Gen::BsTestTail2 => Op::BsTestTail,
        Gen::BsTestUnit => Op::BsTestUnit,
        Gen::BsMatchString => Op::BsMatchString,
        Gen::BsInitWritable => Op::BsInitWritable,
        Gen::BsGetUtf8 => Op::BsGetUtf8,
        Gen::BsSkipUtf8 => Op::BsSkipUtf8,
        Gen::BsGetUtf16 => Op::BsGetUtf16,
        Gen::BsSkipUtf16 => Op::BsSkipUtf16,
        Gen::BsGetUtf32 => Op::BsGetUtf32,
        Gen::BsSkipUtf32 => Op::BsSkipUtf32,
        Gen::BsGetTail => Op::BsGetTail,
        Gen::BsStartMatch3 => Op::BsStartMatch,
        Gen::BsGetPosition => Op::BsGetPosition,
        Gen::BsSetPosition => Op::BsSetPosition,
        Gen::BsCreateBin => Op::BsCreateBin,
        Gen::BsMatch => Op::BsMatch,
        Gen::IsAnyNativeRecord => Op::IsAnyNativeRecord,
        Gen::IsNativeRecord => Op::IsNativeRecord,
        Gen::GetRecordElements => Op::GetRecordElements,
        Gen::PutRecord => Op::PutRecord,
        Gen::IsRecordAccessible => Op::IsRecordAccessible,
        Gen::GetRecordField => Op::GetRecordField,
        _ => return None,
    })
}
