//! The flame graph: folded stacks of the call trees, and the pictures drawn from them.
//!
//! [`draw`] draws a profile or the call paths of a recording, and [`Chart`] draws the calls of a recording in order of
//! time. [`draw_difference`] draws the difference between two profiles, and [`Difference`] gives it in numbers.

mod chart;
mod diff;
mod fold;
mod native_frames;
mod svg;
#[cfg(test)]
mod tests;

use std::io::Write;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap, parse_hex_color};
use inferno::flamegraph::{self, Options, TextTruncateDirection};

pub use chart::Chart;
pub use diff::{Change, Difference, LEGEND, Threshold, draw_difference, typical};

use beamline_formats::name;
use beamline_formats::profile::{Native, Node, Pattern, Profile, Type, WAITS_FOR_DIRTY};
use beamline_formats::ring::Group;
use beamline_settings::names;

use self::svg::Tick;
use crate::choice::Choice;

/// The cost that the width of a frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// Calls.
    Calls,
    /// Own time and that of the frames above.
    Time,
    /// Words allocated, with those of the frames above.
    Words,
    /// Reductions.
    Reductions,
    /// Time in which the process did not run.
    Wait,
}

names!(Width {
    Calls = "calls", "Calls";
    Time = "time", "Own time while the process ran";
    Words = "words", "Words allocated. Needs a recording with words, or a profile of call_memory";
    Reductions = "reductions", "Reductions. Needs a recording with reductions, or a profile";
    Wait = "wait", "Time while the process did not run. Needs a recording with scheduling";
});

impl Width {
    /// The width that shows what this type of profile measures.
    #[must_use]
    pub fn of(kind: Type) -> Self {
        match kind {
            Type::CallCount => Width::Calls,
            Type::CallTime => Width::Time,
            Type::CallMemory => Width::Words,
        }
    }

    fn cost(self, node: &Node) -> u64 {
        match self {
            Width::Calls => node.cost.calls,
            Width::Time => node.cost.time_ns,
            Width::Words => node.cost.words,
            Width::Reductions => node.reductions,
            Width::Wait => node.wait_ns,
        }
    }

    /// What one count is, and the factor that brings the cost to it.
    fn unit(self) -> (&'static str, f64) {
        match self {
            Width::Calls => ("calls", 1.0),
            Width::Time | Width::Wait => ("µs", 0.001),
            Width::Words => ("words", 1.0),
            Width::Reductions => ("reductions", 1.0),
        }
    }

    /// As the head of a table has it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Width::Calls => "Calls",
            Width::Time => "Time",
            Width::Words => "Words",
            Width::Reductions => "Reductions",
            Width::Wait => "Time of waiting",
        }
    }

    /// Where it comes from.
    fn source(self) -> &'static str {
        match self {
            Width::Calls => "calls come from beamline record, or beamline profile --output",
            Width::Time => {
                "time comes from beamline record, or beamline profile --type call_time --output"
            }
            Width::Words => {
                "words come from beamline record --events words, or beamline profile --type call_memory --output"
            }
            Width::Reductions => {
                "reductions come from beamline record --events reductions, or beamline profile --output"
            }
            Width::Wait => "waiting comes from beamline record --events calls,returns,scheduling",
        }
    }

    /// Groups of events that a recording must have.
    #[must_use]
    pub fn needs(self) -> &'static [Group] {
        match self {
            Width::Calls | Width::Time => &[Group::Calls, Group::Returns],
            Width::Words => &[Group::Calls, Group::Returns, Group::Words],
            Width::Reductions => &[Group::Calls, Group::Returns, Group::Reductions],
            Width::Wait => &[Group::Calls, Group::Returns, Group::Scheduling],
        }
    }

    /// What a picture of it is called.
    #[must_use]
    pub fn picture(self) -> &'static str {
        match self {
            Width::Calls | Width::Time => "a flame graph",
            Width::Words => "a flame graph of words",
            Width::Reductions => "a flame graph of reductions",
            Width::Wait => "a flame graph of waiting",
        }
    }
}

/// The kind of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Functions, of all processes together.
    #[default]
    None,
    /// A frame for each process, and the functions on it.
    Process,
    /// A frame for all processes of a name, or that started in the same function.
    Name,
    /// Modules: calls within one are part of its frame.
    Module,
}

names!(By {
    None = "none", "Functions, with all processes merged";
    Process = "process", "Functions, below a frame for each process";
    Name = "name", "Functions, below a frame for all processes with one registered name or one initial function";
    Module = "module", "Modules";
});

/// Which frames there are, and how wide.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What the widths show.
    pub width: Width,
    /// What the frames are.
    pub by: By,
    /// The function that costs is at the bottom, and its callers are above it.
    pub is_reversed: bool,
    /// Paths begin at these functions, or are of these processes; `None` shows all.
    pub only: Option<Choice>,
    /// Functions that are shown without what they call.
    pub hide_below: Vec<Pattern>,
}

