//! Batches of records on their way from the reader of a recording to the sinks that follow it.

use beamline_formats::ring::{Event, FIELDS_MAX, Group, Id, Kind, RawRecord, Record};

/// The most records of a batch.
const LENGTH: usize = 1024;

/// A batch with this many bytes of texts is full. Long texts would otherwise take more memory than all else.
const TEXTS: usize = 1 << 15;

/// What a record has besides its first field. Few records have more than that.
#[derive(Clone, Copy)]
struct More {
    fields: [u64; FIELDS_MAX - 1],
    /// Its text: from where to where.
    text: (usize, usize),
}

/// The index of a record that has nothing besides its first field.
const NONE: u16 = u16::MAX;

#[derive(Clone, Copy)]
struct Item {
    time_ns: u64,
    subject: Id,
    field: u64,
    segment: u32,
    /// The index of what else it has.
    more: u16,
    kind: u8,
}

/// Records in order of time.
pub(crate) struct Batch {
    items: Vec<Item>,
    more: Vec<More>,
    texts: String,
    /// Indices of the records that tell nothing of calls and their costs: they are few.
    others: Vec<u16>,
    /// Nothing is missing since this time.
    since_ns: u64,
}

/// A recording may have a record of this kind for each call.
fn is_of_calls(kind: Kind) -> bool {
    matches!(
        kind.group(),
        Group::Calls | Group::Returns | Group::Words | Group::Reductions
    )
}

impl Batch {
    /// An empty batch of a recording in which nothing is missing since `since_ns`.
    pub(super) fn new(since_ns: u64) -> Batch {
        Batch {
            items: Vec::with_capacity(LENGTH),
            more: Vec::new(),
            texts: String::new(),
            others: Vec::new(),
            since_ns,
        }
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.more.clear();
        self.texts.clear();
        self.others.clear();
    }

    pub(super) fn is_full(&self) -> bool {
        self.items.len() >= LENGTH || self.texts.len() >= TEXTS
    }

    #[inline]
    pub(super) fn push(&mut self, raw: &RawRecord<'_>) {
        let [field, rest @ ..] = *raw.fields;
        let has_more = !raw.text.is_empty() || rest != [0; FIELDS_MAX - 1];
        let more = if has_more {
            self.push_more(rest, raw.text)
        } else {
            NONE
        };
        let kind = Kind::of(raw.kind);
        if kind.is_none_or(|kind| !is_of_calls(kind)) {
            // A batch has fewer than that.
            self.others.push(self.items.len() as u16);
        }
        self.items.push(Item {
            time_ns: raw.time_ns,
            subject: raw.subject,
            field,
            // No file has room for more.
            segment: raw.segment as u32,
            more,
            kind: raw.kind,
        });
    }

    fn push_more(&mut self, fields: [u64; FIELDS_MAX - 1], text: &str) -> u16 {
        let from = self.texts.len();
        self.texts.push_str(text);
        self.more.push(More {
            fields,
            text: (from, self.texts.len()),
        });
        (self.more.len() - 1) as u16
    }

    #[inline]
    fn record(&self, item: &Item) -> Record<'_> {
        let ([a, b, c], text) = match self.more.get(usize::from(item.more)) {
            Some(more) => (more.fields, &self.texts[more.text.0..more.text.1]),
            None => ([0; FIELDS_MAX - 1], ""),
        };
        Record {
            time_ns: item.time_ns,
            segment: item.segment as usize,
            subject: item.subject,
            event: Event::of(item.kind, &[item.field, a, b, c], text),
        }
    }

    fn is_whole(&self, item: &Item) -> bool {
        item.time_ns >= self.since_ns
    }

    /// All records since nothing is missing.
    #[inline]
    pub(crate) fn whole(&self) -> impl Iterator<Item = Record<'_>> {
        let items = self.items.iter().filter(|item| self.is_whole(item));
        items.map(|item| self.record(item))
    }

    /// The records that tell nothing of calls and their costs, each with whether nothing is missing since.
    pub(crate) fn others(&self) -> impl Iterator<Item = (Record<'_>, bool)> {
        let items = self.others.iter().map(|at| &self.items[usize::from(*at)]);
        items.map(|item| (self.record(item), self.is_whole(item)))
    }
}

const _: () = assert!(LENGTH < NONE as usize);
