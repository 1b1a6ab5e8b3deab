//! The template of `bs_match`. What it leaves to the helper, that does from the beginning.
//!
//! | register | what it holds |
//! |---|---|
//! | `rdx` | the context |
//! | `r8` | its position |
//! | `r11` | the address of a byte, with the context's flags |
//! | `rax` | bits that are taken apart |

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::binaries::{BASE, END, START};
use super::bits::{enough, hold_context, left, small};
use super::{R8, RAX, RDX, compare, keeps, source, store};
use crate::code::op::{Op, read};
use crate::code::operand::{Commands, Reg, Src};
use crate::interp::bits::match_::{command, words_needed};
use crate::interp::bits::{flag, flags_of};
use crate::jit::compile::Compiler;
use crate::jit::stubs::{LOOK_AT_BITS, TAKE_BITS};
use crate::term::{CodeAddress, RawTerm, Term, sub_bits, tag};

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
    /// Makes a bitstring of this many bits, or of all that are left and stay there.
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
/// Most bits that the steps may ask for together.
const MOST_TAKEN: u64 = 1 << 30;

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
        Some(cut).filter(|cut| cut.bits() <= MOST_TAKEN)
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

    /// All bits that are taken or asked for.
    fn bits(&self) -> u64 {
        let bits = |step: &Step| match *step {
            Step::AtLeast { bits, .. } | Step::Exactly(bits) | Step::Skip(bits) => bits as u64,
            Step::Bitstring { bits, .. } => bits.unwrap_or(0) as u64,
            Step::Bits(ref parts) => sum(parts).into(),
        };
        self.steps.iter().map(bits).sum()
    }

    /// Are there bits that are read?
    fn reads(&self) -> bool {
        let reads = |step: &Step| matches!(step, Step::Bits(parts) if are_read(parts));
        self.steps.iter().any(reads)
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

/// Is any of these bits read?
fn are_read(parts: &[(u32, Taken)]) -> bool {
    parts
        .iter()
        .any(|(_, taken)| !matches!(taken, Taken::Skipped))
}

/// `bs_match`.
pub(super) fn bs_match(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsMatch) {
    let Some(steps) = Steps::of(i).filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsMatch, i);
    };
    let (fail, other) = (c.label(i.fail()), c.cold_helper(pc, Op::BsMatch, i));
    c.first(RDX, i.context());
    if steps.words > 0 {
        enough(c, steps.words, other);
    }
    dynasm!(c.a; .arch x64; mov r8, [BYTE rdx + START as i8]);
    if steps.whole && steps.reads() {
        dynasm!(c.a; .arch x64; test r8b, 7; jnz =>other);
    }
    let mut matching = Match {
        context: i.context(),
        whole: steps.whole,
        ways: (fail, other),
        taken: 0,
        ensured: 0,
        has_address: false,
        has_context: true,
        sets_context: false,
    };
    let last = steps.steps.len() - 1;
    for (n, step) in steps.steps.iter().enumerate() {
        matching.step(c, step, n == last);
    }
    matching.finish(c);
}

/// A match whose code is being put.
struct Match {
    context: Src,
    /// See [`Steps::whole`].
    whole: bool,
    /// Where it fails, and the helper.
    ways: (DynamicLabel, DynamicLabel),
    /// Bits that have been taken since the position was loaded.
    taken: i32,
    /// Bits that are there from where the position was loaded.
    ensured: i32,
    /// `r11` has the address of the byte at the position that was loaded.
    has_address: bool,
    /// `rdx` has the context.
    has_context: bool,
    /// The context's register has been set.
    sets_context: bool,
}

/// The flags of a context, which are added to the address that its bits are counted from.
const FLAGS: i32 = sub_bits::MUTABLE as i32;

impl Match {
    fn step(&mut self, c: &mut Compiler<'_>, step: &Step, is_last: bool) {
        let fail = self.ways.0;
        match step {
            Step::AtLeast { bits, unit: 1 } => {
                self.compare_end(c, *bits);
                dynasm!(c.a; .arch x64; ja =>fail);
                self.ensured = self.taken + bits;
            }
            Step::AtLeast { bits, unit } => {
                self.ensured = self.taken + bits;
                dynasm!(c.a
                    ; .arch x64
                    ; mov rax, [BYTE rdx + END as i8]
                    ; sub rax, r8
                    ; sub rax, self.ensured
                    ; jl =>fail
                    ; test eax, unit - 1
                    ; jnz =>fail
                );
            }
            Step::Exactly(bits) => {
                self.compare_end(c, *bits);
                dynasm!(c.a; .arch x64; jne =>fail);
                self.ensured = self.taken + bits;
            }
            Step::Skip(bits) => self.taken += bits,
            Step::Bits(parts) => {
                match self.whole {
                    true => self.bytes(c, parts),
                    false => self.bits(c, parts),
                }
                self.taken += sum(parts) as i32;
            }
            Step::Bitstring { bits, dst } => self.bitstring(c, *bits, *dst, is_last),
        }
    }

