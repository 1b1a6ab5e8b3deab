//! The templates: machine code of each instruction, by family.
//!
//! A template does what is common in line. It leaves the rest to the instruction's helper, which does all of the
//! instruction again from its beginning: so a template changes nothing before it is sure.

mod arith;
pub(super) mod binaries;
mod bits;
pub(super) mod calls;
mod create;
mod data;
pub(super) mod effects;
mod encode;
pub(super) mod floats;
mod frames;
mod guards;
mod handlers;
pub(super) mod keeps;
mod maps;
mod match_;
mod order;
mod receive;
mod select;
mod types;

use dynasmrt::{DynasmApi, dynasm};
use smallvec::SmallVec;

use self::encode::{Width, opcode};
use super::compile::Compiler;
use crate::code::op::{Op, read};
use crate::code::operand::{Instruction, Reg, Src};
use crate::term::{CodeAddress, RawTerm};

/// Numbers of machine registers.
pub(super) const RAX: u8 = 0;
pub(super) const RCX: u8 = 1;
pub(super) const RDX: u8 = 2;
const RBX: u8 = 3;
const RSP: u8 = 4;
const RBP: u8 = 5;
const RSI: u8 = 6;
const RDI: u8 = 7;
const R8: u8 = 8;
const R9: u8 = 9;
const R10: u8 = 10;
const R11: u8 = 11;
pub(super) const R15: u8 = 15;

/// The instructions: those with a template; those whose helper calls; those that their helper does all of. The rest stands
/// in no function.
macro_rules! all_templates {
    ($then:ident) => {
        $then! {
            templates {
                Jump frames::jump;
                Return frames::return_;
                Deallocate frames::deallocate;
                DeallocateReturn frames::deallocate_return;
                Allocate frames::allocate;
                AllocateHeap frames::allocate_heap;
                TestHeap frames::test_heap;
                Trim frames::trim;

                Call calls::call;
                CallLast calls::call_last;
                CallOnly calls::call_only;
                CallExt calls::call_ext;
                CallExtLast calls::call_ext_last;
                CallExtOnly calls::call_ext_only;
                CallFun calls::call_fun;
                CallFunLast calls::call_fun_last;
                CallBif calls::call_bif;
                CallHbif calls::call_hbif;

                InitY data::init_y;
                MoveRR data::move_rr;
                Move2RR data::move2_rr;
                MoveCR data::move_cr;
                SwapRR data::swap_rr;
                GetList data::get_list;
                IsNonemptyListGetList data::is_nonempty_list_get_list;
                GetHd data::get_hd;
                GetTl data::get_tl;
                GetTupleElement data::get_tuple_element;
                GetTupleElement2 data::get_tuple_element2;
                PutListRR data::put_list_rr;
                PutListCR data::put_list_cr;
                PutListRC data::put_list_rc;
                PutTuple data::put_tuple;
                SetTupleElement data::set_tuple_element;
                UpdateRecord data::update_record;
                MakeFun data::make_fun;
                ElementRC data::element_rc;
                HdR data::hd_r;
                TlR data::tl_r;

                IsInteger types::is_integer;
                IsFloat types::is_float;
                IsAtom types::is_atom;
                IsBoolean types::is_boolean;
                IsNil types::is_nil;
                IsList types::is_list;
                IsNonemptyList types::is_nonempty_list;
                IsTuple types::is_tuple;
                TestArity types::test_arity;
                IsTupleOfArity types::is_tuple_of_arity;
                IsTaggedTuple types::is_tagged_tuple;
                IsBitstr types::is_bitstr;
                IsBinary types::is_binary;
                IsMap types::is_map;
                IsFunction types::is_function;

                IsEqExactRR order::is_eq_exact_rr;
                IsEqExactSS order::is_eq_exact_ss;
                IsNeExactSS order::is_ne_exact_ss;
                IsEqSS order::is_eq_ss;
                IsNeSS order::is_ne_ss;
                IsLtSS order::is_lt_ss;
                IsGeSS order::is_ge_ss;
                IsEqExactRC order::is_eq_exact_rc;
                IsNeExactRC order::is_ne_exact_rc;
                IsLtRR order::is_lt_rr;
                IsLtRC order::is_lt_rc;
                IsLtCR order::is_lt_cr;
                IsGeRR order::is_ge_rr;
                IsGeRC order::is_ge_rc;
                IsGeCR order::is_ge_cr;
                SelectVal select::select_val;
                JumpTable select::jump_table;
                SelectTupleArity select::select_tuple_arity;

                AddRR arith::add_rr;
                AddRC arith::add_rc;
                SubRR arith::sub_rr;
                SubRC arith::sub_rc;
                Mul arith::mul;
                MulAdd arith::mul_add;
                IntDiv arith::int_div;
                Rem arith::rem;
                Band arith::band;
                Bor arith::bor;
                Bxor arith::bxor;
                Bsl arith::bsl;
                Bsr arith::bsr;

                Bif1 guards::bif1;
                Bif2 guards::bif2;
                SelfR guards::self_r;

                Catch handlers::catch;
                TryEnd handlers::try_end;
                CatchEnd handlers::catch_end;
                TryCase handlers::try_case;

                FmoveFrom floats::fmove_from;
                FmoveTo floats::fmove_to;
                Fconv floats::fconv;
                Fadd floats::fadd;
                Fsub floats::fsub;
                Fmul floats::fmul;
                Fdiv floats::fdiv;
                Fnegate floats::fnegate;

                BsStartMatch bits::bs_start_match;
                BsGetPosition bits::bs_get_position;
                BsSetPosition bits::bs_set_position;
                BsTestTail bits::bs_test_tail;
                BsTestUnit bits::bs_test_unit;
                BsGetUtf8 bits::bs_get_utf8;
                BsSkipUtf8 bits::bs_skip_utf8;
                BsMatch match_::bs_match;
                BsGetBinary bits::bs_get_binary;
                BsGetTail bits::bs_get_tail;
                BsSkipBits bits::bs_skip_bits;
                BsCreateBin create::bs_create_bin;

                GetMapElements maps::get_map_elements;
                HasMapFields maps::has_map_fields;
                PutMapAssoc maps::put_map_assoc;
                PutMapExact maps::put_map_exact;

                LoopRec receive::loop_rec;
                LoopRecEnd receive::loop_rec_end;
            }
            calling {
                CallApply CallApplyLast CallApplyFun CallApplyFunLast Apply ApplyLast Send
                Yield Hibernate LineBreakpoint LineBreakpointOff
            }
            others {
                GetTupleElementWide PutTupleWide SetTupleElementWide
                IsNumber IsPid IsPort IsReference IsTupleOfArityWide IsTaggedTupleWide IsFunction2
                SelectTerm
                Bif0 Bif3
                TryCaseEnd Badmatch CaseEnd Badrecord IfEnd Raise RawRaise BuildStacktrace
                Wait WaitTimeout Timeout RemoveMessage
                RecvMarkerReserve RecvMarkerBind RecvMarkerClear RecvMarkerUse
                BsGetInteger BsGetFloat BsMatchString BsInitWritable
                BsGetUtf16 BsSkipUtf16 BsGetUtf32 BsSkipUtf32
                IsAnyNativeRecord IsNativeRecord GetRecordElements PutRecord IsRecordAccessible GetRecordField
                BifEntry ErrorHandler ApplyEntry ApplyFunEntry
            }
        }
    };
}

