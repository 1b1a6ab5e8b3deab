//! Microstate accounting: in which of a few states each thread of the machine is, and for how long it has been in each, while
//! that is switched on. Source: `erl_msacc.h`, `erl_msacc.c`, OTP 29.
//!
//! A row belongs to a part that threads play, such as a scheduler: another thread may take it over. Only the thread that plays
//! the part changes its state. While the accounting is off, a change of state is a store; while it is on, it also reads the
//! clock under the row's lock, which only readers contend for.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use parking_lot::Mutex;

use crate::chance::clock;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Work that several threads agree on, such as freeing what no thread refers to any more.
    Aux,
    /// Looks for events of descriptors.
    CheckIo,
    /// Runs processes.
    Emulator,
    /// Collects garbage.
    Gc,
    /// Anything else, such as to look for work.
    Other,
    /// Runs ports.
    Port,
    /// Sleeps.
    Sleep,
}

/// How many states there are.
const STATES: usize = 7;

impl State {
    const ALL: [State; STATES] = [
        State::Aux,
        State::CheckIo,
        State::Emulator,
        State::Gc,
        State::Other,
        State::Port,
        State::Sleep,
    ];

    /// Its name in results. Cost: none.
    pub fn name(self) -> &'static str {
        match self {
            State::Aux => "aux",
            State::CheckIo => "check_io",
            State::Emulator => "emulator",
            State::Gc => "gc",
            State::Other => "other",
            State::Port => "port",
            State::Sleep => "sleep",
        }
    }
}

/// The time that a part has spent in each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The kind of part, such as `scheduler`.
    pub kind: &'static str,
    /// Its number among those of its kind.
    pub id: usize,
    /// Nanoseconds of [`clock::monotonic_ns`] in each state.
    pub spent: [(State, u64); 7],
}

#[derive(Default)]
struct Times {
    /// When it was last counted; `None` while the accounting is off.
    since: Option<u64>,
    spent: [u64; STATES],
}

struct Row {
    kind: &'static str,
    id: usize,
    state: AtomicU8,
    times: Mutex<Times>,
}

static IS_ON: AtomicBool = AtomicBool::new(false);

static ROWS: OnceLock<Vec<Row>> = OnceLock::new();

/// One change at a time: two must not see each other's half.
static CHANGING: Mutex<()> = Mutex::new(());

thread_local! {
    /// The row of the part that this thread plays.
    static OWN: Cell<Option<&'static Row>> = const { Cell::new(None) };
}

impl Times {
    /// Counts the time since the last count as spent in `state`.
    fn settle(&mut self, state: u8, now: u64) {
        if let Some(since) = &mut self.since {
            self.spent[usize::from(state)] += now - *since;
            *since = now;
        }
    }
}

impl Row {
    fn new(kind: &'static str, id: usize) -> Row {
        Row {
            kind,
            id,
            state: AtomicU8::new(State::Sleep as u8),
            times: Mutex::default(),
        }
    }

    #[inline]
    fn enter(&self, state: State) -> State {
        let before = self.state.load(Ordering::Relaxed);
        if before != state as u8 {
            match IS_ON.load(Ordering::Relaxed) {
                true => self.count_and_enter(before, state),
                false => self.state.store(state as u8, Ordering::Relaxed),
            }
        }
        State::ALL[usize::from(before)]
    }

    #[cold]
    fn count_and_enter(&self, before: u8, state: State) {
        let mut times = self.times.lock();
        times.settle(before, clock::monotonic_ns());
        self.state.store(state as u8, Ordering::Relaxed);
    }

    /// Counts up to now, and gives what `f` makes of the times.
    fn with_times<T>(&self, f: impl FnOnce(&mut Times, u64) -> T) -> T {
        let mut times = self.times.lock();
        let now = clock::monotonic_ns();
        times.settle(self.state.load(Ordering::Relaxed), now);
        f(&mut times, now)
    }
}

