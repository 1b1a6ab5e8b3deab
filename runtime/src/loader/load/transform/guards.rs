//! Transforms tests, comparisons, and jumps that depend on a value.

use super::{Done, Transform};
use crate::beam::{Arg, Op as Gen};
use crate::code::op::{Op, put};
use crate::code::operand::Sink;
use crate::term::RawTerm;

impl Transform<'_> {
    /// A test of one register: `(src)[fail]`.
    pub(super) fn type_test(&mut self, op: Op, args: &[Arg]) -> Done {
        let src = self.in_reg(args[1])?;
        let fail = self.label(args[0])?;
        self.e.word(op.word(src, 0, 0));
        self.e.label(fail);
        Ok(())
    }

    pub(super) fn is_nonempty_list(&mut self, args: &[Arg]) -> Done {
        if let Some((next, more)) = self.peek(0)
            && next.op == Gen::GetList
            && let Some(list) = Self::reg(args[1])
            && Self::reg(more[0]) == Some(list)
        {
            self.at += 1;
            let (head, tail) = (self.dst(more[1])?, self.dst(more[2])?);
            let fail = self.label(args[0])?;
            self.put(put::IsNonemptyListGetList {
                list,
                head,
                tail,
                fail,
            });
            return Ok(());
        }
        self.type_test(Op::IsNonemptyList, args)
    }

    pub(super) fn is_tuple(&mut self, args: &[Arg]) -> Done {
        if let Some((next, more)) = self.peek(0)
            && next.op == Gen::TestArity
            && more[0] == args[0]
            && Self::reg(more[1]).is_some()
            && Self::reg(more[1]) == Self::reg(args[1])
        {
            self.at += 1;
            return self.tuple_of_arity(more, true);
        }
        self.type_test(Op::IsTuple, args)
    }

    /// `test_arity`; with a test for a tuple, where that is not known.
    pub(super) fn tuple_of_arity(&mut self, args: &[Arg], is_any: bool) -> Done {
        let src = self.in_reg(args[1])?;
        let fail = self.label(args[0])?;
        let arity = self.number(args[2])?;
        match u16::try_from(arity) {
            Ok(arity) if is_any => self.put(put::IsTupleOfArity { src, arity, fail }),
            Ok(arity) => self.put(put::TestArity { src, arity, fail }),
            Err(_) => self.put(put::IsTupleOfArityWide { src, fail, arity }),
        }
        Ok(())
    }

    pub(super) fn is_tagged_tuple(&mut self, args: &[Arg]) -> Done {
        let src = self.in_reg(args[1])?;
        let fail = self.label(args[0])?;
        let arity = self.number(args[2])?;
        let tag = self.constant(args[3])?;
        match u16::try_from(arity) {
            Ok(arity) => self.put(put::IsTaggedTuple {
                src,
                arity,
                fail,
                tag,
            }),
            Err(_) => self.put(put::IsTaggedTupleWide {
                src,
                fail,
                arity,
                tag,
            }),
        }
        Ok(())
    }

    /// The word of a constant that is a small integer.
    fn small(&self, arg: Arg) -> Option<RawTerm> {
        self.tables.constant(arg).filter(|term| term.is_small())
    }

    pub(super) fn is_lt(&mut self, args: &[Arg]) -> Done {
        let fail = self.label(args[0])?;
        let (a, b) = (args[1], args[2]);
        match (Self::reg(a), Self::reg(b), self.small(a), self.small(b)) {
            (Some(left), Some(right), ..) => self.put(put::IsLtRR { left, right, fail }),
            (Some(left), _, _, Some(right)) => self.put(put::IsLtRC { left, fail, right }),
            (_, Some(right), Some(left), _) => self.put(put::IsLtCR { right, fail, left }),
            _ => return self.same(Op::IsLtSS, args),
        }
        Ok(())
    }

    pub(super) fn is_ge(&mut self, args: &[Arg]) -> Done {
        let fail = self.label(args[0])?;
        let (a, b) = (args[1], args[2]);
        match (Self::reg(a), Self::reg(b), self.small(a), self.small(b)) {
            (Some(left), Some(right), ..) => self.put(put::IsGeRR { left, right, fail }),
            (Some(left), _, _, Some(right)) => self.put(put::IsGeRC { left, fail, right }),
            (_, Some(right), Some(left), _) => self.put(put::IsGeCR { right, fail, left }),
            _ => return self.same(Op::IsGeSS, args),
        }
        Ok(())
    }

    /// A register and an immediate, in one order or the other.
    fn reg_and_immediate(&self, args: &[Arg]) -> Result<Option<(u16, RawTerm)>, super::LoadError> {
        let (reg, constant) = match (Self::reg(args[1]), Self::reg(args[2])) {
            (Some(reg), None) => (reg, args[2]),
            (None, Some(reg)) => (reg, args[1]),
            _ => return Ok(None),
        };
        let constant = self.constant(constant)?;
        Ok(constant.is_immed().then_some((reg, constant)))
    }

    pub(super) fn is_eq_exact(&mut self, args: &[Arg]) -> Done {
        let fail = self.label(args[0])?;
        if let (Some(left), Some(right)) = (Self::reg(args[1]), Self::reg(args[2])) {
            self.put(put::IsEqExactRR { left, right, fail });
            return Ok(());
        }
        let Some((left, right)) = self.reg_and_immediate(args)? else {
            return self.same(Op::IsEqExactSS, args);
        };
        self.put(put::IsEqExactRC { left, fail, right });
        Ok(())
    }

    pub(super) fn is_ne_exact(&mut self, args: &[Arg]) -> Done {
        let fail = self.label(args[0])?;
        let Some((left, right)) = self.reg_and_immediate(args)? else {
            return self.same(Op::IsNeExactSS, args);
        };
        self.put(put::IsNeExactRC { left, fail, right });
        Ok(())
    }

    pub(super) fn select_val(&mut self, args: &[Arg]) -> Done {
        let src = self.in_reg(args[0])?;
        let otherwise = self.label(args[1])?;
        let mut cases = Vec::with_capacity(args.len() / 2);
        for pair in args[3..].chunks_exact(2) {
            cases.push((self.constant(pair[0])?, self.label(pair[1])?));
        }
        let count = 2 * cases.len() as u64;
        if !cases.iter().all(|(value, _)| value.is_immed()) {
            self.put(put::SelectTerm {
                src,
                otherwise,
                count,
                cases,
            });
            return Ok(());
        }
        cases.sort_by_key(|(value, _)| value.0 as i64);
        match dense(&cases) {
            Some((least, count)) => self.jump_table(src, otherwise, least, count, &cases),
            None => self.put(put::SelectVal {
                src,
                otherwise,
                count,
                cases,
            }),
        }
        Ok(())
    }

    fn jump_table(
        &mut self,
        src: u16,
        otherwise: u32,
        least: i64,
        count: usize,
        cases: &[(RawTerm, u32)],
    ) {
        let mut next = cases.iter().peekable();
        let mut target = |value| {
            let case = next.next_if(|(term, _)| term.small_value() == value);
            case.map_or(otherwise, |&(_, label)| label)
        };
        let targets = (least..least + count as i64).map(&mut target).collect();
        self.put(put::JumpTable {
            src,
            otherwise,
            least: least as u64,
            count: count as u64,
            targets,
        });
    }

    pub(super) fn select_tuple_arity(&mut self, args: &[Arg]) -> Done {
        let src = self.in_reg(args[0])?;
        let otherwise = self.label(args[1])?;
        let mut cases = Vec::with_capacity(args.len() / 2);
        for pair in args[3..].chunks_exact(2) {
            cases.push((self.number(pair[0])?, self.label(pair[1])?));
        }
        let count = 2 * cases.len() as u64;
        self.put(put::SelectTupleArity {
            src,
            otherwise,
            count,
            cases,
        });
        Ok(())
    }
}

/// Least value and length of a jump table for these pairs, where one pays.
fn dense(pairs: &[(RawTerm, u32)]) -> Option<(i64, usize)> {
    if pairs.len() < 4 || !pairs.iter().all(|(value, _)| value.is_small()) {
        return None;
    }
    let (least, most) = (
        pairs[0].0.small_value(),
        pairs[pairs.len() - 1].0.small_value(),
    );
    let span = usize::try_from(most.checked_sub(least)?)
        .ok()?
        .checked_add(1)?;
    (span <= pairs.len() * 2 + 8).then_some((least, span))
}
