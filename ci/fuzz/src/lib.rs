//! Damaged files for whatever reads foreign bytes.
//!
//! The functions that read stand in the crates that have the readers (`beamline_runtime::fuzz`, `beamline_reports::fuzz`,
//! `beamline::fuzz`), each with what it promises. Here are whole files for them ([`seeds`]), and ways to damage those
//! that get past the first check of each format. `cargo xtask test` tries some hundred files of each kind that are
//! the same every time; `cargo xtask fuzz` has libFuzzer look for others (`bin/coverage.rs`).

mod beam;
mod damage;
mod files;
mod random;
pub mod seeds;

pub use random::Random;

/// A reader, and what it is tried with.
pub struct Target {
    /// As the command line names it.
    pub name: &'static str,
    /// Panics where the reader breaks a promise.
    pub read: fn(&[u8]),
    /// Whole files.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Damages a file; parts of another may get in.
    pub damage: fn(&[u8], &[u8], &mut Random) -> Vec<u8>,
    /// Damaged files in a run of the tests: seconds of time.
    pub cases: u64,
}

/// All of them.
pub const TARGETS: [Target; 8] = [
    Target {
        name: "beam",
        read: beamline_runtime::fuzz::beam_file,
        seeds: seeds::beam_files,
        damage: beam::damaged,
        cases: 6_000,
    },
    Target {
        name: "term",
        read: beamline_runtime::fuzz::external_term,
        seeds: seeds::terms,
        damage: files::term,
        cases: 40_000,
    },
    Target {
        name: "ring",
        read: beamline_reports::fuzz::recording,
        seeds: seeds::rings,
        damage: files::ring,
        cases: 300,
    },
    Target {
        name: "stream",
        read: beamline_reports::fuzz::recording,
        seeds: seeds::streams,
        damage: files::stream,
        cases: 150,
    },
    Target {
        name: "profile",
        read: beamline_reports::fuzz::profile,
        seeds: seeds::profiles,
        damage: files::profile,
        cases: 10_000,
    },
    Target {
        name: "baseline",
        read: beamline_reports::fuzz::baseline,
        seeds: seeds::baselines,
        damage: files::text,
        cases: 10_000,
    },
    Target {
        name: "trace",
        read: beamline_reports::fuzz::trace,
        seeds: seeds::traces,
        damage: files::text,
        cases: 10_000,
    },
    Target {
        name: "config",
        read: beamline::fuzz::config,
        seeds: seeds::configs,
        damage: files::text,
        cases: 10_000,
    },
];

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// The file of a case: a few of the seeds' bytes are changed.
    #[must_use]
    pub fn case(&self, seeds: &[Vec<u8>], seed: u64) -> Vec<u8> {
        let mut random = Random::new(seed);
        let mut file = random.one(seeds).clone();
        for _ in 0..=random.below(3) {
            let other = random.one(seeds);
            file = (self.damage)(&file, other, &mut random);
        }
        file
    }
}
