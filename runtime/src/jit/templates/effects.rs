//! What instructions do to registers: which they change, and what is known of their results.

use smallvec::{SmallVec, smallvec};

use super::guards::takes_element;
use crate::code::bif::Bif;
use crate::code::op::{Op, read};
use crate::code::operand::{Commands, Instruction, Reg, Src};
use crate::interp::bits::match_::{command, words_of};
use crate::interp::bits::{flag, flags_of};
use crate::jit::known::{Effect, Forgets, Known, number_of};
use crate::loader::types::Range;
use crate::term::{CodeAddress, RawTerm, Term, tag};

type Written = SmallVec<[Reg; 4]>;

/// Instructions by what they change: the registers that these operands name; x registers; the names of y registers. All
/// others may change everything.
macro_rules! forgets {
    (
        written { $($op:ident $($dst:ident)*;)* }
        x { $($call:ident)* }
        y { $($frame:ident)* }
    ) => {
        /// What the instruction at `pc`, whose first word is `word`, changes.
        ///
        /// # Safety
        /// I1: the loader has put an instruction there.
        unsafe fn forgets(pc: CodeAddress, word: u64) -> Forgets {
            // SAFETY: by contract.
            unsafe {
                match Op::of(word) {
                    $(Op::$op => {
                        let _i = read::$op::at(pc, word);
                        Forgets::Written(smallvec![$(_i.$dst()),*])
                    })*
                    $(Op::$call)|* => Forgets::X,
                    $(Op::$frame)|* => Forgets::Y,
                    Op::Move2RR => {
                        let i = read::Move2RR::at(pc, word);
                        Forgets::Written(smallvec![i.dst(), i.second().1])
                    }
                    Op::GetMapElements => {
                        let i = read::GetMapElements::at(pc, word);
                        Forgets::Written(i.pairs().iter().map(|(_, dst)| dst).collect())
                    }
                    Op::BsMatch => Forgets::Written(matched(read::BsMatch::at(pc, word))),
                    _ => Forgets::All,
                }
            }
        }
    };
}

forgets! {
    written {
        InitY dst; MoveRR dst; MoveCR dst; SwapRR one other;
        GetList head tail; GetHd dst; GetTl dst; IsNonemptyListGetList head tail;
        GetTupleElement dst; GetTupleElement2 dst second; GetTupleElementWide dst;
        PutListRR dst; PutListCR dst; PutListRC dst; PutTuple dst; PutTupleWide dst; MakeFun dst; UpdateRecord dst;
        TestHeap; Jump;
        IsInteger; IsFloat; IsNumber; IsAtom; IsBoolean; IsPid; IsPort; IsReference; IsNil; IsList; IsNonemptyList;
        IsTuple; TestArity; IsTupleOfArity; IsTaggedTuple; IsBinary; IsBitstr; IsMap; IsFunction; IsFunction2;
        IsEqExactRR; IsEqExactRC; IsEqExactSS; IsNeExactRC; IsNeExactSS; IsEqSS; IsNeSS;
        IsLtRR; IsLtRC; IsLtCR; IsLtSS; IsGeRR; IsGeRC; IsGeCR; IsGeSS;
        SelectVal; JumpTable; SelectTerm; SelectTupleArity;
        AddRR dst; AddRC dst; SubRR dst; SubRC dst; Mul dst; MulAdd dst; IntDiv dst; Rem dst;
        Band dst; Bor dst; Bxor dst; Bsl dst; Bsr dst;
        Bif0 dst; Bif1 dst; Bif2 dst; Bif3 dst; SelfR dst; ElementRC dst; HdR dst; TlR dst;
        HasMapFields;
        FmoveFrom; FmoveTo dst; Fconv; Fadd; Fsub; Fmul; Fdiv; Fnegate;
        BsGetInteger dst; BsGetFloat dst; BsGetBinary dst; BsSkipBits; BsTestTail; BsTestUnit; BsMatchString;
        BsGetUtf8 dst; BsSkipUtf8; BsGetTail dst; BsStartMatch dst; BsGetPosition dst; BsSetPosition;
        BsCreateBin dst;
    }
    x { Call CallExt CallFun CallBif CallHbif }
    y { Allocate AllocateHeap Deallocate Trim }
}

/// The registers that a match sets.
fn matched(i: read::BsMatch) -> Written {
    let mut written = Written::new();
    for_each_command(i, |command| match command[0] {
        command::INTEGER | command::BINARY => written.push(Reg(command[5])),
        command::GET_TAIL => written.push(Reg(command[3])),
        _ => {}
    });
    written
}

