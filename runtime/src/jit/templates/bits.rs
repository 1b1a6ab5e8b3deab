//! Templates that match bitstrings.
//!
//! `bs_match` keeps the position in `r8` until it is done: what it leaves to the helper, that does from the beginning.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::binaries::{self, ADDRESS, BASE, END, ORIG, START};
use super::{R9, R10, R11, RAX, RCX, RDI, RDX, RSI, compare, source, store};
use crate::code::op::{Op, read};
use crate::code::operand::{Commands, Reg, Src};
use crate::heap::{Heap, RESERVED_WORDS};
use crate::interp::bits::match_::{command, words_needed};
use crate::interp::bits::{SUB_BITSTRING_WORDS, flag, flags_of};
use crate::jit::compile::Compiler;
use crate::jit::stubs::{LOOK_AT_BITS, TAKE_BITS};
use crate::term::tag::{self, size};
use crate::term::{CodeAddress, RawTerm, Term, am, sub_bits};

/// The number of bits not taken yet, in `rcx`, of the context in `rdx`.
fn left(c: &mut Compiler<'_>) {
    dynasm!(c.a; .arch x64; mov rcx, [rdx + END]; sub rcx, [rdx + START]);
}

/// A source that is a context already, or a bitstring whose bytes do not move.
pub(super) fn bs_start_match(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsStartMatch) {
    let other = c.cold_helper(pc, Op::BsStartMatch, i);
    let dst = i.dst();
    c.first(RDX, i.src());
    let new = new_context(c, i, other);
    binaries::is_sub_bits(c, new);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, [rdx + BASE]
        ; and eax, sub_bits::MASK as i32
        ; cmp eax, sub_bits::MUTABLE as i32
        ; jne =>new
    );
    if Src::of(dst) != i.src() {
        store(c, dst, RDX);
    }
    c.hold(dst, RDX);
}

/// A label from which the term in `rdx` gets a new context.
fn new_context(c: &mut Compiler<'_>, i: read::BsStartMatch, other: DynamicLabel) -> DynamicLabel {
    if Heap::is_zealous() {
        return other;
    }
    let (dst, bytes) = (i.dst(), 8 * (size::SUB_BITS + RESERVED_WORDS) as i32);
    let header = tag::make_header(size::SUB_BITS - 1, tag::SUB_BITS) as i32;
    c.seldom(i, move |c| {
        let (is_heap, write) = (c.new_label(), c.new_label());
        dynasm!(c.a
            ; .arch x64
            ; lea eax, [rdx - tag::BOXED as i32]
            ; test al, 3
            ; jnz =>other
            ; lea rax, [r15 + bytes]
            ; cmp rax, rsp
            ; ja =>other
            ; mov eax, [rdx - tag::BOXED as i32]
            ; and eax, tag::HEADER_MASK as i32
            ; cmp eax, tag::HEAP_BITS as i32
            ; je =>is_heap
            ; cmp eax, tag::SUB_BITS as i32
            ; jne =>other
            ; mov rsi, [rdx + BASE]
            ; test sil, sub_bits::MASK as i8
            ; jnz =>other
            ; mov rcx, [rdx + START]
            ; mov rdi, [rdx + END]
            ; mov rdx, [rdx + ORIG]
            ; jmp =>write
            ; =>is_heap
            ; lea rsi, [rdx + (BASE + 8)]
            ; xor ecx, ecx
            ; mov rdi, [rdx + BASE]
            ; =>write
            ; or rsi, sub_bits::MUTABLE as i32
            ; mov QWORD [r15], header
            ; mov [r15 + 8], rsi
            ; mov [r15 + 16], rcx
            ; mov [r15 + 24], rdi
            ; mov [r15 + 32], rdx
            ; lea rax, [r15 + tag::BOXED as i32]
            ; add r15, 8 * size::SUB_BITS as i32
        );
        store(c, dst, RAX);
    })
}

pub(super) fn bs_get_position(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::BsGetPosition) {
    source(c, RDX, i.context());
    dynasm!(c.a; .arch x64; mov rax, [rdx + START]; shl rax, 4; or rax, tag::SMALL as i32);
    store(c, i.dst(), RAX);
}

pub(super) fn bs_set_position(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::BsSetPosition) {
    source(c, RDX, i.context());
    source(c, RAX, i.position());
    dynasm!(c.a; .arch x64; shr rax, 4; mov [rdx + START], rax);
}

