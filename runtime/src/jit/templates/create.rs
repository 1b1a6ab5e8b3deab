//! The template that constructs bitstrings of whole bytes: small ones on the heap, and those appended to in place.
//!
//! All sources are looked at first. What is not as expected is the helper's, which then does all of it.
//!
//! | register | what it holds |
//! |---|---|
//! | `r8` | bits of the binaries among the segments |
//! | `r10` | where the next byte is put |
//! | `r11` | the bitstring being made |

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::binaries::{self, BASE, END, ORIG, START};
use super::{RAX, RDX, constant, load, load_at, source, store};
use crate::code::op::{Op, read};
use crate::code::operand::{Reg, Src};
use crate::heap::{Binary, Heap, RESERVED_WORDS, heap_bits_words};
use crate::interp::bits::create::{Segment, kind, segments};
use crate::interp::bits::flag;
use crate::jit::compile::Compiler;
use crate::jit::stubs::slot;
use crate::loader::types::Range;
use crate::process::offset::{OVERHEAD_WORDS, STOP};
use crate::term::tag::{self, size};
use crate::term::{CodeAddress, RawTerm, Term, am, sub_bits};

/// What the segments are put behind.
enum To {
    Nothing,
    /// The bytes of a writable bitstring, whose new end is in a new thing, or in the thing itself.
    End {
        of: Reg,
        is_private: bool,
    },
}

/// A number of bits, of a value.
#[derive(Clone, Copy)]
struct Field {
    bits: u32,
    value: Value,
}

#[derive(Clone, Copy)]
enum Value {
    /// The lowest bits.
    Constant(u64),
    /// The lowest bits of the small integer there.
    Integer(Reg),
    /// The code point there, which is below 128.
    Ascii(Reg),
    /// The float there.
    Float(Reg),
}

/// Segments that are put together.
enum Part {
    /// Up to 64 bits.
    Fields { fields: Vec<Field>, is_little: bool },
    /// All bytes of the bitstring there.
    Binary(Reg),
}

impl Part {
    fn bits(&self) -> u32 {
        match self {
            Part::Fields { fields, .. } => fields.iter().map(|field| field.bits).sum(),
            Part::Binary(_) => 0,
        }
    }
}

/// What is made, where the template does it.
struct Plan {
    to: To,
    parts: Vec<Part>,
}

/// Most bits that the segments of constant sizes may have together.
const MOST_BITS: u32 = 8 * tag::ONHEAP_BINARY_LIMIT as u32;
/// A bitstring of this many bits costs a reduction.
const CHARGED_BITS: i32 = 8 * 1024;

impl Plan {
    fn of(i: read::BsCreateBin) -> Option<Plan> {
        let mut all = segments(i).peekable();
        let first =
            all.next_if(|segment| matches!(segment.kind(), kind::APPEND | kind::PRIVATE_APPEND));
        let to = match first {
            Some(segment) if !matches!(segment.unit(), 1 | 8) => return None,
            Some(segment) => To::End {
                of: segment.source().reg()?,
                is_private: segment.kind() == kind::PRIVATE_APPEND,
            },
            None => To::Nothing,
        };
        let mut parts = Vec::new();
        let mut open = Vec::new();
        for segment in all {
            add(&mut parts, &mut open, segment)?;
        }
        close(&mut parts, &mut open);
        let plan = Plan { to, parts };
        plan.is_supported().then_some(plan)
    }

    /// Bits of the segments whose sizes are constants.
    fn bits(&self) -> u32 {
        self.parts.iter().map(Part::bits).sum()
    }

    fn binaries(&self) -> impl Iterator<Item = Reg> {
        self.parts.iter().filter_map(|part| match part {
            Part::Binary(src) => Some(*src),
            Part::Fields { .. } => None,
        })
    }

    fn is_supported(&self) -> bool {
        let begins_with = match self.to {
            To::End { of, .. } => Some(of),
            To::Nothing => None,
        };
        self.bits() <= MOST_BITS && !self.binaries().any(|src| Some(src) == begins_with)
    }
}

