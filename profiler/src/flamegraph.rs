//! `beamline flamegraph` draws call paths, and `beamline diff` compares two runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::profile::{Pattern, Profile};
use beamline_formats::ring::Losses;
use beamline_reports::choice::Choice;
use beamline_reports::events::{Changes, MEANWHILE_NEEDS, Sampled, meanwhile, profile_and_losses};
use beamline_reports::flamegraph::{
    self, By, Chart, Difference, Drawing, LEGEND, Shape, Threshold, Width,
};
use clap::Args;

use crate::input::{self, Input};
use crate::nodes;
use crate::options::named;
use crate::report::{self, Top};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Draw where the time of a recording went, and where processes waited:
    beamline flamegraph run.ring -o time.svg
    beamline flamegraph run.ring --width wait --by name -o wait.svg
  Draw what the servers did while their callers waited (needs a recording with messages):
    beamline record --events calls,returns,messages,processes,scheduling,gc -o run.stream -- mix test
    beamline flamegraph run.stream --meanwhile -o waits.svg
  Draw which call paths allocate (needs a recording with words):
    beamline record --stream --events words,processes,gc -o run.stream -- mix test
    beamline flamegraph run.stream --width words -o words.svg
  Draw who calls the most expensive functions, and hide what two modules call:
    beamline flamegraph run.ring --reverse --hide-below ets --hide-below gen_server:call -o who.svg
  Draw the calls of one process in order of time:
    beamline flamegraph run.ring --chart --only '<0.95.0>' -o chart.svg
";

pub(crate) const DIFF_EXAMPLES: &str = "\
EXAMPLES:
  Compare the runs before and after a change, as tables and as a flame graph (red is more, blue is less):
    beamline record --stream -o before.stream -- mix test
    beamline record --stream -o after.stream -- mix test
    beamline diff before.stream after.stream -o diff.svg
  Tell changes from chance, with five runs of each side:
    beamline diff a1.stream b1.stream --before a[2-5].stream --after b[2-5].stream
";

/// The options that choose frames.
#[derive(Debug, Args)]
struct ShapeArgs {
    /// Choose what the width of a frame shows [default: what the profile measured; for a recording, time].
    #[arg(long, value_parser = named(Width::ALL, Width::name, Width::about))]
    width: Option<Width>,
    /// Choose what the frames are.
    #[arg(long, default_value = "none", value_parser = named(By::ALL, By::name, By::about))]
    by: By,
    /// Invert the graph: put the function that costs at the bottom, and its callers above it.
    #[arg(long)]
    reverse: bool,
    /// Begin at these functions: M:F/A, M:F or M, or as Elixir writes it Mod.fun/1, Mod.fun, Mod or Mod.*; _ or * stand for any.
    /// Or show one process: give its pid or its registered name.
    #[arg(long, value_name = "PATTERN")]
    only: Option<Choice>,
    /// Hide what these functions call. Can be repeated.
    #[arg(long, value_name = "PATTERN")]
    hide_below: Vec<Pattern>,
    /// Leave out frames that are narrower than this percentage of the graph.
    #[arg(long, value_name = "PERCENT", default_value = "0.01", value_parser = percent)]
    min_width: f64,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    let number = number.filter(|number| (0.0..100.0).contains(number));
    number.ok_or_else(|| format!("'{text}' is not 0 to 100"))
}

/// A change in percent, which can be more than the whole.
fn change(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    let number = number.filter(|number| (0.0..1e9).contains(number));
    number.ok_or_else(|| format!("'{text}' is no percentage"))
}

impl ShapeArgs {
    fn shape(&self, width: Width) -> Shape {
        Shape {
            width: self.width.unwrap_or(width),
            by: self.by,
            is_reversed: self.reverse,
            only: self.only.clone(),
            hide_below: self.hide_below.clone(),
        }
    }
}

/// The arguments of `beamline flamegraph`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Draw a flame chart: the calls of a recording in order of time, one process beside the other.
    #[arg(long)]
    chart: bool,
    /// Draw the time of waiting, and above each function that waited what the process did whose message ended the wait, up to
    /// when it sent that message. Needs a recording with messages.
    #[arg(long, conflicts_with_all = ["chart", "width"])]
    meanwhile: bool,
    /// Write the flame graph to this file.
    #[arg(short, long, value_name = "FILE.svg")]
    output: PathBuf,
    /// A recording with calls and returns, or a profile file with call paths, or a folder with the recordings of several nodes:
    /// each node has a frame, with its call paths on it.
    file: PathBuf,
}

