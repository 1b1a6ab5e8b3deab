//! Transforms the operands of generic instructions to those of specific ones.

use super::{Done, Transform};
use crate::beam::module::Instr;
use crate::beam::{Arg, Op as Gen};
use crate::code::op::{Op, SCRATCH, put};
use crate::code::operand::{Kind, Operand, Put, Sink};
use crate::loader::load::{LoadError, slow};
use crate::process::X_REGISTERS;
use crate::term::{Atom, RawTerm, am};

impl<'a> Transform<'a> {
    pub(super) fn bad(&self, instr: &Instr, what: &str) -> LoadError {
        let name = instr.op.name();
        LoadError::Badfile(format!(
            "chunk Code, offset {}: {name}: {what}",
            instr.offset
        ))
    }

    /// The instruction `ahead` of the current one, lines left out.
    pub(super) fn peek(&self, ahead: usize) -> Option<(&'a Instr, &'a [Arg])> {
        let instr = self.tables.beam.code.get(self.at + ahead)?;
        Some((instr, self.tables.beam.args(instr)))
    }

    /// A register's code; `None` for a constant.
    pub(super) fn reg(arg: Arg) -> Option<u16> {
        match arg {
            Arg::X(n) | Arg::TypedX(n, _) => Some(n * 8),
            Arg::Y(n) | Arg::TypedY(n, _) => Some(n * 8 + 4),
            _ => None,
        }
    }

    /// A source operand as a word.
    pub(super) fn src(&self, arg: Arg) -> Result<u64, LoadError> {
        match Self::reg(arg) {
            Some(code) => Ok(u64::from(code)),
            None => self.constant(arg).map(|term| term.0),
        }
    }

    /// A source that is no register.
    pub(super) fn constant(&self, arg: Arg) -> Result<RawTerm, LoadError> {
        let constant = self.tables.constant(arg);
        constant.ok_or_else(|| self.here("a source"))
    }

    pub(super) fn dst(&self, arg: Arg) -> Result<u16, LoadError> {
        Self::reg(arg).ok_or_else(|| self.here("a destination"))
    }

    pub(super) fn label(&self, arg: Arg) -> Result<u32, LoadError> {
        match arg {
            Arg::Label(label) => Ok(label),
            _ => Err(self.here("a label")),
        }
    }

    pub(super) fn number(&self, arg: Arg) -> Result<u64, LoadError> {
        match arg {
            Arg::U(n) => Ok(n),
            Arg::I(n) => Ok(n as u64),
            _ => Err(self.here("a number")),
        }
    }

    pub(super) fn small_number(&self, arg: Arg) -> Result<u16, LoadError> {
        u16::try_from(self.number(arg)?).map_err(|_| self.here("a smaller number"))
    }

    pub(super) fn arity(&self, arg: Arg) -> Result<u16, LoadError> {
        let arity = u8::try_from(self.number(arg)?).map_err(|_| self.here("an arity"))?;
        Ok(arity.into())
    }

    pub(super) fn freg(&self, arg: Arg) -> Result<u16, LoadError> {
        match arg {
            Arg::FReg(n) => Ok(n),
            _ => Err(self.here("a float register")),
        }
    }

    /// Heap need in words.
    pub(super) fn need(&self, arg: Arg) -> Result<u32, LoadError> {
        let need = match arg {
            Arg::Alloc {
                words,
                floats,
                funs,
            } => u64::from(words) + 2 * u64::from(floats) + 2 * u64::from(funs),
            _ => self.number(arg)?,
        };
        u32::try_from(need).map_err(|_| self.here("a smaller need of heap"))
    }

    /// How many registers are live.
    pub(super) fn live(&self, arg: Arg) -> Result<u16, LoadError> {
        let live = self.small_number(arg)?;
        let fits = usize::from(live) < X_REGISTERS;
        fits.then_some(live)
            .ok_or_else(|| self.here("fewer live registers"))
    }

    pub(super) fn here(&self, expected: &str) -> LoadError {
        let instr = &self.tables.beam.code[self.at - 1];
        self.bad(instr, &format!("{expected} was expected as operand"))
    }

    /// A register that holds `arg`: a constant is moved to the loader's own.
    pub(super) fn in_reg(&mut self, arg: Arg) -> Result<u16, LoadError> {
        if let Some(code) = Self::reg(arg) {
            return Ok(code);
        }
        let value = RawTerm(self.src(arg)?);
        self.put(put::MoveCR {
            dst: SCRATCH,
            value,
        });
        Ok(SCRATCH)
    }