    /// Compares where `bits` bits more end with where the context does.
    fn compare_end(&self, c: &mut Compiler<'_>, bits: i32) {
        match self.taken + bits {
            0 => dynasm!(c.a; .arch x64; cmp r8, [BYTE rdx + END as i8]),
            bits => dynasm!(c.a; .arch x64; lea rax, [r8 + bits]; cmp rax, [BYTE rdx + END as i8]),
        }
    }

    /// Has the context's position count what has been taken.
    fn store_position(&mut self, c: &mut Compiler<'_>) {
        if self.taken != 0 {
            dynasm!(c.a; .arch x64; add QWORD [BYTE rdx + START as i8], self.taken);
        }
    }

    /// Makes a bitstring of the next bits, or of all that are left and stay there.
    fn bitstring(&mut self, c: &mut Compiler<'_>, bits: Option<i32>, dst: Reg, is_last: bool) {
        self.store_position(c);
        match bits {
            Some(bits) => {
                dynasm!(c.a; .arch x64; mov ecx, bits);
                c.call_stub(TAKE_BITS);
            }
            None => {
                left(c);
                c.call_stub(LOOK_AT_BITS);
            }
        }
        store(c, dst, RAX);
        c.hold_nothing();
        self.ensured -= self.taken + bits.unwrap_or(0);
        self.taken = 0;
        self.has_address = false;
        self.has_context = !is_last;
        if !is_last {
            source(c, RDX, self.context);
            dynasm!(c.a; .arch x64; mov r8, [BYTE rdx + START as i8]);
        }
    }

    /// Takes these bits, which are there and whole bytes.
    fn bytes(&mut self, c: &mut Compiler<'_>, parts: &[(u32, Taken)]) {
        if !are_read(parts) {
            return;
        }
        if !self.has_address {
            dynasm!(c.a; .arch x64; mov r11, r8; shr r11, 3; add r11, [BYTE rdx + BASE as i8]);
            self.has_address = true;
        }
        let at = self.taken / 8 - FLAGS;
        match parts {
            [(bits @ (8 | 16 | 32), Taken::Equals(value))] => {
                are_equal(c, at, *bits, *value);
                let fail = self.ways.0;
                dynasm!(c.a; .arch x64; jne =>fail);
            }
            [
                (
                    bits @ (8 | 16 | 32),
                    Taken::Integer {
                        dst,
                        is_signed,
                        is_little,
                    },
                ),
            ] => {
                let to = self.place(c, *dst);
                load_integer(c, to, (at, *bits), *is_signed, *is_little);
                store(c, *dst, to);
            }
            _ => {
                let bytes = sum(parts) as i32 / 8;
                let room = (self.taken / 8, (self.ensured - self.taken) / 8 - bytes);
                let behind = load_bytes(c, at, bytes, room);
                self.take_apart(c, parts, behind + 8 * bytes as u32);
            }
        }
    }

    /// Takes these bits, which are there, wherever they begin. Bytes behind the bitstring may be loaded with them: they
    /// are on a page of its bytes, or all of it is the helper's.
    fn bits(&mut self, c: &mut Compiler<'_>, parts: &[(u32, Taken)]) {
        const PAGE: i32 = 4096;
        if !are_read(parts) {
            return;
        }
        let other = self.ways.1;
        dynasm!(c.a
            ; .arch x64
            ; lea rcx, [r8 + self.taken]
            ; mov r11, rcx
            ; shr r11, 3
            ; add r11, [BYTE rdx + BASE as i8]
            ; lea eax, [r11 - FLAGS]
            ; and eax, PAGE - 1
            ; cmp eax, PAGE - 8
            ; ja =>other
            ; mov rax, [r11 - FLAGS]
            ; bswap rax
            ; and ecx, 7
            ; shl rax, cl
        );
        self.take_apart(c, parts, u64::BITS);
    }

    /// Takes the bits in `rax` apart. `behind`: the bits from the first of them on.
    fn take_apart(&mut self, c: &mut Compiler<'_>, parts: &[(u32, Taken)], mut behind: u32) {
        let (fail, other) = self.ways;
        for (bits, taken) in parts {
            behind -= bits;
            match taken {
                Taken::Skipped => {}
                Taken::Equals(value) => {
                    field(c, R8, (behind, *bits), false, 0);
                    compare(c, R8, *value);
                    dynasm!(c.a; .arch x64; mov r8, [BYTE rdx + START as i8]; jne =>fail);
                }
                Taken::Integer {
                    dst,
                    is_signed,
                    is_little,
                } => {
                    let to = self.place(c, *dst);
                    integer(c, to, (behind, *bits), (*is_signed, *is_little), other);
                    store(c, *dst, to);
                }
            }
        }
    }

    /// The machine register in which the integer for this one is made, and stays.
    fn place(&mut self, c: &mut Compiler<'_>, dst: Reg) -> u8 {
        self.sets_context |= Src::of(dst) == self.context;
        let to = c.free_among(keeps::MATCHED, dst);
        c.hold_small(dst, to);
        to
    }