pub(super) fn bs_test_tail(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsTestTail) {
    let Some(bits) = small(i.bits()).filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsTestTail, i);
    };
    let fail = c.label(i.fail());
    source(c, RDX, i.context());
    left(c);
    dynasm!(c.a; .arch x64; cmp rcx, bits; jne =>fail);
}

pub(super) fn bs_test_unit(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsTestUnit) {
    let unit = small(i.unit()).filter(|unit| unit.count_ones() == 1);
    let Some(unit) = unit.filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsTestUnit, i);
    };
    let fail = c.label(i.fail());
    source(c, RDX, i.context());
    left(c);
    dynasm!(c.a; .arch x64; test rcx, unit - 1; jnz =>fail);
}

/// A number that an instruction of the machine takes.
fn small(number: u64) -> Option<i32> {
    i32::try_from(number).ok()
}

/// A code point of up to three bytes.
pub(super) fn bs_get_utf8(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsGetUtf8) {
    let other = c.cold_helper(pc, Op::BsGetUtf8, i);
    let dst = i.dst();
    let long = c.seldom(i, move |c| {
        long_utf8(c, other);
        dynasm!(c.a; .arch x64; shl eax, 4; or eax, tag::SMALL as i32);
        store(c, dst, RAX);
    });
    ascii(c, i.context(), long, other);
    dynasm!(c.a; .arch x64; shl eax, 4; or eax, tag::SMALL as i32);
    store(c, dst, RAX);
}

/// The same, passed over.
pub(super) fn bs_skip_utf8(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsSkipUtf8) {
    let other = c.cold_helper(pc, Op::BsSkipUtf8, i);
    let long = c.seldom(i, move |c| long_utf8(c, other));
    ascii(c, i.context(), long, other);
}

/// Takes a byte below 128 into `eax`; goes to `long` with another one there, at `rsi`, `rdi` bits left.
fn ascii(c: &mut Compiler<'_>, context: Src, long: DynamicLabel, other: DynamicLabel) {
    source(c, RDX, context);
    dynasm!(c.a
        ; .arch x64
        ; mov rdi, [rdx + END]
        ; sub rdi, [rdx + START]
        ; cmp rdi, 8
        ; jl =>other
    );
    at_byte(c, other);
    dynasm!(c.a
        ; .arch x64
        ; movzx eax, BYTE [rsi]
        ; test al, al
        ; js =>long
        ; add QWORD [rdx + START], 8
    );
}

/// Takes a code point of two or three bytes into `eax`, of which `eax` holds the first.
fn long_utf8(c: &mut Compiler<'_>, other: DynamicLabel) {
    let (three, done) = (c.new_label(), c.new_label());
    dynasm!(c.a
        ; .arch x64
        ; cmp eax, 0xe0
        ; jae =>three
        ; cmp eax, 0xc2
        ; jb =>other
        ; sub eax, 0xc0
        ; cmp rdi, 16
        ; jl =>other
    );
    next_of_utf8(c, 1, other);
    dynasm!(c.a; .arch x64; add QWORD [rdx + START], 16; jmp =>done; =>three);
    dynasm!(c.a; .arch x64; sub eax, 0xe0; cmp eax, 0x10; jae =>other; cmp rdi, 24; jl =>other);
    next_of_utf8(c, 1, other);
    next_of_utf8(c, 2, other);
    // The shortest form of no surrogate.
    dynasm!(c.a
        ; .arch x64
        ; cmp eax, 0x800
        ; jb =>other
        ; lea ecx, [rax - 0xd800]
        ; cmp ecx, 0x800
        ; jb =>other
        ; add QWORD [rdx + START], 24
        ; =>done
    );
}

/// Adds the bits of another byte to a code point.
fn next_of_utf8(c: &mut Compiler<'_>, at: i32, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; movzx ecx, BYTE [rsi + at]
        ; xor ecx, 0x80
        ; cmp ecx, 0x40
        ; jae =>other
        ; shl eax, 6
        ; or eax, ecx
    );
}

/// The address of the next byte in `rsi`; goes to `other` where the position is within one.
fn at_byte(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; mov rcx, [rdx + START]
        ; test cl, 7
        ; jnz =>other
        ; shr rcx, 3
        ; mov rsi, [rdx + BASE]
        ; and rsi, ADDRESS
        ; add rsi, rcx
    );
}

