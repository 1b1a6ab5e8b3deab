//! The request that tells an emulator what to measure. The command hands it over in an environment variable.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Type;
use crate::name;
use crate::variable::Variable;

/// What an emulator measures, and where its profile file goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What to measure.
    #[serde(rename = "type")]
    pub kind: Type,
    /// The functions to trace; an empty list means all.
    pub patterns: Vec<Pattern>,
    /// Whether call paths are recorded as well.
    pub call_tree: bool,
    /// The folder for profile files.
    pub folder: PathBuf,
}

impl Variable for Request {
    const VARIABLE: &'static str = "BEAMLINE_PROFILE";
}

impl Request {
    /// The profile file of the emulator with this process number.
    #[must_use]
    pub fn file(&self, os_pid: u32) -> PathBuf {
        self.folder
            .join(format!("{os_pid}.{}", Self::FILE_EXTENSION))
    }

    /// How the names of profile files end.
    pub const FILE_EXTENSION: &'static str = "blprof";

    /// The finished profile files in a folder, in order of their names.
    ///
    /// # Errors
    /// One line when the folder cannot be read.
    pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
        files_in(folder, Self::FILE_EXTENSION)
    }
}

/// The files in a folder whose names end so, in order of their names.
pub(crate) fn files_in(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Which functions to trace: `M:F/A`, `M:F` or `M`; `_` stands for any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    /// The module; `None` stands for any.
    pub module: Option<String>,
    /// The function's name; `None` stands for any.
    pub function: Option<String>,
    /// The number of arguments; `None` stands for any.
    pub arity: Option<u8>,
}

impl Pattern {
    /// Whether a function is meant.
    #[must_use]
    pub fn matches(&self, module: &str, function: &str, arity: u32) -> bool {
        self.module.as_deref().is_none_or(|m| m == module)
            && self.function.as_deref().is_none_or(|f| f == function)
            && self.arity.is_none_or(|a| u32::from(a) == arity)
    }

    /// Those of `functions`, three at most, that look like what it names, as it names them: module, function and
    /// arity, or less.
    pub fn near<'a>(
        &self,
        functions: impl IntoIterator<Item = (&'a str, &'a str, u32)>,
    ) -> Vec<String> {
        let mut near: Vec<(f64, String)> = Vec::new();
        for (module, function, arity) in functions {
            let likeness = [(&self.module, module), (&self.function, function)]
                .into_iter()
                .filter_map(|(wanted, name)| Some(likeness(wanted.as_deref()?, name)))
                .reduce(f64::min);
            let Some(likeness) = likeness.filter(|likeness| *likeness >= LIKE) else {
                continue;
            };
            let text = match (&self.function, self.arity) {
                (None, _) => name::atom(module),
                (Some(_), None) => format!("{}:{}", name::atom(module), name::atom(function)),
                _ => name::mfa(module, function, arity),
            };
            if !near.iter().any(|(_, known)| *known == text) {
                near.push((likeness, text));
            }
        }
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        near.into_iter().take(3).map(|(_, text)| text).collect()
    }
}

/// Names that are alike to at least this part may be taken for each other.
const LIKE: f64 = 0.6;

/// From 0 to 1, for the same.
fn likeness(a: &str, b: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(a, b)
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePatternError(String);

impl fmt::Display for ParsePatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; expected M:F/A, M:F or M, with _ for any", self.0)
    }
}

impl std::error::Error for ParsePatternError {}

/// Takes an atom, quoted or not, from the front; `None` is the wildcard `_`.
fn take_atom<'a>(
    text: &'a str,
    end: &[char],
    what: &str,
) -> Result<(Option<String>, &'a str), String> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let at = text.find(end).unwrap_or(text.len());
        let (name, rest) = text.split_at(at);
        return match name {
            "" => Err(format!("the {what} is missing")),
            "_" => Ok((None, rest)),
            name => Ok((Some(name.to_owned()), rest)),
        };
    };
    let mut name = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Ok((Some(name), &quoted[at + 1..])),
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            c => name.push(c),
        }
    }
    Err(format!("the {what} has no closing quote"))
}

impl FromStr for Pattern {
    type Err = ParsePatternError;

    fn from_str(text: &str) -> Result<Self, ParsePatternError> {
        let fail = |why: &str| ParsePatternError(format!("{why} in '{text}'"));
        let (module, rest) = take_atom(text, &[':'], "module").map_err(|e| fail(&e))?;
        let mut pattern = Pattern {
            module,
            function: None,
            arity: None,
        };
        if rest.is_empty() {
            return Ok(pattern);
        }
        let rest = rest
            .strip_prefix(':')
            .ok_or_else(|| fail("a ':' is missing after the module"))?;
        // An operator may be named `/`: only the last slash is before the arity.
        let (name, rest) = match rest.rfind('/') {
            Some(at) if at > 0 && !rest.starts_with('\'') => {
                let (function, _) =
                    take_atom(&rest[..at], &[], "function").map_err(|e| fail(&e))?;
                (function, &rest[at..])
            }
            _ => take_atom(rest, &[], "function").map_err(|e| fail(&e))?,
        };
        pattern.function = name;
        match rest.strip_prefix('/') {
            None if rest.is_empty() => {}
            None => return Err(fail("a '/' is missing before the arity")),
            Some("_") => {}
            Some(arity) => {
                let number = arity.parse();
                pattern.arity = Some(
                    number.map_err(|_| fail(&format!("the arity '{arity}' is not 0 to 255")))?,
                );
            }
        }
        Ok(pattern)
    }
}

impl TryFrom<String> for Pattern {
    type Error = ParsePatternError;

    fn try_from(text: String) -> Result<Self, ParsePatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Always quoted: the text must read back as the same atom, whatever is in it.
        let part = |name: &Option<String>| match name {
            None => "_".to_owned(),
            Some(name) => format!("'{}'", name.replace('\\', "\\\\").replace('\'', "\\'")),
        };
        write!(f, "{}:{}/", part(&self.module), part(&self.function))?;
        match self.arity {
            None => f.write_str("_"),
            Some(arity) => write!(f, "{arity}"),
        }
    }
}
