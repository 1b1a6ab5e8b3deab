//! Tests that give damaged recordings to every report. Each ends with a result or an error of one line, never with a
//! panic.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use beamline_formats::profile::{Profile, Scope, View, seal as seal_profile};
use beamline_formats::ring::seal::seal_block;
use beamline_formats::ring::{Drain, Recording};
use beamline_settings::random::Numbers;
use proptest::prelude::ProptestConfig;

use crate::events::{Summary, sample};
use crate::export::{self, Selection, Target};
use crate::flamegraph::{self, Difference, Drawing, Shape, Threshold, Width};
use crate::histogram::{By, Histograms, Of, Request};
use crate::html::Page;
use crate::json;
use crate::table::{self, Sort, Tables};

const PAGE: usize = 4096;

/// Errors and results.
#[derive(Default)]
struct Seen {
    errors: u64,
    results: u64,
}

impl Seen {
    fn add<T>(&mut self, what: &str, result: Result<T, String>) {
        match result {
            Ok(_) => self.results += 1,
            Err(error) => {
                assert_eq!(error.lines().count(), 1, "{what}: {error}");
                self.errors += 1;
            }
        }
    }

    fn histograms(&mut self, recording: &Recording) {
        for of in Of::ALL {
            let by = By::Process;
            let request = Request { of, by, only: None };
            let read = Histograms::read(recording, &request).and_then(|read| {
                let mut out = read.to_string().into_bytes();
                let text = |e: std::io::Error| e.to_string();
                read.write_json(&mut out).map_err(text)?;
                read.write_hgrm(&mut out).map_err(text)?;
                read.draw("title", &mut out).map_err(text)
            });
            self.add(of.name(), read);
        }
    }

    fn pictures(&mut self, recording: &Recording, whole: &Recording) {
        let drawing = Drawing {
            shape: Shape::new(Width::Time),
            title: "title".into(),
            subtitle: String::new(),
            min_width: 0.01,
        };
        let mut out = Vec::new();
        let chart = flamegraph::Chart::read(recording, &drawing.shape);
        let chart = chart.and_then(|chart| chart.draw(&drawing, &mut out));
        self.add("chart", chart);
        let read =
            |recording: &Recording| crate::events::profile(recording).map_err(|e| e.to_string());
        let (profile, whole) = (read(recording), read(whole).expect("it is whole"));
        let draw = profile.clone();
        let draw = draw.and_then(|profile| flamegraph::draw(&profile, &drawing, &mut out));
        self.add("flamegraph", draw);
        let difference = profile.and_then(|profile| {
            flamegraph::draw_difference(
                &whole,
                &profile,
                &drawing,
                Threshold::new(Width::Time, None, None),
                &mut out,
            )?;
            Difference::of(
                [std::slice::from_ref(&whole), std::slice::from_ref(&profile)],
                None,
                |width| Threshold::new(width, None, None),
            )
            .map(|difference| difference.to_string())
        });
        self.add("difference", difference);
    }

    fn summary(&mut self, path: &Path) -> Option<Recording> {
        let opened = Recording::open(path).map_err(|e| e.to_string());
        let recording = match opened {
            Ok(recording) => recording,
            Err(error) => {
                self.add::<()>("open", Err(error));
                return None;
            }
        };
        let summary = Summary::of(&recording, 3).map(|(summary, _)| summary.to_string());
        self.add("summary", summary.map_err(|e| e.to_string()));
        Some(recording)
    }

    fn page(&mut self, recording: &Recording) {
        let page = Page::read(recording, "a.ring", 100).map_err(|e| e.to_string());
        let written = page.and_then(|page| {
            let written = page.write(&mut std::io::sink());
            written.map_err(|e| e.to_string())
        });
        self.add("page", written);
    }

    /// Has a file read by everything there is; by the page, which does most, only in some rounds.
    fn all(&mut self, path: &Path, whole: &Recording, round: usize) {
        let Some(recording) = self.summary(path) else {
            return;
        };
        self.histograms(&recording);
        for target in Target::ALL {
            let mut out = Vec::new();
            let written = export::write(&recording, target, &Selection::default(), &mut out);
            self.add(target.name(), written.map_err(|e| e.to_string()));
        }
        self.pictures(&recording, whole);
        if round.is_multiple_of(16) {
            self.page(&recording);
        }
    }
}

/// Changes some bytes of a part of the file.
fn damage(bytes: &mut [u8], random: &mut Numbers, from: usize, length: usize) {
    for _ in 0..=random.index(4) {
        let at = from + random.index(length);
        bytes[at] = random.index(256).to_le_bytes()[0];
    }
}