impl Shape {
    /// All of this width.
    #[must_use]
    pub fn new(width: Width) -> Shape {
        Shape {
            width,
            by: By::None,
            is_reversed: false,
            only: None,
            hide_below: Vec::new(),
        }
    }
}

/// The settings of a drawing of a flame graph.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// Which frames there are.
    pub shape: Shape,
    /// The text at the top.
    pub title: String,
    /// The smaller text below it.
    pub subtitle: String,
    /// Frames of less than this part of the whole, in percent, are left out.
    pub min_width: f64,
}

impl Drawing {
    /// Tells in the subtitle which part of all costs these stacks are, where not all are shown.
    fn tell_part(&mut self, lines: &[String], all: u64) {
        let shown = lines.iter().filter_map(|line| line.rsplit(' ').next());
        let shown = shown.filter_map(|cost| cost.parse::<u64>().ok());
        let shown = shown.fold(0, u64::saturating_add);
        if self.shape.only.is_none() {
            return;
        }
        let width = self.shape.width;
        let text = |cost: u64| match width {
            Width::Time | Width::Wait => name::time(cost),
            _ => format!("{cost} {}", width.unit().0),
        };
        #[expect(clippy::cast_precision_loss, reason = "a share of one digit")]
        let share = 100.0 * shown as f64 / all.max(1) as f64;
        self.subtitle.push_str(&format!(
            "; shown: {} of {}, {share:.1} %",
            text(shown),
            text(all)
        ));
    }
}

/// The call trees as folded stacks: `frame;frame;frame cost`, in the order of the frames' names.
///
/// A path that several processes share is one line, unless the shape has frames for them. Paths of cost 0 are left
/// out. Times are in nanoseconds.
#[must_use]
pub fn folded(profile: &Profile, shape: &Shape) -> Vec<String> {
    fold::costs(profile, shape)
        .into_iter()
        .map(|(stack, cost)| format!("{stack} {cost}"))
        .collect()
}

/// Draws the call trees as SVG.
///
/// # Errors
/// One line: the profile has no call path of that width or choice, or `out` refuses a write.
pub fn draw<W: Write>(profile: &Profile, drawing: &Drawing, out: W) -> Result<(), String> {
    let shape = &drawing.shape;
    fold::check_profile(profile, shape)?;
    let lines = folded(profile, shape);
    let functions = profile.functions.iter();
    let functions = functions.map(|f| {
        let name = (f.module.as_str(), f.name.as_str(), f.arity);
        (name, profile.native(f))
    });
    let processes = fold::processes(profile, shape);
    let palette = palette(shape, functions, processes);
    let mut drawing = drawing.clone();
    if shape.only.is_some() {
        let all = profile.nodes.iter().map(|node| shape.width.cost(node));
        drawing.tell_part(&lines, all.fold(0, u64::saturating_add));
    }
    paint(lines, palette, &drawing, None, out)
}

/// Draws folded stacks.
fn paint<W: Write>(
    lines: Vec<String>,
    mut palette: PaletteMap,
    drawing: &Drawing,
    axis: Option<&[Tick]>,
    out: W,
) -> Result<(), String> {
    check_not_empty(&lines, drawing)?;
    let mut options = options(drawing);
    options.palette_map = Some(&mut palette);
    let Some(axis) = axis else {
        return from_lines(&mut options, &lines, STYLE, &[], out);
    };
    options.flame_chart = true;
    // It is drawn from the last line to the first.
    let lines: Vec<String> = lines.into_iter().rev().collect();
    from_lines(&mut options, &lines, STYLE, axis, out)
}

/// Has stacks drawn, with what is changed in the drawing.
fn from_lines<W: Write>(
    options: &mut Options<'_>,
    lines: &[String],
    style: &str,
    axis: &[Tick],
    mut out: W,
) -> Result<(), String> {
    let fail = |e: &dyn std::fmt::Display| format!("the flame graph: {e}");
    let mut drawn = Vec::new();
    let lines = lines.iter().map(String::as_str);
    flamegraph::from_lines(options, lines.clone(), &mut drawn).map_err(|e| fail(&e))?;
    let legend = native_frames::legend(lines.clone(), options.palette_map.as_deref());
    let drawn = svg::finish(&String::from_utf8_lossy(&drawn), style, axis, &legend);
    out.write_all(drawn.as_bytes()).map_err(|e| fail(&e))
}

/// Draws folded stacks with two costs.
pub(crate) fn paint_difference<W: Write>(
    lines: Vec<String>,
    drawing: &Drawing,
    out: W,
) -> Result<(), String> {
    check_not_empty(&lines, drawing)?;
    let mut options = options(drawing);
    if options.factor < 1.0 {
        // The part that has become more or less is not multiplied by the factor: nanoseconds need none.
        options.factor = 1.0;
        "ns".clone_into(&mut options.count_name);
    }
    let style = format!("{STYLE}{DIFFERENCE_STYLE}");
    from_lines(&mut options, &lines, &style, &[], out)
}

