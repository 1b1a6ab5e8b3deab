//! Damaged files: refused or read, never a panic.

use super::encode::{Sample, file};
use super::real_files;
use crate::beam::BeamModule;
use crate::beam::chunks::find_chunk;
use crate::beam::disasm::Disasm;

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
        println!("without real files: BEAMLINE_OTP names no folder with .beam files");
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

/// Steele, Lea and Flood's SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    const WORDS: [u32; 6] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x00ff_ffff];
    let at = rng.below(bytes.len());
    match rng.below(5) {
        0 => bytes[at] = rng.next() as u8,
        1 => bytes[at] ^= 1 << rng.below(8),
        2 => {
            let word = WORDS[rng.below(WORDS.len())].to_be_bytes();
            let end = bytes.len().min(at + 4);
            bytes[at..end].copy_from_slice(&word[..end - at]);
        }
        3 => {
            let to = at + rng.below(16.min(bytes.len() - at));
            bytes.drain(at..to);
        }
        _ => {
            let to = at + rng.below(16.min(bytes.len() - at));
            bytes.extend_from_within(at..to);
            bytes[at..].rotate_right(to - at);
        }
    }
}

#[test]
fn ten_thousand_mutations() {
    let victims = victims();
    let mut rng = Rng(29);
    let mut read = 0;
    for i in 0..10_000 {
        let mut parts = victims[i % victims.len()].clone();
        let chunk = loop {
            let chunk = rng.below(parts.len());
            if !parts[chunk].1.is_empty() {
                break chunk;
            }
        };
        let mut whole = Vec::new();
        for _ in 0..=rng.below(3) {
            if i % 8 == 0 {
                whole = if whole.is_empty() {
                    file(&parts)
                } else {
                    whole
                };
                damage(&mut whole, &mut rng);
            } else if !parts[chunk].1.is_empty() {
                damage(&mut parts[chunk].1, &mut rng);
            }
        }
        let whole = if whole.is_empty() {
            file(&parts)
        } else {
            whole
        };
        read += usize::from(survive(&whole));
    }
    println!("10000 mutations: {read} still read");
    assert!(read < 10_000, "mutations must do harm");
}
