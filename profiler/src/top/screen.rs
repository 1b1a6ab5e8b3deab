//! The part of a view that fits a screen of some columns and lines, and the keys that move it.

use std::fmt::Write as _;

use beamline_formats::name;
use beamline_reports::events::Share;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::{Model, Neighbours, View};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Of functions.
    Functions,
    /// Of processes.
    Processes,
    /// Of threads, and what they did.
    Schedulers,
}

impl Table {
    /// All of them, in the order of the tabs.
    pub(super) const ALL: [Table; 3] = [Table::Functions, Table::Processes, Table::Schedulers];

    fn title(self) -> &'static str {
        match self {
            Table::Functions => "Functions",
            Table::Processes => "Processes",
            Table::Schedulers => "Schedulers",
        }
    }

    fn next(self) -> Table {
        let at = Table::ALL.iter().position(|of| *of == self).unwrap_or(0);
        Table::ALL[(at + 1) % Table::ALL.len()]
    }
}

/// The order of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Own,
    Total,
    Name,
}

impl Sort {
    fn next(self) -> Sort {
        match self {
            Sort::Own => Sort::Total,
            Sort::Total => Sort::Name,
            Sort::Name => Sort::Own,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Sort::Own => "own",
            Sort::Total => "total",
            Sort::Name => "name",
        }
    }
}

/// A function whose callers are shown.
#[derive(Clone, Debug, PartialEq)]
struct Drilled {
    number: u32,
    name: String,
    neighbours: Neighbours,
}

/// What the user has chosen.
pub(super) struct Screen {
    /// The table that is shown.
    pub(super) table: Table,
    sort: Sort,
    filter: String,
    is_typing: bool,
    selected: usize,
    drilled: Option<Drilled>,
    /// The view does not change.
    pub(super) is_paused: bool,
}

/// A line of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its text, no longer than the screen is wide.
    pub(super) text: String,
    /// How it stands out.
    pub(super) look: LineLook,
}

/// How a line stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineLook {
    /// Not.
    Plain,
    /// As a heading.
    Heading,
    /// It is selected.
    Selected,
}

/// The columns that a terminal of the old width has: a text without a screen is as wide.
pub(super) const COLUMNS: usize = 80;

fn share(share: Share) -> String {
    format!("{:>5.1} ±{:<4.1}", share.percent, share.plus_minus)
}

/// Lines above and below the rows.
const AROUND: usize = 5;

impl Default for Screen {
    fn default() -> Screen {
        Screen {
            table: Table::Functions,
            sort: Sort::Own,
            filter: String::new(),
            is_typing: false,
            selected: 0,
            drilled: None,
            is_paused: false,
        }
    }
}

