//! The arms of jumps that depend on a value.

use crate::interp::regs::{eq_exact, header};
use crate::term::{RawTerm, tag};

/// Most values compared one by one.
const LINEAR: usize = 8;

arms! {
    /// `select_val` of immediates.
    fn select_val(r, i: SelectVal) {
        let (value, cases) = (r.get(i.src()), i.cases());
        let found = if cases.terms.len() <= LINEAR {
            cases.terms.iter().position(|&term| term == value)
        } else {
            cases.terms.binary_search_by_key(&(value as i64), |&term| term as i64).ok()
        };
        match found {
            Some(at) => r.jump(cases.labels.get(at)),
            None => r.jump(i.otherwise()),
        }
    }

    /// `select_val` of small integers side by side.
    fn jump_table(r, i: JumpTable) {
        let value = RawTerm(r.get(i.src()));
        let at = value.small_value().wrapping_sub(i.least() as i64) as u64;
        if value.is_small() && at < i.count() {
            return r.jump(i.targets().get(at as usize));
        }
        r.jump(i.otherwise())
    }

    /// `select_val` of terms.
    fn select_term(r, i: SelectTerm) {
        let value = r.get(i.src());
        for (term, label) in i.cases().iter() {
            if eq_exact(value, term.0) {
                return r.jump(label);
            }
        }
        r.jump(i.otherwise())
    }

    /// `select_tuple_arity`
    fn select_tuple_arity(r, i: SelectTupleArity) {
        let head = header(r.get(i.src()));
        if head & tag::HEADER_MASK == tag::ARITYVAL {
            let arity = tag::header_arity(head) as u64;
            for (wanted, label) in i.cases().iter() {
                if wanted == arity {
                    return r.jump(label);
                }
            }
        }
        r.jump(i.otherwise())
    }
}
