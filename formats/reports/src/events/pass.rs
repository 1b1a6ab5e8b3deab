//! One pass over a recording: a reader thread decodes the records in order of time, and sinks follow them in threads of
//! their own.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;

use beamline_formats::ring::{
    Counts, Error, Id, KINDS, Losses, Merged, RawRecord, Record, Recording,
};

use crate::events::batch::Batch;

/// The most batches on their way to a sink, and so how far the reader may be ahead.
const BATCHES: usize = 4;

/// Follows the records of a pass.
pub(crate) trait Sink: Send {
    /// The next records.
    ///
    /// # Errors
    /// Whatever ends the pass.
    fn take(&mut self, batch: &Batch) -> Result<(), Error>;
}

/// What a pass tells of all records.
pub(crate) struct Read {
    /// For each segment, how many records it has of each kind.
    pub(crate) found: Vec<Counts>,
    /// The processes and ports that the records are of.
    pub(crate) subjects: HashSet<Id>,
    /// For each segment, the process or port that its last record is of.
    last: Vec<Id>,
}

impl Read {
    fn new(segments: usize) -> Read {
        Read {
            found: vec![[0; KINDS]; segments],
            subjects: HashSet::new(),
            last: vec![Id::None; segments],
        }
    }

    #[inline]
    fn add(&mut self, raw: &RawRecord<'_>) {
        // What only a newer version knows is counted too, and nobody asks for it.
        if let Some(count) = self.found[raw.segment].get_mut(usize::from(raw.kind)) {
            *count += 1;
        }
        let last = &mut self.last[raw.segment];
        if raw.subject != *last {
            *last = raw.subject;
            self.subjects.insert(raw.subject);
        }
    }
}

/// Gives all batches to `give` until that returns `false`. Batches that come back through `free` are filled again.
fn read(
    recording: &Recording,
    since_ns: u64,
    free: &Receiver<Batch>,
    mut give: impl FnMut(Batch) -> bool,
) -> Result<Read, Error> {
    let mut read = Read::new(recording.segments());
    let mut merged = recording.merged()?;
    loop {
        let mut batch = free.try_recv().unwrap_or_else(|_| Batch::new(since_ns));
        batch.clear();
        let more = fill(&mut merged, &mut batch, &mut read);
        // What is before a damaged block is followed too.
        if !give(batch) || !more? {
            return Ok(read);
        }
    }
}

/// Fills a batch; `false` at the end.
fn fill(merged: &mut Merged<'_>, batch: &mut Batch, read: &mut Read) -> Result<bool, Error> {
    while !batch.is_full() {
        let Some(raw) = merged.read_raw()? else {
            return Ok(false);
        };
        read.add(&raw);
        batch.push(&raw);
    }
    Ok(true)
}

/// Has a sink take batches until there are no more.
fn follow(
    sink: &mut dyn Sink,
    batches: &Receiver<Arc<Batch>>,
    empty: &Sender<Batch>,
) -> Result<(), Error> {
    for batch in batches {
        sink.take(&batch)?;
        if let Some(batch) = Arc::into_inner(batch) {
            // The reader has ended when nobody wants it.
            let _ = empty.send(batch);
        }
    }
    Ok(())
}

/// Has all sinks follow all records in order of time, each in a thread of its own.
///
/// # Errors
/// The first error of a sink, or a damaged block.
pub(crate) fn pass(recording: &Recording, sinks: &mut [&mut dyn Sink]) -> Result<Read, Error> {
    let since_ns = recording.whole_since_ns()?;
    thread::scope(|scope| {
        let (empty, free) = mpsc::channel();
        let (mut full, mut threads) = (Vec::<SyncSender<Arc<Batch>>>::new(), Vec::new());
        for sink in sinks.iter_mut() {
            let (sender, batches) = mpsc::sync_channel(BATCHES);
            let empty = empty.clone();
            full.push(sender);
            threads.push(scope.spawn(move || follow(&mut **sink, &batches, &empty)));
        }
        let read = read(recording, since_ns, &free, |batch| {
            let batch = Arc::new(batch);
            full.iter().all(|full| full.send(batch.clone()).is_ok())
        });
        drop(full);
        let mut done = Ok(());
        for thread in threads {
            let followed = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done = done.and(followed);
        }
        done.and(read)
    })
}

