//! Writes a recording as one page for a browser. The page holds everything it shows and loads nothing from a network.
//!
//! [`Page::read`] takes the page's data out of a recording: the report, call paths with their costs in parts of the time,
//! calls, time slices, collections, single events, messages, races and histograms. It keeps a limited number of the things that a recording may have very many of, and
//! the page says what was left out. Of samples, it has call paths with their numbers of samples, and what each thread did. [`Page::write`] puts the data into the page as JSON, which the page's own script
//! draws. Names and texts come from programs and are never taken for HTML: the JSON holds no `<`, and the script makes
//! text of them.

mod clock;
mod data;
mod flame;
mod follow;
mod parts;
mod races;
mod samples;
mod sinks;
mod tables;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

pub use data::{Notice, Page};

/// The page: what stands in the places of these marks, in their order.
const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPTS: [&str; 18] = [
    include_str!("page/name.js"),
    include_str!("page/base.js"),
    include_str!("page/link.js"),
    include_str!("page/tabs.js"),
    include_str!("page/costs.js"),
    include_str!("page/stretch.js"),
    include_str!("page/samples.js"),
    include_str!("page/overview.js"),
    include_str!("page/flame.js"),
    include_str!("page/functions.js"),
    include_str!("page/timeline.js"),
    include_str!("page/chart.js"),
    include_str!("page/messages.js"),
    include_str!("page/races.js"),
    include_str!("page/processes.js"),
    include_str!("page/network.js"),
    include_str!("page/histograms.js"),
    include_str!("page/start.js"),
];

/// Writes JSON so that nothing in it can end the element that it stands in.
struct WithoutTags<'w>(&'w mut dyn Write);

impl Write for WithoutTags<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pieces = bytes.split(|byte| *byte == b'<');
        self.0.write_all(pieces.next().unwrap_or_default())?;
        for piece in pieces {
            // In JSON it can only stand in a string.
            self.0.write_all(b"\\u003c")?;
            self.0.write_all(piece)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Text as HTML shows it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

impl Page {
    /// Writes the page.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rest = TEMPLATE;
        let mut until = |mark: &str, out: &mut dyn Write| {
            let (before, after) = rest.split_once(mark).expect("the page has its marks");
            rest = after;
            out.write_all(before.as_bytes())
        };
        until("{title}", out)?;
        out.write_all(escape(&self.title()).as_bytes())?;
        until("{style}", out)?;
        out.write_all(STYLE.as_bytes())?;
        until("{data}", out)?;
        serde_json::to_writer(WithoutTags(out), self)?;
        until("{script}", out)?;
        for script in SCRIPTS {
            out.write_all(script.as_bytes())?;
        }
        out.write_all(rest.as_bytes())
    }
}