/// Adds a segment: to the fields that are open, as long as they are not whole bytes.
fn add(parts: &mut Vec<Part>, open: &mut Vec<Field>, segment: Segment) -> Option<()> {
    match segment.kind() {
        kind::BINARY => {
            let is_all = segment.size_source().0 == am::all.raw().0;
            if !is_all || !matches!(segment.unit(), 1 | 8) || !open.is_empty() {
                return None;
            }
            parts.push(Part::Binary(segment.source().reg()?));
            return Some(());
        }
        kind::STRING => {
            for &byte in segment.string() {
                let value = Value::Constant(byte.into());
                push(parts, open, Field { bits: 8, value }, false)?;
            }
            return Some(());
        }
        kind::UTF8 => {
            let value = Value::Ascii(segment.source().reg()?);
            return push(parts, open, Field { bits: 8, value }, false);
        }
        kind::INTEGER | kind::FLOAT => {}
        _ => return None,
    }
    let size = Term::immed(small(segment.size_source())?).as_index()?;
    let bits = u32::try_from(size.checked_mul(segment.unit())?).ok()?;
    let is_little = segment.flags() & (flag::LITTLE | flag::NATIVE) != 0 && bits > 8;
    let value = match segment.source().reg() {
        Some(src) if segment.kind() == kind::FLOAT => Value::Float(src),
        None if segment.kind() == kind::FLOAT => return None,
        Some(src) => Value::Integer(src),
        None => Value::Constant(Term::immed(small(segment.source())?).as_small()? as u64),
    };
    let is_wrong = matches!(value, Value::Float(_)) && bits != 64;
    if !matches!(bits, 1..=64) || is_wrong || (is_little && !(open.is_empty() && bits % 8 == 0)) {
        return None;
    }
    push(parts, open, Field { bits, value }, is_little)
}

/// The small integer that a constant is.
fn small(constant: Src) -> Option<RawTerm> {
    Some(RawTerm(constant.0)).filter(|word| word.is_small())
}

fn push(parts: &mut Vec<Part>, open: &mut Vec<Field>, field: Field, is_little: bool) -> Option<()> {
    open.push(field);
    let bits: u32 = open.iter().map(|field| field.bits).sum();
    if bits > 64 {
        return None;
    }
    if bits.is_multiple_of(8) {
        let fields = std::mem::take(open);
        parts.push(Part::Fields { fields, is_little });
    }
    Some(())
}

/// The fields that are left end within a byte, whose other bits are zero.
fn close(parts: &mut Vec<Part>, open: &mut Vec<Field>) {
    if !open.is_empty() {
        let fields = std::mem::take(open);
        parts.push(Part::Fields {
            fields,
            is_little: false,
        });
    }
}

pub(super) fn bs_create_bin(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsCreateBin) {
    let plan = Plan::of(i).filter(|_| !Heap::is_zealous());
    let Some(plan) = plan else {
        return c.helper(pc, Op::BsCreateBin, i);
    };
    let other = c.cold_helper(pc, Op::BsCreateBin, i);
    check(c, &plan, other);
    match plan.to {
        To::Nothing if plan.binaries().next().is_none() => known(c, &plan, i.alloc(), other),
        To::Nothing => fresh(c, &plan, i.alloc(), other),
        To::End { of, is_private } => append(c, &plan, of, is_private, i.alloc(), other),
    }
    for part in &plan.parts {
        match part {
            Part::Binary(src) => copy(c, *src),
            Part::Fields { fields, is_little } => put(c, fields, *is_little),
        }
    }
    store(c, i.dst(), 11);
}

