//! The names of the files of a run, which lie beside each other.

use std::path::{Path, PathBuf};

/// The ring beside a recording: its records are on their way into the recording.
#[must_use]
pub fn part_of(recording: &Path) -> PathBuf {
    let mut name = recording.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// The name of a further file of a run: `run-2.ring` beside `run.ring`; the first has the name itself.
#[must_use]
pub fn numbered(file: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return file.to_owned();
    }
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

/// The number of a file beside `file`, if it has one: of a ring that is apart, or of any other.
pub(in crate::ring) fn number_of(file: &Path, path: &Path, is_apart: bool) -> Option<u32> {
    let (stem, name) = (file.file_stem()?, path.file_name()?);
    if !name.as_encoded_bytes().starts_with(stem.as_encoded_bytes()) {
        return None;
    }
    let name = match is_apart {
        true => path.with_extension(""),
        false => path.to_owned(),
    };
    let number = || {
        let digits = name.file_stem()?.to_str()?.rsplit_once('-')?.1;
        digits.parse::<u32>().ok().filter(|number| *number > 1)
    };
    [Some(1), number()].into_iter().flatten().find(|number| {
        let file = numbered(file, *number);
        match is_apart {
            true => part_of(&file) == path,
            false => file == path,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_files_have_numbers_before_the_extension() {
        for (file, number, expect) in [
            ("a/run.ring", 1, "a/run.ring"),
            ("a/run.ring", 2, "a/run-2.ring"),
            ("run.of.mine.stream", 12, "run.of.mine-12.stream"),
            ("run", 3, "run-3"),
            (".run", 2, ".run-2"),
        ] {
            let file = Path::new(file);
            let expect = Path::new(expect);
            assert_eq!(numbered(file, number), expect);
            assert_eq!(number_of(file, expect, false), Some(number));
            assert_eq!(number_of(file, &part_of(expect), true), Some(number));
            assert_eq!(number_of(file, expect, true), None);
        }
        for other in [
            "run-1.ring",
            "run-02.ring",
            "run-x.ring",
            "ran-2.ring",
            "run-2",
        ] {
            assert_eq!(
                number_of(Path::new("run.ring"), Path::new(other), false),
                None
            );
        }
    }
}
