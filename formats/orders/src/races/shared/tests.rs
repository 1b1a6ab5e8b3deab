//! Races of the accesses of random programs, beside those that the definition gives, and what their turned logs do.

use std::collections::{BTreeMap, BTreeSet};

use beamline_formats::ring::Shared;
use proptest::prelude::*;

use super::super::super::accesses::Object as Named;
use super::super::super::tests::{p, parsed};
use super::super::super::{PerProcess, Site, Sites};
use super::*;

const PROCESSES: usize = 3;
const PARTS: u64 = 2;

/// An access: which process makes it, and what it is to.
type Wanted = (usize, To);

/// What an access sees of each part that it is to: the last change.
type Sees = Vec<Option<Access>>;

fn wanted() -> impl Strategy<Value = Vec<Wanted>> {
    let to = (0..2u64, any::<bool>(), proptest::option::of(0..PARTS));
    let to = to.prop_map(|(object, is_change, part)| To {
        object,
        is_change,
        part,
    });
    prop::collection::vec((0..PROCESSES, to), 0..14)
}

fn conflict(one: To, other: To) -> bool {
    let is_same = one.part.is_none() || other.part.is_none() || one.part == other.part;
    one.object == other.object && is_same && (one.is_change || other.is_change)
}

/// The accesses with their numbers, in the order in which they are made.
fn numbered(wanted: &[Wanted]) -> Vec<(Access, To)> {
    let mut made = [0; PROCESSES];
    let number = wanted.iter().map(|(of, to)| {
        made[*of] += 1;
        let (of, number) = (p(*of + 1), made[*of]);
        (Access { of, number }, *to)
    });
    number.collect()
}

/// The trace of these accesses, and what is recorded of them.
fn recorded(all: &[(Access, To)]) -> (Trace, Sites) {
    let mut trace = parsed("{p0, [spawn(p0.1), spawn(p0.2), spawn(p0.3)]}");
    let mut sites = Sites::default();
    for (at, (access, to)) in all.iter().enumerate() {
        let steps = &mut trace.processes[access.of].steps;
        let earlier = all[..at].iter().rev();
        let others = earlier.filter(|(other, its)| other.of != access.of && conflict(*its, *to));
        steps.extend(others.map(|(other, _)| Step::After {
            access: access.number,
            other: *other,
        }));
        let insert = &mut sites.accesses;
        insert.insert(access.of, (access.number, 0), None, *to);
    }
    (trace, sites)
}

/// Makes an access: what it sees.
fn make(state: &mut BTreeMap<(u64, u64), Access>, access: Access, to: To) -> Sees {
    let parts = to.part.map_or(0..PARTS, |part| part..part + 1);
    let sees = parts
        .clone()
        .map(|part| state.get(&(to.object, part)).copied());
    let sees = sees.collect();
    if to.is_change {
        state.extend(parts.map(|part| ((to.object, part), access)));
    }
    sees
}

/// The pairs that race: an access leads to another one of its process, and to one that conflicts with it.
fn by_definition(all: &[(Access, To)]) -> BTreeSet<(Access, Access)> {
    let leads = |one: usize, other: usize| {
        let ((first, its), (second, to)) = (all[one], all[other]);
        first.of == second.of || conflict(its, to)
    };
    let mut before = vec![BTreeSet::new(); all.len()];
    for other in 0..all.len() {
        for one in (0..other).rev().filter(|one| leads(*one, other)) {
            let more: Vec<usize> = before[one].iter().copied().chain([one]).collect();
            before[other].extend(more);
        }
    }
    let mut races = BTreeSet::new();
    for other in 0..all.len() {
        for one in 0..other {
            let is_between = |between: &usize| before[*between].contains(&one);
            let is_direct = all[one].0.of != all[other].0.of && leads(one, other);
            if is_direct && !before[other].iter().any(is_between) {
                races.insert((all[one].0, all[other].0));
            }
        }
    }
    races
}

