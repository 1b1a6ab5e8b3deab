//! Transforms calls of guard BIFs. Some become instructions that do the BIF's work.

use super::{Done, Transform};
use crate::beam::{Arg, Op as Gen};
use crate::code::bif::{self, Bif};
use crate::code::op::put;
use crate::loader::load::LoadError;
use crate::process::X_REGISTERS;
use crate::term::{Atom, RawTerm, am};

/// For BIFs that the compiler emits without a count of live registers: they cannot collect.
const NO_LIVE: u16 = X_REGISTERS as u16;

/// The row of a BIF; one that raises, where there is none.
fn row(module: Atom, function: Atom, arity: u8) -> &'static Bif {
    let found = bif::find(module, function, arity);
    found.map_or_else(|| bif::missing(arity), |index| bif::all()[index])
}

/// A call of a guard BIF.
#[derive(Clone, Copy)]
struct GuardBif {
    fail: u32,
    live: u16,
    bif: &'static Bif,
    dst: u16,
}

impl Transform<'_> {
    /// Name and row of a BIF that is called with `count` sources, without a frame for its return.
    fn guard_bif(&self, import: Arg, count: usize) -> Result<(Atom, &'static Bif), LoadError> {
        let (module, function, arity) = self.import(import)?;
        let bif = row(module, function, arity);
        let is_one = matches!(bif.call, bif::Call::Guard(_));
        if usize::from(arity) != count || !is_one {
            return Err(self.here("a BIF for guards, of as many arguments,"));
        }
        Ok((function, bif))
    }

    pub(super) fn bif0(&mut self, args: &[Arg]) -> Done {
        let (function, bif) = self.guard_bif(args[0], 0)?;
        let dst = self.dst(args[1])?;
        if function == am::self_ {
            self.put(put::SelfR { dst });
        } else {
            self.put(put::Bif0 { dst, bif });
        }
        Ok(())
    }

    /// A guard BIF, or the instruction that does its work.
    pub(super) fn bif(
        &mut self,
        fail: Arg,
        live: Option<Arg>,
        import: Arg,
        src: &[Arg],
        dst: Arg,
    ) -> Done {
        let (function, bif) = self.guard_bif(import, src.len())?;
        // `+ A` is `A + 0`, as in ERTS: its exception tells so.
        let sum;
        let (bif, src) = match (function, src) {
            (am::plus, &[only]) => {
                sum = [only, Arg::I(0)];
                (row(am::erlang, am::plus, 2), &sum[..])
            }
            _ => (bif, src),
        };
        let call = GuardBif {
            fail: self.label(fail)?,
            live: match live {
                Some(live) => self.live(live)?,
                None => NO_LIVE,
            },
            bif,
            dst: self.dst(dst)?,
        };
        if self.mul_add(function, fail, src, call)? || self.access(function, src, call)? {
            return Ok(());
        }
        let words = self.sources(src)?;
        let GuardBif {
            fail,
            live,
            bif,
            dst,
        } = call;
        match words[..] {
            [src] => self.put(put::Bif1 {
                dst,
                live,
                fail,
                bif,
                src,
            }),
            [left, right] => self.operator(function, src, [left, right], call),
            [first, second, third] => {
                self.put(put::Bif3 {
                    dst,
                    live,
                    fail,
                    bif,
                    first,
                    second,
                    third,
                });
            }
            _ => return Err(self.here("one, two or three arguments")),
        }
        Ok(())
    }

    /// A product to which the next instruction adds, in the same register.
    fn mul_add(
        &mut self,
        function: Atom,
        fail: Arg,
        src: &[Arg],
        call: GuardBif,
    ) -> Result<bool, LoadError> {
        let &[a, b] = src else { return Ok(false) };
        let Some((_, &[next_fail, live, import, left, right, sum])) = self
            .peek(0)
            .filter(|(next, _)| function == am::times && next.op == Gen::GcBif2)
        else {
            return Ok(false);
        };
        let is_product = |arg| Self::reg(arg) == Some(call.dst);
        let addend = match (is_product(left), is_product(right)) {
            (true, false) => right,
            (false, true) => left,
            _ => return Ok(false),
        };
        let (function, plus) = self.guard_bif(import, 2)?;
        if function != am::plus || !is_product(sum) || next_fail != fail {
            return Ok(false);
        }
        self.at += 1;
        self.put(put::MulAdd {
            dst: call.dst,
            live: self.live(live)?,
            fail: call.fail,
            times: call.bif,
            plus,
            left: self.src(a)?,
            right: self.src(b)?,
            addend: self.src(addend)?,
        });
        Ok(true)
    }

    /// A BIF of two arguments; integer operators have instructions of their own.
    fn operator(&mut self, function: Atom, src: &[Arg], words: [u64; 2], call: GuardBif) {
        let GuardBif {
            fail,
            live,
            bif,
            dst,
        } = call;
        let [left, right] = words;
        macro_rules! put {
            ($($name:ident => $op:ident,)* _ => $other:ident) => {
                match function {
                    am::plus => self.sum(src, words, call),
                    am::minus => self.difference(src, words, call),
                    $(am::$name => self.put(put::$op { dst, live, fail, bif, left, right }),)*
                    _ => self.put(put::$other { dst, live, fail, bif, left, right }),
                }
            };
        }
        put! {
            times => Mul,
            div => IntDiv,
            rem => Rem,
            band => Band,
            bor => Bor,
            bxor => Bxor,
            bsl => Bsl,
            bsr => Bsr,
            _ => Bif2
        }
    }

    fn sum(&mut self, src: &[Arg], [left, right]: [u64; 2], call: GuardBif) {
        let GuardBif {
            fail,
            live,
            bif,
            dst,
        } = call;
        let is_small = |word: u64| RawTerm(word).is_small();
        let (reg, constant) = match (Self::reg(src[0]), Self::reg(src[1])) {
            (Some(left), Some(right)) => {
                return self.put(put::AddRR {
                    left,
                    right,
                    dst,
                    fail,
                    bif,
                    live,
                });
            }
            (Some(reg), None) if is_small(right) => (reg, right),
            (None, Some(reg)) if is_small(left) => (reg, left),
            _ => {
                return self.put(put::Bif2 {
                    dst,
                    live,
                    fail,
                    bif,
                    left,
                    right,
                });
            }
        };
        self.put(put::AddRC {
            left: reg,
            dst,
            fail,
            bif,
            live,
            right: RawTerm(constant),
        });
    }

    fn difference(&mut self, src: &[Arg], [left, right]: [u64; 2], call: GuardBif) {
        let GuardBif {
            fail,
            live,
            bif,
            dst,
        } = call;
        let constant = RawTerm(right);
        match (Self::reg(src[0]), Self::reg(src[1])) {
            (Some(left), Some(right)) => {
                self.put(put::SubRR {
                    left,
                    right,
                    dst,
                    fail,
                    bif,
                    live,
                });
            }
            (Some(left), None) if constant.is_small() => {
                self.put(put::SubRC {
                    left,
                    dst,
                    fail,
                    bif,
                    live,
                    right: constant,
                });
            }
            _ => self.put(put::Bif2 {
                dst,
                live,
                fail,
                bif,
                left,
                right,
            }),
        }
    }

    /// `element/2` with a constant index, `hd/1`, `tl/1` of a register.
    fn access(&mut self, function: Atom, src: &[Arg], call: GuardBif) -> Result<bool, LoadError> {
        let GuardBif { fail, bif, dst, .. } = call;
        match (function, src) {
            (am::element, &[Arg::I(index @ 1..=0xffff), tuple]) if Self::reg(tuple).is_some() => {
                let (tuple, index) = (self.in_reg(tuple)?, index as u16);
                self.put(put::ElementRC {
                    tuple,
                    index,
                    dst,
                    fail,
                    bif,
                });
            }
            (am::hd, &[list]) if Self::reg(list).is_some() => {
                let list = self.in_reg(list)?;
                self.put(put::HdR {
                    list,
                    dst,
                    fail,
                    bif,
                });
            }
            (am::tl, &[list]) if Self::reg(list).is_some() => {
                let list = self.in_reg(list)?;
                self.put(put::TlR {
                    list,
                    dst,
                    fail,
                    bif,
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