fn for_each_command(i: read::BsMatch, mut then: impl FnMut(&[u64])) {
    let Commands(mut commands) = i.commands();
    while !commands.is_empty() {
        let (first, rest) = commands.split_at(words_of(commands));
        then(first);
        commands = rest;
    }
}

/// What the instruction at `pc`, whose first word is `word`, does to registers.
///
/// # Safety
/// I1: the loader has put an instruction there.
pub(in crate::jit) unsafe fn effect(pc: CodeAddress, word: u64, known: &Known<'_>) -> Effect {
    // SAFETY: by contract.
    unsafe {
        Effect {
            forgets: forgets(pc, word),
            learns: learns(pc, word, known),
        }
    }
}

/// Does the instruction with this first word never go on with the next one?
pub(in crate::jit) fn is_end(word: u64) -> bool {
    matches!(
        Op::of(word),
        Op::Return
            | Op::DeallocateReturn
            | Op::Jump
            | Op::CallLast
            | Op::CallOnly
            | Op::CallExtLast
            | Op::CallExtOnly
            | Op::CallFunLast
            | Op::SelectVal
            | Op::JumpTable
            | Op::SelectTupleArity
            | Op::Badmatch
            | Op::CaseEnd
            | Op::IfEnd
    )
}

/// Two operands' numbers make a result's.
type Rule = fn(Range, Range) -> Option<Range>;

/// Instructions whose result's range comes from those of two sources.
macro_rules! learns {
    ($($op:ident $left:ident $right:ident $rule:path;)*) => {
        /// What is known of the registers that the instruction sets.
        ///
        /// # Safety
        /// I1: as [`effect`].
        unsafe fn learns(pc: CodeAddress, word: u64, known: &Known<'_>) -> SmallVec<[(Reg, Range); 4]> {
            // SAFETY: by contract.
            let learnt = unsafe {
                match Op::of(word) {
                    $(Op::$op => {
                        let i = read::$op::at(pc, word);
                        of_two(known, i.$left().into(), i.$right().into(), $rule).map(|range| (i.dst(), range))
                    })*
                    Op::Band => {
                        let i = read::Band::at(pc, word);
                        masked(known, i.left(), i.right()).map(|range| (i.dst(), range))
                    }
                    Op::Rem => {
                        let i = read::Rem::at(pc, word);
                        remainder(known, i.left(), i.right()).map(|range| (i.dst(), range))
                    }
                    Op::MulAdd => {
                        let i = read::MulAdd::at(pc, word);
                        let product = of_two(known, i.left().into(), i.right().into(), times);
                        let sum = product.zip(known.range(i.addend())).and_then(|(a, b)| plus(a, b));
                        sum.map(|range| (i.dst(), range))
                    }
                    Op::MoveRR => {
                        let i = read::MoveRR::at(pc, word);
                        known.range(Src::of(i.src())).map(|range| (i.dst(), range))
                    }
                    Op::MoveCR => {
                        let i = read::MoveCR::at(pc, word);
                        known.range(Src(i.value().0)).map(|range| (i.dst(), range))
                    }
                    Op::Bif1 => {
                        let i = read::Bif1::at(pc, word);
                        size(i.bif()).map(|range| (i.dst(), range))
                    }
                    Op::Bif2 => {
                        let i = read::Bif2::at(pc, word);
                        elements(i).map(|range| (i.dst(), range))
                    }
                    Op::BsGetUtf8 => {
                        let i = read::BsGetUtf8::at(pc, word);
                        Range::of(0, 0x10_ffff).map(|range| (i.dst(), range))
                    }
                    Op::Move2RR => return moved(known, read::Move2RR::at(pc, word)),
                    Op::BsMatch => return fields(read::BsMatch::at(pc, word)),
                    _ => None,
                }
            };
            learnt.into_iter().collect()
        }
    };
}

/// A source of any kind.
struct Any(Src);

impl From<Reg> for Any {
    fn from(reg: Reg) -> Any {
        Any(Src::of(reg))
    }
}

impl From<Src> for Any {
    fn from(src: Src) -> Any {
        Any(src)
    }
}

impl From<RawTerm> for Any {
    fn from(constant: RawTerm) -> Any {
        Any(Src(constant.0))
    }
}

