//! The flame graph: folded stacks of the call trees, and the SVG drawn from them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap, parse_hex_color};
use inferno::flamegraph::{self, Options};

use crate::name;
use crate::profile::{Cost, Profile, Type};

/// What the width of a frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Calls.
    Calls,
    /// Own time and that of the frames above.
    Time,
    /// Words allocated, with those of the frames above.
    Words,
}

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

    fn cost(self, cost: Cost) -> u64 {
        match self {
            Width::Calls => cost.calls,
            Width::Time => cost.time_ns,
            Width::Words => cost.words,
        }
    }

    /// What one count is, and the factor that brings the cost to it.
    fn unit(self) -> (&'static str, f64) {
        match self {
            Width::Calls => ("calls", 1.0),
            Width::Time => ("µs", 0.001),
            Width::Words => ("words", 1.0),
        }
    }
}

/// How a flame graph is drawn.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// What the widths show.
    pub width: Width,
    /// Whether each process has a frame of its own at the bottom.
    pub by_process: bool,
    /// The text at the top.
    pub title: String,
    /// The smaller text below it.
    pub subtitle: String,
}

/// Frame names are joined by `;` in folded stacks, so none may contain one.
fn frame(text: &str) -> String {
    text.replace(';', ",").replace(['\n', '\r'], " ")
}

/// The call trees as folded stacks: `frame;frame;frame cost`, in the order of the frames' names.
///
/// The same path of several processes is one line, unless `by_process`. Paths of cost 0 are left
/// out. Times are in nanoseconds.
#[must_use]
pub fn folded(profile: &Profile, width: Width, by_process: bool) -> Vec<String> {
    let functions: Vec<String> = profile
        .functions
        .iter()
        .map(|f| frame(&name::mfa(&f.module, &f.name, f.arity)))
        .collect();
    let mut costs: BTreeMap<String, u64> = BTreeMap::new();
    for node in &profile.nodes {
        let cost = width.cost(node.cost);
        if cost == 0 {
            continue;
        }
        let mut path = vec![functions[node.function as usize].as_str()];
        let mut above = node.parent;
        while let Some(index) = above {
            let node = &profile.nodes[index as usize];
            path.push(&functions[node.function as usize]);
            above = node.parent;
        }
        let process = process_frame(profile, node.process);
        if by_process {
            path.push(&process);
        }
        path.reverse();
        let sum = costs.entry(path.join(";")).or_default();
        *sum = sum.saturating_add(cost);
    }
    costs
        .into_iter()
        .map(|(path, cost)| format!("{path} {cost}"))
        .collect()
}

fn process_frame(profile: &Profile, index: u32) -> String {
    let process = &profile.processes[index as usize];
    let mut text = process.pid.clone();
    if profile.runs.len() > 1 {
        let _ = write!(text, "@{}", profile.runs[process.run as usize].os_pid);
    }
    if !process.name.is_empty() {
        let _ = write!(text, " {}", process.name);
    }
    frame(&text)
}

/// Draws the call trees as SVG.
///
/// # Errors
/// One line: the profile has no call path of that width, or `out` refuses a write.
pub fn draw<W: Write>(profile: &Profile, drawing: &Drawing, out: W) -> Result<(), String> {
    let lines = folded(profile, drawing.width, drawing.by_process);
    if lines.is_empty() {
        let (unit, _) = drawing.width.unit();
        return Err(format!("no call path has any {unit}: nothing to draw"));
    }
    let mut palette = palette(profile);
    if drawing.by_process {
        for index in 0..profile.processes.len() {
            let index = u32::try_from(index).map_err(|_| "too many processes".to_owned())?;
            palette.insert(process_frame(profile, index), rgb(0xb8, 0xb8, 0xb0));
        }
    }
    // The frame below all others has no name of its own.
    palette.insert("", rgb(0xd6, 0xd3, 0xc8));
    let (unit, factor) = drawing.width.unit();
    let mut options = Options::default();
    options.title.clone_from(&drawing.title);
    options.subtitle = Some(drawing.subtitle.clone());
    unit.clone_into(&mut options.count_name);
    "Function:".clone_into(&mut options.name_type);
    options.factor = factor;
    options.palette_map = Some(&mut palette);
    // One paper of its own: the text and the frames read the same on a light page and a dark one.
    options.bgcolors = Some(BackgroundColor::Flat(rgb(0xfb, 0xfa, 0xf6)));
    options.uicolor = rgb(0x26, 0x26, 0x26);
    // A generic family: a list of names would be quoted as one.
    "monospace".clone_into(&mut options.font_type);
    options.font_width = 0.61;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
        .map_err(|e| format!("the flame graph: {e}"))
}