/// Goes to `other` where a source is not as expected. The bits of binaries are in `r8` otherwise.
fn check(c: &mut Compiler<'_>, plan: &Plan, other: DynamicLabel) {
    if plan.binaries().next().is_some() {
        dynasm!(c.a; .arch x64; xor r8d, r8d);
    }
    for part in &plan.parts {
        match part {
            Part::Binary(src) => {
                binaries::whole_bytes(c, *src, other);
                dynasm!(c.a; .arch x64; cmp rcx, CHARGED_BITS; jae =>other; add r8, rcx);
            }
            Part::Fields { fields, .. } => {
                fields
                    .iter()
                    .for_each(|field| check_value(c, field.value, other));
            }
        }
    }
}

fn check_value(c: &mut Compiler<'_>, value: Value, other: DynamicLabel) {
    match value {
        Value::Constant(_) => {}
        Value::Integer(src) if c.range(Src::of(src)).is_some() => {}
        Value::Integer(src) => {
            load(c, RAX, src);
            dynasm!(c.a; .arch x64; not eax; test al, tag::SMALL as i8; jnz =>other);
        }
        Value::Ascii(src) => {
            load(c, RAX, src);
            dynasm!(c.a
                ; .arch x64
                ; cmp rax, 128 << 4
                ; jae =>other
                ; not eax
                ; test al, tag::SMALL as i8
                ; jnz =>other
            );
        }
        Value::Float(src) => {
            load(c, RDX, src);
            let header = tag::make_header(1, tag::FLOAT) as i32;
            dynasm!(c.a
                ; .arch x64
                ; lea eax, [BYTE rdx - tag::BOXED as i8]
                ; test al, 3
                ; jnz =>other
                ; cmp QWORD [BYTE rdx - tag::BOXED as i8], header
                ; jne =>other
            );
        }
    }
}

/// A bitstring on the heap whose size is known.
fn known(c: &mut Compiler<'_>, plan: &Plan, alloc: usize, other: DynamicLabel) {
    let bits = plan.bits() as usize;
    let words = heap_bits_words(bits);
    binaries::room(c, words + alloc, other);
    let header = tag::make_header(words - 1, tag::HEAP_BITS) as i32;
    let last = 8 * (words as i32 - 1);
    dynasm!(c.a
        ; .arch x64
        ; mov QWORD [r15 + last], 0
        ; mov QWORD [r15], header
        ; mov QWORD [r15 + 8], bits as i32
        ; lea r11, [r15 + tag::BOXED as i32]
        ; lea r10, [r15 + 16]
        ; add r15, 8 * words as i32
    );
}

/// A bitstring on the heap with binaries in it.
fn fresh(c: &mut Compiler<'_>, plan: &Plan, alloc: usize, other: DynamicLabel) {
    // `r9` has the words of the bytes, `rax` where the bitstring ends.
    let head = 8 * (heap_bits_words(0) as i32);
    let behind = 8 * (alloc + RESERVED_WORDS) as i32;
    let empty = tag::make_header(heap_bits_words(0) - 1, tag::HEAP_BITS) as i32;
    dynasm!(c.a
        ; .arch x64
        ; add r8, plan.bits() as i32
        ; cmp r8, MOST_BITS as i32
        ; ja =>other
        ; lea r9, [r8 + 63]
        ; shr r9, 6
        ; lea rax, [r15 + r9 * 8 + head]
        ; lea rcx, [rax + behind]
        ; cmp rcx, rsp
        ; ja =>other
    );
    binaries::few(c, other);
    dynasm!(c.a
        ; .arch x64
        ; mov QWORD [rax - 8], 0
        ; shl r9, tag::ARITY_SHIFT as i8
        ; add r9, empty
        ; mov [r15], r9
        ; mov [r15 + 8], r8
        ; lea r11, [r15 + tag::BOXED as i32]
        ; lea r10, [r15 + 16]
        ; mov r15, rax
    );
}