/// Makes the accesses that a log has, in any order that it allows: what each sees.
fn follow(log: &Trace, all: &[(Access, To)], choices: &[usize]) -> BTreeMap<Access, Sees> {
    let mut state = BTreeMap::new();
    let mut seen = BTreeMap::new();
    let known = log.processes.iter().map(|process| {
        let mut after: BTreeMap<u64, Vec<Access>> = BTreeMap::new();
        let mut last = 0;
        for step in &process.steps {
            match step {
                Step::After { access, other } => {
                    after.entry(*access).or_default().push(*other);
                    last = last.max(*access);
                }
                Step::Accesses(number) => last = last.max(*number),
                _ => {}
            }
        }
        (last, after)
    });
    let known: PerProcess<_> = known.collect();
    let mut made = known.map(|_| 0);
    for choice in choices.iter().cycle() {
        let may = |of: &ProcessIndex| {
            let (last, after) = &known[*of];
            let mut after = after.get(&(made[*of] + 1)).into_iter().flatten();
            made[*of] < *last && after.all(|other| made[other.of] >= other.number)
        };
        let turns: Vec<ProcessIndex> = known.indexes().filter(may).collect();
        if turns.is_empty() {
            break;
        }
        let of = turns[choice % turns.len()];
        made[of] += 1;
        let access = Access {
            of,
            number: made[of],
        };
        let to = all
            .iter()
            .find(|(one, _)| *one == access)
            .expect("it is wanted")
            .1;
        seen.insert(access, make(&mut state, access, to));
    }
    let all_made = known
        .iter()
        .zip(&made)
        .all(|((last, _), made)| last == made);
    assert!(all_made, "{log}");
    seen
}

proptest! {
    #[test]
    fn races_are_those_of_the_definition(wanted in wanted()) {
        let all = numbered(&wanted);
        let (trace, sites) = recorded(&all);
        let races = trace.races(&sites).expect("races").all;
        let found = races.iter().map(|race| match race.pair {
            Pair::Accesses(both) => (both.first, both.second),
            Pair::Messages(_) | Pair::End(_) => panic!("no message is sent"),
        });
        prop_assert_eq!(found.collect::<BTreeSet<_>>(), by_definition(&all));
    }

    #[test]
    fn a_turned_log_has_the_other_one_first_and_all_else_as_it_was(
        wanted in wanted(),
        choices in prop::collection::vec(any::<usize>(), 1..20),
    ) {
        let all = numbered(&wanted);
        let mut state = BTreeMap::new();
        let saw = all.iter().map(|(access, to)| (*access, make(&mut state, *access, *to)));
        let saw: BTreeMap<_, _> = saw.collect();
        let (trace, sites) = recorded(&all);
        let races = trace.races(&sites).expect("races");
        for race in &races.all {
            let Pair::Accesses(both) = race.pair else { continue };
            let turned = races.turned(race).expect("a log");
            prop_assert_eq!(turned.check(), Ok(()));
            let sees = follow(&turned, &all, &choices);
            prop_assert!(sees.contains_key(&both.first) && sees.contains_key(&both.second));
            prop_assert!(!sees[&both.second].contains(&Some(both.first)));
            for (access, sees) in &sees {
                if *access != both.first && *access != both.second {
                    prop_assert_eq!(sees, &saw[access], "{:?} in {}", access, turned);
                }
            }
        }
    }
}

/// `p0.2` reads a part of a table in its second access, after `p0.1` has changed a part of it.
fn two(changed: Option<u64>, read: Option<u64>) -> (Trace, Sites) {
    let trace = parsed(
        "{p0, [spawn(p0.1), spawn(p0.2)]}\n{p0.1, [send(l0.1:1), exit]}\n\
         {p0.2, [after(a0.2:2, a0.1:1), timeout, exit]}",
    );
    let mut sites = Sites::default();
    let site = |line| Site {
        function: "m:f/0".into(),
        line,
        is_of_application: line == 3,
    };
    for (of, number, object, part) in [(1, 1, 7, changed), (2, 1, 8, None), (2, 2, 7, read)] {
        let is_change = of == 1;
        let to = To {
            object,
            is_change,
            part,
        };
        let all = &mut sites.accesses;
        let line = of as u32 + number as u32;
        all.insert(p(of), (number, 0), Some(site(line)), to);
        let (shared, name) = (Shared::Table, "a table".to_owned());
        let part = part.map(|part| (part, "{key,1}"));
        all.name(object, Named { shared, name }, part);
    }
    (trace, sites)
}

