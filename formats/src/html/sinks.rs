//! Reads all data of the page in one pass over the recording.

use super::follow::Follow;
use crate::histogram::{Histograms, Measure, Of, Request};
use crate::profile::Profile;
use crate::ring::batch::Batch;
use crate::ring::calls::Callers;
use crate::ring::pass::Sink;
use crate::ring::summary::Overview;
use crate::ring::{Error, Losses, Recording, Spans, Summary};

/// Measures of the calls of a recording: they follow every record.
struct OfCalls<'r> {
    spans: Spans,
    measures: Vec<Measure<'r>>,
}

impl Sink for OfCalls<'_> {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        let (spans, measures) = (&mut self.spans, &mut self.measures);
        batch.whole().try_for_each(|record| {
            spans.add(&record, |span| {
                measures
                    .iter_mut()
                    .for_each(|measure| measure.add(&record, span));
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
    measures: Vec<Measure<'r>>,
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
fn measures<'r>(recording: &'r Recording, all: &[Of]) -> Vec<Measure<'r>> {
    let all = all
        .iter()
        .filter(|of| recording.lacking(of.needs()).is_none());
    let measures = all.map(|of| {
        let request = Request {
            of: *of,
            by: of.by(),
            only: None,
        };
        Measure::new(recording, &request)
    });
    measures.collect()
}

/// Everything that one pass gives for the page.
pub(super) struct Sinks<'r> {
    pub(super) summary: Summary,
    pub(super) profile: Profile,
    pub(super) follow: Follow<'r>,
    /// Of those for which the recording has what they need.
    pub(super) histograms: Vec<(Of, Result<Histograms, String>)>,
}

impl<'r> Sinks<'r> {
    /// Reads a recording: `rows` of each table of the report, at most `most` of each kind of single things.
    pub(super) fn of(
        recording: &'r Recording,
        rows: usize,
        most: usize,
    ) -> Result<Sinks<'r>, Error> {
        let mut callers = Callers::new(recording);
        let mut calls = OfCalls {
            spans: Spans::new().with_calls(recording),
            measures: measures(recording, &[Of::CallTime, Of::OwnTime, Of::Words]),
        };
        let span = (recording.whole_since_ns()?, recording.whole_end_ns()?);
        let others = [Of::GcPause, Of::RunSlice, Of::QueueWait, Of::MessageLatency];
        let mut others = OfOthers {
            overview: Overview::new(recording, rows),
            follow: Follow::new(recording.names(), recording.segments(), most, span),
            spans: Spans::new().with_messages(recording),
            measures: measures(recording, &others),
        };
        let read = match calls.measures.is_empty() {
            true => recording.pass(&mut [&mut callers, &mut others])?,
            false => recording.pass(&mut [&mut callers, &mut calls, &mut others])?,
        };
        let (mut summary, profile) = Summary::finish(recording, &read, callers, &others.overview)?;
        summary.keep(rows);
        others.follow.finish(&others.spans.open_turns(), span.1);
        let losses = &summary.losses;
        let mut histograms = finished(calls.measures, &calls.spans, losses);
        histograms.extend(finished(others.measures, &others.spans, losses));
        Ok(Sinks {
            summary,
            profile,
            follow: others.follow,
            histograms,
        })
    }
}

fn finished(
    measures: Vec<Measure<'_>>,
    spans: &Spans,
    losses: &Losses,
) -> Vec<(Of, Result<Histograms, String>)> {
    let all = measures.into_iter();
    let all = all.map(|measure| (measure.of(), measure.finish(spans, losses.clone())));
    all.collect()
}
