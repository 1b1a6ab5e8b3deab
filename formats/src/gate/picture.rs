//! Draws a differential flame graph of a workload, from the call paths of two results.

use std::collections::BTreeMap;
use std::io::Write;

use super::results::{PathCount, Results};
use crate::flamegraph::{Drawing, Shape, Width, paint_difference};

/// Draws the call paths of a workload: calls where `width` says so, else words; with the colour of what has become
/// more (red) and less (blue).
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
    let mut both: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (side, results) in [base, new].into_iter().enumerate() {
        let paths = results.workload(name).map_or(&[][..], |w| &w.paths);
        for path in paths {
            both.entry(&path.path).or_default()[side] = cost(path, width);
        }
    }
    let lines = both.into_iter().filter(|(_, costs)| *costs != [0, 0]);
    let lines = lines.map(|(path, [base, new])| format!("{path} {base} {new}"));
    let drawing = Drawing {
        shape: Shape::new(width),
        title: name.to_owned(),
        subtitle: format!(
            "{}: red is more than in the baseline, blue is less",
            width.title()
        ),
        min_width: 0.1,
    };
    paint_difference(lines.collect(), &drawing, out)
}

fn cost(path: &PathCount, width: Width) -> u64 {
    match width {
        Width::Calls => path.calls,
        _ => path.words,
    }
}
