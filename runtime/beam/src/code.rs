//! Decodes the `Code` chunk: instructions, labels and functions.

use std::cell::Cell;

use super::chunks::Chunks;
use super::error::{BeamError, BeamErrorKind};
use super::genop::Op;
use super::module::{BeamModule, Function, Instr};
use super::operand::{Arg, MAX_REG};
use super::reader::{Number, Reader, tag};

/// The numbers that precede the instructions.
pub(super) struct Header {
    code_start: usize,
    pub(super) label_count: u32,
    function_count: u32,
}

/// Label counts up to this are taken without asking how many labels the code can hold.
const LABELS_ALWAYS_OK: usize = 1 << 16;

impl Header {
    /// Reads header size, format version, highest opcode, label count and function count.
    pub(super) fn parse(chunks: &Chunks<'_>) -> Result<Header, BeamError> {
        let mut r = chunks.reader(b"Code");
        let size = r.count(1)?;
        let code_start = 4 + size;
        let version = r.i32()?;
        if version != 0 {
            return Err(r.err_at(4, BeamErrorKind::BadVersion(i64::from(version))));
        }
        let highest = r.i32()?.cast_unsigned();
        if highest > u32::from(Op::MAX) {
            return Err(r.err_at(8, BeamErrorKind::OfLaterRelease(highest)));
        }
        // Compilers since OTP 23 write at least this number, whatever the code has. Source: `erts_prepare_loading()`.
        if highest < u32::from(Op::Swap.number()) {
            return Err(r.err_at(8, BeamErrorKind::OfOldRelease));
        }
        let label_count = r.i32()?;
        let function_count = r.i32()?;
        if code_start < r.offset() {
            return Err(r.err_at(0, BeamErrorKind::BadCount(size as i64)));
        }
        // Labels need not be dense, but a table of them must not be asked for by a number alone.
        let most = LABELS_ALWAYS_OK.max(chunks.get(b"Code").len());
        if !usize::try_from(label_count).is_ok_and(|n| n <= most) {
            return Err(r.err_at(12, BeamErrorKind::BadCount(i64::from(label_count))));
        }
        if function_count < 0 {
            return Err(r.err_at(16, BeamErrorKind::BadCount(i64::from(function_count))));
        }
        Ok(Header {
            code_start,
            label_count: label_count.cast_unsigned(),
            function_count: function_count.cast_unsigned(),
        })
    }
}

