//! Which machine registers templates leave alone.

use super::{R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI};
use crate::code::op::{Op, read};
use crate::code::operand::Instruction;
use crate::term::{CodeAddress, RawTerm};

/// Machine registers that may hold values: those first that no call has an argument in, those last that most templates
/// take.
pub(in crate::jit) const FREE: [u8; 9] = [R8, R11, R10, R9, RDI, RSI, RCX, RDX, RAX];

/// Machine registers that hold the first x registers when a function is called, and `x0` when it returns.
pub(in crate::jit) const ARGUMENTS: [u8; 4] = [RSI, RDI, R9, R10];

/// A set of machine registers: a bit for each.
pub(in crate::jit) type Set = u16;

const fn set<const N: usize>(registers: [u8; N]) -> Set {
    let (mut set, mut n) = (0, 0);
    while n < N {
        set |= 1 << registers[n];
        n += 1;
    }
    set
}

pub(in crate::jit) const NONE: Set = 0;
pub(in crate::jit) const ALL: Set = set(FREE);
const BUT_RAX_RDX: Set = ALL & !set([RAX, RDX]);
const BUT_THREE: Set = BUT_RAX_RDX & !set([RCX]);
const BUT_FOUR: Set = BUT_THREE & !set([R11]);
/// Those in which a match makes integers, where they hold nothing else.
pub(super) const MATCHED: Set = set(ARGUMENTS);

/// What the template of the instruction at `pc` leaves alone, whose first word is `word`, besides those that it begins by
/// loading into: no register where it does not say so. `None` where it takes what is held as it needs it.
///
/// # Safety
/// I1: the loader has put an instruction there.
pub(in crate::jit) unsafe fn kept(pc: CodeAddress, word: u64) -> Option<Set> {
    // SAFETY: by contract.
    unsafe {
        Some(match Op::of(word) {
            Op::Allocate | Op::AllocateHeap | Op::TestHeap => return None,
            Op::Deallocate | Op::Trim | Op::Jump => return None,
            Op::InitY | Op::MoveRR | Op::Move2RR | Op::MoveCR | Op::SwapRR => return None,
            Op::GetList | Op::GetHd | Op::GetTl | Op::GetTupleElement | Op::GetTupleElement2 => {
                return None;
            }
            Op::PutListRR | Op::PutListCR | Op::PutListRC => return None,
            Op::PutTuple | Op::MakeFun => return None,
            Op::IsNonemptyList | Op::IsNonemptyListGetList => return None,
            Op::IsNil | Op::IsBoolean | Op::IsAtom | Op::IsInteger | Op::IsList => BUT_THREE,
            Op::IsTupleOfArity | Op::TestArity | Op::IsTaggedTuple => BUT_THREE,
            Op::AddRC => without_constant(read::AddRC::at(pc, word).right()),
            Op::SubRC => without_constant(read::SubRC::at(pc, word).right()),
            Op::IsLtRC => without_constant(read::IsLtRC::at(pc, word).right()),
            Op::IsGeRC => without_constant(read::IsGeRC::at(pc, word).right()),
            Op::IsLtCR => without_constant(read::IsLtCR::at(pc, word).left()),
            Op::IsGeCR => without_constant(read::IsGeCR::at(pc, word).left()),
            Op::IsEqExactRC => without_constant(read::IsEqExactRC::at(pc, word).right()),
            Op::IsNeExactRC => without_constant(read::IsNeExactRC::at(pc, word).right()),
            Op::AddRR
            | Op::SubRR
            | Op::Mul
            | Op::Band
            | Op::Bor
            | Op::Bxor
            | Op::IntDiv
            | Op::Rem => BUT_THREE,
            Op::IsLtRR | Op::IsGeRR | Op::IsLtSS | Op::IsGeSS | Op::IsEqSS | Op::IsNeSS => {
                BUT_THREE
            }
            Op::IsEqExactRR | Op::IsEqExactSS | Op::IsNeExactSS => BUT_THREE,
            Op::FmoveFrom | Op::FmoveTo | Op::Fconv => BUT_THREE,
            Op::Fadd | Op::Fsub | Op::Fmul | Op::Fdiv | Op::Fnegate => BUT_THREE,
            Op::SelfR | Op::ElementRC | Op::HdR | Op::TlR => BUT_THREE,
            Op::IsFloat | Op::IsTuple | Op::IsMap | Op::IsFunction => BUT_THREE,
            Op::IsBitstr | Op::IsBinary => BUT_THREE,
            Op::SelectVal | Op::JumpTable | Op::SelectTupleArity => BUT_THREE,
            Op::BsStartMatch | Op::BsGetPosition | Op::BsSetPosition => BUT_THREE,
            Op::BsTestTail | Op::BsTestUnit => BUT_THREE,
            Op::Bif1 | Op::Bif2 | Op::GetMapElements | Op::HasMapFields => BUT_FOUR,
            Op::BsMatch => MATCHED,
            _ => NONE,
        })
    }
}

/// With a constant that needs `rcx`, or none.
fn without_constant(constant: RawTerm) -> Set {
    match i32::try_from(constant.0 as i64) {
        Ok(_) => BUT_RAX_RDX,
        Err(_) => BUT_THREE,
    }
}
