//! Draws what changed in the call paths of a workload: as a differential flame graph, and as a diagram in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use beamline_formats::name;

use super::compare::growth;
use super::output::number;
use super::results::{PathCount, Results};
use crate::flamegraph::{Drawing, Shape, Width, paint_difference};

/// What a call path did before and now, by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Functions, the caller first, with `;` between them.
    pub path: String,
    /// Before.
    pub base: u64,
    /// Now.
    pub new: u64,
}

/// A picture of what changed in a workload.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The workload.
    pub workload: String,
    /// What it shows.
    pub width: Width,
    /// Where a reader of the comparison finds the flame graph.
    pub link: String,
    /// The call paths that changed most, the largest change first.
    pub paths: Vec<PathChange>,
}

/// Call paths in a diagram.
const PATHS: usize = 5;

/// Functions of each of them.
const FRAMES: usize = 4;

impl Picture {
    /// What changed most in a workload, by this cost.
    #[must_use]
    pub fn new(base: &Results, new: &Results, name: &str, width: Width, link: String) -> Picture {
        let both = both(base, new, name, width).into_iter();
        let changed = both.filter(|(_, [base, new])| base != new);
        let mut paths: Vec<PathChange> = changed
            .map(|(path, [base, new])| PathChange {
                path: path.to_owned(),
                base,
                new,
            })
            .collect();
        paths.sort_by_key(|change| std::cmp::Reverse(change.base.abs_diff(change.new)));
        paths.truncate(PATHS);
        Picture {
            workload: name.to_owned(),
            width,
            link,
            paths,
        }
    }

    /// A diagram in Mermaid's language, which GitHub and GitLab draw where they show Markdown. A thick border is more
    /// than in the baseline, a broken one is less.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut out = String::from("```mermaid\nflowchart LR\n");
        for change in &self.paths {
            let mut before = None;
            for end in ends(&change.path) {
                let path = &change.path[..end];
                let known = nodes.len();
                let id = *nodes.entry(path).or_insert(known);
                if id == known {
                    let _ = writeln!(out, "  n{id}[\"{}\"]", self.label(path));
                    if let Some(before) = before {
                        let _ = writeln!(out, "  n{before} --> n{id}");
                    }
                    self.style(&mut out, id, path);
                }
                before = Some(id);
            }
        }
        out + "```\n"
    }

    fn change(&self, path: &str) -> Option<&PathChange> {
        self.paths.iter().find(|change| change.path == path)
    }

    fn label(&self, path: &str) -> String {
        let function = path.rsplit(';').next().unwrap_or(path);
        let mut label = quoted(&name::of_frames(function));
        if let Some(PathChange { base, new, .. }) = self.change(path) {
            let unit = self.width.title().to_lowercase();
            let (before, now, growth) = (number(*base), number(*new), growth(*base, *new));
            let _ = write!(label, "<br/>{before} → {now} {unit}<br/>{growth}");
        }
        label
    }

    fn style(&self, out: &mut String, id: usize, path: &str) {
        let style = match self.change(path) {
            Some(change) if change.new > change.base => "stroke-width:4px",
            Some(_) => "stroke-dasharray:5 5",
            None => return,
        };
        let _ = writeln!(out, "  style n{id} {style}");
    }
}

/// Where the last functions of a call path end in its text.
fn ends(path: &str) -> Vec<usize> {
    let ends = path.match_indices(';').map(|(at, _)| at);
    let ends: Vec<usize> = ends.chain([path.len()]).collect();
    ends[ends.len().saturating_sub(FRAMES)..].to_vec()
}

/// Text in a label: what Mermaid would read as its own is written as an entity.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | ';' | '\\' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// What each call path cost before and now.
fn both<'r>(
    base: &'r Results,
    new: &'r Results,
    name: &str,
    width: Width,
) -> BTreeMap<&'r str, [u64; 2]> {
    let mut both: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (side, results) in [base, new].into_iter().enumerate() {
        let paths = results.workload(name).map_or(&[][..], |w| &w.paths);
        for path in paths {
            both.entry(&path.path).or_default()[side] = cost(path, width);
        }
    }
    both
}

/// Draws the call paths of a workload by calls, words or reductions, with a colour for what has become more and one for
/// what has become less.
///
/// # Errors
/// One line: the workload has no call paths, or `out` refuses a write.
pub fn draw_difference<W: Write>(
    base: &Results,
    new: &Results,
    name: &str,
    width: Width,
    out: W,
) -> Result<(), String> {
    let lines = both(base, new, name, width).into_iter();
    let lines = lines.filter(|(_, costs)| *costs != [0, 0]);
    let lines = lines.map(|(path, [base, new])| format!("{path} {base} {new}"));
    let drawing = Drawing {
        shape: Shape::new(width),
        title: name.to_owned(),
        subtitle: format!("{}: {}", width.title(), crate::flamegraph::LEGEND),
        min_width: 0.1,
    };
    paint_difference(lines.collect(), &drawing, out)
}

fn cost(path: &PathCount, width: Width) -> u64 {
    match width {
        Width::Calls => path.calls,
        Width::Reductions => path.reductions,
        Width::Words | Width::Time | Width::Wait => path.words,
    }
}
