//! Tests hashes against OTP 29.

use super::{internal_hash, phash, phash2};
use crate::external::{DecodeOptions, decode};
use crate::heap::Heap;

/// A line has a term as external format in hex, `phash2(T, 1 bsl 32)`, `phash(T, 1 bsl 32)`, and the
/// internal hash, or `-` where that depends on the order in which atoms were made.
const TABLE: &str = include_str!("../../../tests/golden/hashes.txt");

#[test]
fn hashes_are_those_of_otp() {
    let mut wrong = Vec::new();
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
}