/// What is below the frames follows the system's colours; what can be clicked can be seen.
const STYLE: &str = "\
#search { opacity:0.7; }
@media (prefers-color-scheme: dark) {
#background stop { stop-color:#16191d; }
#title, #subtitle, #details, #unzoom, #search, #matched { fill:#e4e8ec; }
}
";

/// What has not changed is as pale as the paper: its edge shows it. The edges of the others say what their colours say,
/// for readers who cannot tell red from blue.
const DIFFERENCE_STYLE: &str = "\
#frames rect { stroke:#a9a698; stroke-width:0.5px; }
#frames rect[fill^='rgb(255,'] { stroke:#5c1010; stroke-width:1px; }
#frames rect[fill$=',255)'] { stroke:#10205c; stroke-width:1px; stroke-dasharray:4 3; }
";

/// More than any run costs: what draws adds costs up, and counts with it as floating-point numbers.
const COST_MAX: u64 = 1 << 53;

/// Whether these stacks can be drawn; one line where they cannot.
fn check_not_empty(lines: &[String], drawing: &Drawing) -> Result<(), String> {
    // The costs follow the last frame: one, or two.
    let costs = lines.iter().flat_map(|line| {
        let costs = line.rsplit(' ').take(2);
        costs.map_while(|cost| cost.parse::<u64>().ok())
    });
    if costs.fold(0, u64::saturating_add) > COST_MAX {
        return Err("the costs add up to more than a run can have: the file is damaged".into());
    }
    if lines.is_empty() {
        let width = drawing.shape.width;
        let (unit, source) = (width.title().to_lowercase(), width.source());
        return Err(format!(
            "no call path has any {unit}, so there is nothing to draw; {source}"
        ));
    }
    Ok(())
}

fn options<'a>(drawing: &Drawing) -> Options<'a> {
    let (unit, factor) = drawing.shape.width.unit();
    let mut options = Options::default();
    options.title.clone_from(&drawing.title);
    options.subtitle = Some(drawing.subtitle.clone());
    unit.clone_into(&mut options.count_name);
    "Function:".clone_into(&mut options.name_type);
    options.factor = factor;
    options.min_width = drawing.min_width;
    options.text_truncate_direction = TextTruncateDirection::Right;
    // The paper in light; frames are the same in the dark.
    options.bgcolors = Some(BackgroundColor::Flat(rgb(0xfb, 0xfa, 0xf6)));
    options.uicolor = rgb(0x26, 0x26, 0x26);
    // A generic family: a list of names would be quoted as one.
    "monospace".clone_into(&mut options.font_type);
    options.font_width = 0.61;
    options
}

fn rgb(r: u8, g: u8, b: u8) -> Color {
    // The type has no constructor of its own; the text form always parses.
    parse_hex_color(&format!("#{r:02x}{g:02x}{b:02x}")).unwrap_or_default()
}

/// A colour for every frame: of functions the hue by the module, the shade by the name.
fn palette<'a>(
    shape: &Shape,
    functions: impl IntoIterator<Item = ((&'a str, &'a str, u32), Option<Native>)>,
    processes: impl IntoIterator<Item = fold::Process>,
) -> PaletteMap {
    let mut map = PaletteMap::default();
    // Before functions: a process may be named after the one it started in.
    for frame in processes.into_iter().filter_map(fold::Process::into_frame) {
        map.insert(frame, rgb(0xb8, 0xb8, 0xb0));
    }
    for (mfa, native) in functions {
        let (module, function, _) = mfa;
        let shade = if shape.by == By::Module { "" } else { function };
        let color = native.map_or(color(module, shade), native_frames::color);
        map.insert(fold::function_frame(shape.by, mfa, native), color);
    }
    map.insert(WAITS_FOR_DIRTY, native_frames::DIRTY_WAIT.color());
    // The frame below all others has no name of its own.
    map.insert("", rgb(0xd6, 0xd3, 0xc8));
    map
}

/// Pale colours of even lightness, so that black text reads on each.
fn color(module: &str, name: &str) -> Color {
    let hash = hash(module);
    let hue = f64::from(u32::try_from(hash % 360).unwrap_or(0));
    let shade = u32::try_from(self::hash(name) % 9).unwrap_or(0);
    let lightness = 0.66 + f64::from(shade) * 0.015;
    hsl(hue, 0.58, lightness)
}

/// The colour of a function's frames, as CSS writes it.
pub(crate) fn css_color(module: &str, name: &str, native: Option<Native>) -> String {
    let color = native.map_or(color(module, name), native_frames::color);
    format!("#{:02x}{:02x}{:02x}", color.r, color.g, color.b)
}

fn hsl(hue: f64, saturation: f64, lightness: f64) -> Color {
    let chroma = saturation * lightness.min(1.0 - lightness);
    let channel = |n: f64| {
        let k = (n + hue / 30.0) % 12.0;
        let level = lightness - chroma * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the level is from 0 to 1"
        )]
        let byte = (level * 255.0).round() as u8;
        byte
    };
    rgb(channel(0.0), channel(8.0), channel(4.0))
}

/// FNV-1a with a final mix, so that colours are the same in every run and on every machine.
fn hash(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}