    pub(super) fn import(&self, arg: Arg) -> Result<(Atom, Atom, u8), LoadError> {
        let row = self.number(arg)? as usize;
        let import = self.tables.beam.imports[row];
        let (module, function) = (
            self.tables.atom(import.module),
            self.tables.atom(import.function),
        );
        Ok((module, function, import.arity))
    }

    /// Puts an instruction.
    pub(super) fn put(&mut self, instruction: impl Put) {
        instruction.put(&mut self.e);
    }

    /// Sources as words.
    pub(super) fn sources(&self, args: &[Arg]) -> Result<Vec<u64>, LoadError> {
        args.iter().map(|&arg| self.src(arg)).collect()
    }

    /// An instruction whose row has the operands of the generic one, in their order.
    pub(super) fn same(&mut self, op: Op, args: &[Arg]) -> Done {
        let count = op
            .operands()
            .iter()
            .filter(|operand| operand.is_packed)
            .count();
        let (first, rest) = args.split_at(count);
        let mut packed = [0; 3];
        for (slot, (&arg, operand)) in packed.iter_mut().zip(first.iter().zip(op.operands())) {
            *slot = match operand.kind {
                Kind::Reg => self.dst(arg)?,
                Kind::Live => self.live(arg)?,
                _ => self.small_number(arg)?,
            };
        }
        self.e.word(op.word(packed[0], packed[1], packed[2]));
        let mut rest = rest.iter();
        for operand in &op.operands()[count..] {
            if operand.count.is_some() {
                return self.list(operand.kind, rest.as_slice());
            }
            let &arg = rest.next().ok_or_else(|| self.here("one more"))?;
            self.word(operand, arg)?;
        }
        Ok(())
    }

    /// An operand that takes a word.
    fn word(&mut self, operand: &Operand, arg: Arg) -> Done {
        match operand.kind {
            Kind::Label => {
                let label = self.label(arg)?;
                self.e.label(label);
            }
            Kind::Dst => {
                let dst = self.dst(arg)?;
                self.e.word(u64::from(dst));
            }
            Kind::Live => {
                let live = self.live(arg)?;
                self.e.word(u64::from(live));
            }
            Kind::Need => {
                let need = self.need(arg)?;
                self.e.word(u64::from(need));
            }
            Kind::Const => {
                let constant = self.constant(arg)?;
                self.e.word(constant.0);
            }
            Kind::Num => {
                let number = self.size(arg)?;
                self.e.word(number);
            }
            Kind::Bytes => {
                let offset = self.number(arg)?;
                self.e.string(offset);
            }
            _ => {
                let word = self.src(arg)?;
                self.e.word(word);
            }
        }
        Ok(())
    }

    /// A number, the length of a list. One that is too large fails where it is used.
    fn size(&self, arg: Arg) -> Result<u64, LoadError> {
        match arg {
            Arg::List(count) => Ok(u64::from(count)),
            Arg::Overflow => Ok(u64::MAX >> 1),
            _ => self.number(arg),
        }
    }

    /// The operands of a list.
    fn list(&mut self, kind: Kind, args: &[Arg]) -> Done {
        for (at, &arg) in args.iter().enumerate() {
            let word = match kind {
                Kind::KeyDsts if at % 2 == 1 => u64::from(self.dst(arg)?),
                Kind::Updates if at % 2 == 0 => self.number(arg)?,
                Kind::Segments if self.is_string(args, at) => {
                    let offset = self.number(arg)?;
                    self.e.string(offset);
                    continue;
                }
                Kind::Commands | Kind::Segments if matches!(arg, Arg::U(_) | Arg::Overflow) => {
                    self.size(arg)?
                }
                _ => self.src(arg)?,
            };
            self.e.word(word);
        }
        Ok(())
    }

    /// Is number `at` of a `bs_create_bin`'s list the value of a `string` segment?
    fn is_string(&self, args: &[Arg], at: usize) -> bool {
        const SEGMENT: usize = 6;
        let kind = args[at - at % SEGMENT];
        at % SEGMENT == 4 && matches!(kind, Arg::Atom(row) if self.tables.atom(row) == am::string)
    }

    /// A slow instruction.
    pub(super) fn slow(&mut self, instr: &Instr, args: &[Arg]) -> Done {
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
        self.same(op, args)?;
        if let Some((at, word)) = slow::replacement(self.tables, instr.op, args) {
            self.e.replace(start + 1 + at as u32, word);
        }
        Ok(())
    }
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