/// The arguments of `beamline diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    #[command(flatten)]
    shape: ShapeArgs,
    /// Draw a differential flame graph to this file.
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// Count only changes of at least this percentage of what it was [default: 25 of times, 1 of counts]. Of samples, their error
    /// bars say which changes count.
    #[arg(long, value_name = "PERCENT", value_parser = change)]
    threshold: Option<f64>,
    /// Count only changes of at least this percentage of the whole run [default: 1 of times, 0.1 of counts].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    share: Option<f64>,
    /// List at most this many functions in each table [default: 15].
    #[arg(long, value_name = "N|all")]
    top: Option<Top>,
    /// More files of the older version. With five on each side, a change also has to be more than chance (the rank test of
    /// Mann and Whitney, p < 0.01).
    #[arg(long = "before", value_name = "FILE", num_args = 1..)]
    more_before: Vec<PathBuf>,
    /// More files of the newer version.
    #[arg(long = "after", value_name = "FILE", num_args = 1..)]
    more_after: Vec<PathBuf>,
    /// Print JSON: the calls, own time and total time (in nanoseconds) or words of each function.
    #[arg(long)]
    json: bool,
    /// The older recording or profile file, or a folder of recordings: their sums are compared.
    before: PathBuf,
    /// The newer recording or profile file, or folder.
    after: PathBuf,
}

/// Reads the call paths of a recording or of a profile file, for pictures of this width. Also returns what is missing
/// in a recording.
fn profile(path: &Path, width: Option<Width>) -> Result<Read, String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let recording = match input::open(path)? {
        Input::Profile(profile) => return Ok((profile, None, None)),
        Input::Recording(recording) => *recording,
    };
    input::check(&recording, width).map_err(|e| fail(&e))?;
    if let Some(sampling) = recording.sampling() {
        let (sampled, profile) = Sampled::of(&recording, sampling).map_err(|e| fail(&e))?;
        let losses = sampled.losses.clone();
        return Ok((profile, Some(losses), Some(sampled)));
    }
    let (profile, losses) = profile_and_losses(&recording).map_err(|e| fail(&e))?;
    Ok((profile, Some(losses), None))
}

/// Reads the call paths of all recordings of a folder: below a frame for each node, or merged. What is missing in one is said.
fn of_folder(folder: &Path, width: Option<Width>, are_apart: bool) -> Result<Profile, String> {
    let cluster = nodes::cluster(folder)?;
    let mut profiles = Vec::new();
    for member in cluster.members() {
        let (profile, losses, samples) = profile(&member.file, width)?;
        let file = member.file.display();
        if samples.is_some() {
            return Err(format!("{file}: samples are read alone: name this file"));
        }
        if let Some(lost) = losses.as_ref().and_then(Losses::short) {
            report::error(&format!("{file}: {lost}"));
        }
        profiles.push(profile);
    }
    match are_apart {
        true => cluster.apart(profiles),
        false => Profile::merge(profiles),
    }
}

/// Reads the call paths of waiting, with what others did meanwhile.
fn opened(path: &Path) -> Result<Read, String> {
    let what = "a flame graph of what others did meanwhile";
    let recording = input::recording(path, what)?;
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if let Some(line) = recording.lacks(what, &MEANWHILE_NEEDS) {
        return Err(fail(&line));
    }
    let (profile, losses) = meanwhile(&recording).map_err(|e| fail(&e))?;
    Ok((profile, Some(losses), None))
}

/// Call paths, what is missing in them, and of samples what they tell.
type Read = (Profile, Option<Losses>, Option<Sampled>);

/// A drawing whose subtitle says what was lost.
fn drawing(
    args: &ShapeArgs,
    profile: &Profile,
    losses: Option<&Losses>,
    shape: Shape,
    title: Option<String>,
) -> Result<Drawing, String> {
    let mut drawing = report::drawing(profile, shape, title)?;
    drawing.min_width = args.min_width;
    if let Some(lost) = losses.and_then(Losses::short) {
        drawing.subtitle.push_str("; ");
        drawing.subtitle.push_str(&lost);
    }
    Ok(drawing)
}

