//! The times of files in virtual time, and what the disk gets of the times that programs set.
//!
//! A file from before the run has the date of its last change. A file that the run has written has the virtual time of
//! that write, and one whose times the program has set has these. What others have written during the run has the virtual
//! time at which the program first sees that it has changed, but none later than what was written after it: the order of
//! the disk's times is kept.
//!
//! The disk gets real times only: no file is of the future when the run is over.

use std::collections::BTreeMap;

use rustix::fs::{Stat, Timespec};

/// Nanoseconds in a second.
const SECOND_NS: i128 = 1_000_000_000;

/// The kernel stamps files by a clock that lags behind the one that programs read.
const LAG_NS: i128 = 20_000_000;

/// A device and an inode.
pub(super) type Id = (u64, u64);

/// The clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// When the run began, in real nanoseconds since 1970.
    pub(super) begun_ns: u64,
    /// Real nanoseconds since 1970.
    pub(super) real_ns: u64,
    /// When virtual time starts, in its nanoseconds since 1970.
    pub(super) start_ns: i64,
    /// Virtual nanoseconds since 1970.
    pub(super) virtual_ns: i64,
}

impl Moment {
    /// The first time of the disk that is of the run.
    fn first_ns(self) -> i128 {
        i128::from(self.begun_ns) - LAG_NS
    }

    /// The virtual time in seconds.
    fn seconds(self) -> i64 {
        seconds(self.virtual_ns.into())
    }
}

/// The times of one file as programs see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// The disk's time of the last change: what is known holds as long as it is this.
    stamp_ns: i128,
    accessed: Option<i64>,
    modified: i64,
    changed: i64,
}

/// What is known of the files of a virtual run.
pub(super) struct Times {
    known: BTreeMap<Id, Known>,
    /// Virtual times in seconds since 1970, by the time of the disk; both rise.
    seen: BTreeMap<i128, i64>,
}

