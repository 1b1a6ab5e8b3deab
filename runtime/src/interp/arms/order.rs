//! The arms of comparisons. They compare small integers without leaving the loop.

use crate::interp::regs::{Regs, are_small, eq_exact};
use crate::term::{compare, tag};

/// # Safety
/// T1: both are terms.
#[inline(always)]
unsafe fn is_same(left: u64, right: u64) -> bool {
    // SAFETY: by contract.
    left == right || unsafe { eq_exact(left, right) }
}

/// # Safety
/// T1: both are terms of the process.
#[inline(always)]
unsafe fn is_equal(r: &Regs<'_>, left: u64, right: u64) -> bool {
    // SAFETY: by contract.
    unsafe { compare::eq(r.term(left), r.term(right)) }
}

/// # Safety
/// T1: both are terms of the process.
#[inline(always)]
unsafe fn is_less(r: &Regs<'_>, left: u64, right: u64) -> bool {
    // SAFETY: by contract.
    unsafe { compare::cmp(r.term(left), r.term(right)).is_lt() }
}

arms! {
    /// `is_eq_exact`
    fn is_eq_exact_rr(r, i: IsEqExactRR) {
        let holds = is_same(r.get(i.left()), r.get(i.right()));
        r.test(i, i.fail(), holds)
    }

    /// `is_eq_exact` of an immediate.
    fn is_eq_exact_rc(r, i: IsEqExactRC) {
        let holds = r.get(i.left()) == i.right().0;
        r.test(i, i.fail(), holds)
    }

    /// `is_eq_exact`
    fn is_eq_exact_ss(r, i: IsEqExactSS) {
        let holds = is_same(r.src(i.left()), r.src(i.right()));
        r.test(i, i.fail(), holds)
    }

    /// `is_ne_exact` of an immediate.
    fn is_ne_exact_rc(r, i: IsNeExactRC) {
        let holds = r.get(i.left()) != i.right().0;
        r.test(i, i.fail(), holds)
    }

    /// `is_ne_exact`
    fn is_ne_exact_ss(r, i: IsNeExactSS) {
        let holds = !is_same(r.src(i.left()), r.src(i.right()));
        r.test(i, i.fail(), holds)
    }

    /// `is_eq`
    fn is_eq_ss(r, i: IsEqSS) {
        let holds = is_equal(r, r.src(i.left()), r.src(i.right()));
        r.test(i, i.fail(), holds)
    }

    /// `is_ne`
    fn is_ne_ss(r, i: IsNeSS) {
        let holds = !is_equal(r, r.src(i.left()), r.src(i.right()));
        r.test(i, i.fail(), holds)
    }

    /// `is_lt`
    fn is_lt_rr(r, i: IsLtRR) {
        let (left, right) = (r.get(i.left()), r.get(i.right()));
        if are_small(left, right) {
            return r.test(i, i.fail(), (left as i64) < right as i64);
        }
        let holds = is_less(r, left, right);
        r.test(i, i.fail(), holds)
    }

    /// `is_lt` of a constant on the right.
    fn is_lt_rc(r, i: IsLtRC) {
        let (left, right) = (r.get(i.left()), i.right().0);
        if left & 0xF == tag::SMALL {
            return r.test(i, i.fail(), (left as i64) < right as i64);
        }
        let holds = is_less(r, left, right);
        r.test(i, i.fail(), holds)
    }

    /// `is_lt` of a constant on the left.
    fn is_lt_cr(r, i: IsLtCR) {
        let (left, right) = (i.left().0, r.get(i.right()));
        if right & 0xF == tag::SMALL {
            return r.test(i, i.fail(), (left as i64) < right as i64);
        }
        let holds = is_less(r, left, right);
        r.test(i, i.fail(), holds)
    }

    /// `is_lt`
    fn is_lt_ss(r, i: IsLtSS) {
        let holds = is_less(r, r.src(i.left()), r.src(i.right()));
        r.test(i, i.fail(), holds)
    }

    /// `is_ge`
    fn is_ge_rr(r, i: IsGeRR) {
        let (left, right) = (r.get(i.left()), r.get(i.right()));
        if are_small(left, right) {
            return r.test(i, i.fail(), left as i64 >= right as i64);
        }
        let holds = !is_less(r, left, right);
        r.test(i, i.fail(), holds)
    }

    /// `is_ge` of a constant on the right.
    fn is_ge_rc(r, i: IsGeRC) {
        let (left, right) = (r.get(i.left()), i.right().0);
        if left & 0xF == tag::SMALL {
            return r.test(i, i.fail(), left as i64 >= right as i64);
        }
        let holds = !is_less(r, left, right);
        r.test(i, i.fail(), holds)
    }

    /// `is_ge` of a constant on the left.
    fn is_ge_cr(r, i: IsGeCR) {
        let (left, right) = (i.left().0, r.get(i.right()));
        if right & 0xF == tag::SMALL {
            return r.test(i, i.fail(), left as i64 >= right as i64);
        }
        let holds = !is_less(r, left, right);
        r.test(i, i.fail(), holds)
    }

    /// `is_ge`
    fn is_ge_ss(r, i: IsGeSS) {
        let holds = !is_less(r, r.src(i.left()), r.src(i.right()));
        r.test(i, i.fail(), holds)
    }
}