thread_local! {
    /// Memory of the tables of a module that the thread has done with, for the next one. Fresh memory costs a fault for
    /// each page; of those of an emulator's start this saves a tenth.
    static SPARE: Cell<(Vec<Instr>, Vec<Arg>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// Tables for more instructions than this are given back.
const SPARE_INSTRUCTIONS: usize = 1 << 16;

impl BeamModule {
    /// Ends a module that is done with. The thread's next one gets the memory of its instructions.
    pub fn recycle(self) {
        let (mut code, mut args) = (self.code, self.args);
        if code.capacity() <= SPARE_INSTRUCTIONS {
            code.clear();
            args.clear();
            SPARE.set((code, args));
        }
    }
}

/// Reads all instructions into `module`, with their labels and functions.
pub(super) fn decode(
    chunks: &Chunks<'_>,
    header: &Header,
    module: &mut BeamModule,
) -> Result<(), BeamError> {
    let mut r = chunks.reader(b"Code");
    r.bytes(header.code_start)?;
    (module.code, module.args) = SPARE.take();
    // A guess that is rarely too small.
    module.code.reserve(r.remaining() / 6);
    module.args.reserve(r.remaining() / 2);
    let mut labels = Labels::new(header.label_count);
    loop {
        let offset = r.offset() as u32;
        if r.remaining() == 0 {
            return Err(r.err(BeamErrorKind::NoCodeEnd));
        }
        let first_arg = module.args.len();
        let op = read_instruction(&mut r, module)?;
        let args = &module.args[first_arg..];
        let index = module.code.len() as u32;
        check_operands(module, op, args)
            .and_then(|()| labels.note(op, args, index, offset))
            .map_err(|kind| r.err_at(offset as usize, kind))?;
        module.code.push(Instr {
            op,
            offset,
            first_arg: first_arg as u32,
            arg_count: args.len() as u32,
        });
        if op == Op::IntCodeEnd {
            break;
        }
    }
    if let Some((label, offset)) = labels.undefined() {
        return Err(r.err_at(offset as usize, BeamErrorKind::UndefinedLabel(label)));
    }
    module.labels = labels.defined;
    functions(&r, module)?;
    let found = module.functions.len() as u32;
    if found != header.function_count {
        let kind = BeamErrorKind::FunctionCount {
            expected: header.function_count,
            found,
        };
        return Err(r.err_at(16, kind));
    }
    Ok(())
}

/// Labels seen so far.
struct Labels {
    /// Index of the instruction, or `u32::MAX`.
    defined: Vec<u32>,
    /// Offset of the first use, or `u32::MAX`.
    used: Vec<u32>,
}

impl Labels {
    fn new(count: u32) -> Labels {
        let none = vec![u32::MAX; count as usize];
        Labels {
            defined: none.clone(),
            used: none,
        }
    }

    /// Notes what an instruction defines and uses; its labels are below the count.
    fn note(&mut self, op: Op, args: &[Arg], index: u32, offset: u32) -> Result<(), BeamErrorKind> {
        if op == Op::Label {
            let Arg::U(label) = args[0] else {
                return Err(BeamErrorKind::BadOperand { op, index: 0 });
            };
            let slot = usize::try_from(label).ok().filter(|l| *l != 0);
            let slot = slot.and_then(|l| self.defined.get_mut(l));
            let slot = slot.ok_or(BeamErrorKind::BadLabel(label))?;
            if *slot != u32::MAX {
                return Err(BeamErrorKind::DuplicateLabel(label as u32));
            }
            *slot = index;
            return Ok(());
        }
        for arg in args {
            if let Arg::Label(label) = *arg
                && label != 0
            {
                let first = &mut self.used[label as usize];
                *first = (*first).min(offset);
            }
        }
        Ok(())
    }

    /// A label that is used but not defined, with the offset of its first use.
    fn undefined(&self) -> Option<(u32, u32)> {
        let rows = self.defined.iter().zip(&self.used).zip(0..);
        rows.filter(|((defined, used), _)| **defined == u32::MAX && **used != u32::MAX)
            .map(|((_, used), label)| (label, *used))
            .min_by_key(|(_, used)| *used)
    }
}

/// Finds the functions: `label`, perhaps `line`, `func_info`, `label`.
fn functions(r: &Reader<'_>, module: &mut BeamModule) -> Result<(), BeamError> {
    let code = &module.code;
    let mut entries = vec![u32::MAX; module.label_count as usize];
    let mut functions: Vec<Function> = Vec::new();
    let label_of = |i: usize| {
        let instr = code.get(i).filter(|instr| instr.op == Op::Label)?;
        match module.args(instr)[0] {
            Arg::U(label) => Some(label as u32),
            _ => None,
        }
    };
    for (i, instr) in code.iter().enumerate() {
        if instr.op != Op::FuncInfo {
            continue;
        }
        let bad = |kind| r.err_at(instr.offset as usize, kind);
        let line = i > 0 && code[i - 1].op == Op::Line;
        let first = i.wrapping_sub(1 + usize::from(line));
        let (Some(info_label), Some(entry_label)) = (label_of(first), label_of(i + 1)) else {
            return Err(bad(BeamErrorKind::BadFunction));
        };
        let [Arg::Atom(in_module), Arg::Atom(name), Arg::U(arity)] = *module.args(instr) else {
            return Err(bad(BeamErrorKind::BadFunction));
        };
        let arity =
            u8::try_from(arity).map_err(|_| bad(BeamErrorKind::BadArity(arity.cast_signed())))?;
        if let Some(last) = functions.last_mut() {
            last.end = first as u32;
        }
        entries[entry_label as usize] = functions.len() as u32;
        functions.push(Function {
            module: in_module,
            name,
            arity,
            info_label,
            entry_label,
            first: first as u32,
            end: code.len() as u32 - 1,
        });
    }
    // Nothing but the end may stand before the first function.
    let first = functions
        .first()
        .map_or(code.len() - 1, |f| f.first as usize);
    if first != 0 {
        return Err(r.err_at(code[0].offset as usize, BeamErrorKind::BadFunction));
    }
    module.functions = functions;
    module.entries = entries;
    Ok(())
}

/// Reads one instruction; its operands are added to `module.args`.
pub(super) fn read_instruction(
    r: &mut Reader<'_>,
    module: &mut BeamModule,
) -> Result<Op, BeamError> {
    let at = r.offset();
    let number = r.u8()?;
    let Some(op) = Op::from_number(number) else {
        return Err(r.err_at(at, BeamErrorKind::BadOpcode(u32::from(number))));
    };
    let (mut index, mut left) = (0, op.arity());
    let mut in_list = false;
    while left > 0 {
        let at = r.offset();
        let arg = read_arg(r, module)?;
        left -= 1;
        if let Arg::List(count) = arg {
            // The last operand may be a list, and its elements are none.
            if in_list || left > 0 {
                return Err(r.err_at(at, BeamErrorKind::BadOperand { op, index }));
            }
            (in_list, left) = (true, count as usize);
        }
        module.args.push(arg);
        index += usize::from(!in_list);
    }
    Ok(op)
}

// In line at its one place: what it gives is put together where it goes to, and not read again before it is written.
#[inline(always)]
fn read_arg(r: &mut Reader<'_>, module: &mut BeamModule) -> Result<Arg, BeamError> {
    let at = r.offset();
    let (tag, number) = r.tagged()?;
    let word = match number {
        Number::Word(word) => word,
        Number::Bytes(bytes) if tag == tag::I => {
            let bigs = &mut module.bigs;
            let start = bigs.bytes.len() as u32;
            bigs.bytes.extend_from_slice(bytes);
            bigs.rows.push(start..bigs.bytes.len() as u32);
            return Ok(Arg::Big(bigs.rows.len() as u32 - 1));
        }
        Number::Bytes(_) if tag == tag::U => return Ok(Arg::Overflow),
        Number::Bytes(_) => return Err(r.err_at(at, BeamErrorKind::BadTag(tag))),
    };
    if tag == tag::I {
        return Ok(Arg::I(word));
    }
    let value = word.cast_unsigned();
    let arg = match tag {
        tag::U => Arg::U(value),
        tag::A if value == 0 => Arg::Nil,
        tag::A => Arg::Atom(index(r, at, "atoms", value, module.atoms.len())?),
        tag::F if value < u64::from(module.label_count) || value == 0 => Arg::Label(value as u32),
        tag::F => return Err(r.err_at(at, BeamErrorKind::BadLabel(value))),
        tag::X => Arg::X(register(r, at, value)?),
        tag::Y => Arg::Y(register(r, at, value)?),
        tag::Z => return read_extended(r, at, value, module),
        _ => return Err(r.err_at(at, BeamErrorKind::BadTag(tag))),
    };
    Ok(arg)
}

/// What follows the tag `Z`, by its number: 1 list, 2 float register, 3 allocation list, 4 literal,
/// 5 register with its type.
fn read_extended(
    r: &mut Reader<'_>,
    at: usize,
    kind: u64,
    module: &BeamModule,
) -> Result<Arg, BeamError> {
    match kind {
        1 => {
            let at = r.offset();
            let count = r.unsigned()?;
            r.check_count(at, i64::from(count), 1)?;
            Ok(Arg::List(count))
        }
        2 => {
            let value = r.unsigned()?;
            Ok(Arg::FReg(register(r, at, u64::from(value))?))
        }
        3 => read_alloc(r, at),
        4 => {
            let value = r.unsigned()?;
            Ok(Arg::Literal(index(
                r,
                at,
                "literals",
                u64::from(value),
                module.literals.len(),
            )?))
        }
        5 => read_typed(r, at, module),
        _ => Err(r.err_at(at, BeamErrorKind::BadTag(tag::Z))),
    }
}

fn read_typed(r: &mut Reader<'_>, at: usize, module: &BeamModule) -> Result<Arg, BeamError> {
    let (tag, number) = r.tagged()?;
    let Number::Word(value) = number else {
        return Err(r.err_at(at, BeamErrorKind::BadTag(tag)));
    };
    let typed: fn(u16, u32) -> Arg = match tag {
        tag::X => Arg::TypedX,
        tag::Y => Arg::TypedY,
        _ => return Err(r.err_at(at, BeamErrorKind::BadTag(tag))),
    };
    let reg = register(r, at, value.cast_unsigned())?;
    let row = r.unsigned()?;
    match &module.types {
        Some(types) => Ok(typed(
            reg,
            index(r, at, "types", u64::from(row), types.len())?,
        )),
        None if tag == tag::X => Ok(Arg::X(reg)),
        None => Ok(Arg::Y(reg)),
    }
}

/// A count up to 3, then pairs of kind (0 words, 1 floats, 2 funs) and number.
fn read_alloc(r: &mut Reader<'_>, at: usize) -> Result<Arg, BeamError> {
    // Far more than any heap holds, and sums in words cannot overflow 31 bits.
    const MOST: u32 = (i32::MAX / 64).cast_unsigned();
    let bad = |r: &Reader<'_>, n: u32| r.err_at(at, BeamErrorKind::BadCount(i64::from(n)));
    let count = r.unsigned()?;
    if count > 3 {
        return Err(bad(r, count));
    }
    let mut need = [0u32; 3];
    for _ in 0..count {
        let kind = r.unsigned()?;
        let number = r.unsigned()?;
        let Some(slot) = need.get_mut(kind as usize) else {
            return Err(bad(r, kind));
        };
        *slot = slot
            .checked_add(number)
            .filter(|sum| *sum <= MOST)
            .ok_or_else(|| bad(r, number))?;
    }
    Ok(Arg::Alloc {
        words: need[0],
        floats: need[1],
        funs: need[2],
    })
}

fn register(r: &Reader<'_>, at: usize, value: u64) -> Result<u16, BeamError> {
    if value < u64::from(MAX_REG) {
        Ok(value as u16)
    } else {
        Err(r.err_at(at, BeamErrorKind::BadRegister(value)))
    }
}

fn index(
    r: &Reader<'_>,
    at: usize,
    table: &'static str,
    index: u64,
    count: usize,
) -> Result<u32, BeamError> {
    if index < count as u64 {
        Ok(index as u32)
    } else {
        Err(r.err_at(
            at,
            BeamErrorKind::BadIndex {
                table,
                index,
                count,
            },
        ))
    }
}

/// The length of the groups in an instruction's list; `None` where it takes no list.
fn list_group(op: Op) -> Option<usize> {
    match op {
        Op::SelectVal
        | Op::SelectTupleArity
        | Op::PutMapAssoc
        | Op::PutMapExact
        | Op::GetMapElements
        | Op::UpdateRecord
        | Op::GetRecordElements
        | Op::PutRecord => Some(2),
        Op::BsCreateBin => Some(6),
        Op::PutTuple2 | Op::MakeFun3 | Op::InitYregs | Op::HasMapFields | Op::BsMatch => Some(1),
        _ => None,
    }
}

/// Checks the operands that are rows of a table, and lists.
#[inline]
fn check_operands(module: &BeamModule, op: Op, args: &[Arg]) -> Result<(), BeamErrorKind> {
    let arity = op.arity();
    let row = |i: usize, table: &'static str, count: usize| match args[i] {
        Arg::U(index) if index < count as u64 => Ok(()),
        Arg::U(index) => Err(BeamErrorKind::BadIndex {
            table,
            index,
            count,
        }),
        _ => Err(BeamErrorKind::BadOperand { op, index: i }),
    };
    let line = |i: usize| match &module.lines {
        Some(lines) => row(i, "lines", lines.items.len()),
        None => Ok(()),
    };
    let listed = arity > 0 && matches!(args[arity - 1], Arg::List(_));
    let groups_fit = list_group(op).is_some_and(|group| (args.len() - arity).is_multiple_of(group));
    if listed != list_group(op).is_some() || (listed && !groups_fit) {
        return Err(BeamErrorKind::BadOperand {
            op,
            index: arity.saturating_sub(1),
        });
    }
    match op {
        Op::CallExt | Op::CallExtLast | Op::CallExtOnly | Op::Bif1 | Op::Bif2 | Op::Bif3 => {
            row(1, "imports", module.imports.len())
        }
        Op::Bif0 => row(0, "imports", module.imports.len()),
        Op::GcBif1 | Op::GcBif2 | Op::GcBif3 => row(2, "imports", module.imports.len()),
        Op::MakeFun2 | Op::MakeFun3 => row(0, "lambdas", module.lambdas.len()),
        Op::CallFun2 if matches!(args[0], Arg::U(_)) => row(0, "lambdas", module.lambdas.len()),
        Op::Line | Op::ExecutableLine => line(0),
        Op::DebugLine => line(1),
        Op::BsMatchString => string_bytes(module, op, args[3], args[2], 1),
        Op::BsPutString => string_bytes(module, op, args[1], args[0], 8),
        Op::BsCreateBin => args[arity..]
            .chunks_exact(6)
            .filter(|s| is_string(module, s[0]))
            .try_for_each(|s| string_bytes(module, op, s[4], s[5], 8)),
        _ => Ok(()),
    }
}

/// A file may have an atom twice, so its row says nothing.
fn is_string(module: &BeamModule, arg: Arg) -> bool {
    matches!(arg, Arg::Atom(row) if module.atoms.get(row) == "string")
}

/// Checks a piece of the string table: its offset in bytes, its size in units of bits.
fn string_bytes(
    module: &BeamModule,
    op: Op,
    offset: Arg,
    size: Arg,
    unit: u64,
) -> Result<(), BeamErrorKind> {
    let number = |arg: Arg| match arg {
        Arg::U(n) => Some(n),
        Arg::I(n) => u64::try_from(n).ok(),
        _ => None,
    };
    let (Some(offset), Some(size)) = (number(offset), number(size)) else {
        return Err(BeamErrorKind::BadOperand {
            op,
            index: op.arity() - 1,
        });
    };
    let count = module.strings.len();
    let end = size
        .checked_mul(unit)
        .and_then(|bits| offset.checked_add(bits.div_ceil(8)));
    match end {
        Some(end) if end <= count as u64 => Ok(()),
        _ => Err(BeamErrorKind::BadIndex {
            table: "strings",
            index: offset,
            count,
        }),
    }
}
