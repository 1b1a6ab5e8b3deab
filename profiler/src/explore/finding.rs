//! Findings, and the files that hold them.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use beamline_orders::{Call, Trace};
use serde::{Deserialize, Serialize};

/// What is wrong with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A process ended otherwise than it may.
    Exit,
    /// The call, or the whole program, waits for ever.
    Deadlock,
    /// It goes on for ever.
    Livelock,
    /// It returned, or printed, something else than in the first run.
    Result,
    /// A process is left.
    Leak,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) kind: Kind,
    /// The process, such as p60.1.
    pub(super) process: String,
    /// What reports call it.
    pub(super) known_as: String,
    /// Why it ended, where it waits, what was returned or printed.
    pub(super) reason: String,
    /// What the runs begin with in which it happens.
    #[serde(skip)]
    pub(super) prefix: Trace,
}

impl Finding {
    /// Whether the two are the same: pids, references and ports may be others.
    pub(super) fn is_same(&self, other: &Finding) -> bool {
        self.kind == other.kind
            && self.process == other.process
            && masked(&self.reason) == masked(&other.reason)
    }
}

/// Most characters of a result shown.
const REASON_MAX: usize = 400;

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = format!("{} ({})", self.process, self.known_as);
        let reason = &self.reason;
        match self.kind {
            Kind::Exit => write!(f, "{who} exits with {reason}"),
            Kind::Deadlock => write!(f, "deadlock: {who} waits in {reason}"),
            Kind::Livelock => write!(
                f,
                "livelock: {who} goes on for more than {reason} reductions"
            ),
            Kind::Result => {
                write!(
                    f,
                    "the result of {who} is another one than in the first run: "
                )?;
                match reason.char_indices().nth(REASON_MAX) {
                    Some((end, _)) => write!(f, "{}...", &reason[..end]),
                    None => f.write_str(reason),
                }
            }
            Kind::Leak => write!(f, "{who} is left, and waits in {reason}"),
        }
    }
}

/// The text of a term, in which pids, references, ports and funs have no numbers.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 || !(c.is_ascii_digit() || c == '.') {
            out.push(c);
        }
    }
    out
}

/// What a file of a finding says beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Saved {
    /// What is explored; else all that the command asks for.
    #[serde(default)]
    pub(super) call: Option<Call>,
    pub(super) command: Vec<String>,
    pub(super) reductions: u64,
    /// The modules that runs have loaded.
    #[serde(default)]
    pub(super) modules: Vec<String>,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(flatten)]
    saved: Saved,
    finding: Finding,
}

/// How the name of a finding's chart ends, which lies beside it.
pub(super) const PAGE: &str = "html";

/// How a file of a finding begins.
const HEAD: &str = "% beamline explore ";

impl Saved {
    /// Writes each finding to a file of its own. Those of an earlier exploration go.
    pub(super) fn write_all(
        &self,
        findings: &[Finding],
        folder: &Path,
    ) -> Result<Vec<PathBuf>, String> {
        let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        if folder.is_dir() {
            for old in files_in(folder)? {
                fs::remove_file(&old).map_err(|error| failed(&old, error))?;
                // It may have none.
                let _ = fs::remove_file(old.with_extension(PAGE));
            }
        }
        if findings.is_empty() {
            return Ok(Vec::new());
        }
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        let mut files = Vec::new();
        for (number, finding) in (1..).zip(findings) {
            let path = folder.join(format!("finding-{number}.prefix"));
            let head = Head {
                saved: self.clone(),
                finding: finding.clone(),
            };
            let head = serde_json::to_string(&head).map_err(|error| error.to_string())?;
            let text = format!("{HEAD}{head}\n% {finding}\n{}", finding.prefix);
            fs::write(&path, text).map_err(|error| failed(&path, error))?;
            files.push(path);
        }
        Ok(files)
    }

    /// Whether a file is one of a finding.
    pub(super) fn is_one(path: &Path) -> bool {
        fs::read(path).is_ok_and(|bytes| bytes.starts_with(HEAD.as_bytes()))
    }

    /// Reads one.
    pub(super) fn read(path: &Path) -> Result<(Saved, Finding), String> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let (head, prefix) = text
            .strip_prefix(HEAD)
            .and_then(|rest| rest.split_once('\n'))
            .ok_or_else(|| format!("{shown}: it is no finding of beamline explore"))?;
        let head: Head =
            serde_json::from_str(head).map_err(|error| format!("{shown}: line 1: {error}"))?;
        let mut finding = head.finding;
        // The first line has been taken away.
        let prefix = format!("\n{prefix}");
        finding.prefix = prefix
            .parse()
            .map_err(|error| format!("{shown}: {error}"))?;
        finding
            .prefix
            .check()
            .map_err(|error| format!("{shown}: {error}"))?;
        Ok((head.saved, finding))
    }
}

/// The files of findings in a folder, in the order of their numbers.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let mut numbered = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let number = name
            .strip_prefix("finding-")
            .and_then(|rest| rest.strip_suffix(".prefix"));
        if let Some(number) = number.and_then(|number| number.parse::<u64>().ok()) {
            numbered.push((number, path));
        }
    }
    numbered.sort();
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}

/// The files of findings in a folder.
///
/// # Errors
/// One line: there are none.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let files = files_in(folder)?;
    match files.is_empty() {
        true => Err(format!("{}: it has no finding-1.prefix", folder.display())),
        false => Ok(files),
    }
}