/// The bits that a size in a register takes, in `rcx`; goes to `fail` where the context in `rdx` has fewer.
fn sized(c: &mut Compiler<'_>, size: Src, unit: u64, fail: DynamicLabel, other: DynamicLabel) {
    source(c, RCX, size);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, ecx
        ; not eax
        ; test al, tag::SMALL as i8
        ; jnz =>other
        ; sar rcx, 4
        ; js =>other
        ; imul rcx, rcx, unit as i32
        ; jo =>other
        ; mov rax, [rdx + END]
        ; sub rax, [rdx + START]
        ; cmp rcx, rax
        ; ja =>fail
    );
}

pub(super) fn bs_skip_bits(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsSkipBits) {
    if i.fail().is_null() || small(i.unit()).is_none() {
        return c.helper(pc, Op::BsSkipBits, i);
    }
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::BsSkipBits, i);
    source(c, RDX, i.context());
    sized(c, i.size(), i.unit(), fail, other);
    dynasm!(c.a; .arch x64; add [rdx + START], rcx);
}

pub(super) fn bs_get_binary(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsGetBinary) {
    let unit = small(i.unit()).filter(|_| !i.fail().is_null());
    let is_all = i.size().0 == am::all.raw().0;
    let Some(unit) = unit.filter(|unit| !is_all || unit.count_ones() == 1) else {
        return c.helper(pc, Op::BsGetBinary, i);
    };
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::BsGetBinary, i);
    enough(c, SUB_BITSTRING_WORDS, other);
    source(c, RDX, i.context());
    match is_all {
        true => {
            left(c);
            dynasm!(c.a; .arch x64; test rcx, unit - 1; jnz =>fail);
        }
        false => sized(c, i.size(), i.unit(), fail, other),
    }
    c.call_stub(TAKE_BITS);
    store(c, i.dst(), RAX);
}

pub(super) fn bs_get_tail(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsGetTail) {
    let other = c.cold_helper(pc, Op::BsGetTail, i);
    enough(c, SUB_BITSTRING_WORDS, other);
    source(c, RDX, i.context());
    left(c);
    c.call_stub(LOOK_AT_BITS);
    store(c, i.dst(), RAX);
}

/// Goes to `other` where these words are not free without a collection.
fn enough(c: &mut Compiler<'_>, words: usize, other: DynamicLabel) {
    match Heap::is_zealous() {
        true => dynasm!(c.a; .arch x64; jmp =>other),
        false => binaries::room(c, words, other),
    }
}

/// What is done with some of the bits that are taken at once.
enum Taken {
    Integer {
        dst: Reg,
        is_signed: bool,
        is_little: bool,
    },
    /// They must be this number.
    Equals(u64),
    Skipped,
}

/// Steps of `bs_match`.
enum Step {
    AtLeast {
        bits: i32,
        unit: i32,
    },
    Exactly(i32),
    /// The bits of each part of what is loaded at once.
    Bits(Vec<(u32, Taken)>),
    /// More than what is loaded at once.
    Skip(i32),
    /// So many bits, or all that are left and stay there, become a bitstring.
    Bitstring {
        bits: Option<i32>,
        dst: Reg,
    },
}

/// The steps of an instruction.
struct Steps {
    steps: Vec<Step>,
    /// All that is loaded at once are whole bytes.
    whole: bool,
    /// Heap words that they may need.
    words: usize,
}

/// Most bits that are loaded at once: of whole bytes, or wherever they begin.
const MOST_WHOLE: u32 = 64;
const MOST: u32 = 57;

impl Steps {
    /// `None` where the instruction is the helper's.
    fn of(i: read::BsMatch) -> Option<Steps> {
        Steps::cut(i, true).or_else(|| Steps::cut(i, false))
    }

    fn cut(i: read::BsMatch, whole: bool) -> Option<Steps> {
        let Commands(commands) = i.commands();
        let mut cut = Steps {
            steps: Vec::new(),
            whole,
            words: words_needed(commands),
        };
        let mut open = Vec::new();
        let mut rest = commands;
        while !rest.is_empty() {
            let taken = cut.command(rest, i.context(), &mut open)?;
            rest = &rest[taken..];
        }
        cut.close(&mut open)?;
        Some(cut)
    }