    /// The match has ended: what it has loaded and made stays in machine registers.
    fn finish(&mut self, c: &mut Compiler<'_>) {
        self.store_position(c);
        if self.has_context && !self.sets_context {
            hold_context(c, self.context, None);
        }
    }
}

fn sum(parts: &[(u32, Taken)]) -> u32 {
    parts.iter().map(|(bits, _)| bits).sum()
}

/// Bits of a small integer's tag.
const TAG_BITS: u32 = u64::BITS - tag::SMALL_BITS;

/// Compares the number of 8, 16 or 32 bits that is `at` bytes from `r11` with this one.
fn are_equal(c: &mut Compiler<'_>, at: i32, bits: u32, value: u64) {
    match bits {
        8 => dynasm!(c.a; .arch x64; cmp BYTE [r11 + at], value as i8),
        16 => {
            let swapped = (value as u16).swap_bytes();
            dynasm!(c.a; .arch x64; movzx eax, WORD [r11 + at]; cmp eax, i32::from(swapped));
        }
        _ => dynasm!(c.a; .arch x64; cmp DWORD [r11 + at], (value as u32).swap_bytes() as i32),
    }
}

/// Makes a small integer of the 8, 16 or 32 bits that are `at` bytes from `r11`.
fn load_integer(
    c: &mut Compiler<'_>,
    to: u8,
    (at, bits): (i32, u32),
    is_signed: bool,
    is_little: bool,
) {
    match (bits, is_signed) {
        (8, false) => dynasm!(c.a; .arch x64; movzx Rd(to), BYTE [r11 + at]),
        (8, true) => dynasm!(c.a; .arch x64; movsx Rq(to), BYTE [r11 + at]),
        (16, true) if is_little => dynasm!(c.a; .arch x64; movsx Rq(to), WORD [r11 + at]),
        (16, _) => dynasm!(c.a; .arch x64; movzx Rd(to), WORD [r11 + at]),
        _ => dynasm!(c.a; .arch x64; mov Rd(to), [r11 + at]),
    }
    if bits > 8 && !is_little {
        dynasm!(c.a; .arch x64; bswap Rd(to));
    }
    match (bits, is_signed) {
        (16, false) if !is_little => dynasm!(c.a; .arch x64; shr Rd(to), 16),
        (16, true) if !is_little => dynasm!(c.a; .arch x64; sar Rd(to), 16; movsxd Rq(to), Rd(to)),
        (32, true) => dynasm!(c.a; .arch x64; movsxd Rq(to), Rd(to)),
        _ => {}
    }
    dynasm!(c.a; .arch x64; shl Rq(to), TAG_BITS as i8; or Rq(to), BYTE tag::SMALL as i8);
}

/// Loads up to 8 bytes, `at` bytes from `r11`, into `rax`, the first ones as the highest. `before` and `behind` are how
/// many bytes may be loaded that are before and behind them. Gives how many bits are below them then. Above them may be
/// anything.
fn load_bytes(c: &mut Compiler<'_>, at: i32, bytes: i32, (before, behind): (i32, i32)) -> u32 {
    let window = if bytes > 4 { 8 } else { 4 };
    let rest = window - bytes;
    if bytes > 2 && (rest <= behind || rest <= before) {
        let below = if rest <= behind { rest } else { 0 };
        let from = at + below - rest;
        match window {
            8 => dynasm!(c.a; .arch x64; mov rax, [r11 + from]; bswap rax),
            _ => dynasm!(c.a; .arch x64; mov eax, [r11 + from]; bswap eax),
        }
        return 8 * below as u32;
    }
    let mut loaded = 0;
    while loaded < bytes {
        // The largest power of two that fits.
        let chunk = 1 << (bytes - loaded).ilog2();
        if loaded > 0 {
            dynasm!(c.a; .arch x64; shl rax, 8 * chunk as i8);
        }
        let from = at + loaded;
        match (chunk, loaded) {
            (4, _) => dynasm!(c.a; .arch x64; mov eax, [r11 + from]; bswap eax),
            (2, 0) => dynasm!(c.a; .arch x64; movzx eax, WORD [r11 + from]; rol ax, 8),
            (2, _) => {
                dynasm!(c.a; .arch x64; movzx ecx, WORD [r11 + from]; rol cx, 8; or rax, rcx);
            }
            (_, 0) => dynasm!(c.a; .arch x64; movzx eax, BYTE [r11 + from]),
            _ => dynasm!(c.a; .arch x64; movzx ecx, BYTE [r11 + from]; or rax, rcx),
        }
        loaded += chunk;
    }
    0
}

/// Makes an integer of bits of `rax`, which have `behind` bits behind them; or it is the helper's.
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

/// Copies `bits` bits of `rax`, which have `behind` bits behind them, to a machine register, with `room` for a tag
/// below them, which has anything in it.
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

/// Turns the bytes of `bits` bits in a machine register round.
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
