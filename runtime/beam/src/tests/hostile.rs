//! Tests of files that are cut. The reader refuses or reads them, and never panics. `ci/fuzz` damages files in worse
//! ways.

use beamline_needs::{Need, skipped};

use crate::BeamModule;
use crate::chunks::find_chunk;
use crate::disasm::Disasm;
use crate::samples::{Sample, file, real_files};

const CHUNKS: [&[u8; 4]; 13] = [
    b"AtU8", b"Code", b"StrT", b"ImpT", b"ExpT", b"FunT", b"LitT", b"Line", b"LocT", b"Type",
    b"Meta", b"Recs", b"Attr",
];

/// The chunks of a file that are read, without those that are not (they only dilute the damage).
type Parts = Vec<(&'static [u8; 4], Vec<u8>)>;

fn parts(file: &[u8]) -> Parts {
    let find = |id: &[u8; 4]| find_chunk(file, *id).expect("a whole file");
    CHUNKS
        .iter()
        .filter_map(|id| find(id).map(|data| (*id, data.to_vec())))
        .collect()
}

/// The sample, and five real modules where there are some.
fn victims() -> Vec<Parts> {
    let names = ["gen_event", "maps", "orddict", "proplists", "queue"];
    let real = real_files();
    let named = real.iter().filter(|path| {
        path.file_stem()
            .and_then(|s| s.to_str())
            .is_some_and(|name| names.contains(&name))
    });
    let mut victims = vec![Sample::new().chunks];
    victims.extend(named.map(|path| parts(&std::fs::read(path).expect("a readable file"))));
    if victims.len() == 1 {
        skipped(
            Need::Otp,
            "the sample is all: there is no OTP; BEAMLINE_OTP names one",
        );
    }
    victims
}

/// Reads a damaged file; one that is read must hold the invariants that the disassembler rests on.
fn survive(file: &[u8]) -> bool {
    match BeamModule::decode(file) {
        Ok(module) => {
            assert!(Disasm::new(&module).to_string().starts_with("{module,"));
            true
        }
        Err(error) => {
            assert!(error.to_string().starts_with("chunk "));
            false
        }
    }
}

#[test]
fn every_truncation() {
    for mut parts in victims() {
        let whole = file(&parts);
        assert!(survive(&whole));
        for end in 0..whole.len() {
            assert!(!survive(&whole[..end]), "{end} bytes of {}", whole.len());
        }
        // The container's sizes give those away at once, so cut each chunk in a whole container too.
        for i in 0..parts.len() {
            let data = std::mem::take(&mut parts[i].1);
            for end in 0..data.len() {
                parts[i].1.clear();
                parts[i].1.extend_from_slice(&data[..end]);
                survive(&file(&parts));
            }
            parts[i].1 = data;
        }
    }
}
