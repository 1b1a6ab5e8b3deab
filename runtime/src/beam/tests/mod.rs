//! Tests over real files: those of the OTP (and other folders, split by `:`) that the environment
//! variable `BEAMLINE_OTP` names.

mod encode;
mod hostile;
mod loader;
mod units;

use crate::sys::chance::clock::outside_now;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::BeamModule;

/// All `.beam` files under the folders of `BEAMLINE_OTP`, in order; none where it is not set.
pub(crate) fn real_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Some(dirs) = std::env::var_os("BEAMLINE_OTP") {
        for dir in std::env::split_paths(&dirs) {
            collect(&dir, &mut files);
        }
    }
    files.sort();
    files
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "beam") {
            files.push(path);
        }
    }
}

/// The compiler writes the first 27 bits of the module's checksum into each lambda, so each file
/// with lambdas tells whether ours is right.
#[test]
fn reads_every_real_file() {
    let files = real_files();
    if files.is_empty() {
        println!("skipped: BEAMLINE_OTP names no folder with .beam files");
        return;
    }
    let (mut instructions, mut operands, mut bytes) = (0, 0, 0);
    let mut spent = Duration::ZERO;
    for path in &files {
        let file = std::fs::read(path).expect("a readable file");
        let start = outside_now();
        let module = BeamModule::decode(&file).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        spent += start.elapsed();
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
        "{} files, {bytes} bytes, {instructions} instructions, {operands} operands in {spent:?}",
        files.len()
    );
}