/// Puts the code of the instruction at `pc`, whose first word is `word`.
///
/// # Safety
/// I1: the loader has put an instruction there.
pub(super) unsafe fn instruction(c: &mut Compiler<'_>, pc: CodeAddress, word: u64) {
    macro_rules! put {
        (
            templates { $($op:ident $template:path;)* }
            calling { $($calling:ident)* }
            others { $($other:ident)* }
        ) => {
            // SAFETY: by contract.
            unsafe {
                match Op::of(word) {
                    $(Op::$op => $template(c, pc, read::$op::at(pc, word)),)*
                    $(Op::$calling => c.calling_helper(pc, Op::$calling, read::$calling::at(pc, word)),)*
                    $(Op::$other => c.helper(pc, Op::$other, read::$other::at(pc, word)),)*
                    op => unreachable!("{op:?} stands in no function"),
                }
            }
        };
    }
    all_templates!(put);
}

/// The registers that an instruction's template loads first, where it can take them from machine registers.
macro_rules! loading {
    ($($op:ident $($register:ident)*;)*) => {
        /// The registers that the template of the instruction at `pc` begins by loading, where it begins so.
        ///
        /// # Safety
        /// I1: the loader has put an instruction there, whose first word is `word`.
        pub(super) unsafe fn first_loads(
            c: &Compiler<'_>,
            pc: CodeAddress,
            word: u64,
        ) -> SmallVec<[Reg; 5]> {
            // SAFETY: by contract.
            unsafe {
                match Op::of(word) {
                    $(Op::$op => {
                        let i = read::$op::at(pc, word);
                        let all = [$(Source::from(i.$register())),*];
                        all.into_iter().filter_map(|source| source.0.reg()).collect()
                    })*
                    _ => calls::first_loads(c, pc, word),
                }
            }
        }
    };
}

/// A source, or a register as one.
struct Source(Src);

impl From<Src> for Source {
    fn from(src: Src) -> Source {
        Source(src)
    }
}

impl From<Reg> for Source {
    fn from(reg: Reg) -> Source {
        Source(Src::of(reg))
    }
}