/// Damaged files in a test: 2,048, or more by `PROPTEST_CASES`.
fn rounds() -> usize {
    8 * ProptestConfig::default().cases as usize
}

#[test]
fn reports_of_a_damaged_recording_are_errors_or_results() {
    let sample = sample::varied();
    let whole = fs::read(&sample.path).expect("readable");
    let path = sample.path.with_extension("damaged");
    fs::write(&path, &whole).expect("writable");
    let file = OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("writable");
    // Of the pages those that hold something.
    let is_used = |page: &usize| whole[page * PAGE..][..PAGE].iter().any(|byte| *byte != 0);
    let used: Vec<usize> = (0..whole.len() / PAGE).filter(is_used).collect();
    let (mut random, mut seen) = (Numbers(7), Seen::default());
    let whole_recording = sample.open();
    let rounds = rounds();
    for round in 0..rounds {
        let at = used[random.index(used.len())] * PAGE;
        let mut page = whole[at..][..PAGE].to_vec();
        damage(&mut page, &mut random, 0, PAGE);
        // Most are damaged so that only what is in them can show it.
        if round % 4 != 0 {
            seal_block(&mut page, 0);
        }
        file.write_all_at(&page, at as u64).expect("writable");
        seen.all(&path, &whole_recording, round);
        file.write_all_at(&whole[at..][..PAGE], at as u64)
            .expect("writable");
    }
    let Seen { errors, results } = seen;
    let least = rounds as u64;
    assert!(errors > least && results > least, "{errors} {results}");
}

#[test]
fn reports_of_a_damaged_stream_are_errors_or_results() {
    let sample = sample::varied();
    let out = sample.path.with_extension("stream");
    let drain = Drain::begin(&sample.path, &out).expect("a ring");
    drain.finish().expect("writable");
    let whole = fs::read(&out).expect("readable");
    let whole_recording = Recording::open(&out).expect("it is whole");
    let path = sample.path.with_extension("damaged");
    let mut seen = Seen::default();
    for length in (0..whole.len()).step_by(23) {
        fs::write(&path, &whole[..length]).expect("writable");
        seen.all(&path, &whole_recording, length);
    }
    let mut random = Numbers(9);
    for round in 0..rounds() {
        let mut bytes = whole.clone();
        damage(&mut bytes, &mut random, 0, whole.len());
        fs::write(&path, &bytes).expect("writable");
        if round % 8 == 0 {
            seen.all(&path, &whole_recording, round / 8);
        } else {
            seen.summary(&path);
        }
    }
    assert!(seen.errors > 100, "{}", seen.errors);
}

/// A profile with everything that a file has a section for.
fn profile() -> Profile {
    crate::events::profile(&sample::varied().open()).expect("it is whole")
}

/// Bytes changed under checks that are right: what reports find must be right by itself.
#[test]
fn reports_of_a_damaged_profile_never_break_an_index() {
    let whole = profile();
    let file = whole.write(Vec::new()).expect("a Vec takes all");
    let (mut random, mut read, mut refused) = (Numbers(11), 0, 0);
    for _ in 0..rounds() {
        let mut bytes = file.clone();
        damage(&mut bytes, &mut random, 12, file.len() - 12);
        seal_profile(&mut bytes);
        match Profile::decode(&bytes) {
            Ok(profile) => {
                read += 1;
                show(&whole, &profile);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(read > 100 && refused > 100, "{read} {refused}");
}

/// Has a profile read by everything that is made of profiles; what comes of it does not matter.
fn show(whole: &Profile, profile: &Profile) {
    let mut out = Vec::new();
    let tables = Tables {
        profile,
        by: table::By::Process,
        sort: Sort::default(),
        view: View {
            scope: Scope::App,
            top: Some(1),
            columns: Some(40),
        },
    };
    assert!(!tables.to_string().is_empty());
    json::write(profile, &mut out).expect("a Vec takes all");
    for target in [Target::Folded, Target::Callgrind, Target::Pprof] {
        let _ = export::write_profile(profile, target, &Selection::default(), &mut out);
    }
    let drawing = Drawing {
        shape: Shape::new(Width::Time),
        title: String::new(),
        subtitle: String::new(),
        min_width: 0.01,
    };
    let _ = flamegraph::draw(profile, &drawing, &mut out);
    let _ = flamegraph::draw_difference(
        whole,
        profile,
        &drawing,
        Threshold::new(Width::Time, None, None),
        &mut out,
    );
    let _ = Difference::of([whole, profile].map(std::slice::from_ref), None, |width| {
        Threshold::new(width, None, None)
    })
    .map(|difference| difference.to_string());
}