impl Screen {
    /// Takes a key; whether the user goes.
    pub(super) fn key(&mut self, key: KeyEvent, view: &View, model: &Model) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control {
            return key.code == KeyCode::Char('c');
        }
        if self.is_typing {
            self.type_in(key.code);
            return false;
        }
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Tab => {
                self.table = self.table.next();
                self.selected = 0;
                self.drilled = None;
            }
            KeyCode::Down => self.selected += 1,
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Enter => self.drill(view, model),
            KeyCode::Esc if self.drilled.is_some() => self.drilled = None,
            KeyCode::Esc => self.filter.clear(),
            _ => {}
        }
        false
    }

    fn type_in(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(character) => self.filter.push(character),
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Esc => {
                self.filter.clear();
                self.is_typing = false;
            }
            KeyCode::Enter => self.is_typing = false,
            _ => {}
        }
        self.selected = 0;
    }

    fn drill(&mut self, view: &View, model: &Model) {
        if self.table != Table::Functions || self.drilled.is_some() {
            return;
        }
        let chosen = self.functions(view).get(self.selected).copied();
        self.drilled = chosen.map(|of| Drilled {
            number: of.number,
            name: of.name.clone(),
            neighbours: model.neighbours(of.number),
        });
    }

    /// What is shown has changed: so have callers.
    pub(super) fn follow(&mut self, model: &Model) {
        if let Some(drilled) = &mut self.drilled {
            drilled.neighbours = model.neighbours(drilled.number);
        }
    }

    fn is_shown(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.filter.to_lowercase())
    }

    fn functions<'v>(&self, view: &'v View) -> Vec<&'v super::model::Function> {
        let all = view.functions.iter();
        let mut shown: Vec<_> = all.filter(|of| self.is_shown(&of.name)).collect();
        match self.sort {
            Sort::Own => {}
            Sort::Total => shown.sort_by_key(|of| std::cmp::Reverse(of.total.samples)),
            Sort::Name => shown.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        shown
    }

    /// The lines of the screen: a head, a table, and the keys.
    pub(super) fn lines(
        &mut self,
        head: &str,
        view: &View,
        (columns, lines): (usize, usize),
    ) -> Vec<Line> {
        let (heading, rows) = self.rows(view);
        let room = lines.saturating_sub(AROUND);
        self.selected = self.selected.min(rows.len().saturating_sub(1));
        let first = (self.selected + 1).saturating_sub(room);
        let plain = |text: &str| line(text, columns, LineLook::Plain);
        let mut all = vec![
            plain(head),
            plain(&numbers(view)),
            plain(&self.tabs()),
            line(&heading, columns, LineLook::Heading),
        ];
        for (at, row) in rows.iter().enumerate().skip(first).take(room) {
            let look = match at == self.selected && self.drilled.is_none() {
                true => LineLook::Selected,
                false => LineLook::Plain,
            };
            all.push(line(row, columns, look));
        }
        all.resize(lines.saturating_sub(1), plain(""));
        all.push(plain(&self.keys()));
        all
    }

    /// The heading and the rows of what is shown.
    pub(super) fn rows(&self, view: &View) -> (String, Vec<String>) {
        if let Some(drilled) = &self.drilled {
            return neighbours(drilled);
        }
        match self.table {
            Table::Functions => {
                let functions = self.functions(view).into_iter();
                let rows = functions
                    .map(|of| format!("{} {}  {}", share(of.own), share(of.total), of.name));
                ("  OWN         TOTAL       FUNCTION".into(), rows.collect())
            }
            Table::Processes => {
                let processes = view.processes.iter().filter(|of| self.is_shown(&of.name));
                let rows = processes
                    .map(|of| format!("{}  {:<32.32} {}", share(of.share), of.name, of.function));
                let heading = "SHARE        PROCESS                          MOST OFTEN IN";
                (heading.into(), rows.collect())
            }
            Table::Schedulers => {
                let schedulers = view.schedulers.iter().filter(|of| self.is_shown(&of.name));
                let heading =
                    "THREAD           ERLANG     BIF LIBRARY COLLECT RUNTIME    IDLE  (% of time)";
                (heading.into(), schedulers.map(scheduler).collect())
            }
        }
    }

    fn tabs(&self) -> String {
        let mut text = String::new();
        for table in Table::ALL {
            let title = table.title();
            let _ = match table == self.table {
                true => write!(text, "[{title}] "),
                false => write!(text, " {title}  "),
            };
        }
        let _ = write!(text, "  by {}", self.sort.name());
        if self.is_typing || !self.filter.is_empty() {
            let cursor = if self.is_typing { "_" } else { "" };
            let _ = write!(text, "  /{}{cursor}", self.filter);
        }
        if self.is_paused {
            text.push_str("  PAUSED");
        }
        text
    }

    fn keys(&self) -> String {
        match (self.is_typing, &self.drilled) {
            (true, _) => "type a part of a name   Enter keep it   Esc all",
            (false, Some(_)) => "Esc back   p pause   q quit",
            (false, None) => {
                "Tab next table  s sort  / filter  Enter callers, callees  p pause  q quit"
            }
        }
        .to_owned()
    }
}

/// What the samples are.
pub(super) fn numbers(view: &View) -> String {
    let mut text = format!(
        "{} samples in {}",
        name::thousands(view.samples),
        name::time(view.span_ns)
    );
    if view.lost > 0 {
        let _ = write!(text, ", {} lost", name::thousands(view.lost));
    }
    if view.stopped.looks > 0 {
        let _ = write!(text, "; {}", view.stopped);
    }
    text
}

fn scheduler(of: &super::model::Scheduler) -> String {
    let mut text = format!("{:<15.15}", of.name);
    for percent in of.does.iter().chain([&of.idle]) {
        let _ = write!(text, " {percent:>7.1}");
    }
    text
}

fn neighbours(drilled: &Drilled) -> (String, Vec<String>) {
    let row = |(name, of): &(String, Share)| format!("{}  {name}", share(*of));
    let mut rows = vec!["called by".to_owned()];
    rows.extend(drilled.neighbours.callers.iter().map(row));
    rows.push("newest, or calls".to_owned());
    rows.extend(drilled.neighbours.callees.iter().map(row));
    (drilled.name.clone(), rows)
}

fn line(text: &str, columns: usize, look: LineLook) -> Line {
    let text = text.chars().take(columns).collect();
    Line { text, look }
}

#[cfg(test)]
mod tests;
