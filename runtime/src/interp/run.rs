//! The interpreter's loop, which fetches instructions and runs the arm of each.

use std::mem::MaybeUninit;
use std::ops::ControlFlow;

use super::arms::{
    arith, bifs, calls, data, entries, floats, frames, handlers, order, receive, select, types,
};
use super::regs::{Go, Regs};
use super::slow::{Flow, Slow};
use super::{bits, maps, records};
use crate::code::op::Op;
use crate::code::operand::Instruction;
use crate::code::stubs::spawn_entry;
use crate::exec::exception::Current;
use crate::process::{Outcome, Process};
use crate::trace;

/// Float registers there are.
const FLOAT_REGISTERS: usize = 1024;

/// Runs `p` until its time is used up, it waits or it exits.
pub(crate) fn run(p: &mut Process) -> Outcome {
    trace::breakpoint::scheduled_in(p);
    let outcome = if p.flags.get().saves_calls {
        run_code::<true>(p)
    } else {
        run_code::<false>(p)
    };
    trace::breakpoint::scheduled_out(p);
    if !matches!(outcome, Outcome::Exit(_)) && p.shared().tracee.has(trace::events::AT_TURNS) {
        trace::events::scheduled_out(p);
    }
    outcome
}

/// What a slow instruction does, the process swapped out for it.
///
/// # Safety
/// I1, I3: the handler is the instruction's, and the process has got to it.
#[inline(always)]
unsafe fn slow<I: Instruction>(
    r: &mut Regs<'_>,
    i: I,
    handler: fn(&mut Slow<'_>, I) -> Flow,
) -> Go {
    r.swap_out();
    // SAFETY: by contract; I2: it is swapped out.
    let flow = handler(&mut unsafe { Slow::new(r.p) }, i);
    match flow {
        Flow::Next => {
            r.swap_in();
            r.next(i)
        }
        Flow::Jump(address) => {
            r.swap_in();
            r.jump(address)
        }
        Flow::Raise => r.raise(Current::Code(r.pc)),
        Flow::Exit(exiting) => ControlFlow::Break(Outcome::Exit(exiting)),
    }
}

/// The loop itself. Starts at the process's `pc`, with its live registers in place. There is another one for
/// processes that save their calls, so that the others need not ask.
#[expect(
    clippy::too_many_lines,
    reason = "the dispatch: a line for each instruction"
)]
fn run_code<const SAVES: bool>(p: &mut Process) -> Outcome {
    let mut floats = [const { MaybeUninit::<f64>::uninit() }; FLOAT_REGISTERS];
    let pc = match p.pc.get() {
        pc if pc.is_null() => spawn_entry(),
        pc => pc,
    };
    let mut r = Regs::new(p, floats.as_mut_ptr().cast(), pc);
    // SAFETY: I1, I2, I3: the instruction at `pc`, whose registers the compiler and the loader have filled.
    unsafe {
        'fetch: loop {
            debug_assert!(
                !r.p.is_exiting(),
                "a process that exits runs no instruction"
            );
            let mut word = *r.pc.code();
            'exec: loop {
                macro_rules! arm {
                    ($arm:expr) => {{
                        let instruction = Instruction::at(r.pc, word);
                        match $arm(&mut r, instruction) {
                            ControlFlow::Continue(()) => continue 'fetch,
                            ControlFlow::Break(outcome) => return outcome,
                        }
                    }};
                }
                macro_rules! slow {
                    ($handler:path) => {
                        arm!(|r: &mut Regs<'_>, i| slow(r, i, $handler))
                    };
                }
                // I1: the low half is an instruction's number.
                match std::mem::transmute::<u16, Op>(word as u16) {
                    Op::Breakpoint => {
                        r.swap_out();
                        match trace::breakpoint::hit(r.p, r.pc) {
                            Ok(original) => word = original,
                            Err(exiting) => return Outcome::Exit(exiting),
                        }
                        r.swap_in();
                        continue 'exec;
                    }
                    Op::FuncInfo => arm!(entries::func_info),
                    Op::ErrorHandler => arm!(entries::error_handler::<SAVES>),
                    Op::BifEntry => arm!(bifs::bif_entry),
                    Op::NifEntry => arm!(bifs::nif_entry),
                    Op::ApplyEntry => arm!(entries::apply_entry::<SAVES>),
                    Op::ApplyFunEntry => arm!(entries::apply_fun_entry::<SAVES>),
                    Op::SpawnEntry => arm!(entries::spawn_entry::<SAVES>),
                    Op::NormalExit => arm!(entries::normal_exit),
                    Op::TraceReturn => arm!(entries::trace_return),
                    Op::LineBreakpointOff => arm!(entries::line_breakpoint_off),
                    Op::LineBreakpoint => arm!(entries::line_breakpoint),
                    Op::LineBreakpointEnd => arm!(entries::line_breakpoint_end),

                    Op::Jump => arm!(frames::jump),
                    Op::JumpTarget => arm!(entries::jump_target),
                    Op::Call => arm!(calls::call),
                    Op::CallLast => arm!(calls::call_last),
                    Op::CallOnly => arm!(calls::call_only),
                    Op::CallExt => arm!(calls::call_ext::<SAVES>),
                    Op::CallExtLast => arm!(calls::call_ext_last::<SAVES>),
                    Op::CallExtOnly => arm!(calls::call_ext_only::<SAVES>),
                    Op::CallBif => arm!(bifs::call_bif_light::<SAVES>),
                    Op::CallHbif => arm!(bifs::call_bif_heavy::<SAVES>),
                    Op::CallApply => arm!(calls::call_apply::<SAVES>),
                    Op::CallApplyLast => arm!(calls::call_apply_last::<SAVES>),
                    Op::CallApplyFun => arm!(calls::call_apply_fun::<SAVES>),
                    Op::CallApplyFunLast => arm!(calls::call_apply_fun_last::<SAVES>),
                    Op::Yield => arm!(entries::yield_),
                    Op::Hibernate => arm!(entries::hibernate),
                    Op::Apply => arm!(calls::apply::<SAVES>),
                    Op::ApplyLast => arm!(calls::apply_last::<SAVES>),
                    Op::CallFun => arm!(calls::call_fun::<SAVES>),
                    Op::CallFunLast => arm!(calls::call_fun_last::<SAVES>),
                    Op::Return => arm!(frames::return_),
                    Op::Deallocate => arm!(frames::deallocate),
                    Op::DeallocateReturn => arm!(frames::deallocate_return),
                    Op::Allocate => arm!(frames::allocate),
                    Op::AllocateHeap => arm!(frames::allocate_heap),
                    Op::TestHeap => arm!(frames::test_heap),
                    Op::Trim => arm!(frames::trim),
                    Op::InitY => arm!(data::init_y),

                    Op::MoveRR => arm!(data::move_rr),
                    Op::Move2RR => arm!(data::move2_rr),
                    Op::MoveCR => arm!(data::move_cr),
                    Op::SwapRR => arm!(data::swap_rr),
                    Op::GetList => arm!(data::get_list),
                    Op::GetHd => arm!(data::get_hd),
                    Op::GetTl => arm!(data::get_tl),
                    Op::GetTupleElement => arm!(data::get_tuple_element),
                    Op::GetTupleElementWide => arm!(data::get_tuple_element_wide),
                    Op::GetTupleElement2 => arm!(data::get_tuple_element2),
                    Op::PutListRR => arm!(data::put_list_rr),
                    Op::PutListCR => arm!(data::put_list_cr),
                    Op::PutListRC => arm!(data::put_list_rc),
                    Op::PutTuple => arm!(data::put_tuple),
                    Op::PutTupleWide => arm!(data::put_tuple_wide),
                    Op::SetTupleElement => arm!(data::set_tuple_element),
                    Op::SetTupleElementWide => arm!(data::set_tuple_element_wide),

                    Op::IsInteger => arm!(types::is_integer),
                    Op::IsFloat => arm!(types::is_float),
                    Op::IsNumber => arm!(types::is_number),
                    Op::IsAtom => arm!(types::is_atom),
                    Op::IsBoolean => arm!(types::is_boolean),
                    Op::IsPid => arm!(types::is_pid),
                    Op::IsPort => arm!(types::is_port),
                    Op::IsReference => arm!(types::is_reference),
                    Op::IsNil => arm!(types::is_nil),
                    Op::IsList => arm!(types::is_list),
                    Op::IsNonemptyList => arm!(types::is_nonempty_list),
                    Op::IsTuple => arm!(types::is_tuple),
                    Op::TestArity => arm!(types::test_arity),
                    Op::IsTupleOfArity => arm!(types::is_tuple_of_arity),
                    Op::IsTupleOfArityWide => arm!(types::is_tuple_of_arity_wide),
                    Op::IsTaggedTuple => arm!(types::is_tagged_tuple),
                    Op::IsTaggedTupleWide => arm!(types::is_tagged_tuple_wide),
                    Op::IsBinary => arm!(types::is_binary),
                    Op::IsBitstr => arm!(types::is_bitstr),
                    Op::IsMap => arm!(types::is_map),
                    Op::IsFunction => arm!(types::is_function),
                    Op::IsFunction2 => arm!(types::is_function2),
                    Op::IsNonemptyListGetList => arm!(data::is_nonempty_list_get_list),

                    Op::IsEqExactRR => arm!(order::is_eq_exact_rr),
                    Op::IsEqExactRC => arm!(order::is_eq_exact_rc),
                    Op::IsEqExactSS => arm!(order::is_eq_exact_ss),
                    Op::IsNeExactRC => arm!(order::is_ne_exact_rc),
                    Op::IsNeExactSS => arm!(order::is_ne_exact_ss),
                    Op::IsEqSS => arm!(order::is_eq_ss),
                    Op::IsNeSS => arm!(order::is_ne_ss),
                    Op::IsLtRR => arm!(order::is_lt_rr),
                    Op::IsLtRC => arm!(order::is_lt_rc),
                    Op::IsLtCR => arm!(order::is_lt_cr),
                    Op::IsLtSS => arm!(order::is_lt_ss),
                    Op::IsGeRR => arm!(order::is_ge_rr),
                    Op::IsGeRC => arm!(order::is_ge_rc),
                    Op::IsGeCR => arm!(order::is_ge_cr),
                    Op::IsGeSS => arm!(order::is_ge_ss),
                    Op::SelectVal => arm!(select::select_val),
                    Op::JumpTable => arm!(select::jump_table),
                    Op::SelectTerm => arm!(select::select_term),
                    Op::SelectTupleArity => arm!(select::select_tuple_arity),

                    Op::AddRR => arm!(arith::add_rr),
                    Op::AddRC => arm!(arith::add_rc),
                    Op::SubRR => arm!(arith::sub_rr),
                    Op::SubRC => arm!(arith::sub_rc),
                    Op::Bif2 => arm!(bifs::bif2),
                    Op::Mul => arm!(arith::mul),
                    Op::MulAdd => arm!(arith::mul_add),
                    Op::IntDiv => arm!(arith::int_div),
                    Op::Rem => arm!(arith::rem),
                    Op::Band => arm!(arith::band),
                    Op::Bor => arm!(arith::bor),
                    Op::Bxor => arm!(arith::bxor),
                    Op::Bsl => arm!(arith::bsl),
                    Op::Bsr => arm!(arith::bsr),
                    Op::Bif0 => arm!(bifs::bif0),
                    Op::Bif1 => arm!(bifs::bif1),
                    Op::Bif3 => arm!(bifs::bif3),
                    Op::SelfR => arm!(bifs::self_r),
                    Op::ElementRC => arm!(bifs::element_rc),
                    Op::HdR => arm!(bifs::hd_r),
                    Op::TlR => arm!(bifs::tl_r),

                    Op::FmoveFrom => arm!(floats::fmove_from),
                    Op::FmoveTo => arm!(floats::fmove_to),
                    Op::Fconv => arm!(floats::fconv),
                    Op::Fadd => arm!(floats::fadd),
                    Op::Fsub => arm!(floats::fsub),
                    Op::Fmul => arm!(floats::fmul),
                    Op::Fdiv => arm!(floats::fdiv),
                    Op::Fnegate => arm!(floats::fnegate),

                    Op::Catch => arm!(handlers::catch),
                    Op::CatchEnd => arm!(handlers::catch_end),
                    Op::TryEnd => arm!(handlers::try_end),
                    Op::TryCase => arm!(handlers::try_case),
                    Op::TryCaseEnd => arm!(handlers::try_case_end),
                    Op::Badmatch => arm!(handlers::badmatch),
                    Op::CaseEnd => arm!(handlers::case_end),
                    Op::Badrecord => arm!(handlers::badrecord),
                    Op::IfEnd => arm!(handlers::if_end),
                    Op::Raise => arm!(handlers::raise),
                    Op::RawRaise => arm!(handlers::raw_raise),
                    Op::BuildStacktrace => arm!(handlers::build_stacktrace),

                    Op::MakeFun => arm!(data::make_fun),
                    Op::Send => arm!(bifs::send::<SAVES>),
                    Op::LoopRec => arm!(receive::loop_rec),
                    Op::LoopRecEnd => arm!(receive::loop_rec_end),
                    Op::Wait => arm!(receive::wait),
                    Op::WaitTimeout => arm!(receive::wait_timeout),
                    Op::Timeout => arm!(receive::timeout::<SAVES>),
                    Op::RemoveMessage => arm!(receive::remove_message::<SAVES>),
                    Op::RecvMarkerReserve => arm!(receive::recv_marker_reserve),
                    Op::RecvMarkerBind => arm!(receive::recv_marker_bind),
                    Op::RecvMarkerClear => arm!(receive::recv_marker_clear),
                    Op::RecvMarkerUse => arm!(receive::recv_marker_use),

                    Op::UpdateRecord => slow!(records::update_record),
                    Op::PutMapAssoc => slow!(maps::put_map_assoc),
                    Op::PutMapExact => slow!(maps::put_map_exact),
                    Op::HasMapFields => slow!(maps::has_map_fields),
                    Op::GetMapElements => slow!(maps::get_map_elements),
                    Op::BsGetInteger => slow!(bits::get::bs_get_integer2),
                    Op::BsGetFloat => slow!(bits::get::bs_get_float2),
                    Op::BsGetBinary => slow!(bits::get::bs_get_binary2),
                    Op::BsSkipBits => slow!(bits::get::bs_skip_bits2),
                    Op::BsTestTail => slow!(bits::start::bs_test_tail2),
                    Op::BsTestUnit => slow!(bits::start::bs_test_unit),
                    Op::BsMatchString => slow!(bits::start::bs_match_string),
                    Op::BsInitWritable => slow!(bits::create::bs_init_writable),
                    Op::BsGetUtf8 => slow!(bits::get::bs_get_utf8),
                    Op::BsSkipUtf8 => slow!(bits::get::bs_skip_utf8),
                    Op::BsGetUtf16 => slow!(bits::get::bs_get_utf16),
                    Op::BsSkipUtf16 => slow!(bits::get::bs_skip_utf16),
                    Op::BsGetUtf32 => slow!(bits::get::bs_get_utf32),
                    Op::BsSkipUtf32 => slow!(bits::get::bs_skip_utf32),
                    Op::BsGetTail => slow!(bits::start::bs_get_tail),
                    Op::BsStartMatch => slow!(bits::start::bs_start_match),
                    Op::BsGetPosition => slow!(bits::start::bs_get_position),
                    Op::BsSetPosition => slow!(bits::start::bs_set_position),
                    Op::BsCreateBin => slow!(bits::create::bs_create_bin),
                    Op::BsMatch => slow!(bits::match_::bs_match),
                    Op::IsAnyNativeRecord => slow!(records::is_any_native_record),
                    Op::IsNativeRecord => slow!(records::is_native_record),
                    Op::GetRecordElements => slow!(records::get_record_elements),
                    Op::PutRecord => slow!(records::put_record),
                    Op::IsRecordAccessible => slow!(records::is_record_accessible),
                    Op::GetRecordField => slow!(records::get_record_field),
                }
            }
        }
    }
}
