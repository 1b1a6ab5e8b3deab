//! Tests hashes against OTP 29.

use super::{BRIEF_STEPS, brief_phash2, internal_hash, phash, phash2, phash2_some};
use crate::external::{DecodeOptions, decode};
use crate::heap::Heap;

/// A line has a term as external format in hex, `phash2(T, 1 bsl 32)`, `phash(T, 1 bsl 32)`, and the
/// internal hash, or `-` where that depends on the order in which atoms were made.
const TABLE: &str = include_str!("../../../tests/golden/hashes.txt");

#[test]
fn hashes_are_those_of_otp() {
    let (mut wrong, mut brief) = (Vec::new(), 0);
    for line in TABLE.lines() {
        let columns: Vec<&str> = line.split(' ').collect();
        let bytes: Vec<u8> = (0..columns[0].len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&columns[0][i..i + 2], 16).expect("hex"))
            .collect();
        let heap = Heap::new(4096);
        let decoded = decode(&heap, &bytes, DecodeOptions::default());
        let term = decoded.unwrap_or_else(|e| panic!("{e}: {line}")).0;
        let got = [
            u64::from(phash2(term)).to_string(),
            (u64::from(phash(term)) + 1).to_string(),
            internal_hash(term).to_string(),
        ];
        if let Some(hash) = brief_phash2(term) {
            brief += 1;
            assert_eq!(hash.to_string(), got[0], "{line}");
            let mut steps = BRIEF_STEPS as i64;
            assert!(phash2_some(term, None, &mut steps).is_ok(), "{line}");
            assert!(steps > 0, "{line} makes as many steps as are charged for");
        }
        for (got, want) in got.iter().zip(&columns[1..]) {
            if got != want && *want != "-" {
                wrong.push(format!("{got} for {line}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(TABLE.lines().count() > 500, "the table is there");
    assert!(brief > 300, "{brief} are brief");
    let long = Heap::new(4096);
    let bytes = |len| long.off_heap_binary(vec![7; len]);
    assert!(brief_phash2(bytes(12 * BRIEF_STEPS - 1)).is_some());
    assert_eq!(brief_phash2(bytes(12 * BRIEF_STEPS)), None);
}
