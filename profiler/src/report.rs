//! Prints and writes the command's output: messages on standard error, data on standard output or in files.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use beamline_formats::profile::{AtomicFile, Profile, Scope, TakenOut, View};
use beamline_reports::apart::below_emulators;
use beamline_reports::flamegraph::{self, Drawing, Shape, Width};
use beamline_reports::json;
use beamline_reports::table::{By, DirtyWaits, Sort, Tables};

/// Frames of a flame graph that are less than this part of it, in percent, are left out.
const MIN_WIDTH: f64 = 0.01;

/// Prints one line of error.
pub fn error(message: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "beamline: {message}");
}

/// Prints one line of progress, where somebody is watching.
pub fn progress(message: &str) {
    if io::stderr().is_terminal() {
        error(message);
    }
}

/// Prints text on standard output; a reader that went away is no error.
///
/// # Errors
/// One line when standard output refuses the text otherwise.
pub fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {e}")),
        _ => Ok(()),
    }
}

/// Writes to standard output; a reader that went away is no error.
pub(crate) fn stream(to: impl FnOnce(&mut dyn Write) -> Result<(), String>) -> Result<(), String> {
    let done = stream_to(io::stdout().lock(), to);
    done.map_err(|e| format!("standard output: {e}"))?
}

/// As [`stream`], to any output. The outer error is one of writing.
fn stream_to(
    out: impl Write,
    to: impl FnOnce(&mut dyn Write) -> Result<(), String>,
) -> io::Result<Result<(), String>> {
    let mut out = Output::new(BufWriter::new(out));
    let done = to(&mut out).and_then(|()| text(out.flush()));
    match out.error {
        Some(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Ok(())),
        Some(e) => Err(e),
        None => Ok(done),
    }
}

/// An output that remembers its error, so that an error of writing can be told from one in what was to be written.
struct Output<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W: Write> Output<W> {
    fn new(out: W) -> Output<W> {
        Output { out, error: None }
    }

    fn told<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.error.get_or_insert(error);
            kind.into()
        })
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.out.write(bytes);
        self.told(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.out.flush();
        self.told(result)
    }
}

/// What a report shows and where it goes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The flame graph's title; none is the emulator's command line.
    pub title: Option<String>,
    /// The functions of the tables; none: the profile says so.
    pub scope: Option<Scope>,
    /// The most rows of a table; none: those for which a terminal has room, or all.
    pub top: Option<Top>,
    /// The order of the table's rows; none: [`Sort::of_view`].
    pub sort: Option<Sort>,
    /// One table or one for each process; none: one.
    pub by: Option<By>,
    /// Whether what tracing took is taken out of own times.
    pub corrected: bool,
    /// Where the flame graph goes.
    pub flamegraph: Option<PathBuf>,
    /// What its widths show; none is what the profile measured.
    pub width: Option<Width>,
    /// Where the JSON goes.
    pub json: Option<PathBuf>,
    /// Where the profile itself goes.
    pub output: Option<PathBuf>,
    /// What samples it was made of, in a few words; none of counted calls.
    pub samples: Option<String>,
}

/// How many rows a table has at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top {
    /// All of them.
    All,
    /// How many.
    Rows(usize),
}

impl Top {
    /// The number of rows, if there is one.
    fn limit(self) -> Option<usize> {
        match self {
            Top::All => None,
            Top::Rows(rows) => Some(rows),
        }
    }
}

/// Rows of a table on a terminal.
const ROWS: usize = 30;

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

impl FromStr for Top {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("all", _) => Ok(Top::All),
            (_, Ok(rows)) if rows > 0 => Ok(Top::Rows(rows)),
            _ => Err(format!(
                "'{text}' is not a number of rows; use 1 or more, or all"
            )),
        }
    }
}

/// The columns of the terminal that standard output is: `COLUMNS` if it is set, else what the terminal says.
#[must_use]
pub(crate) fn columns() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let set = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let size = || {
        let size = rustix::termios::tcgetwinsize(&out).ok();
        size.map(|size| usize::from(size.ws_col))
    };
    let columns = set.filter(|columns| *columns > 0).or_else(size);
    Some(columns.filter(|columns| *columns > 0).unwrap_or(COLUMNS))
}

/// A view of a table for standard output, with `rows` rows unless `--top` says how many.
pub(crate) fn view_of(top: Option<Top>, rows: usize) -> View {
    View {
        top: top.map_or(Some(rows), Top::limit),
        columns: columns(),
        ..View::default()
    }
}