loading! {
    Bif1 src;
    Bif2 left right;
    GetMapElements map;
    HasMapFields map;
    ElementRC tuple;
    FmoveFrom src;
    Fconv src;
    HdR list;
    TlR list;

    IsInteger src;
    IsFloat src;
    IsAtom src;
    IsBoolean src;
    IsNil src;
    IsList src;
    IsTuple src;
    TestArity src;
    IsTupleOfArity src;
    IsTaggedTuple src;
    IsBitstr src;
    IsBinary src;
    IsMap src;
    IsFunction src;

    IsEqExactRR left right;
    IsEqExactSS left right;
    IsNeExactSS left right;
    IsEqSS left right;
    IsNeSS left right;
    IsLtSS left right;
    IsGeSS left right;
    IsEqExactRC left;
    IsNeExactRC left;
    IsLtRR left right;
    IsLtRC left;
    IsLtCR right;
    IsGeRR left right;
    IsGeRC left;
    IsGeCR right;

    AddRR left right;
    AddRC left;
    SubRR left right;
    SubRC left;
    Mul left right;
    IntDiv left right;
    Rem left right;
    Band left right;
    Bor left right;
    Bxor left right;
    Bsl left right;
    Bsr left right;

    SelectVal src;
    JumpTable src;
    SelectTupleArity src;

    BsStartMatch src;
    BsMatch context;
    BsGetPosition context;
    BsSetPosition context position;
    BsTestTail context;
    BsTestUnit context;
    BsGetBinary context;
    BsGetTail context;
    BsSkipBits context;
    BsGetUtf8 context;
    BsSkipUtf8 context;
}

/// Where a register is: the machine register that its offset counts from, and the offset.
fn place(reg: Reg) -> (u8, i32) {
    match reg.is_y() {
        true => (RSP, (reg.0 - 4) as i32),
        false => (RBX, reg.0 as i32),
    }
}

/// Loads from memory.
fn load_at(c: &mut Compiler<'_>, to: u8, base: u8, offset: i32) {
    encode::put(c, opcode::LOAD, Width::Bits64, to, base, offset);
}

/// Stores to memory.
fn store_at(c: &mut Compiler<'_>, base: u8, offset: i32, from: u8) {
    encode::put(c, opcode::STORE, Width::Bits64, from, base, offset);
}

/// Puts the sum of a machine register and a number in another one.
pub(super) fn sum(c: &mut Compiler<'_>, to: u8, base: u8, number: i32) {
    encode::put(c, opcode::LEA, Width::Bits64, to, base, number);
}

/// The low half of such a sum, for which the high half does not matter.
pub(super) fn low_sum(c: &mut Compiler<'_>, to: u8, base: u8, number: i32) {
    encode::put(c, opcode::LEA, Width::Bits32, to, base, number);
}

/// Loads a register's word.
pub(super) fn load(c: &mut Compiler<'_>, to: u8, reg: Reg) {
    let (base, offset) = place(reg);
    load_at(c, to, base, offset);
}

/// Sets a register.
fn store(c: &mut Compiler<'_>, reg: Reg, from: u8) {
    let (base, offset) = place(reg);
    store_at(c, base, offset, from);
}

/// Puts a constant in a machine register.
fn constant(c: &mut Compiler<'_>, to: u8, word: u64) {
    if let Ok(word) = u32::try_from(word) {
        dynasm!(c.a; .arch x64; mov Rd(to), word as i32);
    } else if let Ok(word) = i32::try_from(word as i64) {
        dynasm!(c.a; .arch x64; mov Rq(to), word);
    } else {
        dynasm!(c.a; .arch x64; mov Rq(to), QWORD word as i64);
    }
}

/// Stores a constant.
fn store_constant_at(c: &mut Compiler<'_>, base: u8, offset: i32, word: u64) {
    if let Ok(word) = i32::try_from(word as i64) {
        encode::put_number(c, base, offset, word);
    } else {
        constant(c, RCX, word);
        store_at(c, base, offset, RCX);
    }
}

/// Loads a source.
pub(super) fn source(c: &mut Compiler<'_>, to: u8, src: Src) {
    match src.reg() {
        Some(reg) => load(c, to, reg),
        None => constant(c, to, src.0),
    }
}

/// Adds to a machine register, in as few bytes as that takes; sets the flags.
fn add(c: &mut Compiler<'_>, to: u8, number: i32) {
    match i8::try_from(number) {
        Ok(number) => dynasm!(c.a; .arch x64; add Rq(to), BYTE number),
        Err(_) => dynasm!(c.a; .arch x64; add Rq(to), number),
    }
}

/// Is this word a small integer?
pub(super) fn is_small(word: u64) -> bool {
    RawTerm(word).is_small()
}

/// Compares a machine register with a constant.
fn compare(c: &mut Compiler<'_>, register: u8, word: u64) {
    debug_assert_ne!(register, RCX, "the constant's");
    if let Ok(word) = i8::try_from(word as i64) {
        encode::compare(c, register, word);
    } else if let Ok(word) = i32::try_from(word as i64) {
        dynasm!(c.a; .arch x64; cmp Rq(register), word);
    } else {
        constant(c, RCX, word);
        dynasm!(c.a; .arch x64; cmp Rq(register), rcx);
    }
}
