//! Transforms instructions on data: moves, tuples, lists, funs, floats.

use super::{Done, Transform};
use crate::beam::{Arg, Op as Gen};
use crate::code::op::put;
use crate::term::RawTerm;

impl Transform<'_> {
    pub(super) fn move_(&mut self, src: Arg, to: Arg) -> Done {
        let dst = self.dst(to)?;
        let Some(src) = Self::reg(src) else {
            let value = RawTerm(self.src(src)?);
            self.put(put::MoveCR { dst, value });
            return Ok(());
        };
        if let Some((next, args)) = self.peek(0)
            && next.op == Gen::Move
            && let (Some(from2), Some(to2)) = (Self::reg(args[0]), Self::reg(args[1]))
        {
            self.at += 1;
            let second = (from2, to2);
            self.put(put::Move2RR { src, dst, second });
            return Ok(());
        }
        self.put(put::MoveRR { src, dst });
        Ok(())
    }

    pub(super) fn swap(&mut self, args: &[Arg]) -> Done {
        let (one, other) = (self.dst(args[0])?, self.dst(args[1])?);
        self.put(put::SwapRR { one, other });
        Ok(())
    }

    pub(super) fn get_list(&mut self, args: &[Arg]) -> Done {
        let list = self.in_reg(args[0])?;
        let (head, tail) = (self.dst(args[1])?, self.dst(args[2])?);
        self.put(put::GetList { list, head, tail });
        Ok(())
    }

    pub(super) fn get_tuple_element(&mut self, args: &[Arg]) -> Done {
        let tuple = self.in_reg(args[0])?;
        let dst = self.dst(args[2])?;
        let index = self.number(args[1])?;
        let Ok(index) = u16::try_from(index) else {
            self.put(put::GetTupleElementWide { tuple, dst, index });
            return Ok(());
        };
        if let Some((next, more)) = self.peek(0)
            && next.op == Gen::GetTupleElement
            && Self::reg(more[0]) == Some(tuple)
            && dst != tuple
            && more[1] == Arg::U(u64::from(index) + 1)
        {
            self.at += 1;
            let second = self.dst(more[2])?;
            self.put(put::GetTupleElement2 {
                tuple,
                dst,
                index,
                second,
            });
            return Ok(());
        }
        self.put(put::GetTupleElement { tuple, dst, index });
        Ok(())
    }

    pub(super) fn set_tuple_element(&mut self, args: &[Arg]) -> Done {
        let value = self.in_reg(args[0])?;
        let tuple = self.dst(args[1])?;
        let index = self.number(args[2])?;
        match u16::try_from(index) {
            Ok(index) => self.put(put::SetTupleElement {
                tuple,
                index,
                value,
            }),
            Err(_) => self.put(put::SetTupleElementWide {
                tuple,
                value,
                index,
            }),
        }
        Ok(())
    }

    pub(super) fn put_list(&mut self, args: &[Arg]) -> Done {
        let dst = self.dst(args[2])?;
        match (Self::reg(args[0]), Self::reg(args[1])) {
            (Some(head), Some(tail)) => self.put(put::PutListRR { head, tail, dst }),
            (None, _) => {
                let tail = self.in_reg(args[1])?;
                let head = RawTerm(self.src(args[0])?);
                self.put(put::PutListCR { tail, dst, head });
            }
            (Some(head), None) => {
                let tail = RawTerm(self.src(args[1])?);
                self.put(put::PutListRC { head, dst, tail });
            }
        }
        Ok(())
    }

    pub(super) fn put_tuple(&mut self, args: &[Arg]) -> Done {
        let dst = self.dst(args[0])?;
        let elements = self.sources(&args[2..])?;
        if elements.is_empty() {
            let value = self.tables.literal(|heap| heap.tuple(&[]));
            self.put(put::MoveCR { dst, value });
            return Ok(());
        }
        match u16::try_from(elements.len()) {
            Ok(arity) => self.put(put::PutTuple {
                dst,
                arity,
                elements,
            }),
            Err(_) => {
                let arity = elements.len() as u64;
                self.put(put::PutTupleWide {
                    dst,
                    arity,
                    elements,
                });
            }
        }
        Ok(())
    }

    pub(super) fn make_fun(&mut self, args: &[Arg]) -> Done {
        let row = self.number(args[0])? as usize;
        let dst = self.dst(args[1])?;
        let lambda = *self
            .lambdas
            .get(row)
            .ok_or_else(|| self.here("a row of the fun table"))?;
        let free = self.sources(&args[3..])?;
        if free.len() != usize::from(self.tables.beam.lambdas[row].num_free) {
            return Err(self.here("as many terms as the fun has free"));
        }
        if free.is_empty() {
            let value = self.tables.literal(|heap| heap.local_fun(lambda, &[]));
            self.put(put::MoveCR { dst, value });
            return Ok(());
        }
        let count = free.len() as u64;
        self.put(put::MakeFun {
            dst,
            lambda,
            count,
            free,
        });
        Ok(())
    }

    pub(super) fn fmove(&mut self, args: &[Arg]) -> Done {
        match (args[0], args[1]) {
            (src, Arg::FReg(dst)) => {
                let src = self.in_reg(src)?;
                self.put(put::FmoveFrom { src, dst });
            }
            (Arg::FReg(src), dst) => {
                let dst = self.dst(dst)?;
                self.put(put::FmoveTo { src, dst });
            }
            _ => return Err(self.here("a float register")),
        }
        Ok(())
    }

    pub(super) fn fconv(&mut self, args: &[Arg]) -> Done {
        let (src, dst) = (self.src(args[0])?, self.freg(args[1])?);
        self.put(put::Fconv { dst, src });
        Ok(())
    }

    pub(super) fn fnegate(&mut self, args: &[Arg]) -> Done {
        let (src, dst) = (self.freg(args[1])?, self.freg(args[2])?);
        self.put(put::Fnegate { src, dst });
        Ok(())
    }

    pub(super) fn float_op(&mut self, op: Gen, args: &[Arg]) -> Done {
        let (left, right) = (self.freg(args[1])?, self.freg(args[2])?);
        let dst = self.freg(args[3])?;
        match op {
            Gen::Fadd => self.put(put::Fadd { left, right, dst }),
            Gen::Fsub => self.put(put::Fsub { left, right, dst }),
            Gen::Fmul => self.put(put::Fmul { left, right, dst }),
            _ => self.put(put::Fdiv { left, right, dst }),
        }
        Ok(())
    }
}