    /// Adds the first of these commands; gives its words.
    fn command(
        &mut self,
        rest: &[u64],
        context: Src,
        open: &mut Vec<(u32, Taken)>,
    ) -> Option<usize> {
        // What is read again behind a command must still be in its register.
        let keeps = |dst: u64, words: usize| rest.len() == words || Some(Reg(dst)) != context.reg();
        let (words, step) = match rest[0] {
            command::ENSURE_AT_LEAST => {
                let (bits, unit) = (small(rest[1])?, small(rest[2])?);
                if unit.count_ones() != 1 {
                    return None;
                }
                (3, Step::AtLeast { bits, unit })
            }
            command::ENSURE_EXACTLY => (2, Step::Exactly(small(rest[1])?)),
            command::BINARY if keeps(rest[5], 6) => {
                let bits = Some(small(rest[3].checked_mul(rest[4])?)?);
                let dst = Reg(rest[5]);
                (6, Step::Bitstring { bits, dst })
            }
            command::GET_TAIL if keeps(rest[3], 4) => {
                let dst = Reg(rest[3]);
                (4, Step::Bitstring { bits: None, dst })
            }
            command::SKIP if rest[1] > 64 => (2, Step::Skip(small(rest[1])?)),
            command::INTEGER if keeps(rest[5], 6) => {
                self.integer(rest, open)?;
                return Some(6);
            }
            command::EQUALS => {
                self.part(rest[2], Taken::Equals(rest[3]), open)?;
                return Some(4);
            }
            command::SKIP => {
                self.part(rest[1], Taken::Skipped, open)?;
                return Some(2);
            }
            _ => return None,
        };
        self.close(open)?;
        if self.whole && matches!(step, Step::Skip(bits) if bits % 8 != 0) {
            return None;
        }
        if self.whole && matches!(step, Step::Bitstring { bits: Some(bits), .. } if bits % 8 != 0) {
            return None;
        }
        self.steps.push(step);
        Some(words)
    }

    fn integer(&mut self, command: &[u64], open: &mut Vec<(u32, Taken)>) -> Option<()> {
        let bits = command[3].checked_mul(command[4])?;
        // SAFETY: T1: a constant operand is an immediate or a literal.
        let flags = flags_of(unsafe { Term::new(RawTerm(command[2])) });
        let is_little = flags & (flag::LITTLE | flag::NATIVE) != 0 && bits > 8;
        // A large one may be the helper's.
        let is_wrong = bits >= u64::from(tag::SMALL_BITS) && self.has_made();
        if is_wrong || (is_little && !bits.is_multiple_of(8)) {
            return None;
        }
        let taken = Taken::Integer {
            dst: Reg(command[5]),
            is_signed: flags & flag::SIGNED != 0,
            is_little,
        };
        self.part(bits, taken, open)
    }

    /// Adds bits to those that are loaded at once.
    fn part(&mut self, bits: u64, taken: Taken, open: &mut Vec<(u32, Taken)>) -> Option<()> {
        let most = if self.whole { MOST_WHOLE } else { MOST };
        let bits = u32::try_from(bits)
            .ok()
            .filter(|bits| (1..=most).contains(bits))?;
        let sum: u32 = open.iter().map(|(bits, _)| bits).sum();
        if sum + bits > most {
            self.close(open)?;
        }
        open.push((bits, taken));
        if self.whole && (sum + bits).is_multiple_of(8) {
            self.close(open)?;
        }
        Some(())
    }

    /// What the helper does, that makes a bitstring once more.
    fn has_made(&self) -> bool {
        let made = |step| matches!(step, &Step::Bitstring { .. });
        self.steps.iter().any(made)
    }

    fn close(&mut self, open: &mut Vec<(u32, Taken)>) -> Option<()> {
        let sum: u32 = open.iter().map(|(bits, _)| bits).sum();
        let is_wrong = match self.whole {
            true => !sum.is_multiple_of(8),
            false => !open.is_empty() && self.has_made(),
        };
        if is_wrong {
            return None;
        }
        if !open.is_empty() {
            self.steps.push(Step::Bits(std::mem::take(open)));
        }
        Some(())
    }
}

