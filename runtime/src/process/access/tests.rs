//! Any order of accesses is told so that a replay of what was told has the same one, as far as anybody can see.

use proptest::prelude::*;

use super::*;

const PROCESSES: usize = 4;
const OBJECTS: usize = 3;

/// An access: to which object, and how.
type Wanted = (usize, Access);

/// What an access sees: how often its object had been written.
type Seen = u64;

/// A process of the test: what it is to access, and what was told of it.
struct One {
    wanted: Vec<Wanted>,
    after: Vec<Vec<(usize, u64)>>,
    seen: Vec<Seen>,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let access = prop_oneof![3 => Just(Access::Read), 1 => Just(Access::Write)];
    (0..OBJECTS, access)
}

fn pid(at: usize) -> Pid {
    Pid(at as u64 + 100)
}

/// Makes an access: what it sees.
fn make(written: &mut [u64], (object, access): Wanted) -> Seen {
    written[object] += u64::from(access == Access::Write);
    written[object]
}

/// Who goes on next, of those that may.
fn choose(may: &[usize], choice: usize) -> usize {
    may[choice % may.len()]
}

/// Records the accesses in the order of the choices.
fn record(wanted: &[Vec<Wanted>], choices: &[usize]) -> Vec<One> {
    let objects: Vec<_> = (0..OBJECTS).map(|_| Object::default()).collect();
    let mut made: Vec<_> = (0..wanted.len()).map(|at| Made::new(pid(at))).collect();
    let mut written = vec![0; OBJECTS];
    let mut all: Vec<_> = wanted
        .iter()
        .map(|wanted| One {
            wanted: wanted.clone(),
            after: Vec::new(),
            seen: Vec::new(),
        })
        .collect();
    for choice in choices.iter().cycle() {
        let is_left = |at: &usize| all[*at].seen.len() < all[*at].wanted.len();
        let left: Vec<_> = (0..all.len()).filter(is_left).collect();
        if left.is_empty() {
            break;
        }
        let at = choose(&left, *choice);
        let one = &mut all[at];
        let next = one.wanted[one.seen.len()];
        let after = objects[next.0].access(&mut made[at], next.1);
        let place = |(of, number): (Pid, u64)| (of.0 as usize - 100, number);
        one.after.push(after.into_iter().map(place).collect());
        one.seen.push(make(&mut written, next));
        made[at]
            .own
            .made
            .store(one.seen.len() as u64, Ordering::Release);
    }
    all
}

/// Makes the accesses again, those in their turn in the order of other choices: what each sees.
fn replay(all: &[One], choices: &[usize]) -> Vec<Vec<Seen>> {
    let mut written = vec![0; OBJECTS];
    let mut seen: Vec<Vec<Seen>> = vec![Vec::new(); all.len()];
    for choice in choices.iter().cycle() {
        let may = |at: &usize| {
            let next = seen[*at].len();
            let after = all[*at].after.get(next);
            after.is_some_and(|after| {
                let mut after = after.iter();
                after.all(|(of, number)| seen[*of].len() as u64 >= *number)
            })
        };
        let turns: Vec<_> = (0..all.len()).filter(may).collect();
        if turns.is_empty() {
            break;
        }
        let at = choose(&turns, *choice);
        let next = all[at].wanted[seen[at].len()];
        let sees = make(&mut written, next);
        seen[at].push(sees);
    }
    seen
}

proptest! {
    #[test]
    fn each_access_sees_what_it_saw(
        wanted in prop::collection::vec(prop::collection::vec(wanted(), 0..30), 1..=PROCESSES),
        recorded in prop::collection::vec(any::<usize>(), 1..40),
        replayed in prop::collection::vec(any::<usize>(), 1..40),
    ) {
        let all = record(&wanted, &recorded);
        let seen: Vec<_> = all.iter().map(|one| one.seen.clone()).collect();
        prop_assert_eq!(replay(&all, &replayed), seen);
    }
}

#[test]
fn nothing_is_told_of_what_one_process_accesses() {
    let wanted = [vec![(0, Access::Write); 50], vec![(1, Access::Read); 50]];
    let all = record(&wanted, &[0, 1]);
    assert!(all.iter().flat_map(|one| &one.after).all(Vec::is_empty));
}

#[test]
fn many_readers_are_told_once_each() {
    let readers = 3 * READERS_MAX;
    let mut wanted = vec![vec![(0, Access::Write)]];
    wanted.resize(readers + 1, vec![(0, Access::Read); 10]);
    // Each makes all its accesses, one process after the other.
    let all = record(&wanted, &[0]);
    let told: usize = all.iter().flat_map(|one| &one.after).map(Vec::len).sum();
    assert!((readers..3 * readers).contains(&told), "{told}");
    let seen: Vec<_> = all.iter().map(|one| one.seen.clone()).collect();
    assert_eq!(replay(&all, &[usize::MAX, 7, 3]), seen);
}
