//! Transforms generic instructions to specific ones: it decodes operands and fuses common neighbours. ERTS does this
//! with its `ops.tab`.

mod bifs;
mod calls;
mod data;
mod guards;
mod operands;

use super::debug;
use super::emit::Emitter;
use super::types;
use super::{LoadError, Tables, lambdas};
use crate::beam::module::Export;
use crate::beam::{Arg, Op as Gen};
use crate::code::FunEntry;
use crate::code::op::{Op, put};
use crate::loader::debug::DebugTable;
use crate::loader::module::{Module, SourceFile};
use crate::loader::types::Types;
use crate::term::am;
use calls::Tail;

/// Transforms a whole module.
pub(super) fn module(tables: &Tables<'_>) -> Result<Module, LoadError> {
    let beam = tables.beam;
    let mut t = Transform {
        tables,
        e: Emitter::new(beam.label_count),
        lambdas: lambdas(tables),
        functions: Vec::with_capacity(beam.functions.len()),
        nifs: Vec::new(),
        lines: Vec::new(),
        debug: debug::table(tables),
        types: types::of(beam),
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
    nifs: Vec<u32>,
    lines: Vec<(u32, u32)>,
    debug: Option<Box<DebugTable>>,
    types: Types,
    on_load: Option<u32>,
    /// The next generic instruction.
    at: usize,
}

type Done = Result<(), LoadError>;

impl Transform<'_> {
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
        module.nifs = self.nifs;
        if let Some(debug) = &mut self.debug {
            debug.items.sort_by_key(|item| item.row);
        }
        module.debug = self.debug;
        self.types.trim();
        module.types = self.types;
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

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each generic instruction"
    )]
    fn instruction(&mut self) -> Done {
        let instr = &self.tables.beam.code[self.at];
        let args = self.tables.beam.args(instr);
        self.at += 1;
        self.note_types(args);
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
            Gen::ExecutableLine | Gen::IntCodeEnd => {}
            Gen::NifStart => self.nifs.extend(self.functions.last()),
            Gen::OnLoad => self.on_load = self.functions.last().copied(),

            Gen::Call => self.same(Op::Call, &args[1..])?,
            Gen::CallLast => {
                let (frame, target) = (self.small_number(args[2])?, self.label(args[1])?);
                self.put(put::CallLast { frame, target });
            }
            Gen::CallOnly => self.same(Op::CallOnly, &args[1..])?,
            Gen::CallExt => self.call_ext(args[1], Tail::No)?,
            Gen::CallExtLast => {
                let frame = self.small_number(args[2])?;
                self.call_ext(args[1], Tail::Frame(frame))?;
            }
            Gen::CallExtOnly => self.call_ext(args[1], Tail::NoFrame)?,
            Gen::Apply => {
                let arity = self.arity(args[0])?;
                self.put(put::Apply { arity });
            }
            Gen::ApplyLast => {
                let (arity, frame) = (self.arity(args[0])?, self.small_number(args[1])?);
                self.put(put::ApplyLast { arity, frame });
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
            Gen::Return => self.put(put::Return {}),

            Gen::Allocate => self.same(Op::Allocate, args)?,
            Gen::AllocateHeap => {
                let (frame, live) = (self.small_number(args[0])?, self.live(args[2])?);
                let need = self.need(args[1])?;
                self.put(put::AllocateHeap { frame, live, need });
            }
            Gen::TestHeap => {
                let live = self.live(args[1])?;
                let need = self.need(args[0])?;
                self.put(put::TestHeap { live, need });
            }
            Gen::Deallocate => self.deallocate(args)?,
            Gen::Trim => self.same(Op::Trim, &args[..1])?,
            Gen::InitYregs => {
                for &y in &args[1..] {
                    self.same(Op::InitY, &[y])?;
                }
            }

            Gen::Move => self.move_(args[0], args[1])?,
            Gen::Swap => self.swap(args)?,
            Gen::GetList => self.get_list(args)?,
            Gen::GetHd => {
                let (list, dst) = (self.in_reg(args[0])?, self.dst(args[1])?);
                self.put(put::GetHd { list, dst });
            }
            Gen::GetTl => {
                let (list, dst) = (self.in_reg(args[0])?, self.dst(args[1])?);
                self.put(put::GetTl { list, dst });
            }
            Gen::GetTupleElement => self.get_tuple_element(args)?,
            Gen::SetTupleElement => self.set_tuple_element(args)?,
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
            Gen::IsFunction2 => self.same(Op::IsFunction2, args)?,
            Gen::TestArity => self.tuple_of_arity(args, false)?,
            Gen::IsTaggedTuple => self.is_tagged_tuple(args)?,
            Gen::IsLt => self.is_lt(args)?,
            Gen::IsGe => self.is_ge(args)?,
            Gen::IsEqExact => self.is_eq_exact(args)?,
            Gen::IsNeExact => self.is_ne_exact(args)?,
            Gen::IsEq => self.same(Op::IsEqSS, args)?,
            Gen::IsNe => self.same(Op::IsNeSS, args)?,
            Gen::Jump => self.same(Op::Jump, args)?,
            Gen::SelectVal => self.select_val(args)?,
            Gen::SelectTupleArity => self.select_tuple_arity(args)?,

            Gen::Bif0 => self.bif0(args)?,
            Gen::Bif1 => self.bif(args[0], None, args[1], &args[2..3], args[3])?,
            Gen::Bif2 => self.bif(args[0], None, args[1], &args[2..4], args[4])?,
            Gen::Bif3 => self.bif(args[0], None, args[1], &args[2..5], args[5])?,
            Gen::GcBif1 => self.bif(args[0], Some(args[1]), args[2], &args[3..4], args[4])?,
            Gen::GcBif2 => self.bif(args[0], Some(args[1]), args[2], &args[3..5], args[5])?,
            Gen::GcBif3 => self.bif(args[0], Some(args[1]), args[2], &args[3..6], args[6])?,

            Gen::Fmove => self.fmove(args)?,
            Gen::Fconv => self.fconv(args)?,
            Gen::Fadd | Gen::Fsub | Gen::Fmul | Gen::Fdiv => self.float_op(instr.op, args)?,
            Gen::Fnegate => self.fnegate(args)?,

            Gen::Catch | Gen::Try => self.same(Op::Catch, args)?,
            Gen::CatchEnd => self.same(Op::CatchEnd, args)?,
            Gen::TryEnd => self.same(Op::TryEnd, args)?,
            Gen::TryCase => self.same(Op::TryCase, args)?,
            Gen::TryCaseEnd => self.same(Op::TryCaseEnd, args)?,
            Gen::Badmatch => self.same(Op::Badmatch, args)?,
            Gen::CaseEnd => self.same(Op::CaseEnd, args)?,
            Gen::Badrecord => self.same(Op::Badrecord, args)?,
            Gen::Raise => self.same(Op::Raise, args)?,
            Gen::IfEnd => self.put(put::IfEnd {}),
            Gen::RawRaise => self.put(put::RawRaise {}),
            Gen::BuildStacktrace => self.put(put::BuildStacktrace {}),

            Gen::MakeFun3 => self.make_fun(args)?,
            Gen::Send => self.send(),
            Gen::LoopRec => self.same(Op::LoopRec, args)?,
            Gen::LoopRecEnd => self.same(Op::LoopRecEnd, args)?,
            Gen::Wait => self.same(Op::Wait, args)?,
            Gen::WaitTimeout => self.same(Op::WaitTimeout, args)?,
            Gen::Timeout => self.put(put::Timeout {}),
            Gen::RemoveMessage => self.put(put::RemoveMessage {}),
            Gen::RecvMarkerReserve => self.same(Op::RecvMarkerReserve, args)?,
            Gen::RecvMarkerBind => self.same(Op::RecvMarkerBind, args)?,
            Gen::RecvMarkerClear => self.same(Op::RecvMarkerClear, args)?,
            Gen::RecvMarkerUse => self.same(Op::RecvMarkerUse, args)?,
            Gen::BsStartMatch4 => self.bs_start_match4(args)?,
            _ => self.slow(instr, args)?,
        }
        Ok(())
    }

    /// Keeps what is known of the registers among these operands of the next specific instruction.
    fn note_types(&mut self, args: &[Arg]) {
        for &arg in args {
            if let (Some(reg), Arg::TypedX(_, row) | Arg::TypedY(_, row)) = (Self::reg(arg), arg) {
                self.types.read(self.e.here(), reg, row);
            }
        }
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
        self.put(put::LineBreakpointOff { live });
        Ok(())
    }

    /// As `bs_start_match3`: label, source, live, destination. `no_fail` and `resume` have no label.
    fn bs_start_match4(&mut self, args: &[Arg]) -> Done {
        let fail = match args[0] {
            Arg::Label(label) => label,
            _ => 0,
        };
        self.put(put::BsStartMatch {
            fail,
            src: self.src(args[2])?,
            live: self.live(args[1])?,
            dst: self.dst(args[3])?,
        });
        Ok(())
    }
}