/// Hands all records since nothing is missing to `each`, in order of time. The result says what is missing.
///
/// # Errors
/// When a block is damaged, or the first error of `each`.
pub fn scan<E: From<Error>>(
    recording: &Recording,
    mut each: impl FnMut(&Record<'_>) -> Result<(), E>,
) -> Result<Losses, E> {
    let since_ns = recording.whole_since_ns()?;
    let read = thread::scope(|scope| {
        let (empty, free) = mpsc::channel();
        let (full, batches) = mpsc::sync_channel::<Batch>(BATCHES);
        let give = move |batch| full.send(batch).is_ok();
        let reader = scope.spawn(move || read(recording, since_ns, &free, give));
        let mut done = Ok(());
        for batch in batches {
            done = batch.whole().try_for_each(|record| each(&record));
            if done.is_err() {
                // The reader ends when nobody takes what it gives.
                break;
            }
            let _ = empty.send(batch);
        }
        let read = reader.join();
        let read = read.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.and(read.map_err(E::from))
    })?;
    Ok(Losses::of(recording, &read.found)?)
}

#[cfg(test)]
mod tests {
    use beamline_formats::ring::{Event, Group, Kind, NameId};

    use super::super::sample::{Sample, process};
    use super::*;

    /// Several batches of them.
    const RECORDS: u64 = 10_000;

    fn long() -> Sample {
        let mut sample = Sample::new(&[Group::Calls, Group::Processes]);
        let function = NameId(7);
        for at in 0..RECORDS {
            let (who, segment) = (process(at / 100 % 3), at as usize % 2);
            let event = match at % 1000 {
                0 => Event::Exit { text: "killed" },
                _ => Event::Call { function },
            };
            sample.write_on(segment, at, who, event);
        }
        sample
    }

    /// What a record is, as far as it matters here.
    type Seen = (u64, Id, Option<Kind>, bool);

    fn seen(record: &Record<'_>) -> Seen {
        let is_killed = record.event == Event::Exit { text: "killed" };
        let (time_ns, who) = (record.time_ns, record.subject);
        (time_ns, who, record.event.kind(), is_killed)
    }

    #[derive(Default)]
    struct Keeps {
        all: Vec<Seen>,
        others: Vec<Seen>,
    }

    impl Sink for Keeps {
        fn take(&mut self, batch: &Batch) -> Result<(), Error> {
            self.all.extend(batch.whole().map(|record| seen(&record)));
            let others = batch.others().map(|(record, _)| seen(&record));
            self.others.extend(others);
            Ok(())
        }
    }

    /// Wants no more than this number of batches.
    struct Fails(usize);

    impl Sink for Fails {
        fn take(&mut self, _: &Batch) -> Result<(), Error> {
            self.0 = self.0.checked_sub(1).ok_or(Error::Foreign)?;
            Ok(())
        }
    }

    #[test]
    fn all_sinks_follow_all_records() {
        let recording = long().open();
        let (mut one, mut two) = (Keeps::default(), Keeps::default());
        let read = pass(&recording, &mut [&mut one, &mut two]).expect("no block is damaged");
        let mut expect = Vec::new();
        let mut merged = recording.merged().expect("no block is damaged");
        while let Some(record) = merged.read().expect("no block is damaged") {
            expect.push(seen(&record));
        }
        assert_eq!(expect.len() as u64, RECORDS);
        assert!(one.all == expect && two.all == expect);
        expect.retain(|(_, _, kind, _)| *kind == Some(Kind::Exit));
        assert_eq!(one.others, expect);
        assert_eq!(one.others.iter().filter(|seen| seen.3).count(), 10);
        let of = |kind: Kind| {
            read.found
                .iter()
                .map(|found| found[kind as usize])
                .sum::<u64>()
        };
        assert_eq!([of(Kind::Call), of(Kind::Exit)], [RECORDS - 10, 10]);
        assert_eq!(read.subjects.len(), 3);
    }

    #[test]
    fn an_error_ends_a_pass() {
        let recording = long().open();
        for batches in 0..3 {
            let (mut fails, mut keeps) = (Fails(batches), Keeps::default());
            let done = pass(&recording, &mut [&mut keeps, &mut fails]);
            assert!(matches!(done, Err(Error::Foreign)), "{batches}");
        }
        let mut left = 5000;
        let done = scan(&recording, |_| {
            left -= 1;
            if left == 0 {
                return Err(Error::Foreign);
            }
            Ok(())
        });
        assert!(matches!(done, Err(Error::Foreign)) && left == 0);
    }
}
