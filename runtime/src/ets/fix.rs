//! Counts the fixations of a table. While a table is fixed, a traversal may go on from a key that was deleted.

use crate::term::Pid;

/// The processes that have fixed a table, and how often.
#[derive(Default)]
pub(crate) struct Fixes {
    by: Vec<(Pid, usize)>,
    /// Erlang's monotonic time in nanoseconds at which the first of the fixations was made.
    since: i64,
}

impl Fixes {
    /// Is the table fixed?
    #[inline]
    pub(crate) fn any(&self) -> bool {
        !self.by.is_empty()
    }

    /// How many there are.
    pub(crate) fn total(&self) -> usize {
        self.by.iter().map(|(_, count)| count).sum()
    }

    /// One fixation more, by `pid`, at `now`; whether it is the process's first.
    pub(crate) fn add(&mut self, pid: Pid, now: i64) -> bool {
        if self.by.is_empty() {
            self.since = now;
        }
        if let Some((_, count)) = self.by.iter_mut().find(|(by, _)| *by == pid) {
            *count += 1;
            return false;
        }
        self.by.push((pid, 1));
        true
    }

    /// One fixation less, by `pid`, if it has any; whether that was its last.
    pub(crate) fn remove(&mut self, pid: Pid) -> bool {
        let Some(at) = self.by.iter().position(|(by, _)| *by == pid) else {
            return false;
        };
        self.by[at].1 -= 1;
        if self.by[at].1 == 0 {
            self.by.remove(at);
            return true;
        }
        false
    }

    /// All fixations of `pid` less.
    pub(crate) fn remove_all(&mut self, pid: Pid) {
        self.by.retain(|(by, _)| *by != pid);
    }

    /// Who fixed it, how often, and since when.
    pub(crate) fn list(&self) -> (&[(Pid, usize)], i64) {
        (&self.by, self.since)
    }
}
