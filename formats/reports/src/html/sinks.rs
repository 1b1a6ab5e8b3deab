//! Reads all data of the page in one pass over the recording.

use std::collections::HashMap;

use beamline_formats::profile::Profile;
use beamline_formats::ring::{Error, Losses, Record, Recording};

use super::clock::{Clock, Sizes};
use super::follow::{Follow, LongCall, Longest};
use super::parts::{InPart, InParts};
use super::races::Coming;
use super::samples::Seen;
use crate::events::batch::Batch;
use crate::events::calls::Callers;
use crate::events::pass::{Sink, pass};
use crate::events::summary::Overview;
use crate::events::{Span, Spans, Step, Summary};
use crate::histogram::{Histograms, Measure, Of, Request};

/// Sockets in the table of a page: those that were waited for longest.
const SOCKETS: usize = 1000;

/// A measure of the whole recording, and of each part of it.
struct OverTime<'r> {
    measure: Measure<'r>,
    sizes: Sizes,
}

impl OverTime<'_> {
    fn add(&mut self, record: &Record<'_>, span: &Span) {
        if let Some(value) = self.measure.add(record, span) {
            self.sizes.add(record.time_ns, value);
        }
    }
}

/// The calls of a recording: their measures, and the longest of them. They follow every record.
struct OfCalls<'r> {
    spans: Spans,
    measures: Vec<OverTime<'r>>,
    longest: Longest<LongCall>,
}

impl Sink for OfCalls<'_> {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        let (spans, measures, longest) = (&mut self.spans, &mut self.measures, &mut self.longest);
        batch.whole().try_for_each(|record| {
            spans.add(&record, |span| {
                measures
                    .iter_mut()
                    .for_each(|measure| measure.add(&record, span));
                if let Span::Call(Step::End(call)) = span {
                    longest.add(LongCall::of(record.subject, call, record.time_ns));
                }
                Ok(())
            })
        })
    }
}

/// Follows the records that have nothing to do with calls: there are few of them.
struct OfOthers<'r> {
    overview: Overview,
    follow: Follow<'r>,
    spans: Spans,
    measures: Vec<OverTime<'r>>,
}

impl Sink for OfOthers<'_> {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        self.overview.take(batch)?;
        let (spans, measures) = (&mut self.spans, &mut self.measures);
        let whole = batch.others().filter(|(_, is_whole)| *is_whole);
        whole.map(|(record, _)| record).try_for_each(|record| {
            spans.add(&record, |span| {
                self.follow.add(&record, span);
                measures
                    .iter_mut()
                    .for_each(|measure| measure.add(&record, span));
                Ok(())
            })
        })
    }
}

/// Measures of those of `all` for which the recording has what they need.
fn measures<'r>(recording: &'r Recording, all: &[Of], clock: Clock) -> Vec<OverTime<'r>> {
    let all = all
        .iter()
        .filter(|of| recording.lacking(of.needs()).is_none());
    let measures = all.map(|of| {
        let request = Request {
            of: *of,
            by: of.by(),
            only: None,
        };
        OverTime {
            measure: Measure::new(recording, &request),
            sizes: Sizes::new(clock),
        }
    });
    measures.collect()
}

/// A measure that has followed all records.
pub(super) struct Measured {
    pub(super) of: Of,
    pub(super) all: Result<Histograms, String>,
    pub(super) sizes: Sizes,
}

/// Everything that one pass gives for the page.
pub(super) struct Sinks<'r> {
    pub(super) clock: Clock,
    pub(super) summary: Summary,
    /// How many sockets of the summary were left out.
    pub(super) sockets_left: usize,
    pub(super) profile: Profile,
    /// What the profile's paths cost in parts of the time, in order; and how many of the clock's parts are one, as a power of two.
    pub(super) in_parts: (Vec<InPart>, u32),
    pub(super) calls: Longest<LongCall>,
    pub(super) follow: Follow<'r>,
    /// Of a recording of samples alone.
    pub(super) seen: Option<Seen>,
    /// Of those for which the recording has what they need.
    pub(super) histograms: Vec<Measured>,
}

impl<'r> Sinks<'r> {
    /// Reads a recording: `rows` of each table of the report, at most `most` of each kind of single things. The places of
    /// `comings` are kept.
    pub(super) fn of(
        recording: &'r Recording,
        rows: usize,
        most: usize,
        comings: HashMap<Coming, Option<u64>>,
    ) -> Result<Sinks<'r>, Error> {
        let span = (recording.whole_since_ns()?, recording.whole_end_ns()?);
        let clock = Clock::new(span);
        // As many cells as there may be call paths and time slices.
        let mut paths = InParts::new(Callers::new(recording), clock, 2 * most);
        let mut calls = OfCalls {
            spans: Spans::new().with_calls(recording),
            measures: measures(recording, &[Of::CallTime, Of::OwnTime, Of::Words], clock),
            longest: Longest::new(most),
        };
        let others = [
            Of::GcPause,
            Of::RunSlice,
            Of::QueueWait,
            Of::DirtyWait,
            Of::MessageLatency,
        ];
        let mut others = OfOthers {
            overview: Overview::new(recording, rows),
            follow: Follow::new(recording.names(), recording.segments(), most, clock)
                .look_for(comings),
            spans: Spans::new().with_messages(recording),
            measures: measures(recording, &others, clock),
        };
        let mut seen = recording.sampling().map(|_| Seen::new(clock));
        let mut sinks: Vec<&mut dyn Sink> = vec![&mut paths, &mut others];
        if !calls.measures.is_empty() {
            sinks.push(&mut calls);
        }
        if let Some(seen) = &mut seen {
            sinks.push(seen);
        }
        let read = pass(recording, &mut sinks)?;
        let (callers, cells, shift) = paths.finish();
        let (mut summary, profile) = Summary::finish(recording, &read, callers, &others.overview)?;
        let sockets_left = summary.connections.len().saturating_sub(SOCKETS);
        summary.connections.truncate(SOCKETS);
        summary.keep(rows);
        others.follow.finish(&others.spans, span.1);
        for (who, call) in calls.spans.calls_left(span.1) {
            calls.longest.add(LongCall::of(who, &call, span.1));
        }
        let losses = &summary.losses;
        let mut histograms = finished(calls.measures, &calls.spans, losses);
        histograms.extend(finished(others.measures, &others.spans, losses));
        Ok(Sinks {
            clock,
            summary,
            sockets_left,
            profile,
            in_parts: (cells, shift),
            calls: calls.longest,
            follow: others.follow,
            seen,
            histograms,
        })
    }
}

fn finished(measures: Vec<OverTime<'_>>, spans: &Spans, losses: &Losses) -> Vec<Measured> {
    let all = measures.into_iter();
    let all = all.map(|OverTime { measure, mut sizes }| {
        sizes.finish();
        Measured {
            of: measure.of(),
            all: measure.finish(spans, losses.clone()),
            sizes,
        }
    });
    all.collect()
}