learns! {
    AddRR left right plus;
    AddRC left right plus;
    SubRR left right minus;
    SubRC left right minus;
    Mul left right times;
    Bor left right with_bits_of;
    Bxor left right with_bits_of;
    Bsl left right shifted_left;
    Bsr left right shifted_right;
    IntDiv left right divided;
}

fn of_two(known: &Known<'_>, left: Any, right: Any, rule: Rule) -> Option<Range> {
    rule(known.range(left.0)?, known.range(right.0)?)
}

fn plus(a: Range, b: Range) -> Option<Range> {
    Range::of(wide(a.least) + wide(b.least), wide(a.most) + wide(b.most))
}

fn minus(a: Range, b: Range) -> Option<Range> {
    Range::of(wide(a.least) - wide(b.most), wide(a.most) - wide(b.least))
}

fn times(a: Range, b: Range) -> Option<Range> {
    let corners = [
        wide(a.least) * wide(b.least),
        wide(a.least) * wide(b.most),
        wide(a.most) * wide(b.least),
        wide(a.most) * wide(b.most),
    ];
    Range::of(*corners.iter().min()?, *corners.iter().max()?)
}

fn wide(number: i64) -> i128 {
    number.into()
}

/// Bits of two numbers that are not negative.
fn with_bits_of(a: Range, b: Range) -> Option<Range> {
    let most = a.most | b.most;
    let is_wrong = a.least < 0 || b.least < 0;
    Range::of(0, (1 << (64 - most.leading_zeros())) - 1).filter(|_| !is_wrong)
}

/// By a constant.
fn shifted_left(a: Range, by: Range) -> Option<Range> {
    let is_wrong = by.least != by.most || !(0..tag::SMALL_BITS.into()).contains(&by.least);
    Range::of(
        wide(a.least) << by.least.clamp(0, 63),
        wide(a.most) << by.least.clamp(0, 63),
    )
    .filter(|_| !is_wrong)
}

/// By a constant.
fn shifted_right(a: Range, by: Range) -> Option<Range> {
    let shift = by.least.clamp(0, 63);
    let shifted = Range::of((a.least >> shift).into(), (a.most >> shift).into());
    shifted.filter(|_| by.least == by.most && by.least >= 0)
}

/// By a positive constant.
fn divided(a: Range, by: Range) -> Option<Range> {
    let divisor = by.least.max(1);
    let quotient = Range::of((a.least / divisor).into(), (a.most / divisor).into());
    quotient.filter(|_| by.least == by.most && by.least > 0)
}

/// `band` with what is not negative, of any integer.
fn masked(known: &Known<'_>, left: Src, right: Src) -> Option<Range> {
    let masks = [left, right].map(|src| known.range(src).filter(|range| range.least >= 0));
    let most = masks.into_iter().flatten().map(|range| range.most).min()?;
    Range::of(0, most.into())
}

/// `rem` by a positive constant, of any integer.
fn remainder(known: &Known<'_>, left: Src, right: Src) -> Option<Range> {
    let most = number_of(right).filter(|&divisor| divisor > 0)? - 1;
    let is_negative = known.range(left).is_none_or(|range| range.least < 0);
    Range::of(if is_negative { -wide(most) } else { 0 }, most.into())
}

/// Sizes and lengths, which fit the address space.
fn size(bif: &Bif) -> Option<Range> {
    let names = ["bit_size", "byte_size", "length", "map_size", "tuple_size"];
    let is_size = bif.module == "erlang" && names.contains(&bif.function);
    Range::of(0, 1 << 56).filter(|_| is_size)
}

/// `element/2` of a constant.
fn elements(i: read::Bif2) -> Option<Range> {
    let elements = constant_tuple(i.right()).filter(|_| takes_element(i))?;
    let numbers: Option<Vec<i64>> = elements.iter().map(|element| element.as_small()).collect();
    let numbers = numbers?;
    Range::of(
        (*numbers.iter().min()?).into(),
        (*numbers.iter().max()?).into(),
    )
}

/// The elements of a constant that is a tuple.
pub(super) fn constant_tuple(src: Src) -> Option<&'static [Term<'static>]> {
    if src.reg().is_some() || !RawTerm(src.0).is_boxed() {
        return None;
    }
    // SAFETY: T1: a constant operand is a literal of the module, which lives as long as its code.
    let tuple = unsafe { Term::new(RawTerm(src.0)) }.as_tuple();
    tuple.map(|tuple| tuple.elements())
}