/// Makes the rows, once: for each kind the number of its first part and how many there are. Parts are numbered through, in this
/// order.
pub fn start(kinds: &[(&'static str, usize, usize)]) {
    ROWS.get_or_init(|| {
        let rows = kinds.iter().flat_map(|(kind, first, count)| {
            let ids = *first..first + count;
            ids.map(|id| Row::new(kind, id))
        });
        rows.collect()
    });
}

fn rows() -> &'static [Row] {
    ROWS.get().map_or(&[], Vec::as_slice)
}

/// This thread plays `part` from now on, and is in `state`. Before [`start`] that says nothing.
pub fn take_up(part: usize, state: State) {
    let row = rows().get(part);
    OWN.set(row);
    if let Some(row) = row {
        row.enter(state);
    }
}

/// This thread plays no part from now on. Until another thread takes it up, the part sleeps.
pub fn put_down() {
    if let Some(row) = OWN.take() {
        row.enter(State::Sleep);
    }
}

/// This thread is in `state` from now on; the state that it was in.
#[inline]
pub fn enter(state: State) -> State {
    match OWN.get() {
        Some(row) => row.enter(state),
        None => State::Other,
    }
}

/// A thread is in a state until this is dropped.
pub struct Within(State);

/// This thread is in `state` until what this returns is dropped.
#[inline]
#[must_use]
pub fn within(state: State) -> Within {
    Within(enter(state))
}

impl Drop for Within {
    #[inline]
    fn drop(&mut self) {
        enter(self.0);
    }
}

/// Switches the accounting on or off; was it on? What has been counted stays.
pub fn set_on(is_on: bool) -> bool {
    let _changing = CHANGING.lock();
    let was_on = IS_ON.load(Ordering::Relaxed);
    if was_on != is_on {
        for row in rows() {
            row.with_times(|times, now| times.since = is_on.then_some(now));
        }
        IS_ON.store(is_on, Ordering::Relaxed);
    }
    was_on
}

/// Begins to count from 0; is the accounting on?
pub fn reset() -> bool {
    let _changing = CHANGING.lock();
    for row in rows() {
        row.with_times(|times, _| times.spent = [0; STATES]);
    }
    IS_ON.load(Ordering::Relaxed)
}

/// What has been counted up to now, a row for each part.
pub fn accounts() -> Vec<Account> {
    let account = |row: &Row| Account {
        kind: row.kind,
        id: row.id,
        spent: row
            .with_times(|times, _| State::ALL.map(|state| (state, times.spent[state as usize]))),
    };
    rows().iter().map(account).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(state: State) -> u64 {
        let accounts = accounts();
        let of_first = accounts.first().expect("the test has started");
        of_first.spent[state as usize].1
    }

    /// One test, because the rows are the machine's.
    #[test]
    fn time_is_counted_in_the_state_that_a_part_is_in_while_that_is_on() {
        start(&[("scheduler", 1, 2), ("async", 0, 1)]);
        let names = accounts().into_iter().map(|it| (it.kind, it.id));
        assert!(names.eq([("scheduler", 1), ("scheduler", 2), ("async", 0)]));
        take_up(0, State::Other);
        assert!(!set_on(true));
        assert!(set_on(true), "it was on");
        let gc = {
            let _gc = within(State::Gc);
            let before = spent(State::Gc);
            while spent(State::Gc) == before {}
            spent(State::Gc)
        };
        assert!(gc > 0);
        assert_eq!(
            enter(State::Emulator),
            State::Other,
            "the state before it collected"
        );
        assert!(spent(State::Gc) >= gc && spent(State::Port) == 0);
        put_down();
        assert_eq!(enter(State::Port), State::Other, "it plays no part");
        let sleeps = spent(State::Sleep);
        while spent(State::Sleep) == sleeps {}
        assert!(set_on(false));
        let all: u64 = accounts()[0].spent.iter().map(|(_, spent)| spent).sum();
        assert_eq!(
            all,
            accounts()[0].spent.iter().map(|it| it.1).sum::<u64>(),
            "nothing is counted"
        );
        assert!(!reset());
        assert_eq!(accounts()[0].spent.map(|(_, spent)| spent), [0; STATES]);
    }
}