/// Goes to `other` unless `of` holds a bitstring of whole bytes that may be appended to: it is in `rdx`, its end in `r9`,
/// what keeps its binary in `rdi`, and the binary in `rsi`. Gives its flags.
fn writable(c: &mut Compiler<'_>, of: Reg, other: DynamicLabel) -> i32 {
    let writable = (sub_bits::MUTABLE | sub_bits::VOLATILE) as i32;
    load(c, RDX, of);
    binaries::is_sub_bits(c, other);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, [BYTE rdx + BASE as i8]
        ; and eax, sub_bits::MASK as i32
        ; cmp eax, writable
        ; jne =>other
        ; mov rdi, [BYTE rdx + ORIG as i8]
        ; mov eax, [rdi - tag::BOXED as i32]
        ; and eax, tag::HEADER_MASK as i32
        ; cmp eax, tag::BIN_REF as i32
        ; jne =>other
        ; mov rsi, [rdi + (8 - tag::BOXED as i32)]
        ; cmp BYTE [rsi + Binary::WRITABLE as i32], 0
        ; je =>other
        ; cmp QWORD [BYTE rdx + START as i8], 0
        ; jne =>other
        ; mov r9, [BYTE rdx + END as i8]
        ; test r9b, 7
        ; jnz =>other
    );
    writable
}

/// The bytes of the writable bitstring that `of` holds get longer by all segments, where there is room.
fn append(
    c: &mut Compiler<'_>,
    plan: &Plan,
    of: Reg,
    is_private: bool,
    alloc: usize,
    other: DynamicLabel,
) {
    let (capacity, size) = (Binary::CAPACITY as i32, Binary::SIZE as i32);
    let writable = writable(c, of, other);
    // `rcx` gets the bits then, `rax` their bytes.
    match plan.binaries().next() {
        None if plan.bits() == 0 => dynasm!(c.a; .arch x64; jmp =>other),
        None => dynasm!(c.a; .arch x64; lea rcx, [r9 + plan.bits() as i32]),
        Some(_) => dynasm!(c.a
            ; .arch x64
            ; lea rcx, [r8 + plan.bits() as i32]
            ; test rcx, rcx
            ; jz =>other
            ; add rcx, r9
        ),
    }
    dynasm!(c.a
        ; .arch x64
        ; lea rax, [rcx + 7]
        ; shr rax, 3
        ; cmp rax, [rsi + capacity]
        ; ja =>other
    );
    let words = if is_private { 0 } else { size::SUB_BITS };
    binaries::room(c, words + alloc, other);
    dynasm!(c.a
        ; .arch x64
        ; mov [rsi + size], rax
        ; mov r10, [rsi + Binary::DATA as i32]
        ; shr r9, 3
        ; shr rax, 3
        ; mov r11, r9
        ; shr r11, 3
        ; sub rax, r11
        ; add [r13 + OVERHEAD_WORDS], rax
    );
    match is_private {
        true => dynasm!(c.a; .arch x64; mov [BYTE rdx + END as i8], rcx; mov r11, rdx),
        false => {
            let header = tag::make_header(size::SUB_BITS - 1, tag::SUB_BITS) as i32;
            let now = !(sub_bits::MUTABLE as i32);
            dynasm!(c.a
                ; .arch x64
                ; and QWORD [BYTE rdx + BASE as i8], now
                ; lea rax, [r10 + writable]
                ; lea r11, [r15 + tag::BOXED as i32]
                ; mov QWORD [r15], header
                ; mov [r15 + 8], rax
                ; mov QWORD [r15 + 16], 0
                ; mov [r15 + 24], rcx
                ; mov [r15 + 32], rdi
                ; add r15, 8 * size::SUB_BITS as i32
            );
        }
    }
    dynasm!(c.a; .arch x64; add r10, r9);
}

extern "C" fn copy_bytes(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: T1: the source's bytes are readable, and the new ones are behind all that others may read.
    unsafe { std::ptr::copy_nonoverlapping(from, to, count) }
}

