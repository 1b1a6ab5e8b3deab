//! Shares the counter values of each time slice among the call paths that the process was in. A path gets the part of
//! the values that it had of the slice's time.

use beamline_settings::counter::{Counted, add};

/// Shares of counter values. Paths are numbers; `None` stands for time outside of all paths.
#[derive(Default)]
pub(super) struct Shares {
    /// The time of this slice, by path.
    slice_ns: Vec<u64>,
    touched: Vec<usize>,
    outside_ns: u64,
    /// The values that each path has got.
    pub(super) paths: Vec<Counted>,
}

impl Shares {
    /// The process spends this time of its slice in a path; `None` is outside of all paths.
    pub(super) fn spend(&mut self, path: Option<usize>, ns: u64) {
        let Some(path) = path else {
            self.outside_ns = self.outside_ns.saturating_add(ns);
            return;
        };
        if self.slice_ns.len() <= path {
            self.slice_ns.resize(path + 1, 0);
        }
        if self.slice_ns[path] == 0 && ns > 0 {
            self.touched.push(path);
        }
        self.slice_ns[path] = self.slice_ns[path].saturating_add(ns);
    }

    /// The time slice ends with these counter values.
    pub(super) fn share(&mut self, counted: &Counted) {
        let ns = self.touched.iter().map(|path| self.slice_ns[*path]);
        let all = ns.fold(u128::from(self.outside_ns), |all, ns| all + u128::from(ns));
        if self.paths.len() < self.slice_ns.len() {
            self.paths.resize(self.slice_ns.len(), Counted::default());
        }
        // What is left by rounding goes to the next ones, so that no slice is worth more or less than it was.
        let (mut given, mut passed) = (Counted::default(), 0_u128);
        for path in self.touched.drain(..) {
            passed += u128::from(std::mem::take(&mut self.slice_ns[path]));
            let mut part = Counted::default();
            for (at, part) in part.iter_mut().enumerate() {
                let until = u128::from(counted[at]) * passed / all.max(1);
                let until = u64::try_from(until).unwrap_or(u64::MAX);
                *part = until - given[at];
                given[at] = until;
            }
            add(&mut self.paths[path], &part);
        }
        self.outside_ns = 0;
    }

    /// The values that a path has got.
    pub(super) fn of(&self, path: usize) -> Counted {
        self.paths.get(path).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_slice_is_shared_out_by_time() {
        let mut shares = Shares::default();
        shares.spend(Some(0), 30);
        shares.spend(Some(2), 50);
        shares.spend(None, 20);
        shares.share(&[100, 10, 3, 0]);
        assert_eq!(shares.paths, [[30, 3, 0, 0], [0; 4], [50, 5, 2, 0]]);
        shares.spend(Some(2), 1);
        shares.spend(Some(1), 2);
        shares.share(&[100, 1, 0, 7]);
        // All of it, and no more.
        assert_eq!(shares.paths[1..], [[67, 1, 0, 5], [83, 5, 2, 2]]);
        shares.share(&[9, 9, 9, 9]);
        assert_eq!(shares.of(0), [30, 3, 0, 0]);
        assert_eq!(shares.of(7), [0; 4]);
    }
}
