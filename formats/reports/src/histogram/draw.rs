//! Draws histograms as a picture of the value over the percentile. The percentile axis is stretched so that the last of
//! a hundred, of a thousand and of ten thousand have as much room as the first ninety.

use std::fmt::Write as _;
use std::io::Write;

use hdrhistogram::Histogram;

use super::{Histograms, Of, Row};

/// Lines that can be told apart.
const LINES: usize = 6;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 78.0;
const PLOT: f64 = 330.0;
const LEGEND: f64 = 22.0;

/// Styles in light and in dark. The first are the whole style for what knows no media queries. The lines' colours
/// stand out from both grounds and from each other for colour-blind readers, too.
const STYLE: &str = "\
text { font-family: 'DejaVu Sans', Verdana, sans-serif; font-size: 12px; fill: #1c2024; }
.ground { fill: #ffffff; }
.title { font-size: 17px; }
.faint { fill: #5c6570; }
.grid { stroke: #d9dee3; stroke-width: 1; }
.axis { stroke: #5c6570; stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.c0 { stroke: #0072b2; } .c1 { stroke: #d55e00; } .c2 { stroke: #009e73; }
.c3 { stroke: #b0569a; } .c4 { stroke: #a68a00; } .c5 { stroke: #6b7785; }
@media (prefers-color-scheme: dark) {
text { fill: #e4e8ec; }
.ground { fill: #16191d; }
.faint { fill: #9aa4af; }
.grid { stroke: #31383f; }
.axis { stroke: #9aa4af; }
.c0 { stroke: #4ea8e0; } .c1 { stroke: #ff8f4a; } .c2 { stroke: #2fc79b; }
.c3 { stroke: #dd8fc8; } .c4 { stroke: #d9bd2f; } .c5 { stroke: #a9b4c0; }
}
";

/// Dashes of the lines, so that they can be told apart without colours too.
const DASHES: [&str; LINES] = ["none", "7 3", "2 3", "9 3 2 3", "14 4", "4 2"];

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn short(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The scales of the picture.
struct Scale {
    of: Of,
    /// Decades of values, from the first to the last.
    first: i32,
    last: i32,
    /// Powers of ten of the rarest that is shown: one in so many.
    nines: f64,
}

impl Scale {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "of pixels"
    )]
    fn of(of: Of, all: &Histogram<u64>) -> Scale {
        let decade = |value: u64| (value.max(1) as f64).log10();
        let first = decade(all.min()).floor() as i32;
        let last = (decade(all.max()).ceil() as i32).max(first + 1);
        let nines = (all.len().max(10) as f64).log10().clamp(1.0, 6.0);
        Scale {
            of,
            first,
            last,
            nines,
        }
    }

    fn x(&self, quantile: f64) -> f64 {
        let rare = (1.0 - quantile).max(1e-9);
        let at = (-rare.log10() / self.nines).clamp(0.0, 1.0);
        LEFT + at * (WIDTH - LEFT - RIGHT)
    }

    #[expect(clippy::cast_precision_loss, reason = "of pixels")]
    fn y(&self, value: u64) -> f64 {
        let decade = (value.max(1) as f64).log10() - f64::from(self.first);
        let at = (decade / f64::from(self.last - self.first)).clamp(0.0, 1.0);
        TOP + (1.0 - at) * PLOT
    }

    fn grid(&self, out: &mut String) {
        let right = WIDTH - RIGHT;
        for decade in self.first..=self.last {
            let value = 10_u64.saturating_pow(u32::try_from(decade).unwrap_or(0));
            let (y, text) = (self.y(value), self.of.text(value));
            let text = text.replace(".000", "").replace(".00", "");
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        let bottom = TOP + PLOT;
        for (quantile, text) in [
            (0.0, "0 %"),
            (0.5, "50 %"),
            (0.9, "90 %"),
            (0.99, "99 %"),
            (0.999, "99.9 %"),
            (0.9999, "99.99 %"),
            (0.99999, "99.999 %"),
            (0.999_999, "99.9999 %"),
        ] {
            if -(1.0_f64 - quantile).log10() > self.nines + 0.01 {
                break;
            }
            let x = self.x(quantile);
            // One at the right edge would not be whole.
            let (anchor, at) = match right - x < RIGHT {
                true => ("end", right + RIGHT / 2.0),
                false => ("middle", x),
            };
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>",
                bottom + 18.0
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP} V{bottom} H{right}\"/>"
        );
    }

    /// The way of a line through the picture.
    fn path(&self, histogram: &Histogram<u64>) -> String {
        let mut path = String::new();
        let mut last = None;
        let max = histogram.max();
        let points = std::iter::once((0.0, histogram.min())).chain(
            histogram
                .iter_quantiles(20)
                .map(|at| (at.quantile_iterated_to(), at.value_iterated_to().min(max))),
        );
        for (quantile, value) in points {
            let point = (
                format!("{:.1}", self.x(quantile)),
                format!("{:.1}", self.y(value)),
            );
            if last.as_ref() == Some(&point) {
                continue;
            }
            let _ = match last {
                None => write!(path, "M{} {}", point.0, point.1),
                Some(_) => write!(path, " L{} {}", point.0, point.1),
            };
            last = Some(point);
        }
        path
    }
}

impl Histograms {
    /// Draws the rows with the greatest sums as SVG, readable in light and in dark.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn draw<W: Write>(&self, title: &str, mut out: W) -> std::io::Result<()> {
        let rows = self.rows();
        let shown = &rows[..rows.len().min(LINES)];
        let scale = Scale::of(self.of, &self.all().histogram());
        let mut text = String::new();
        #[expect(clippy::cast_precision_loss, reason = "of pixels")]
        let height = TOP + PLOT + 44.0 + LEGEND * shown.len() as f64 + 14.0;
        let _ = writeln!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
             <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"32\">{}</text>\n\
             <text class=\"faint\" x=\"{LEFT}\" y=\"54\">{}</text>",
            escape(self.of.title()),
            escape(self.of.title()),
            escape(&short(title, 110)),
        );
        scale.grid(&mut text);
        for (at, row) in shown.iter().enumerate().rev() {
            let histogram = self.row(&row.name).unwrap_or_else(super::empty);
            let (path, dash) = (scale.path(&histogram), DASHES[at]);
            let _ = writeln!(
                text,
                "<path class=\"line c{at}\" stroke-dasharray=\"{dash}\" d=\"{path}\"><title>{}</title></path>",
                escape(&row.name)
            );
        }
        for (at, row) in shown.iter().enumerate() {
            legend(&mut text, self.of, at, row);
        }
        text.push_str("</svg>\n");
        out.write_all(text.as_bytes())
    }
}

fn legend(out: &mut String, of: Of, at: usize, row: &Row) {
    #[expect(clippy::cast_precision_loss, reason = "of pixels")]
    let y = TOP + PLOT + 44.0 + LEGEND * at as f64;
    let (x, dash) = (LEFT + 36.0, DASHES[at]);
    let values = format!(
        "{} {}, 50 %: {}, 99 %: {}, max: {}",
        row.count,
        if row.count == 1 { "time" } else { "times" },
        of.text(row.p50),
        of.text(row.p99),
        of.text(row.max)
    );
    let _ = writeln!(
        out,
        "<path class=\"line c{at}\" stroke-dasharray=\"{dash}\" d=\"M{LEFT} {y} h28\"/>\
         <text x=\"{x}\" y=\"{:.1}\">{}</text>\
         <text class=\"faint\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        y + 4.0,
        escape(&short(&row.name, 64)),
        WIDTH - RIGHT,
        y + 4.0,
        escape(&values)
    );
}
