//! Tests that make, read and change native records.

use super::*;
use crate::interp::testing::{LABEL, Machine, NIL, atom, small, x};

fn definition(m: Atom, exported: bool) -> u64 {
    // Later atoms have higher indices: the source's order is not the order of keys.
    let (first, second) = (
        Atom::new("a_field_of_the_test"),
        Atom::new("b_field_of_the_test"),
    );
    let fields = [
        (second, Some(Term::small(7))),
        (first, None),
        (am::value, Some(am::none.term())),
    ];
    let name = Atom::new("rec_of_the_test");
    let area = Box::leak(Box::new(crate::heap::LiteralArea::new()));
    let cell = record::define(m, name, exported, &fields, area);
    // SAFETY: R1: the area stays for ever.
    unsafe { record::publish(m, &[(name, cell)]) };
    cell.raw().0
}

fn field(text: &str) -> u64 {
    atom(Atom::new(text))
}

#[test]
fn records_are_made_read_and_changed() {
    let module = Atom::new("module_of_the_record_test");
    let local = definition(module, false);
    let (a, b) = (field("a_field_of_the_test"), field("b_field_of_the_test"));
    let mut m = Machine::new();
    let reason = |m: &Machine| {
        // SAFETY: T1: the exception keeps its terms.
        let reason: Term<'_> = unsafe { Term::new(m.p.exception.value) };
        reason.as_tuple().expect("a tuple").elements().to_vec()[0].as_atom()
    };
    m.ok(put_record, &[0, local, NIL, x(0), 0, 2, a, small(1)]);
    let gets = [LABEL, x(0), 6, b, x(1), a, x(2), atom(am::value), x(3)];
    m.ok(get_record_elements, &gets);
    assert_eq!(m.p.x(1).as_small(), Some(7));
    assert_eq!(m.p.x(2).as_small(), Some(1));
    assert!(m.p.x(3) == am::none);
    let need = m.p.free_words() + 1;
    m.p.garbage_collect(need, 1).expect("no limit is set");
    m.ok(
        put_record,
        &[
            0,
            atom(am::underscore),
            x(0),
            x(1),
            1,
            4,
            b,
            small(2),
            a,
            NIL,
        ],
    );
    m.ok(get_record_elements, &[LABEL, x(1), 4, b, x(2), a, x(3)]);
    assert_eq!(m.p.x(2).as_small(), Some(2));
    assert!(m.p.x(3).is_nil());
    let name = field("rec_of_the_test");
    m.ok(is_native_record, &[LABEL, x(0), module.raw().0, name]);
    m.jumps(is_native_record, &[LABEL, x(0), atom(am::ok), name]);
    m.jumps(is_any_native_record, &[LABEL, NIL]);
    m.ok(is_record_accessible, &[LABEL, x(0), module.raw().0]);
    m.jumps(is_record_accessible, &[LABEL, x(0), atom(am::external)]);
    m.ok(get_record_field, &[0, x(0), name, b, x(4)]);
    assert_eq!(m.p.x(4).as_small(), Some(7));
    for (flow, tag) in [
        (m.run(put_record, &[0, local, NIL, x(9), 1, 0]), am::novalue),
        (
            m.run(put_record, &[0, local, NIL, x(9), 1, 2, name, NIL]),
            am::badfield,
        ),
        (
            m.run(put_record, &[0, local, x(0), x(9), 1, 2, name, NIL]),
            am::badfield,
        ),
        (
            m.run(get_record_field, &[0, x(0), name, name, x(9)]),
            am::badfield,
        ),
        (
            m.run(get_record_field, &[0, x(0), atom(am::ok), b, x(9)]),
            am::badrecord,
        ),
    ] {
        assert!(matches!(flow, Flow::Raise), "{tag:?}");
    }
    assert_eq!(reason(&m), Some(am::badrecord));
}

#[test]
fn only_exported_records_are_made_elsewhere() {
    let name = Atom::new("rec_of_the_test");
    for exported in [true, false] {
        let module = Atom::new("another_module_of_the_test");
        definition(module, exported);
        let id = crate::heap::build_literal(|heap| heap.tuple(&[module.term(), name.term()]));
        let mut m = Machine::new();
        let a = field("a_field_of_the_test");
        let flow = m.run(put_record, &[0, id.raw().0, NIL, x(0), 0, 2, a, small(1)]);
        assert_eq!(matches!(flow, Flow::Next), exported);
    }
}

#[test]
fn tuples_are_updated_by_copy_or_in_place() {
    let mut m = Machine::new();
    let set = |m: &Machine| m.p.set_x(0, m.p.tuple(&[Term::small(1), Term::small(2)]));
    let update = |hint: Atom| vec![atom(hint), 2, x(0), x(1), 2, 2, small(9)];
    let second = |m: &Machine| m.p.x(1).as_tuple().map(|t| t.get(1).as_small());
    set(&m);
    m.ok(update_record, &update(am::copy));
    assert!(!m.p.x(0).same(m.p.x(1)));
    assert_eq!(second(&m), Some(Some(9)));
    let reuse = [atom(am::reuse), 2, x(0), x(1), 2, 2, small(2)];
    m.ok(update_record, &reuse);
    assert!(m.p.x(0).same(m.p.x(1)));
    m.ok(update_record, &update(am::inplace));
    assert!(m.p.x(0).same(m.p.x(1)));
    assert_eq!(second(&m), Some(Some(9)));
    // A mature tuple is not made to point to a young term.
    let need = m.p.free_words() + 1;
    m.p.garbage_collect(need, 1).expect("no limit is set");
    m.p.set_x(2, m.p.float(1.0));
    m.ok(
        update_record,
        &[atom(am::inplace), 2, x(0), x(1), 2, 2, x(2)],
    );
    assert!(!m.p.x(0).same(m.p.x(1)));
}
