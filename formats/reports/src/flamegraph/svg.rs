//! What is changed in the SVG that is drawn: a style of ours, names that lose their module before their function, the
//! axis of a chart, and the legend of native code.

use std::fmt::Write as _;

use beamline_formats::name;

use super::native_frames::{self, Look};

/// How the drawing's own script takes the name of a frame, and what it does instead.
const NAME: &str = r#"var txt = find_child(e, "title").textContent.replace(/\([^(]*\)$/,"");"#;
const OUR_NAME: &str = "var txt = frameName(e, w);";

/// Names of frames in the script: short where there is no room.
const NAMES: &str = r#"
function frameName(e, w) {
  const name = find_child(e, "title").textContent.replace(/\([^(]*\)$/, "");
  return name.length * (known_font_width || fontsize * fontwidth) < w ? name : shortName(name);
}
"#;

/// The function that the page has, too.
const SHORT_NAME: &str = include_str!("../html/page/name.js");

/// Room for the axis below the frames.
const AXIS: u32 = 24;

/// The style of the axis. Where a frame is zoomed into, it would not be true.
const AXIS_STYLE: &str = "\
#axis { width:calc(100% - 20px); }
#axis text { font-size:11px; fill:#57606a; }
#axis line { stroke:#57606a; }
#unzoom:not(.hide) ~ #axis { display:none; }
@media (prefers-color-scheme: dark) { #axis text { fill:#a3adb8; } #axis line { stroke:#a3adb8; } }
";

/// Room for the legend below the frames, or below the axis.
const LEGEND: u32 = 22;

/// The style of the legend.
const LEGEND_STYLE: &str = "\
#legend text { font-size:11px; fill:#57606a; }
@media (prefers-color-scheme: dark) { #legend text { fill:#a3adb8; } }
";

/// The width of a letter of the legend.
const LETTER: usize = 7;

/// A place on the axis: where it is, as a share of the whole, and what stands there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) share: f64,
    pub(super) text: String,
}

/// The name of a function without its module; the same as the script's.
fn short(name: &str) -> &str {
    let digits = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if name.starts_with('<') || digits == name || !digits.ends_with('/') {
        return name;
    }
    let (mut quote, mut dot, mut is_escaped) = (None, None, false);
    for (at, letter) in name.char_indices() {
        let rest = &name[at + letter.len_utf8()..];
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if quote.is_some() => quote = quote.filter(|quote| *quote != letter),
            '\'' | '"' => quote = Some(letter),
            ':' => return rest,
            '.' if !rest.starts_with(['.', '/']) => dot = Some(rest),
            _ => {}
        }
    }
    let is_elixir = name.starts_with(|letter: char| letter.is_ascii_uppercase());
    dot.filter(|_| is_elixir).unwrap_or(name)
}

pub(super) fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&apos;", "'").replace("&quot;", "\"");
    text.replace("&amp;", "&")
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// The text of a frame of this name that was cut to `letters` letters. It is whole where what has drawn it has counted
/// bytes.
fn fitted(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    let short = short(name);
    if short.chars().count() <= letters {
        return short.to_owned();
    }
    let mut cut: String = short.chars().take(letters.saturating_sub(2)).collect();
    cut.push_str("..");
    cut
}

/// A frame of the drawing, from behind its `<title>` on.
fn frame(rest: &str) -> Option<String> {
    let (title, after) = rest.split_once("</title>")?;
    let (name, _) = title.rsplit_once(" (")?;
    let end = after.find("</text>")?;
    let begin = after[..end].rfind('>')? + 1;
    let drawn = unescape(&after[begin..end]);
    if !drawn.ends_with("..") {
        return None;
    }
    let name = unescape(name);
    let text = escape(&fitted(&name::of_frames(&name), drawn.chars().count()));
    let title = name::of_frames(title);
    Some(format!(
        "{title}</title>{}{text}{}",
        &after[..begin],
        &after[end..]
    ))
}

/// Has each frame lose its module first, without the script and with it.
fn shorten(svg: &str) -> String {
    let script = "<![CDATA[\"use strict\";";
    let svg = svg.replace(NAME, OUR_NAME);
    let svg = svg.replace(script, &format!("{script}\n{SHORT_NAME}{NAMES}"));
    let mut frames = svg.split("<g><title>");
    let mut out = frames.next().unwrap_or_default().to_owned();
    for rest in frames {
        out.push_str("<g><title>");
        match frame(rest) {
            Some(frame) => out.push_str(&frame),
            None => out.push_str(&name::of_frames(rest)),
        }
    }
    out
}

/// The number of an attribute that follows `before`, and `by` more in its place.
fn more(svg: &str, before: &str, attribute: &str, by: u32) -> String {
    let place = svg.find(before).and_then(|at| {
        let at = at + svg[at..].find(attribute)? + attribute.len();
        let end = at + svg[at..].find('"')?;
        Some((at, end))
    });
    let Some((at, end)) = place else {
        return svg.to_owned();
    };
    let number = svg[at..end].parse::<f64>().unwrap_or(0.0);
    format!("{}{}{}", &svg[..at], number + f64::from(by), &svg[end..])
}

/// Makes room below all that is drawn above the last lines of text, and puts there what `content` gives for its place.
fn below(svg: &str, room: u32, content: impl FnOnce(u32) -> String) -> String {
    let (old, new) = ("viewBox=\"0 0 1200 ", room);
    let height = svg
        .split_once(old)
        .and_then(|(_, rest)| rest.split_once('"'));
    let height = height.and_then(|(height, _)| height.parse::<u32>().ok());
    let Some(height) = height else {
        return svg.to_owned();
    };
    let mut svg = more(svg, "<svg ", "height=\"", new);
    svg = more(&svg, "viewBox=\"0 0 1200", "0 0 1200 ", new);
    svg = more(&svg, "<rect x=\"0\" y=\"0\"", "height=\"", new);
    for id in ["id=\"details\"", "id=\"matched\""] {
        svg = more(&svg, id, " y=\"", new);
    }
    // Two lines of text are below the frames.
    let content = content(height - 33);
    match svg.rsplit_once("</svg>") {
        Some((before, after)) => format!("{before}{content}</svg>{after}"),
        None => svg,
    }
}

/// The axis of a chart, in its place.
fn axis(ticks: &[Tick], top: u32) -> String {
    let mut axis =
        format!("<svg id=\"axis\" x=\"10\" y=\"{top}\" width=\"1180\" height=\"{AXIS}\">");
    for Tick { share, text } in ticks {
        let x = 100.0 * share;
        let text = escape(text);
        let _ = write!(
            axis,
            "<line x1=\"{x:.4}%\" x2=\"{x:.4}%\" y1=\"0\" y2=\"6\"/><text x=\"{x:.4}%\" dx=\"3\" y=\"14\">{text}</text>"
        );
    }
    axis.push_str("</svg>");
    axis
}

/// What the frames of native code look like, in its place.
fn legend(looks: &[Look], top: u32) -> String {
    let mut legend = format!("<g id=\"legend\" transform=\"translate(10,{top})\">");
    let mut x = 0;
    for look in looks {
        let (fill, text) = (look.fill(), look.text);
        let _ = write!(
            legend,
            "<rect x=\"{x}.5\" y=\"4.5\" width=\"18\" height=\"11\" fill=\"{fill}\"/><text x=\"{}\" y=\"14\">{text}</text>",
            x + 24
        );
        x += 24 + text.len() * LETTER + 24;
    }
    legend.push_str("</g>");
    legend
}

/// The drawing as we give it out.
pub(super) fn finish(svg: &str, style: &str, ticks: &[Tick], looks: &[Look]) -> String {
    let mut style = style.to_owned();
    if !ticks.is_empty() {
        style.push_str(AXIS_STYLE);
    }
    if !looks.is_empty() {
        style.push_str(&native_frames::style());
        style.push_str(LEGEND_STYLE);
    }
    let svg = svg.replacen("</style>", &format!("{style}</style>"), 1);
    let mut svg = shorten(&svg);
    if !ticks.is_empty() {
        svg = below(&svg, AXIS, |top| axis(ticks, top));
    }
    if !looks.is_empty() {
        svg = below(&svg, LEGEND, |top| legend(looks, top));
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_module_first() {
        for (name, expect) in [
            ("lists:map/2", "map/2"),
            ("'a:b':'c:d'/1", "'c:d'/1"),
            ("'it\\'s:':f/1", "f/1"),
            ("Demo.Sub.slow_fib/1", "slow_fib/1"),
            ("Demo.\"a.b\"/1", "\"a.b\"/1"),
            ("Kernel.../2", "Kernel.../2"),
            ("m:'-f/1-fun-0-'/1", "'-f/1-fun-0-'/1"),
            ("<0.9.0> m:init/1", "<0.9.0> m:init/1"),
            ("Demo.Sub", "Demo.Sub"),
            ("all", "all"),
        ] {
            assert_eq!(short(name), expect);
        }
        assert_eq!(fitted("module:function/2", 17), "module:function/2");
        assert_eq!(fitted("module:function/2", 10), "function/2");
        assert_eq!(fitted("module:function/2", 8), "functi..");
    }

    #[test]
    fn a_frame_that_was_cut_has_the_function() {
        let frame = |name: &str, text: &str| {
            format!(
                "<g><title>{name} (1 calls, 1%)</title><rect y=\"1\"/><text x=\"1\">{text}</text></g>"
            )
        };
        for (name, before, after) in [
            ("json:number/7", "json:n..", "number/7"),
            (
                "json:&apos;-f/1-fun-&apos;/7",
                "json:&apos;-f..",
                "'-f/1-fu..",
            ),
            ("json:number/7", "json:number/7", "json:number/7"),
            ("модуль:функция/1", "модуль:функция/1..", "модуль:функция/1"),
            ("json:number/7", "", ""),
        ] {
            assert_eq!(shorten(&frame(name, before)), frame(name, after));
        }
    }
}
