//! Tests the handlers against a model, with keys that are given in any order.

use std::collections::BTreeMap;

use super::*;
use crate::interp::testing::{LABEL, Machine, NIL, small, x};

fn operands(fail: u64, pairs: &[(i64, i64)]) -> Vec<u64> {
    let mut operands = vec![fail, x(0), x(1), 1, pairs.len() as u64 * 2];
    operands.extend(pairs.iter().flat_map(|&(k, v)| [small(k), small(v)]));
    operands
}

fn entries(m: &Machine, register: usize) -> BTreeMap<i64, i64> {
    let map = m.p.x(register).as_map().expect("a map");
    let number = |t: Term<'_>| t.as_small().expect("a small integer");
    let all: BTreeMap<_, _> = map.iter().map(|(k, v)| (number(k), number(v))).collect();
    assert_eq!(all.len(), map.len());
    assert_eq!(map.flat().is_some(), map.len() <= SMALL_LIMIT);
    all
}

#[test]
fn puts_and_gets_are_those_of_a_model() {
    let mut m = Machine::new();
    m.p.set_x(0, map::from_pairs(&m.p, &[]));
    let mut model = BTreeMap::new();
    for round in 0..60i64 {
        let pairs: Vec<_> = [round * 7 % 50, round * 11 % 90, round]
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .rev()
            .map(|k| (k, round + k))
            .collect();
        m.ok(put_map_assoc, &operands(0, &pairs));
        model.extend(pairs.iter().copied());
        assert_eq!(entries(&m, 1), model);
        m.p.set_x(0, m.p.x(1));
        // Nothing changes: the same map.
        m.ok(put_map_assoc, &operands(0, &pairs));
        assert!(m.p.x(0).same(m.p.x(1)));
        let changed: Vec<_> = pairs.iter().map(|&(k, v)| (k, v + 1)).collect();
        m.ok(put_map_exact, &operands(LABEL, &changed));
        model.extend(changed.iter().copied());
        assert_eq!(entries(&m, 1), model);
        let keys: Vec<i64> = pairs.iter().map(|(k, _)| *k).collect();
        let mut gets = vec![LABEL, x(1), keys.len() as u64 * 2];
        gets.extend(
            keys.iter()
                .enumerate()
                .flat_map(|(i, &k)| [small(k), x(5 + i as u64)]),
        );
        m.ok(get_map_elements, &gets);
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(m.p.x(5 + i).as_small(), model.get(key).copied());
        }
        let mut fields = vec![LABEL, x(1), keys.len() as u64];
        fields.extend(keys.iter().map(|&k| small(k)));
        m.ok(has_map_fields, &fields);
        fields[3] = small(1000);
        m.jumps(has_map_fields, &fields);
        m.jumps(get_map_elements, &[LABEL, x(1), 2, small(1000), x(5)]);
        m.p.set_x(0, m.p.x(1));
    }
    assert!(model.len() > SMALL_LIMIT);
}

#[test]
#[cfg_attr(feature = "gc_zeal", ignore = "counts words since the last collection")]
fn sizes_are_those_of_erts() {
    // Words of new keys on top of old ones, some of which are replaced, with a hole for each; one key alone
    // is put as by `maps:put/3`, which leaves a hole for a new one.
    for (put, words) in [
        (vec![(1, 5)], 3 + 2),
        (vec![(3, 1)], 3 + 3 + 1 + 3 + 1),
        (vec![(2, 9), (3, 1)], 3 + 3 + 1 + 3 + 1),
        (vec![(1, 1), (2, 2)], 0),
    ] {
        let mut m = Machine::new();
        m.p.set_x(0, map::from_pairs(&m.p, &[]));
        m.ok(put_map_assoc, &operands(0, &[(1, 1), (2, 2)]));
        m.p.set_x(0, m.p.x(1));
        let before = m.p.used_words();
        m.ok(put_map_assoc, &operands(0, &put));
        assert_eq!(m.p.used_words() - before, words, "{put:?}");
    }
}

#[test]
fn errors_name_the_map_or_the_first_key() {
    let mut m = Machine::new();
    let reason = |m: &Machine| {
        // SAFETY: T1: the exception keeps its terms.
        let reason: Term<'_> = unsafe { Term::new(m.p.exception.value) };
        let reason = reason.as_tuple().expect("a tuple");
        (
            reason.get(0).as_atom().expect("an atom"),
            reason.get(1).raw().0,
        )
    };
    assert!(matches!(
        m.run(put_map_exact, &operands(0, &[(1, 1)])),
        Flow::Raise
    ));
    assert_eq!(reason(&m), (am::badmap, NIL));
    for keys in [2, 40] {
        let pairs: Vec<_> = (0..keys).map(|k| (k, k)).collect();
        m.p.set_x(0, map::from_pairs(&m.p, &[]));
        m.ok(put_map_assoc, &operands(0, &pairs));
        m.p.set_x(0, m.p.x(1));
        let put = operands(0, &[(70, 1), (60, 1), (1, 1)]);
        assert!(matches!(m.run(put_map_exact, &put), Flow::Raise));
        assert_eq!(reason(&m), (am::badkey, small(60)));
    }
}