fn rgb(r: u8, g: u8, b: u8) -> Color {
    // The type has no constructor of its own; the text form always parses.
    parse_hex_color(&format!("#{r:02x}{g:02x}{b:02x}")).unwrap_or_default()
}

/// A colour for every function: the hue by its module, the shade by its own name.
fn palette(profile: &Profile) -> PaletteMap {
    let mut map = PaletteMap::default();
    for function in &profile.functions {
        let text = frame(&name::mfa(&function.module, &function.name, function.arity));
        map.insert(text, color(&function.module, &function.name));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Function, Header, Node, Process};

    fn sample() -> Profile {
        let mut profile = Profile::default();
        profile.runs.push(Header {
            kind: Type::CallTime,
            command: vec!["erl".into()],
            host: String::new(),
            otp: "29".into(),
            run_ns: 1,
            os_pid: 7,
            processes: 2,
        });
        for (module, name) in [("json", "encode"), ("lists", "map"), ("m", "a;b")] {
            profile.functions.push(Function {
                module: module.into(),
                name: name.into(),
                arity: 2,
            });
        }
        for (pid, name) in [("<0.9.0>", "worker"), ("<0.10.0>", "")] {
            profile.processes.push(Process {
                run: 0,
                pid: pid.into(),
                name: name.into(),
                reductions: 0,
            });
        }
        for (process, parent, function, calls) in [
            (0, None, 0, 1),
            (0, Some(0), 1, 40),
            (0, Some(1), 2, 0),
            (1, None, 0, 2),
            (1, Some(3), 1, 2),
            (1, None, 2, 5),
        ] {
            profile.nodes.push(Node {
                process,
                parent,
                function,
                cost: Cost {
                    calls,
                    time_ns: calls * 1_500,
                    words: 0,
                },
                reductions: 0,
            });
        }
        profile
    }

    #[test]
    fn paths_fold() {
        assert_eq!(
            folded(&sample(), Width::Calls, false),
            [
                "json:encode/2 3",
                "json:encode/2;lists:map/2 42",
                "m:'a,b'/2 5"
            ]
        );
        assert_eq!(
            folded(&sample(), Width::Time, true),
            [
                "<0.10.0>;json:encode/2 3000",
                "<0.10.0>;json:encode/2;lists:map/2 3000",
                "<0.10.0>;m:'a,b'/2 7500",
                "<0.9.0> worker;json:encode/2 1500",
                "<0.9.0> worker;json:encode/2;lists:map/2 60000",
            ]
        );
        assert!(folded(&sample(), Width::Words, false).is_empty());
    }

    fn svg(width: Width, by_process: bool) -> Result<String, String> {
        let drawing = Drawing {
            width,
            by_process,
            title: "a <title>".into(),
            subtitle: "below".into(),
        };
        let mut out = Vec::new();
        draw(&sample(), &drawing, &mut out)?;
        Ok(String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn the_drawing_holds_frames_and_units() {
        let calls = svg(Width::Calls, false).expect("drawn");
        assert!(
            calls.contains("<title>lists:map/2 (42 calls, 84.00%)</title>"),
            "{calls}"
        );
        assert!(calls.contains("a &lt;title&gt;") && calls.contains("below"));
        let time = svg(Width::Time, true).expect("drawn");
        assert!(time.contains("lists:map/2 (60 µs"), "{time}");
        assert!(time.contains("&lt;0.9.0&gt; worker"));
        assert!(
            time == svg(Width::Time, true).expect("drawn"),
            "not always the same"
        );
        let words = svg(Width::Words, false).expect_err("no words");
        assert_eq!(words, "no call path has any words: nothing to draw");
    }

    #[test]
    fn colours_are_by_module_and_light_enough_for_black_text() {
        assert_eq!(color("lists", "map"), color("lists", "map"));
        assert_ne!(color("lists", "map"), color("maps", "map"));
        for module in [
            "lists",
            "maps",
            "json",
            "gen_server",
            "erlang",
            "Elixir.Enum",
        ] {
            let c = color(module, "f");
            let light = 2126 * u32::from(c.r) + 7152 * u32::from(c.g) + 722 * u32::from(c.b);
            assert!(light > 10_000 * 110, "{module}: {c:?}");
        }
    }
}
