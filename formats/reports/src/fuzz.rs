//! The readers of foreign files as functions for fuzzers. Each function takes any bytes, and panics where a reader
//! breaks what it promises. `ci/fuzz` has files for them, and ways to damage those.
//!
//! A damaged file seldom passes the checks of its format. [`seal`] corrects the checks, so that the damage reaches the
//! code behind them.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use beamline_formats::profile::{Profile, View, seal as seal_profile};
use beamline_formats::ring::Recording;
use beamline_orders::Trace;

use crate::events::Summary;
use crate::export::{self, Selection, Target};
use crate::flamegraph::{Shape, Width, folded};
use crate::gate::{Limits, Results, compare, output};
use crate::histogram::{Histograms, Of, Request};
use crate::html::Page;
use crate::json;
use crate::table::{By, Sort, Tables};

pub use beamline_formats::ring::seal::{Frame, frames, stream};

/// A ring or a stream: a second reading prints the same, whatever the bytes are.
pub fn recording(bytes: &[u8]) {
    let (file, path) = written(bytes).expect("a temporary file");
    let first = tell(&path);
    assert_eq!(first, tell(&path), "the same file tells the same");
    if let Err(error) = &first {
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    drop(file);
}

/// Bytes in a file that has no name, and the path it has as long as it is open.
fn written(bytes: &[u8]) -> io::Result<(File, PathBuf)> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    let path = format!("/dev/fd/{}", file.as_raw_fd());
    Ok((file, PathBuf::from(path)))
}

/// All that can be made of a recording; the first error.
fn tell(path: &std::path::Path) -> Result<Vec<u8>, String> {
    let recording = Recording::open(path).map_err(|e| e.to_string())?;
    let (summary, profile) = Summary::of(&recording, 3).map_err(|e| e.to_string())?;
    let mut out = summary.to_string().into_bytes();
    for target in Target::ALL {
        if let Err(error) = export::write(&recording, target, &Selection::default(), &mut out) {
            out.extend(error.to_string().into_bytes());
        }
    }
    for of in Of::ALL {
        let request = Request {
            of,
            by: of.by(),
            only: None,
        };
        match Histograms::read(&recording, &request) {
            Ok(read) => out.extend(read.to_string().into_bytes()),
            Err(error) => out.extend(error.to_string().into_bytes()),
        }
    }
    show(&profile, &mut out);
    out.extend(match Trace::of(&recording) {
        Ok(trace) => trace.to_string().into_bytes(),
        Err(error) => error.into_bytes(),
    });
    let page = Page::read(&recording, "fuzz", 100).map_err(|e| e.to_string())?;
    page.write(&mut out).expect("a Vec takes all");
    Ok(out)
}

/// What can be made of a profile.
fn show(profile: &Profile, out: &mut Vec<u8>) {
    for width in [Width::Calls, Width::Time, Width::Wait] {
        for line in folded(profile, &Shape::new(width)) {
            out.extend(line.into_bytes());
        }
    }
    for target in Target::ALL {
        if let Err(error) = export::write_profile(profile, target, &Selection::default(), out) {
            out.extend(error.to_string().into_bytes());
        }
    }
    json::write(profile, &mut *out).expect("a Vec takes all");
    for by in By::ALL.iter().copied() {
        let tables = Tables {
            profile,
            by,
            sort: Sort::default(),
            view: View::default(),
        };
        out.extend(tables.to_string().into_bytes());
    }
}

/// A saved profile: what was read is written and read again as it is.
pub fn profile(bytes: &[u8]) {
    let profile = match Profile::decode(bytes) {
        Ok(profile) => profile,
        Err(error) => {
            assert_eq!(error.to_string().lines().count(), 1, "{error}");
            return;
        }
    };
    let write = |profile: &Profile| profile.write(Vec::new()).expect("a Vec takes all");
    let bytes = write(&profile);
    let again = Profile::decode(&bytes).expect("just written");
    assert_eq!(profile, again);
    assert_eq!(bytes, write(&again));
    show(&profile, &mut Vec::new());
}

/// Results of `beamline ci`: what was read is written and read again as it is, and compared with itself is the same.
pub fn baseline(bytes: &[u8]) {
    let results = match Results::parse(&String::from_utf8_lossy(bytes)) {
        Ok(results) => results,
        Err(error) => {
            assert_eq!(error.lines().count(), 1, "{error}");
            return;
        }
    };
    let text = serde_json::to_string(&results).expect("numbers and texts");
    assert_eq!(Results::parse(&text).as_ref(), Ok(&results));
    let comparison = compare(&results, &results, |_| Limits::default());
    let told = output::text(&comparison, None) + &output::markdown(&comparison, &[]);
    let is_whole = comparison.workloads.iter().all(|w| w.notes.is_empty());
    assert!(!is_whole || !comparison.is_regression(), "{told}");
    let _ = output::json(&comparison);
    let _ = output::junit(&comparison);
    let _ = output::github(&comparison, "file");
    let _ = output::benchmark_action(&results);
}

/// A trace as text: what was read is written and read again as it is, also as JSON.
pub fn trace(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let trace: Trace = match text.parse() {
        Ok(trace) => trace,
        Err(error) => {
            assert_eq!(error.lines().count(), 1, "{error}");
            return;
        }
    };
    assert_eq!(trace.to_string().parse().as_ref(), Ok(&trace));
    if let Err(error) = trace.check() {
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let _ = trace.log().with_deliveries();
    let places: Vec<_> = trace.processes.indexes().collect();
    let json = trace.to_json(&places);
    assert_eq!(Trace::from_json(&json).as_ref(), Ok(&trace));
}

/// Puts the checks of a ring, a stream or a profile right, as far as it has them.
pub fn seal(bytes: &mut [u8]) {
    seal_profile(bytes);
    beamline_formats::ring::seal::seal(bytes);
}
