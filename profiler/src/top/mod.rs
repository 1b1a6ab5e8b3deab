//! `beamline top` shows where the time of an emulator goes, as it goes: functions, processes and schedulers of the last seconds.
//! With `--once` it prints them.
//!
//! [`model`] has the samples and makes tables of them, [`screen`] makes lines of those, and this file has the terminal.

mod model;
mod screen;

use std::cell::RefCell;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beamline_formats::ring::monotonic_ns;
use beamline_sampler::sampler::Sampler;
use beamline_settings::chance;
use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as Drawn, Text};
use ratatui::{DefaultTerminal, Frame};
use serde::Serialize;

use crate::report;
use crate::sample::{self, Found, Looking, On, Output};
use crate::units::span;
use model::{Model, View};
use screen::{COLUMNS, Line, LineLook, Screen, Table};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Watch where the time of a running node goes:
    beamline top my_node
  What were the dearest functions of the last two seconds, for a script?
    beamline top my_node --once --json | jq -r '.functions[:5][] | .name'
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of the emulator's process, or the name of its node or release.
    #[arg(value_name = "PID|NAME", required_unless_present = "command")]
    target: Option<String>,
    /// Run the command on this [default: otp], or refuse a process that runs on another one.
    #[arg(long, value_enum)]
    on: Option<On>,
    #[command(flatten)]
    looking: Looking,
    /// Show the samples that are not older than this.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "10s")]
    window: Duration,
    /// Sample for --duration, print the result, and end.
    #[arg(long)]
    once: bool,
    /// Print JSON.
    #[arg(long, requires = "once")]
    json: bool,
    /// With --once, sample for this long.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "2s", requires = "once")]
    duration: Duration,
    /// Start this command on the `erl` that it would have without Beamline, or on Beamline's runtime, without its input and
    /// output, and watch the first emulator that it starts. It ends with the view.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "target")]
    command: Vec<String>,
}

/// What is watched.
#[derive(Serialize)]
struct Watched {
    pid: u32,
    name: Option<String>,
    otp: String,
    how: &'static str,
    rate_hz: u64,
}

impl Watched {
    fn of(sampler: &Sampler) -> Watched {
        let emulator = &sampler.target().emulator;
        Watched {
            pid: emulator.pid,
            name: emulator.name.clone(),
            otp: emulator.version(),
            how: sampler.how.means(),
            rate_hz: sampler.rate_hz,
        }
    }

    fn text(&self) -> String {
        let name = self.name.as_deref().unwrap_or("emulator");
        format!(
            "{name}, process {}, OTP {}, {} Hz ({})",
            self.pid, self.otp, self.rate_hz, self.how
        )
    }
}

/// What is printed for scripts.
#[derive(Serialize)]
struct Printed<'p> {
    #[serde(flatten)]
    watched: &'p Watched,
    #[serde(flatten)]
    view: &'p View,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let has_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
    if !args.once && !has_terminal {
        return Err("a live view needs a terminal: use --once, or beamline sample".into());
    }
    let stop = sample::interrupted()?;
    let target = args.target.as_deref();
    let Found { child, target } =
        sample::find(target, &args.command, args.on, Output::Closed, &stop)?;
    let mut sampler = args.looking.start(target)?;
    let watched = Watched::of(&sampler);
    let window = match args.once {
        true => args.duration,
        false => args.window,
    };
    let period_ns = 1_000_000_000 / sampler.rate_hz.max(1);
    let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
    let model = Model::new(window_ns, period_ns, monotonic_ns(), sampler.threads());
    let view = match args.once {
        true => once(&mut sampler, model, window, &stop)?,
        false => live(&mut sampler, model, &watched, &stop)?,
    };
    match view {
        Some(view) if args.json => {
            let (watched, view) = (&watched, &view);
            let printed = serde_json::to_string_pretty(&Printed { watched, view });
            let printed = printed.map_err(|e| e.to_string())?;
            report::print(&format!("{printed}\n"))?;
        }
        Some(view) => report::print(&text(&watched.text(), &view))?,
        None => {}
    }
    // A command of ours ends here.
    drop(child);
    Ok(ExitCode::SUCCESS)
}

/// Rows of each table that are printed.
const ROWS: usize = 20;

