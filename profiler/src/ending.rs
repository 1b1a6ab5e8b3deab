//! What is said at the end of a recording: one line for each file, with the command that reads it.

use std::path::Path;

use beamline_formats::name::{thousands, time};
use beamline_formats::ring::Recording;

use crate::report;

/// Tells of a recording that has ended; gives how many records it has.
pub(crate) fn tell(file: &Path) -> u64 {
    let here = std::env::current_dir().ok();
    let beside = here.and_then(|here| file.strip_prefix(here).ok().map(Path::to_owned));
    let file = beside.as_deref().unwrap_or(file);
    let told = Recording::open(file).and_then(|recording| recording.tally());
    let tally = match told {
        Ok(tally) => tally,
        Err(error) => {
            report::error(&format!("{}: {error}", file.display()));
            return 0;
        }
    };
    let bytes = std::fs::metadata(file).map_or(0, |file| file.len());
    let lost = tally.lost.as_deref().unwrap_or("nothing lost");
    report::error(&format!(
        "{}: {}, {}, {} records, {lost}; next: beamline report {}",
        file.display(),
        size(bytes),
        time(tally.time_ns),
        thousands(tally.records),
        quoted(file)
    ));
    tally.records
}

/// Bytes in the unit in which they are a short number.
fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let (mut unit, mut tenths) = ("B", bytes.saturating_mul(10));
    for larger in units {
        if tenths < 10_240 {
            break;
        }
        (unit, tenths) = (larger, tenths / 1024);
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

/// A file's name as a shell takes it.
fn quoted(file: &Path) -> String {
    let text = file.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    match !text.starts_with('-') && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short_and_names_can_be_typed() {
        for (bytes, expect) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_300_000, "1.2 MiB"),
            (67_108_864, "64.0 MiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(size(bytes), expect);
        }
        for (name, expect) in [
            ("a/run-2.ring", "a/run-2.ring"),
            ("my run", "'my run'"),
            ("it's", "'it'\\''s'"),
        ] {
            assert_eq!(quoted(Path::new(name)), expect);
        }
    }
}
