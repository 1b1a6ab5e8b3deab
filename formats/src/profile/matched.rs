//! What became of patterns in an emulator, told to the command that started it.

use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{AtomicFile, Pattern, files_in};

/// What became of a pattern. The larger is the better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It means no function of a module that was loaded; these are near it.
    MeansNothing {
        /// Functions or modules, as the pattern names them.
        near: Vec<String>,
    },
    /// It means functions, and none of them was called.
    NotCalled,
    /// A function that it means was called.
    Called,
}

/// A pattern, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// The pattern.
    pub pattern: Pattern,
    /// What became of it.
    pub outcome: Outcome,
}

/// How the names of the files end.
const FILE_EXTENSION: &str = "patterns";

impl Matched {
    /// Writes the file of the emulator with this process number to a folder.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(all: &[Matched], folder: &Path, os_pid: u32) -> std::io::Result<()> {
        let path = folder.join(format!("{os_pid}.{FILE_EXTENSION}"));
        let mut file = AtomicFile::create(&path)?;
        serde_json::to_writer(&mut file, all)?;
        file.flush()?;
        file.commit()
    }

    /// The best that became of each pattern in any emulator that told it to this folder.
    ///
    /// # Errors
    /// One line when the folder or a file cannot be read.
    pub fn read_all(folder: &Path) -> Result<Vec<Matched>, String> {
        let mut best: Vec<Matched> = Vec::new();
        for path in files_in(folder, FILE_EXTENSION)? {
            let fail = |error: String| format!("{}: {error}", path.display());
            let bytes = std::fs::read(&path).map_err(|e| fail(e.to_string()))?;
            let told: Vec<Matched> =
                serde_json::from_slice(&bytes).map_err(|e| fail(e.to_string()))?;
            for matched in told {
                match best
                    .iter_mut()
                    .find(|known| known.pattern == matched.pattern)
                {
                    Some(known) if known.outcome < matched.outcome => *known = matched,
                    Some(_) => {}
                    None => best.push(matched),
                }
            }
        }
        Ok(best)
    }

    /// One line about it, unless a function of it was called.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        let pattern = &self.pattern;
        match &self.outcome {
            Outcome::Called => None,
            Outcome::NotCalled => Some(format!("no function that {pattern} matches was called")),
            Outcome::MeansNothing { near } if near.is_empty() => Some(format!(
                "{pattern} matches no function of any loaded module, and nothing is similar"
            )),
            Outcome::MeansNothing { near } => Some(format!(
                "{pattern} matches no function of any loaded module; similar: {}",
                near.join(", ")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_all_emulators_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let matched = |pattern: &str, outcome| Matched {
            pattern: pattern.parse().expect(pattern),
            outcome,
        };
        let nothing = |near: &[&str]| Outcome::MeansNothing {
            near: near.iter().map(ToString::to_string).collect(),
        };
        let first = [
            matched("a", nothing(&[])),
            matched("b", Outcome::Called),
            matched("c", nothing(&[])),
        ];
        let second = [
            matched("a", Outcome::NotCalled),
            matched("b", nothing(&[])),
            matched("c", nothing(&["d", "e"])),
        ];
        Matched::write(&first, folder.path(), 1).expect("writable");
        Matched::write(&second, folder.path(), 2).expect("writable");
        let told = Matched::read_all(folder.path()).expect("readable");
        let told: Vec<_> = told.iter().map(|matched| matched.told()).collect();
        let expect = [
            Some("no function that a matches was called".to_owned()),
            None,
            Some("c matches no function of any loaded module; similar: d, e".to_owned()),
        ];
        assert_eq!(told, expect);
        std::fs::write(folder.path().join("3.patterns"), "{").expect("writable");
        let error = Matched::read_all(folder.path()).expect_err("damaged");
        assert!(error.contains("3.patterns"), "{error}");
    }
}