/// `bs_match`.
pub(super) fn bs_match(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsMatch) {
    let Some(steps) = Steps::of(i).filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsMatch, i);
    };
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::BsMatch, i);
    c.first(RDX, i.context());
    if steps.words > 0 {
        enough(c, steps.words, other);
    }
    dynasm!(c.a; .arch x64; mov r8, [rdx + START]);
    if steps.whole {
        dynasm!(c.a; .arch x64; test r8b, 7; jnz =>other);
    }
    let last = steps.steps.len() - 1;
    for (n, step) in steps.steps.iter().enumerate() {
        match step {
            Step::AtLeast { bits, unit } => {
                dynasm!(c.a; .arch x64; mov rcx, [rdx + END]; sub rcx, r8; sub rcx, *bits; jl =>fail);
                if *unit > 1 {
                    dynasm!(c.a; .arch x64; test rcx, unit - 1; jnz =>fail);
                }
            }
            Step::Exactly(bits) => {
                dynasm!(c.a; .arch x64; mov rcx, [rdx + END]; sub rcx, r8; cmp rcx, *bits; jne =>fail);
            }
            Step::Skip(bits) => dynasm!(c.a; .arch x64; add r8, *bits),
            Step::Bits(parts) => take(c, parts, steps.whole, (fail, other)),
            Step::Bitstring { bits, dst } => {
                dynasm!(c.a; .arch x64; mov [rdx + START], r8);
                match bits {
                    Some(bits) => dynasm!(c.a; .arch x64; mov ecx, *bits),
                    None => left(c),
                }
                c.call_stub(if bits.is_some() {
                    TAKE_BITS
                } else {
                    LOOK_AT_BITS
                });
                store(c, *dst, RAX);
                if n < last {
                    source(c, RDX, i.context());
                    dynasm!(c.a; .arch x64; mov r8, [rdx + START]);
                }
            }
        }
    }
    if !matches!(steps.steps[last], Step::Bitstring { .. }) {
        dynasm!(c.a; .arch x64; mov [rdx + START], r8);
    }
    if let Step::Bits(parts) = &steps.steps[last] {
        hold_fields(c, parts);
    }
}

/// Bits of a small integer's tag.
const TAG_BITS: u32 = u64::BITS - tag::SMALL_BITS;

/// The machine registers that integers are made in, in turn. What is made last in each of them stays there.
const FIELDS: [u8; 4] = [RSI, RDI, R9, R10];

/// A match has ended by taking these bits.
fn hold_fields(c: &mut Compiler<'_>, parts: &[(u32, Taken)]) {
    let registers = parts.iter().filter_map(|(_, taken)| match taken {
        Taken::Integer { dst, .. } => Some(*dst),
        Taken::Equals(_) | Taken::Skipped => None,
    });
    let mut held = [None; FIELDS.len()];
    for (n, dst) in registers.enumerate() {
        held[n % FIELDS.len()] = Some(dst);
    }
    for (dst, at) in held.into_iter().zip(FIELDS) {
        if let Some(dst) = dst {
            c.hold_small(dst, at);
        }
    }
}

/// Takes these bits, which are there.
fn take(
    c: &mut Compiler<'_>,
    parts: &[(u32, Taken)],
    whole: bool,
    (fail, other): (DynamicLabel, DynamicLabel),
) {
    let bits: u32 = parts.iter().map(|(bits, _)| bits).sum();
    let is_read = |(_, taken): &(u32, Taken)| !matches!(taken, Taken::Skipped);
    if parts.iter().any(is_read) {
        dynasm!(c.a
            ; .arch x64
            ; mov rcx, r8
            ; shr rcx, 3
            ; mov rsi, [rdx + BASE]
            ; and rsi, ADDRESS
            ; add rsi, rcx
        );
        match whole {
            true => load_bytes(c, bits as usize / 8),
            false => load_bits(c, other),
        }
    }
    dynasm!(c.a; .arch x64; add r8, bits as i32);
    // The bits are the lowest ones of `rax`, or the highest ones.
    let mut behind = if whole { bits } else { 64 };
    let mut integers = 0;
    for (bits, taken) in parts {
        behind -= bits;
        match taken {
            Taken::Skipped => {}
            Taken::Equals(value) => {
                field(c, R11, (behind, *bits), false, 0);
                compare(c, R11, *value);
                dynasm!(c.a; .arch x64; jne =>fail);
            }
            Taken::Integer {
                dst,
                is_signed,
                is_little,
            } => {
                let to = FIELDS[integers % FIELDS.len()];
                integers += 1;
                integer(c, to, (behind, *bits), (*is_signed, *is_little), other);
                store(c, *dst, to);
            }
        }
    }
}

