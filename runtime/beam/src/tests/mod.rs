//! Tests on real files: those of the OTP at hand, or of the folders, split by `:`, that the environment variable
//! `BEAMLINE_OTP` names.

mod hostile;
mod units;

use beamline_needs::{Need, skipped};

use super::BeamModule;
use crate::samples::real_files;

/// The compiler writes the first 27 bits of the module's checksum into each lambda, so each file
/// with lambdas tells whether ours is right.
#[test]
fn reads_every_real_file() {
    let files = real_files();
    if files.is_empty() {
        return skipped(Need::Otp, "there is no OTP; BEAMLINE_OTP names one");
    }
    let (mut instructions, mut operands, mut bytes) = (0, 0, 0);
    for path in &files {
        let file = std::fs::read(path).expect("a readable file");
        let module = BeamModule::decode(&file).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let name = path.file_stem().and_then(|s| s.to_str()).expect("a name");
        assert_eq!(module.atoms.get(module.name), name);
        let uniq = u32::from_be_bytes([module.md5[0], module.md5[1], module.md5[2], module.md5[3]]);
        for lambda in &module.lambdas {
            assert_eq!(lambda.old_uniq, uniq >> 5, "{path:?}");
        }
        instructions += module.code.len();
        operands += module.args.len();
        bytes += file.len();
    }
    println!(
        "{} files, {bytes} bytes, {instructions} instructions, {operands} operands",
        files.len()
    );
}
