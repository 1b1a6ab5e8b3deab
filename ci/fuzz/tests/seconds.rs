//! Seconds of damaged files for each reader, the same on every run. `BEAMLINE_FUZZ_SEED` is another first case,
//! `BEAMLINE_FUZZ_CASES` another number of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use beamline_fuzz::Target;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// Bytes of address space a case may ask for, beside those for each byte of its file.
const SPACE: u64 = 256 << 20;
/// No compression makes more of a byte.
const SPACE_PER_BYTE: u64 = 1100;

/// The most address space this process has had, in bytes; 0 where the system does not tell.
fn space() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) << 10
}

/// Memory can only be measured where nobody else takes some.
static ALONE: Mutex<()> = Mutex::new(());

fn check(name: &str) {
    let target = Target::of(name).expect("a target");
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty());
    for seed in &seeds {
        (target.read)(seed);
    }
    let first = number("BEAMLINE_FUZZ_SEED").unwrap_or(29) << 32;
    let cases = number("BEAMLINE_FUZZ_CASES").unwrap_or(target.cases);
    for seed in first..first + cases {
        let file = target.case(&seeds, seed);
        let before = space();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(&file)));
        let used = space().saturating_sub(before);
        let fits = used <= SPACE + SPACE_PER_BYTE * file.len() as u64;
        if outcome.is_err() || !fits {
            let path = env::temp_dir().join(format!("beamline-fuzz-{name}-{seed}"));
            fs::write(&path, &file).expect("writable");
            panic!(
                "{name}: case {seed}, {used} bytes of memory: {}",
                path.display()
            );
        }
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_tried() {
            let tried = [$(stringify!($name)),*];
            let all = beamline_fuzz::TARGETS.map(|target| target.name);
            assert_eq!(all, tried);
        }
    };
}

targets! { beam term ring stream profile baseline trace config }