impl Options {
    /// Whether functions are asked for as a table, also where something else is shown by itself.
    pub(crate) fn is_table(&self) -> bool {
        self.sort.is_some() || self.by.is_some()
    }

    /// The tables of a profile.
    pub(crate) fn tables<'p>(&self, profile: &'p Profile) -> Tables<'p> {
        let view = self.view(profile);
        let sort = self.sort.unwrap_or_else(|| Sort::of_view(profile, &view));
        Tables {
            profile,
            by: self.by.unwrap_or_default(),
            sort,
            view,
        }
    }

    /// What the tables of a profile show. Where nothing of the program was called, that is said.
    pub(crate) fn view(&self, profile: &Profile) -> View {
        let columns = columns();
        let scope = self.scope.clone().unwrap_or_else(|| {
            let (scope, has_none) = Scope::of_profile(profile);
            if has_none {
                error("no function of the program's own modules was called: the tables have all functions");
            }
            scope
        });
        let top = self.top.map_or_else(|| columns.map(|_| ROWS), Top::limit);
        View {
            scope,
            top,
            columns,
        }
    }
}

/// Saves the profile, prints the table and writes the other files asked for.
///
/// # Errors
/// One line for each thing that could not be written; the others are.
pub fn report(mut profile: Profile, options: &Options) -> Result<(), Vec<String>> {
    // What is saved has what tracing took beside the times.
    let mut errors: Vec<String> = save(&profile, options).into_iter().collect();
    if !options.corrected {
        profile.make_raw();
    }
    let profile = &profile;
    let tables = options.tables(profile);
    let view = tables.view.clone();
    let waits = DirtyWaits { profile, view };
    let taken_out = TakenOut(profile);
    errors.extend(print(&format!("{tables}{waits}{taken_out}")).err());
    if let Some(path) = &options.json {
        errors.extend(write(path, |out| text(json::write(profile, out))).err());
    }
    errors.extend(draw_file(profile, options));
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Writes the flame graph and the profile itself, if they are asked for; gives one line for each that could not be written.
pub(crate) fn write_files(profile: &Profile, options: &Options) -> Vec<String> {
    let errors = [draw_file(profile, options), save(profile, options)];
    errors.into_iter().flatten().collect()
}

/// Writes the flame graph, if it is asked for; gives the error, if there is one.
fn draw_file(profile: &Profile, options: &Options) -> Option<String> {
    let path = options.flamegraph.as_ref()?;
    write(path, |out| draw(profile, options, out)).err()
}

/// Writes the profile itself, if that is asked for; gives the error, if there is one.
fn save(profile: &Profile, options: &Options) -> Option<String> {
    let path = options.output.as_ref()?;
    write_binary(path, "a profile", |out| {
        text(profile.write(out).map(|_| ()))
    })
    .err()
}

fn text(result: io::Result<()>) -> Result<(), String> {
    result.map_err(|e| e.to_string())
}

/// Whether two names are of one file.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// Where an output goes.
enum To {
    /// To standard output.
    Standard,
    /// To standard error.
    Error,
    /// To what is open already, or is no file: it is written as it is.
    Opened(File),
    /// To a file that appears when it is whole.
    File,
}

impl To {
    /// Where this name leads. `-` is standard output. A name of a descriptor of this process (`/dev/stdout`, `/dev/fd/3`,
    /// `/proc/self/fd/3`) is what the descriptor is open to, also where that is a file.
    fn of(path: &Path) -> io::Result<To> {
        if path == Path::new("-") {
            return Ok(To::Standard);
        }
        match descriptor(path) {
            Some(1) => return Ok(To::Standard),
            Some(2) => return Ok(To::Error),
            Some(_) => return Ok(To::Opened(File::options().append(true).open(path)?)),
            None => {}
        }
        if path.exists() && !path.is_file() {
            return Ok(To::Opened(File::options().write(true).open(path)?));
        }
        Ok(To::File)
    }

    fn is_terminal(&self) -> bool {
        match self {
            To::Standard => io::stdout().is_terminal(),
            To::Error => io::stderr().is_terminal(),
            To::Opened(file) => file.is_terminal(),
            To::File => false,
        }
    }
}

/// More links are not followed, as the system does.
const LINKS_MAX: usize = 40;

/// The descriptor of this process that a name leads to.
pub(crate) fn descriptor(path: &Path) -> Option<u32> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let folder = path.parent()?.canonicalize().ok()?;
        let own = Path::new("/proc/self").canonicalize().ok()?;
        if folder == own.join("fd") {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = folder.join(std::fs::read_link(&path).ok()?);
    }
    None
}