/// Makes an integer of so many bits of `rax`, which have `behind` bits behind them; or it is the helper's.
fn integer(
    c: &mut Compiler<'_>,
    to: u8,
    (behind, bits): (u32, u32),
    (is_signed, is_little): (bool, bool),
    other: DynamicLabel,
) {
    if is_little || bits >= tag::SMALL_BITS {
        field(c, to, (behind, bits), is_signed && !is_little, 0);
        if is_little {
            swap(c, to, bits, is_signed);
        }
        if bits >= tag::SMALL_BITS {
            is_small(c, to, is_signed, other);
        }
        dynasm!(c.a; .arch x64; shl Rq(to), TAG_BITS as i8);
    } else {
        field(c, to, (behind, bits), is_signed, TAG_BITS);
    }
    dynasm!(c.a; .arch x64; or Rq(to), BYTE tag::SMALL as i8);
}

/// Loads the 8 bytes at `rsi` that the position in `r8` is in, the next bit as the highest one of `rax`. Bytes behind
/// the bitstring may be among them: they are on a page of its bytes, or it is the helper's.
fn load_bits(c: &mut Compiler<'_>, other: DynamicLabel) {
    const PAGE: i32 = 4096;
    dynasm!(c.a
        ; .arch x64
        ; mov eax, esi
        ; and eax, PAGE - 1
        ; cmp eax, PAGE - 8
        ; ja =>other
        ; mov rax, [rsi]
        ; bswap rax
        ; mov ecx, r8d
        ; and ecx, 7
        ; shl rax, cl
    );
}

/// Loads up to 8 bytes at `rsi` into `rax`, the first ones as the highest.
fn load_bytes(c: &mut Compiler<'_>, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        // The largest power of two that fits.
        let chunk = 1 << (bytes - at).ilog2();
        if at > 0 {
            dynasm!(c.a; .arch x64; shl rax, 8 * chunk);
        }
        let from = at as i32;
        match (chunk, at) {
            (8, _) => dynasm!(c.a; .arch x64; mov rax, [rsi + from]; bswap rax),
            (4, _) => dynasm!(c.a; .arch x64; mov eax, [rsi + from]; bswap eax),
            (2, 0) => dynasm!(c.a; .arch x64; movzx eax, WORD [rsi + from]; rol ax, 8),
            (2, _) => {
                dynasm!(c.a; .arch x64; movzx ecx, WORD [rsi + from]; rol cx, 8; or rax, rcx);
            }
            (_, 0) => dynasm!(c.a; .arch x64; movzx eax, BYTE [rsi + from]),
            _ => dynasm!(c.a; .arch x64; movzx ecx, BYTE [rsi + from]; or rax, rcx),
        }
        at += chunk as usize;
    }
}

/// Copies so many bits of `rax`, which have `behind` bits behind them, to a machine register, with `room` for a tag below
/// them, which has anything in it.
fn field(c: &mut Compiler<'_>, to: u8, (behind, bits): (u32, u32), is_signed: bool, room: u32) {
    let (above, rest) = (64 - behind - bits, 64 - bits - room);
    dynasm!(c.a; .arch x64; mov Rq(to), rax);
    if above > 0 {
        dynasm!(c.a; .arch x64; shl Rq(to), above as i8);
    }
    match (is_signed, rest) {
        (_, 0) => {}
        (true, rest) => dynasm!(c.a; .arch x64; sar Rq(to), rest as i8),
        (false, rest) => dynasm!(c.a; .arch x64; shr Rq(to), rest as i8),
    }
}

/// Turns the bytes of so many bits in a machine register round.
fn swap(c: &mut Compiler<'_>, to: u8, bits: u32, is_signed: bool) {
    dynasm!(c.a; .arch x64; bswap Rq(to));
    match (is_signed, 64 - bits) {
        (_, 0) => {}
        (true, rest) => dynasm!(c.a; .arch x64; sar Rq(to), rest as i8),
        (false, rest) => dynasm!(c.a; .arch x64; shr Rq(to), rest as i8),
    }
}

/// Goes to `other` where the number in a machine register is no small integer.
fn is_small(c: &mut Compiler<'_>, at: u8, is_signed: bool, other: DynamicLabel) {
    dynasm!(c.a; .arch x64; mov rcx, Rq(at));
    match is_signed {
        true => dynasm!(c.a; .arch x64; shl rcx, 4; sar rcx, 4; cmp rcx, Rq(at); jne =>other),
        false => dynasm!(c.a; .arch x64; shr rcx, (tag::SMALL_BITS - 1) as i8; jnz =>other),
    }
}