/// All tables, as text.
fn text(head: &str, view: &View) -> String {
    let mut screen = Screen::default();
    let mut lines = vec![head.to_owned(), screen::numbers(view)];
    for table in Table::ALL {
        screen.table = table;
        let (heading, rows) = screen.rows(view);
        lines.extend([String::new(), heading]);
        lines.extend(rows.into_iter().take(ROWS));
    }
    let cut = |line: String| line.chars().take(COLUMNS).collect::<String>();
    let lines = lines.into_iter().map(cut);
    let lines: Vec<String> = lines.map(|line| format!("{}\n", line.trim_end())).collect();
    lines.concat()
}

/// Looks for a time.
fn once(
    sampler: &mut Sampler,
    mut model: Model,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Option<View>, String> {
    let begin = chance::now();
    let goes_on = || begin.elapsed() < time && !stop.load(Ordering::Relaxed);
    let ran = sampler.run(goes_on, |told| {
        model.tell(told);
        Ok::<(), io::Error>(())
    });
    ran.map_err(|e| e.to_string())?;
    Ok(Some(model.view(monotonic_ns())))
}

/// The terminal, which is as it was when this value ends. Where the program panics, a hook sees to that.
struct Terminal(DefaultTerminal);

impl Terminal {
    fn open() -> Result<Terminal, String> {
        let terminal = ratatui::try_init().map_err(|e| format!("the terminal: {e}"))?;
        Ok(Terminal(terminal))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// The time from one view to the next.
const REFRESH: Duration = Duration::from_millis(500);

/// What is on the terminal.
struct Live {
    terminal: Terminal,
    screen: Screen,
    view: View,
    head: String,
    drawn: Option<Instant>,
    has_quit: bool,
}

impl Live {
    /// Takes keys, and draws what has changed; whether it goes on.
    fn turn(&mut self, model: &mut Model) -> io::Result<bool> {
        let mut has_changed = false;
        while event::poll(Duration::ZERO)? {
            has_changed = true;
            if let Event::Key(key) = event::read()?
                && key.kind == KeyEventKind::Press
            {
                self.has_quit |= self.screen.key(key, &self.view, model);
            }
        }
        let is_due = self.drawn.is_none_or(|at| at.elapsed() >= REFRESH);
        if is_due && !self.screen.is_paused {
            self.drawn = Some(chance::now());
            self.view = model.view(monotonic_ns());
            self.screen.follow(model);
            has_changed = true;
        }
        if has_changed {
            let (screen, view, head) = (&mut self.screen, &self.view, &self.head);
            self.terminal
                .0
                .draw(|frame| draw(frame, screen, head, view))?;
        }
        Ok(!self.has_quit)
    }
}

/// Draws the whole screen.
fn draw(frame: &mut Frame<'_>, screen: &mut Screen, head: &str, view: &View) {
    let area = frame.area();
    let size = (usize::from(area.width), usize::from(area.height));
    let lines = screen.lines(head, view, size);
    let lines = lines.into_iter().map(|Line { text, look }| {
        Drawn::styled(
            text,
            match look {
                LineLook::Plain => Style::new(),
                LineLook::Heading => Style::new().add_modifier(Modifier::BOLD),
                LineLook::Selected => Style::new().add_modifier(Modifier::REVERSED),
            },
        )
    });
    frame.render_widget(Text::from_iter(lines), area);
}

/// Shows until the user goes; what was seen last, if it was the emulator that ended.
fn live(
    sampler: &mut Sampler,
    mut model: Model,
    watched: &Watched,
    stop: &AtomicBool,
) -> Result<Option<View>, String> {
    let view = model.view(monotonic_ns());
    let live = RefCell::new(Live {
        terminal: Terminal::open()?,
        screen: Screen::default(),
        view,
        head: watched.text(),
        drawn: None,
        has_quit: false,
    });
    let model = RefCell::new(model);
    let mut failed = None;
    let goes_on = || {
        let turned = live.borrow_mut().turn(&mut model.borrow_mut());
        let goes_on = turned.unwrap_or_else(|error| {
            failed = Some(error);
            false
        });
        goes_on && !stop.load(Ordering::Relaxed)
    };
    let ran = sampler.run(goes_on, |told| {
        if !live.borrow().screen.is_paused {
            model.borrow_mut().tell(told);
        }
        Ok::<(), io::Error>(())
    });
    let Live { view, has_quit, .. } = live.into_inner();
    ran.map_err(|e| e.to_string())?;
    if let Some(error) = failed {
        return Err(format!("the terminal: {error}"));
    }
    let has_ended = !has_quit && !stop.load(Ordering::Relaxed);
    Ok(has_ended.then_some(view))
}

#[cfg(test)]
mod tests;
