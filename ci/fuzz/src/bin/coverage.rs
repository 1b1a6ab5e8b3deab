//! libFuzzer on the reader that `BEAMLINE_FUZZ_TARGET` names: it keeps the files that run new code, and changes those
//! further. `cargo xtask fuzz` builds and starts it.
#![no_main]

use std::path::Path;
use std::sync::OnceLock;
use std::{env, fs};

use beamline_fuzz::{Random, Target};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

/// The reader, and whole files for it.
struct Fuzzed {
    target: &'static Target,
    seeds: Vec<Vec<u8>>,
}

fn fuzzed() -> &'static Fuzzed {
    static FUZZED: OnceLock<Fuzzed> = OnceLock::new();
    FUZZED.get_or_init(|| {
        let name = env::var("BEAMLINE_FUZZ_TARGET").expect("the name of a target");
        let target = Target::of(&name).expect("the name of a target");
        let seeds = (target.seeds)();
        Fuzzed { target, seeds }
    })
}

/// Puts the whole files into the folder that libFuzzer begins with.
fn write_seeds(folder: &Path) {
    for (number, seed) in fuzzed().seeds.iter().enumerate() {
        let path = folder.join(format!("seed-{number}"));
        fs::write(path, seed).expect("a folder that can be written to");
    }
}

/// libFuzzer's own changes, and those that know the format: each kind reaches what the other does not.
fn change(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let Fuzzed { target, seeds } = fuzzed();
    let mut random = Random::new(seed.into());
    if random.once_in(2) {
        return fuzzer_mutate(data, size, max_size);
    }
    let other: &Vec<u8> = random.one(seeds);
    let changed = (target.damage)(&data[..size], other, &mut random);
    let size = changed.len().min(max_size);
    data[..size].copy_from_slice(&changed[..size]);
    size
}

fuzz_target!(
    init: {
        if let Some(folder) = env::var_os("BEAMLINE_FUZZ_SEEDS") {
            write_seeds(Path::new(&folder));
        }
    },
    |data: &[u8]| (fuzzed().target.read)(data)
);

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    change(data, size, max_size, seed)
});
