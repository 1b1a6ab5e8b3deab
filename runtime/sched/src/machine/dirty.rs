//! How many dirty schedulers there are, and how many of them are online. Source: `erl_init.c`,
//! `erts_set_schedulers_online()`, OTP 29.

use beamline_runtime_base::sync::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use super::machine;

/// Dirty I/O schedulers where nothing else is asked for.
const IO_SCHEDULERS: usize = 10;

/// The numbers that the machine starts with (`+SDcpu`, `+SDPcpu`, `+SDio`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyNumbers {
    /// Dirty CPU schedulers.
    pub cpu: usize,
    /// Those of them that are online.
    pub cpu_online: usize,
    /// Dirty I/O schedulers.
    pub io: usize,
}

impl DirtyNumbers {
    /// What there is where nothing else is asked for.
    #[must_use]
    pub fn for_schedulers(schedulers: usize) -> DirtyNumbers {
        DirtyNumbers {
            cpu: schedulers,
            cpu_online: schedulers,
            io: IO_SCHEDULERS,
        }
    }

    /// There are no more dirty CPU schedulers than ordinary ones.
    fn at_most(self, schedulers: usize) -> DirtyNumbers {
        let cpu = self.cpu.clamp(1, schedulers);
        DirtyNumbers {
            cpu,
            cpu_online: self.cpu_online.clamp(1, cpu),
            ..self
        }
    }
}

// No model looks at it: numbers that are set before there is any thread.
static NUMBERS: OnceLock<DirtyNumbers> = OnceLock::new();

/// Sets how many there are. Only before the first process is made; the first call counts.
pub fn set_dirty_schedulers(numbers: DirtyNumbers) {
    let _ = NUMBERS.set(numbers);
}

/// The dirty schedulers of the machine.
pub struct DirtySchedulers {
    /// Dirty CPU schedulers.
    pub cpu: usize,
    cpu_online: AtomicUsize,
    /// Dirty I/O schedulers.
    pub io: usize,
}

impl DirtySchedulers {
    pub(super) fn new(schedulers: usize) -> DirtySchedulers {
        let numbers = NUMBERS.get().copied();
        let numbers = numbers.unwrap_or_else(|| DirtyNumbers::for_schedulers(schedulers));
        let numbers = numbers.at_most(schedulers);
        DirtySchedulers {
            cpu: numbers.cpu,
            cpu_online: AtomicUsize::new(numbers.cpu_online),
            io: numbers.io,
        }
    }

    /// Dirty CPU schedulers that are online: those that make calls.
    #[must_use]
    pub fn cpu_online(&self) -> usize {
        self.cpu_online.load(Ordering::Acquire)
    }

    /// Sets how many dirty CPU schedulers are online, from 1 to all; tells the old number.
    pub fn set_cpu_online(&self, online: usize) -> usize {
        self.cpu_online.swap(online, Ordering::AcqRel)
    }

    /// How many of them are online once `online` ordinary schedulers are: as large a part as before.
    #[must_use]
    pub fn cpu_online_with(&self, online: usize) -> usize {
        part_online(
            (self.cpu, self.cpu_online()),
            (super::schedulers(), super::online::schedulers_online()),
            online,
        )
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> usize {
        self.cpu + self.io
    }
}

/// The dirty schedulers to be online with `online` ordinary ones. `dirty` and `ordinary` are how many there are, and
/// are online.
fn part_online(dirty: (usize, usize), ordinary: (usize, usize), online: usize) -> usize {
    let percent = online * (dirty.0 * 100 / ordinary.0) / ordinary.1;
    (dirty.1 * percent / 100).clamp(1, dirty.0)
}

/// The dirty schedulers of the machine.
#[must_use]
pub fn dirty_schedulers() -> &'static DirtySchedulers {
    &machine().dirty
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn dirty_cpu_schedulers_are_no_more_than_ordinary_ones() {
        let of = |cpu, cpu_online, schedulers| {
            let io = 3;
            let numbers = DirtyNumbers {
                cpu,
                cpu_online,
                io,
            }
            .at_most(schedulers);
            (numbers.cpu, numbers.cpu_online, numbers.io)
        };
        assert_eq!(of(3, 3, 2), (2, 2, 3));
        assert_eq!(of(2, 1, 4), (2, 1, 3));
        assert_eq!(of(0, 0, 4), (1, 1, 3));
    }

    #[test]
    fn dirty_cpu_schedulers_follow_ordinary_ones() {
        assert_eq!(part_online((4, 4), (4, 4), 2), 2);
        assert_eq!(part_online((2, 2), (4, 4), 1), 1);
        assert_eq!(part_online((4, 2), (4, 2), 4), 4);
    }
}