fn moved(known: &Known<'_>, i: read::Move2RR) -> SmallVec<[(Reg, Range); 4]> {
    let (second, to) = i.second();
    let first = known.range(Src::of(i.src()));
    let second = if second == i.dst() {
        first
    } else {
        known.range(Src::of(second))
    };
    let both = [(i.dst(), first.filter(|_| i.dst() != to)), (to, second)];
    both.into_iter()
        .filter_map(|(reg, range)| Some((reg, range?)))
        .collect()
}

/// What a match takes of fewer bits than a small integer has.
fn fields(i: read::BsMatch) -> SmallVec<[(Reg, Range); 4]> {
    let mut learnt: SmallVec<[(Reg, Range); 4]> = SmallVec::new();
    for_each_command(i, |command| match command[0] {
        command::INTEGER => {
            let dst = Reg(command[5]);
            learnt.retain(|(reg, _)| *reg != dst);
            // SAFETY: T1: a constant operand is an immediate or a literal.
            let flags = flags_of(unsafe { Term::new(RawTerm(command[2])) });
            let bits = command[3].saturating_mul(command[4]);
            if (1..u64::from(tag::SMALL_BITS)).contains(&bits) {
                let range = match flags & flag::SIGNED {
                    0 => Range::of(0, (1 << bits) - 1),
                    _ => Range::of(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                };
                learnt.extend(range.map(|range| (dst, range)));
            }
        }
        command::BINARY => learnt.retain(|(reg, _)| reg.0 != command[5]),
        command::GET_TAIL => learnt.retain(|(reg, _)| reg.0 != command[3]),
        _ => {}
    });
    learnt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::tag::{MAX_SMALL, MIN_SMALL};

    fn range(least: i64, most: i64) -> Range {
        Range { least, most }
    }

    #[test]
    fn results_are_between_what_operands_make() {
        type Pair = (i64, i64);
        let cases: [(Rule, Pair, Pair, Option<Pair>); 15] = [
            (plus, (-3, 5), (1, 2), Some((-2, 7))),
            (plus, (0, MAX_SMALL), (0, 1), None),
            (minus, (-3, 5), (1, 2), Some((-5, 4))),
            (minus, (MIN_SMALL, 0), (0, 1), None),
            (times, (-3, 5), (-7, 2), Some((-35, 21))),
            (times, (MIN_SMALL, MIN_SMALL), (-1, -1), None),
            (with_bits_of, (0, 5), (2, 8), Some((0, 15))),
            (with_bits_of, (0, 0), (0, 0), Some((0, 0))),
            (with_bits_of, (-1, 5), (2, 8), None),
            (shifted_left, (-1, 3), (4, 4), Some((-16, 48))),
            (shifted_left, (1, 1), (1, 2), None),
            (shifted_left, (1, 1), (59, 59), None),
            (shifted_right, (-5, 9), (1, 1), Some((-3, 4))),
            (divided, (-7, 9), (2, 2), Some((-3, 4))),
            (divided, (-7, 9), (0, 0), None),
        ];
        for (at, (rule, left, right, expect)) in cases.into_iter().enumerate() {
            let result = rule(range(left.0, left.1), range(right.0, right.1));
            let result = result.map(|range| (range.least, range.most));
            assert_eq!(result, expect, "case {at}");
        }
    }

    /// Numbers at the ends of ranges and beside them.
    fn samples(range: Range) -> impl Iterator<Item = i64> {
        let middle = range.least + (range.most - range.least) / 2;
        [range.least, middle, range.most].into_iter()
    }

    #[test]
    fn results_of_numbers_are_in_the_range() {
        let ranges = [
            range(-9, -2),
            range(-4, 6),
            range(0, 0),
            range(0, 255),
            range(3, 1000),
        ];
        type Run = fn(i64, i64) -> i64;
        let rules: [(Rule, Run); 5] = [
            (plus, |a, b| a + b),
            (minus, |a, b| a - b),
            (times, |a, b| a * b),
            (with_bits_of, |a, b| a | b),
            (with_bits_of, |a, b| a ^ b),
        ];
        for (left, right) in ranges
            .iter()
            .flat_map(|a| ranges.iter().map(move |b| (*a, *b)))
        {
            for (rule, run) in rules {
                let Some(result) = rule(left, right) else {
                    continue;
                };
                for (a, b) in samples(left).flat_map(|a| samples(right).map(move |b| (a, b))) {
                    let is_inside = (result.least..=result.most).contains(&run(a, b));
                    assert!(is_inside, "{a} and {b}: {result:?}");
                }
            }
        }
    }
}