/// Puts the bytes of the bitstring that `src` holds.
fn copy(c: &mut Compiler<'_>, src: Reg) {
    let (done, long, next) = (c.new_label(), c.new_label(), c.new_label());
    binaries::bytes(c, src);
    let [to, made, _] = slot::KEPT;
    dynasm!(c.a
        ; .arch x64
        ; shr rcx, 3
        ; jz =>done
        ; cmp rcx, 8
        ; ja =>long
        ; =>next
        ; movzx eax, BYTE [rsi]
        ; mov [r10], al
        ; inc rsi
        ; inc r10
        ; dec rcx
        ; jnz =>next
        ; jmp =>done
        ; =>long
        ; mov rdi, r10
        ; mov rdx, rcx
        ; add r10, rcx
        ; mov [rbp + to], r10
        ; mov [rbp + made], r11
        ; mov [r13 + STOP], rsp
        ; mov rsp, rbp
        ; mov rax, QWORD copy_bytes as *const () as usize as i64
        ; call rax
        ; mov rsp, [r13 + STOP]
        ; mov r10, [rbp + to]
        ; mov r11, [rbp + made]
        ; =>done
    );
}

/// Puts these fields.
fn put(c: &mut Compiler<'_>, fields: &[Field], is_little: bool) {
    let mut bits = 0;
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            dynasm!(c.a; .arch x64; shl rax, field.bits as i8);
        }
        field_value(c, *field, at > 0);
        bits += field.bits;
    }
    if bits % 8 != 0 {
        dynasm!(c.a; .arch x64; shl rax, (8 - bits % 8) as i8);
        bits = bits.next_multiple_of(8);
    }
    if !is_little && bits > 8 {
        dynasm!(c.a; .arch x64; bswap rax);
        if bits < 64 {
            dynasm!(c.a; .arch x64; shr rax, (64 - bits) as i8);
        }
    }
    let mut left = bits / 8;
    while left > 0 {
        let chunk = 1 << left.ilog2();
        match chunk {
            8 => dynasm!(c.a; .arch x64; mov [r10], rax),
            4 => dynasm!(c.a; .arch x64; mov [r10], eax),
            2 => dynasm!(c.a; .arch x64; mov [r10], ax),
            _ => dynasm!(c.a; .arch x64; mov [r10], al),
        }
        dynasm!(c.a; .arch x64; add r10, chunk as i32);
        left -= chunk;
        if left > 0 {
            dynasm!(c.a; .arch x64; shr rax, 8 * chunk as i8);
        }
    }
}

/// Puts a field's value into `rax`, or into the free lowest bits of it.
fn field_value(c: &mut Compiler<'_>, field: Field, is_more: bool) {
    let to = if is_more { RDX } else { RAX };
    let mask = u64::MAX >> (64 - field.bits);
    match field.value {
        Value::Constant(value) => constant(c, to, value & mask),
        Value::Integer(src) => {
            let fits = |range: Range| range.least >= 0 && range.most as u64 <= mask;
            load(c, to, src);
            dynasm!(c.a; .arch x64; sar Rq(to), 4);
            if is_more && !c.range(Src::of(src)).is_some_and(fits) {
                keep(c, to, mask);
            }
        }
        Value::Ascii(src) => {
            load(c, to, src);
            dynasm!(c.a; .arch x64; shr Rd(to), 4);
        }
        Value::Float(src) => {
            source(c, to, Src(src.0));
            load_at(c, to, to, 8 - tag::BOXED as i32);
        }
    }
    if is_more {
        dynasm!(c.a; .arch x64; or rax, rdx);
    }
}

/// Clears the bits of a register that the mask has not.
fn keep(c: &mut Compiler<'_>, register: u8, mask: u64) {
    match i32::try_from(mask) {
        Ok(mask) => dynasm!(c.a; .arch x64; and Rq(register), mask),
        Err(_) => {
            constant(c, super::RCX, mask);
            dynasm!(c.a; .arch x64; and Rq(register), rcx);
        }
    }
}
