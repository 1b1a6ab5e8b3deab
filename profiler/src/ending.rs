//! What is said at the end of a recording: one line for each file, with the command that reads it.

use std::path::Path;

use beamline_formats::name::{size, thousands, time};
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

/// Tells of a folder with so many recordings.
pub(crate) fn tell_of_all(folder: &Path, recordings: usize) {
    report::error(&format!(
        "{}: {recordings} recordings; next: beamline report {}",
        folder.display(),
        quoted(folder)
    ));
}

/// A file's name as a shell takes it.
pub(crate) fn quoted(file: &Path) -> String {
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
    fn names_can_be_typed() {
        for (name, expect) in [
            ("a/run-2.ring", "a/run-2.ring"),
            ("my run", "'my run'"),
            ("it's", "'it'\\''s'"),
        ] {
            assert_eq!(quoted(Path::new(name)), expect);
        }
    }
}
