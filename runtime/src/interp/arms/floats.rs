//! The arms that work on float registers.

use crate::code::operand::Instruction;
use crate::interp::regs::{Go, Regs};
use crate::term::{RawTerm, am, tag};
use crate::value::number;

/// The end of an operation on floats: its value, if that is a number.
///
/// # Safety
/// I1: the instruction's float register.
#[inline(always)]
unsafe fn done(r: &mut Regs<'_>, i: impl Instruction, dst: usize, value: f64) -> Go {
    if !value.is_finite() {
        return r.error(|_| am::badarith.raw());
    }
    // SAFETY: by contract.
    unsafe { *r.f.add(dst) = value };
    r.next(i)
}

arms! {
    /// `fmove` of a boxed float.
    fn fmove_from(r, i: FmoveFrom) {
        *r.f.add(i.dst()) = f64::from_bits(*RawTerm(r.get(i.src())).ptr().add(1));
        r.next(i)
    }

    /// `fmove` to a new float.
    fn fmove_to(r, i: FmoveTo) {
        let float = r.htop as u64 | tag::BOXED;
        r.put(tag::make_header(1, tag::FLOAT));
        r.put((*r.f.add(i.src())).to_bits());
        r.set(i.dst(), float);
        r.next(i)
    }

    /// `fconv`
    fn fconv(r, i: Fconv) {
        match number::to_f64(r.term(r.src(i.src()))) {
            Some(value) => {
                *r.f.add(i.dst()) = value;
                r.next(i)
            }
            None => r.error(|_| am::badarith.raw()),
        }
    }

    /// `fadd`
    fn fadd(r, i: Fadd) {
        let value = *r.f.add(i.left()) + *r.f.add(i.right());
        done(r, i, i.dst(), value)
    }

    /// `fsub`
    fn fsub(r, i: Fsub) {
        let value = *r.f.add(i.left()) - *r.f.add(i.right());
        done(r, i, i.dst(), value)
    }

    /// `fmul`
    fn fmul(r, i: Fmul) {
        let value = *r.f.add(i.left()) * *r.f.add(i.right());
        done(r, i, i.dst(), value)
    }

    /// `fdiv`
    fn fdiv(r, i: Fdiv) {
        let value = *r.f.add(i.left()) / *r.f.add(i.right());
        done(r, i, i.dst(), value)
    }

    /// `fnegate`
    fn fnegate(r, i: Fnegate) {
        *r.f.add(i.dst()) = -*r.f.add(i.src());
        r.next(i)
    }
}