/// Writes what serialises as JSON.
///
/// # Errors
/// One line: the file, and what the system says.
pub(crate) fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), String> {
    write(path, |out| {
        serde_json::to_writer_pretty(&mut *out, value).map_err(|e| e.to_string())?;
        writeln!(out).map_err(|e| e.to_string())
    })
}

/// Writes a file that appears when it is whole; a device or a pipe is written as it is. `-` is standard output.
pub(crate) fn write(
    path: &Path,
    to: impl FnOnce(&mut dyn Write) -> Result<(), String>,
) -> Result<(), String> {
    let fail = |e: io::Error| format!("{}: {e}", path.display());
    let file = match To::of(path).map_err(fail)? {
        To::Standard => return stream(to),
        To::Error => return stream_to(io::stderr().lock(), to).map_err(fail)?,
        To::Opened(file) => return stream_to(file, to).map_err(fail)?,
        To::File => AtomicFile::create(path).map_err(fail)?,
    };
    let mut out = Output::new(file);
    let done = to(&mut out);
    if let Some(e) = out.error {
        return Err(fail(e));
    }
    done?;
    out.out.commit().map_err(fail)?;
    progress(&format!("wrote {}", path.display()));
    Ok(())
}

/// As [`write()`], for what is no text, and so not for a terminal. `what` says what it is.
pub(crate) fn write_binary(
    path: &Path,
    what: &str,
    to: impl FnOnce(&mut dyn Write) -> Result<(), String>,
) -> Result<(), String> {
    let is_terminal = To::of(path).is_ok_and(|to| to.is_terminal());
    if is_terminal {
        return Err(format!(
            "{}: {what} is no text for a terminal: give a file",
            path.display()
        ));
    }
    write(path, to)
}

/// What the widths of a flame graph show unless it is said.
pub(crate) fn width(profile: &Profile) -> Width {
    profile.kind().map_or(Width::Time, Width::of)
}

/// Draws the flame graph.
pub(crate) fn draw(
    profile: &Profile,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), String> {
    let by = options.by.unwrap_or_default();
    let shape = Shape {
        by: match by {
            By::Total | By::Node => flamegraph::By::None,
            By::Process => flamegraph::By::Process,
        },
        ..Shape::new(options.width.unwrap_or(width(profile)))
    };
    let apart;
    let profile = match by {
        By::Node => {
            apart = below_emulators(profile.clone())?;
            &apart
        }
        By::Total | By::Process => profile,
    };
    let mut drawing = drawing(profile, shape, options.title.clone())?;
    of_samples(&mut drawing, options.samples.as_deref());
    flamegraph::draw(profile, &drawing, out)
}

/// Has the subtitle of a drawing begin with the samples that it was made of, not with a kind of counts.
pub(crate) fn of_samples(drawing: &mut Drawing, samples: Option<&str>) {
    if let (Some(samples), Some((_, rest))) = (samples, drawing.subtitle.split_once(", ")) {
        drawing.subtitle = format!("{samples}, {rest}");
    }
}

/// A drawing of a profile, with its title: without one, the command.
pub(crate) fn drawing(
    profile: &Profile,
    shape: Shape,
    title: Option<String>,
) -> Result<Drawing, String> {
    let run = profile.runs.first().ok_or("the profile has no run")?;
    let processes = profile.runs.iter().map(|run| run.processes).sum::<u64>();
    let longest = profile.runs.iter().map(|run| run.run_ns).max().unwrap_or(0);
    let mut title = title.unwrap_or_else(|| run.command.join(" "));
    // A longer title leaves the picture at both sides.
    if let Some((at, _)) = title.char_indices().nth(100) {
        title.replace_range(at.., "…");
    }
    let width = match shape.width == width(profile) {
        true => String::new(),
        false => format!(", width: {}", shape.width.title().to_lowercase()),
    };
    Ok(Drawing {
        shape,
        title,
        subtitle: format!(
            "{}{width}, OTP {}, {}.{:03} s, {processes} processes",
            run.kind.name(),
            run.otp,
            longest / 1_000_000_000,
            longest / 1_000_000 % 1_000,
        ),
        min_width: MIN_WIDTH,
    })
}