#[test]
fn accesses_have_places_and_names_and_their_turned_log() {
    let names = [
        "the table 'a table'",
        "the key {key,1} of the table 'a table'",
    ];
    for (part, name) in [None, Some(5)].into_iter().zip(names) {
        let (trace, sites) = two(part, part);
        let races = trace.races(&sites).expect("races");
        assert_eq!(races.all.len(), 1, "{:?}", races.all);
        let race = &races.all[0];
        let lines = sites.of_race(race).map(|site| site.map(|site| site.line));
        assert_eq!(lines, [None, Some(2), Some(4)]);
        assert!(!race.is_of_application);
        let Pair::Accesses(both) = race.pair else {
            panic!("{race:?}")
        };
        let common = both.common.expect("known");
        assert_eq!(sites.accesses.text(common), name);
        let is_change = |access| sites.accesses.is_change(access, common);
        let changes = (is_change(both.first), is_change(both.second));
        assert_eq!(changes, (true, false));
        let turned = "{p0, [spawn(p0.1), spawn(p0.2)]}\n{p0.1, [after(a0.1:1, a0.2:2)]}\n\
                      {p0.2, [accesses(a0.2:2)]}\n";
        assert_eq!(races.turned(race).expect("a log").to_string(), turned);
    }
}

#[test]
fn accesses_to_different_keys_do_not_race() {
    let (trace, sites) = two(Some(1), Some(2));
    assert_eq!(trace.races(&sites).expect("races").all, []);
}

#[test]
fn places_of_accesses_are_those_of_the_same_processes_in_another_trace() {
    let (trace, sites) = two(None, None);
    let other = parsed("{p0, [spawn(p0.1), spawn(p0.2)]}\n{p0.2, []}\n{p0.1, []}");
    let sites = sites.of_other(&trace, &other);
    let at = |of, number| sites.accesses.site(Access { of: p(of), number });
    let lines = [at(2, 1), at(1, 1), at(1, 2)].map(|site| site.map(|site| site.line));
    assert_eq!(lines, [Some(2), Some(3), Some(4)]);
    assert_eq!(at(2, 2), None);
}

#[test]
fn of_accesses_to_what_is_not_known_only_the_order_is() {
    let text = "{p0, [spawn(p0.1), spawn(p0.2)]}\n{p0.1, [send(l0.1:1), accesses(a0.1:4), send(l0.1:2)]}\n\
                {p0.2, [after(a0.2:2, a0.1:1), receive(l0.1:1), after(a0.2:3, a0.1:2), receive(l0.1:2), \
                after(a0.2:4, a0.1:3)]}";
    let races = parsed(text).races(&Sites::default()).expect("races");
    let both = races.all.iter().map(|race| match race.pair {
        Pair::Accesses(both) => (both.second.number, both.first.number),
        Pair::Messages(_) | Pair::End(_) => panic!("{race:?}"),
    });
    assert_eq!(both.collect::<Vec<_>>(), [(2, 1), (3, 2)]);
    let error = races.turned(&races.all[0]).expect_err("an error");
    assert!(error.ends_with("leave out --no-replay"), "{error}");
}

#[test]
fn a_log_that_turns_messages_around_keeps_the_order_of_what_is_left() {
    let text = "{p0, [spawn(p0.1), spawn(p0.2), receive(l0.1:1), accesses(a0:1), receive(l0.2:1)]}\n\
                {p0.1, [send(l0.1:1)]}\n{p0.2, [after(a0.2:2, a0:1), after(a0.2:3, a0.1:1), send(l0.2:1)]}";
    let races = parsed(text).races(&Sites::default()).expect("races");
    let turned = races.turned(&races.all[0]).expect("a log").to_string();
    let left = "{p0, [spawn(p0.1), spawn(p0.2), receive(l0.2:1)]}\n{p0.1, [send(l0.1:1)]}\n\
                {p0.2, [send(l0.2:1)]}\n";
    assert_eq!(turned, left);
}