impl Times {
    pub(super) const fn new() -> Times {
        Times {
            known: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Puts the times that a program sees into `stat`, of the file `id`.
    pub(super) fn tell(&mut self, id: Id, stat: &mut Stat, moment: Moment) {
        let stamp_ns = stamp_ns(stat);
        let known = self.known.get(&id).copied();
        if let Some(known) = known.filter(|known| known.stamp_ns == stamp_ns) {
            stat.st_mtime = known.modified;
            stat.st_atime = known.accessed.unwrap_or(known.modified);
            stat.st_ctime = known.changed;
            return;
        }
        if stamp_ns >= moment.first_ns() {
            stat.st_mtime = self.first_sight(stamp_ns, moment.seconds());
        }
        stat.st_atime = stat.st_mtime;
        stat.st_ctime = stat.st_mtime;
    }

    /// The virtual time of what the disk says was written at `stamp_ns`.
    fn first_sight(&mut self, stamp_ns: i128, now: i64) -> i64 {
        let later = self.seen.range(stamp_ns..).next();
        let time = later.map_or(now, |(_, &time)| now.min(time));
        self.seen.insert(stamp_ns, time);
        time
    }

    /// The run has just written the file `id`, whose status is now `stat`.
    pub(super) fn written(&mut self, id: Id, stat: &Stat, moment: Moment) {
        let (stamp_ns, now) = (stamp_ns(stat), moment.seconds());
        self.seen.insert(stamp_ns, now);
        let known = self.known.entry(id).or_insert(Known {
            stamp_ns,
            accessed: None,
            modified: now,
            changed: now,
        });
        *known = Known {
            stamp_ns,
            accessed: known.accessed,
            modified: now,
            changed: now,
        };
    }

    /// The program has just set these times of the file `id`, whose status is now `stat`.
    pub(super) fn set(
        &mut self,
        id: Id,
        stat: &Stat,
        (accessed, modified): (i64, i64),
        moment: Moment,
    ) {
        let known = Known {
            stamp_ns: stamp_ns(stat),
            accessed: Some(accessed),
            modified,
            changed: moment.seconds(),
        };
        self.known.insert(id, known);
    }

    /// The file is gone, and its inode is free for another.
    pub(super) fn forget(&mut self, id: Id) {
        self.known.remove(&id);
    }
}

/// What the disk gets for a time that a program sets to `seconds` since 1970: a time of the run as far back as it is in
/// virtual time, but not before the run, and a date from before the run as it is. What is between the two, in neither
/// the past nor the run, becomes the last moment before the run.
pub(super) fn stored(seconds: i64, moment: Moment) -> Timespec {
    let set_ns = i128::from(seconds) * SECOND_NS;
    let first_ns = moment.first_ns();
    let stored_ns = if set_ns >= i128::from(moment.start_ns) {
        let ago_ns = (i128::from(moment.virtual_ns) - set_ns).max(0);
        let real_ns = i128::from(moment.real_ns);
        (real_ns - ago_ns).max(i128::from(moment.begun_ns))
    } else {
        set_ns.min(first_ns - 1)
    };
    Timespec {
        tv_sec: self::seconds(stored_ns),
        tv_nsec: i64::try_from(stored_ns.rem_euclid(SECOND_NS)).unwrap_or(0),
    }
}

fn seconds(ns: i128) -> i64 {
    i64::try_from(ns.div_euclid(SECOND_NS)).unwrap_or(i64::MAX)
}

fn stamp_ns(stat: &Stat) -> i128 {
    i128::from(stat.st_mtime) * SECOND_NS + i128::from(stat.st_mtime_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN_S: i64 = 1_800_000_000;
    const START_S: i64 = 2_114_380_800;
    const ID: Id = (1, 7);

    /// Seconds after the start, of each clock.
    fn moment(real_s: u64, virtual_s: i64) -> Moment {
        let begun_ns = BEGUN_S as u64 * SECOND_NS as u64;
        Moment {
            begun_ns,
            real_ns: begun_ns + real_s * SECOND_NS as u64,
            start_ns: START_S * SECOND_NS as i64,
            virtual_ns: (START_S + virtual_s) * SECOND_NS as i64,
        }
    }

    /// The status of a file that the disk says was changed then.
    fn changed_at(seconds: i64, ns: u64) -> Stat {
        let mut stat = rustix::fs::stat(".").unwrap();
        (stat.st_mtime, stat.st_mtime_nsec) = (seconds, ns.cast_signed() as _);
        stat
    }

    fn told(times: &mut Times, id: Id, stat: Stat, moment: Moment) -> (i64, i64, i64) {
        let mut stat = stat;
        times.tell(id, &mut stat, moment);
        (stat.st_mtime, stat.st_atime, stat.st_ctime)
    }

    #[test]
    fn files_from_before_keep_their_date_and_those_of_the_run_have_virtual_times() {
        let mut times = Times::new();
        let before = changed_at(BEGUN_S - 100, 5);
        let all = told(&mut times, ID, before, moment(1, 0));
        assert_eq!(all, (BEGUN_S - 100, BEGUN_S - 100, BEGUN_S - 100));
        let of_run = changed_at(BEGUN_S + 1, 5);
        times.written(ID, &of_run, moment(1, 3));
        let all = told(&mut times, ID, of_run, moment(2, 9));
        assert_eq!(all, (START_S + 3, START_S + 3, START_S + 3));
        // It is written again in the same tick of the kernel's clock.
        times.written(ID, &of_run, moment(1, 4));
        assert_eq!(told(&mut times, ID, of_run, moment(2, 9)).0, START_S + 4);
    }

    #[test]
    fn what_others_write_keeps_its_order() {
        let mut times = Times::new();
        let [first, second, third] = [1, 2, 3].map(|s| changed_at(BEGUN_S + s, 0));
        // The newer one is seen an hour before the older one.
        let newer = told(&mut times, (1, 2), second, moment(5, 10)).0;
        let older = told(&mut times, (1, 1), first, moment(6, 3610)).0;
        let newest = told(&mut times, (1, 3), third, moment(7, 3610)).0;
        assert_eq!(
            [older, newer, newest],
            [START_S + 10, START_S + 10, START_S + 3610]
        );
        assert_eq!(told(&mut times, (1, 2), second, moment(9, 9999)).0, newer);
    }

    #[test]
    fn times_that_are_set_read_back_until_the_file_changes() {
        for set in [1_000, BEGUN_S + 5, START_S - 10, START_S, START_S + 500] {
            let mut times = Times::new();
            let now = moment(4, 100);
            let disk = stored(set, now);
            let stat = changed_at(disk.tv_sec, disk.tv_nsec.cast_unsigned());
            times.set(ID, &stat, (set - 1, set), now);
            let all = told(&mut times, ID, stat, moment(5, 200));
            assert_eq!(all, (set, set - 1, START_S + 100));
            let changed = changed_at(BEGUN_S + 6, 0);
            let all = told(&mut times, ID, changed, moment(6, 300));
            assert_eq!(all.0, START_S + 300);
        }
    }

    #[test]
    fn the_disk_gets_no_date_of_virtual_time() {
        let now = moment(10, 3600);
        let last = BEGUN_S - 1;
        for (set, expect) in [
            (1_000, 1_000),
            (BEGUN_S - 7, BEGUN_S - 7),
            (BEGUN_S + 1_000, last),
            (START_S - 1, last),
            (START_S, BEGUN_S),
            (START_S + 3595, BEGUN_S + 5),
            (START_S + 3600, BEGUN_S + 10),
            (START_S + 9999, BEGUN_S + 10),
            (i64::MAX, BEGUN_S + 10),
            (i64::MIN, i64::MIN),
        ] {
            assert_eq!(stored(set, now).tv_sec, expect, "{set}");
        }
    }
}