/// Draws a flame graph.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let fail = |error: String| format!("{}: {error}", args.file.display());
    input::keep(&[&args.file], [args.output.as_path()])?;
    if args.chart {
        return chart(args);
    }
    let (profile, losses, samples) = match args.meanwhile {
        true => opened(&args.file)?,
        false if args.file.is_dir() => (of_folder(&args.file, args.shape.width, true)?, None, None),
        false => profile(&args.file, args.shape.width)?,
    };
    let width = match args.meanwhile {
        true => Width::Wait,
        false => report::width(&profile),
    };
    let shape = args.shape.shape(width);
    let mut drawing = drawing(&args.shape, &profile, losses.as_ref(), shape, None)?;
    let samples = samples.as_ref().map(Sampled::short);
    report::of_samples(&mut drawing, samples.as_deref());
    report::write(&args.output, |out| {
        flamegraph::draw(&profile, &drawing, out).map_err(fail)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Draws a flame chart.
fn chart(args: &Arguments) -> Result<ExitCode, String> {
    let fail = |error: String| format!("{}: {error}", args.file.display());
    let recording = match input::open(&args.file)? {
        Input::Recording(recording) => *recording,
        Input::Profile(_) => input::recording(&args.file, "a flame chart")?,
    };
    input::check(&recording, args.shape.width).map_err(fail)?;
    let shape = args.shape.shape(Width::Time);
    let chart = Chart::read(&recording, &shape).map_err(fail)?;
    let drawing = drawing(&args.shape, &chart.run, Some(&chart.losses), shape, None)?;
    report::write(&args.output, |out| chart.draw(&drawing, out).map_err(fail))?;
    Ok(ExitCode::SUCCESS)
}

fn lines(losses: &Losses) -> Vec<String> {
    losses.to_string().lines().map(str::to_owned).collect()
}

/// The files of one side, their profiles and what is missing in them.
struct Side {
    profiles: Vec<Profile>,
    losses: Vec<(PathBuf, Losses)>,
    /// Of each file that has samples, these.
    samples: Vec<Sampled>,
}

impl Side {
    fn read(first: &Path, more: &[PathBuf], width: Option<Width>) -> Result<Side, String> {
        let mut side = Side {
            profiles: Vec::new(),
            losses: Vec::new(),
            samples: Vec::new(),
        };
        for path in std::iter::once(first).chain(more.iter().map(PathBuf::as_path)) {
            if path.is_dir() {
                side.profiles.push(of_folder(path, width, false)?);
                continue;
            }
            let (profile, losses, samples) = profile(path, width)?;
            side.samples.extend(samples);
            side.profiles.push(profile);
            side.losses
                .extend(losses.map(|losses| (path.to_owned(), losses)));
        }
        Ok(side)
    }
}

/// Compares the runs of two versions.
pub(crate) fn diff(args: &DiffArguments) -> Result<ExitCode, String> {
    let files = [&args.before, &args.after].into_iter();
    let files = files.chain(&args.more_before).chain(&args.more_after);
    let files: Vec<&Path> = files.map(PathBuf::as_path).collect();
    input::keep(&files, args.output.as_deref())?;
    let width = args.shape.width;
    let before = Side::read(&args.before, &args.more_before, width)?;
    let after = Side::read(&args.after, &args.more_after, width)?;
    let shown = after.profiles.first().map_or(Width::Time, report::width);
    let shape = args.shape.shape(shown);
    let samples = before.samples.len() + after.samples.len();
    if samples > 0 {
        if samples < before.profiles.len() + after.profiles.len() {
            return Err("samples and counted calls cannot be compared".into());
        }
        return diff_of_samples(args, [&before, &after], shape);
    }
    let threshold = |width| Threshold::new(width, args.threshold, args.share);
    let sides = [&before.profiles[..], &after.profiles[..]];
    let difference = Difference::of(sides, Some(shape.width), threshold)?;
    let difference = difference.with_top(args.top.map(|top| match top {
        Top::All => usize::MAX,
        Top::Rows(rows) => rows,
    }));
    let difference = difference.with_columns(report::columns());
    if let Some(path) = &args.output {
        draw_diff(args, [&before, &after], shape, path)?;
    }
    if args.json {
        report::stream(|out| difference.write_json(out).map_err(|e| e.to_string()))?;
    } else {
        let mut text = String::new();
        for (path, losses) in before.losses.iter().chain(&after.losses) {
            for line in lines(losses) {
                text.push_str(&format!("{}: {line}\n", path.display()));
            }
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        report::print(&format!("{text}{gap}{difference}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The rows of a table of samples, unless `--top` says how many.
const ROWS: usize = 15;

/// Compares the samples of two versions.
fn diff_of_samples(
    args: &DiffArguments,
    sides: [&Side; 2],
    shape: Shape,
) -> Result<ExitCode, String> {
    if args.threshold.is_some() || args.share.is_some() {
        return Err(
            "error bars say which differences of samples count: leave out --threshold and --share"
                .into(),
        );
    }
    let changes = Changes::of(sides.map(|side| &side.samples[..]));
    if let Some(path) = &args.output {
        draw_diff(args, sides, shape, path)?;
    }
    if args.json {
        let text = serde_json::to_string_pretty(&changes).map_err(|e| e.to_string())?;
        report::print(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let view = report::view_of(args.top, ROWS);
    report::print(&changes.shown(&view).to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Draws the difference between the typical run of each side.
fn draw_diff(
    args: &DiffArguments,
    [before, after]: [&Side; 2],
    shape: Shape,
    path: &Path,
) -> Result<(), String> {
    let width = shape.width;
    let typical = |side: &Side| flamegraph::typical(&side.profiles, width).cloned();
    let (Some(old), Some(new)) = (typical(before), typical(after)) else {
        return Ok(());
    };
    let files = format!("{} → {}", args.before.display(), args.after.display());
    let losses = after.losses.first().map(|(_, losses)| losses);
    let mut drawing = drawing(&args.shape, &new, losses, shape, Some(files))?;
    drawing.subtitle.push_str("; ");
    drawing.subtitle.push_str(LEGEND);
    let threshold = Threshold::new(width, args.threshold, args.share);
    report::write(path, |out| {
        flamegraph::draw_difference(&old, &new, &drawing, threshold, out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_percent() {
        for (text, expect) in [
            ("0.1", Some(0.1)),
            ("5%", Some(5.0)),
            ("0", Some(0.0)),
            ("100", None),
            ("-1", None),
            ("NaN", None),
            ("x", None),
        ] {
            assert_eq!(percent(text).ok(), expect, "{text}");
        }
    }
}
