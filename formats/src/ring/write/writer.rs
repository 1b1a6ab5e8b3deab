//! Writes a ring file from many threads, each to a segment of its own.
//!
//! A record counts when the commit word of its block says so. The writer writes that word after the record, so the file
//! holds only whole records at whatever moment the program is killed. See `docs/FORMAT.md` for the order of writes.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamline_settings::chance;
use rustix::fs::{FallocateFlags, fallocate};

use super::map::Map;
use super::prefault::Prefault;
use crate::ring::model::description::Description;
use crate::ring::model::error::Error;
use crate::ring::model::event::{Event, Kind, Parts};
use crate::ring::model::id::{Again, Id, NameId};
use crate::ring::model::layout::{
    BLOCK_HEAD, BLOCK_SLOTS, BLOCK_WORDS, Check, PAGE, PAGE_WORDS, Place, SLOT_WORDS, VERSION,
    WhenFull, block, first_word, grows, header, kind, pages, row, segment, words_of,
};
use crate::ring::model::names::{Name, cut, encode};
use crate::ring::model::time::{Anchor, Clock};

/// The settings of a ring file.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Schedulers: each gets a segment, and all other threads one together.
    pub schedulers: u32,
    /// Bytes for records.
    pub ring_bytes: u64,
    /// What becomes of records that find no room.
    pub when_full: WhenFull,
    /// Marks what was recorded in the same run.
    pub token: u64,
    /// What stamps records.
    pub clock: Clock,
    /// What else is known.
    pub description: Description,
}

/// A ring file being written.
pub struct Ring {
    map: Arc<Map>,
    prefault: Prefault,
    names: Mutex<NameRoom>,
    triggers: Mutex<u64>,
    places: Vec<Place>,
    taken: Vec<AtomicBool>,
    when_full: WhenFull,
    anchor: fn() -> Anchor,
    /// Holds the lock.
    _file: File,
}

struct NameRoom {
    /// The first word of them.
    first: usize,
    used: usize,
    words: usize,
    count: u32,
    buffer: Vec<u64>,
}

impl Ring {
    /// Makes a ring file, in the place of what the file held; all of it is allocated now. A file that could not
    /// be made whole is removed.
    ///
    /// # Errors
    /// See [`Error`]: somebody else records into it, there is no room, settings that cannot be met.
    pub fn create(path: &Path, options: &RingOptions) -> Result<Arc<Ring>, Error> {
        let description = describe(options)?;
        // Settings that cannot be met leave the file as it is.
        Plan::of(options, description.len() as u64)?;
        Ring::within(lock(path)?, path, options)
    }

    /// As [`Ring::create`], in a file that this process has locked.
    pub(in crate::ring) fn within(
        file: File,
        path: &Path,
        options: &RingOptions,
    ) -> Result<Arc<Ring>, Error> {
        Ring::make(file, options).inspect_err(|_| {
            // What is left of it would be no recording; where even that fails, it stays.
            let _ = std::fs::remove_file(path);
        })
    }

    fn make(file: File, options: &RingOptions) -> Result<Arc<Ring>, Error> {
        let description = describe(options)?;
        let plan = Plan::of(options, description.len() as u64)?;
        let (map, used) = Ring::fill(&file, options, &plan, &description)?;
        let names = NameRoom {
            first: used,
            used: 0,
            words: (plan.names_bytes / 8) as usize,
            count: 0,
            buffer: Vec::new(),
        };
        let map = Arc::new(map);
        Ok(Arc::new(Ring {
            prefault: Prefault::of(&map),
            map,
            names: Mutex::new(names),
            triggers: Mutex::new(0),
            taken: plan.places.iter().map(|_| AtomicBool::new(false)).collect(),
            places: plan.places,
            when_full: options.when_full,
            anchor: options.clock.anchor,
            _file: file,
        }))
    }

    fn fill(
        file: &File,
        options: &RingOptions,
        plan: &Plan,
        description: &[u8],
    ) -> Result<(Map, usize), Error> {
        file.set_len(0)?;
        allocate(file, plan.length)?;
        let length = usize::try_from(plan.length)
            .map_err(|_| Error::Settings("the ring is larger than memory can be".into()))?;
        let map = Map::of(file, length)?;
        file.write_all_at(description, plan.description_at)?;
        let table: Vec<u64> = plan
            .places
            .iter()
            .flat_map(|place| [place.label, place.offset, place.blocks, 0])
            .collect();
        let words = map.words();
        for (at, word) in table.iter().enumerate() {
            words[plan.table_at as usize / 8 + at].store(*word, Ordering::Relaxed);
        }
        let head = plan.header(options, description, &table);
        // The magic comes last: until then the file is empty.
        for (at, word) in head.iter().enumerate().skip(1) {
            words[at].store(*word, Ordering::Relaxed);
        }
        words[0].store(head[0], Ordering::Release);
        Ok((map, plan.names_at as usize / 8))
    }

    /// Puts a name into the file; [`NameId::NONE`] when there is no more room.
    pub fn name(&self, name: Name<'_>) -> NameId {
        let mut room = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let room = &mut *room;
        encode(name, &mut room.buffer);
        let words = self.map.words();
        let count = room.count.checked_add(1);
        // There may be a label, a process and a socket for each request: they leave half of the room to the program's text.
        let limit = match name {
            Name::Label(_)
            | Name::Process { .. }
            | Name::Registered { .. }
            | Name::Labelled { .. }
            | Name::Socket { .. }
            | Name::Address { .. }
            | Name::Connection { .. } => room.words / 2,
            Name::Atom(_)
            | Name::Function { .. }
            | Name::Module { .. }
            | Name::Native { .. }
            | Name::Node { .. }
            | Name::Stack(_) => room.words,
        };
        let Some(count) = count.filter(|_| room.used + room.buffer.len() <= limit) else {
            words[header::NAMES_LOST].fetch_add(1, Ordering::Relaxed);
            return NameId::NONE;
        };
        let at = room.first + room.used;
        for (place, word) in words[at..].iter().zip(&room.buffer) {
            place.store(*word, Ordering::Relaxed);
        }
        room.used += room.buffer.len();
        room.count = count;
        words[header::NAMES_USED].store(room.used as u64 * 8, Ordering::Release);
        NameId(count)
    }

    /// How many segments there are: one for each scheduler, and the last for all other threads.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.places.len()
    }

    /// The writer of a segment; `None` when it has been taken before: there is one only.
    #[must_use]
    pub fn segment(self: &Arc<Self>, index: usize) -> Option<Segment> {
        if self.taken.get(index)?.swap(true, Ordering::AcqRel) {
            return None;
        }
        let place = self.places[index];
        Some(Segment {
            page: (place.offset / 8) as usize,
            place,
            map: self.map.clone(),
            ring: self.clone(),
            asked: 0,
            sequence: 0,
            block: 0,
            // Full: the first record begins a block.
            slots: BLOCK_SLOTS,
            check: Check::new(),
            ticks: 0,
            subject: 0,
            is_full: false,
            period: 0,
            period_ends_ns: 0,
            grows_from: 0,
        })
    }

    /// Says that something has happened that is waited for: an event of this kind, of this process or port.
    pub fn trigger(&self, kind: Kind, who: Id) {
        let mut count = self.triggers.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        let words = &self.map.words()[header::TRIGGERS..];
        words[1].store(kind as u64, Ordering::Relaxed);
        words[2].store(who.word(), Ordering::Relaxed);
        words[3].store((self.anchor)().ns, Ordering::Relaxed);
        words[0].store(*count, Ordering::Release);
    }

    /// Says that the recording has ended. What is written after it counts all the same.
    pub fn end(&self) {
        self.end_at((self.anchor)());
    }

    /// As [`Ring::end`], at a time that the caller knows: not before the last record.
    pub fn end_at(&self, Anchor { ticks, ns }: Anchor) {
        let words = self.map.words();
        words[header::END_TICKS].store(ticks, Ordering::Relaxed);
        words[header::END_NS].store(ns, Ordering::Relaxed);
        words[header::ENDED].store(1, Ordering::Release);
    }
}

fn describe(options: &RingOptions) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(&options.description).map_err(|error| Error::Settings(error.to_string()))
}

/// Opens a file, which need not be there, so that nobody else can record into it as long as the result is kept. What the
/// file holds stays until the recording begins.
///
/// # Errors
/// [`Error::Busy`] when another recording is made in it; or the file cannot be written, or is a device or a pipe.
pub fn lock(path: &Path) -> Result<File, Error> {
    let is_other = |there: std::fs::Metadata| !there.is_file() && !there.is_dir();
    if path.metadata().is_ok_and(is_other) {
        let text = "a recording cannot go to a device or a pipe: give a file";
        return Err(Error::Settings(text.into()));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Busy),
        Err(TryLockError::Error(error)) => Err(Error::Io(error)),
    }
}

/// Gives the file its blocks on the disk, so that no write to the mapping can fail.
fn allocate(file: &File, length: u64) -> Result<(), Error> {
    use rustix::io::Errno;
    match fallocate(file.as_fd(), FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = vec![0; 1 << 20];
            let mut at = 0;
            while at < length {
                let bytes = zeros.len().min((length - at) as usize);
                file.write_all_at(&zeros[..bytes], at)?;
                at += bytes as u64;
            }
            Ok(())
        }
        Err(error) => Err(Error::Io(error.into())),
    }
}

/// How many parts a ring has: other threads write little, half of what a scheduler gets.
fn shares(schedulers: u32) -> u64 {
    2 * u64::from(schedulers) + 1
}

/// The smallest ring for so many schedulers.
#[must_use]
pub fn least_bytes(schedulers: u32) -> u64 {
    shares(schedulers) * BLOCKS_MIN * PAGE as u64
}

/// The places of all parts of the file.
struct Plan {
    table_at: u64,
    description_at: u64,
    names_at: u64,
    names_bytes: u64,
    places: Vec<Place>,
    length: u64,
}

/// Bytes for names, unless the ring itself is smaller.
const NAMES_MIN: u64 = 1 << 20;
/// More names than fit into this are not of a program's text.
const NAMES_MAX: u64 = 256 << 20;

/// A segment has at least this many blocks.
const BLOCKS_MIN: u64 = 2;

impl Plan {
    fn of(options: &RingOptions, description: u64) -> Result<Plan, Error> {
        let page = PAGE as u64;
        let segments = u64::from(options.schedulers) + 1;
        let share = options.ring_bytes / page / shares(options.schedulers);
        let least = least_bytes(options.schedulers);
        if options.ring_bytes < least {
            return Err(Error::Settings(format!(
                "a ring of {} bytes is too small for {} schedulers: at least {least} are needed",
                options.ring_bytes, options.schedulers
            )));
        }
        let table_at = page;
        let description_at = table_at + pages(segments * row::WORDS as u64 * 8);
        let names_at = description_at + pages(description);
        let names_least = options.ring_bytes.min(NAMES_MIN);
        let names_bytes = pages((options.ring_bytes / 8).clamp(names_least, NAMES_MAX));
        let mut at = names_at + names_bytes;
        let mut places = Vec::new();
        for index in 0..segments {
            let other = index + 1 == segments;
            let place = Place {
                label: if other { 0 } else { index + 1 },
                offset: at,
                blocks: if other { share } else { 2 * share },
            };
            at += place.bytes();
            places.push(place);
        }
        Ok(Plan {
            table_at,
            description_at,
            names_at,
            names_bytes,
            places,
            length: at,
        })
    }

    fn header(&self, options: &RingOptions, description: &[u8], table: &[u64]) -> Vec<u64> {
        let anchor = (options.clock.anchor)();
        let mut words = vec![0; header::CHECK + 1];
        let mut set = |at: usize, word: u64| words[at] = word;
        set(
            header::MAGIC,
            u64::from_le_bytes(crate::ring::model::layout::MAGIC),
        );
        set(header::VERSION, u64::from(VERSION));
        set(header::LENGTH, self.length);
        set(header::WHEN_FULL, options.when_full.word());
        set(header::CLOCK, u64::from(options.clock.counter));
        set(header::NS_PER_4G, options.clock.ns_per_4g);
        set(header::START_TICKS, anchor.ticks);
        set(header::START_NS, anchor.ns);
        set(header::START_UNIX_NS, options.clock.unix_ns);
        set(header::TOKEN, options.token);
        set(header::OS_PID, u64::from(chance::os_pid()));
        set(header::DESCRIPTION, self.description_at);
        set(header::DESCRIPTION_BYTES, description.len() as u64);
        set(header::NAMES, self.names_at);
        set(header::NAMES_BYTES, self.names_bytes);
        set(header::SEGMENTS, self.table_at);
        set(header::SEGMENT_COUNT, self.places.len() as u64);
        set(
            header::DESCRIPTION_CHECK,
            Check::of(words_of(description)).word(),
        );
        set(
            header::SEGMENTS_CHECK,
            Check::of(table.iter().copied()).word(),
        );
        words[header::CHECK] = Check::of(words[..header::CHECK].iter().copied()).word();
        words
    }
}

/// Writes one segment.
pub struct Segment {
    ring: Arc<Ring>,
    map: Arc<Map>,
    place: Place,
    /// Blocks whose memory was asked for.
    asked: u64,
    /// The word its first page begins at.
    page: usize,
    sequence: u64,
    /// The word the current block begins at.
    block: usize,
    /// Slots of it that are used.
    slots: usize,
    check: Check,
    ticks: u64,
    subject: u64,
    is_full: bool,
    /// Records that were begun in another period grow no more.
    period: u64,
    /// Monotonic nanoseconds at which another one begins.
    period_ends_ns: u64,
    /// The block in which the first record of this period was begun that grows; 0: none was.
    grows_from: u64,
}

/// The place of a record whose number grows, for a short time.
#[derive(Clone, Copy, Debug)]
pub struct Growing {
    page: usize,
    period: u64,
    at: usize,
    times: Again,
}

/// What a record that grows tells happens at the time of the record, but for this; and that is the time of an earlier
/// record, but for this.
const PERIOD_NS: u64 = 1_000_000;

impl Segment {
    /// Writes a record that what the last one of `subject` tells happens once more; its place, if it is to grow. The
    /// clock is read for it where the last one is not known to be this segment's, of a short time ago. (Were it another
    /// segment's, the record could get an earlier time than that.)
    #[inline]
    pub fn write_growing(
        &mut self,
        last: Option<Growing>,
        now: impl FnOnce() -> u64,
        subject: Id,
    ) -> Option<Growing> {
        let goes_on = last.is_some_and(|last| self.may_grow(&last));
        let ticks = if goes_on { self.ticks } else { now() };
        let times = Again::ONCE.word();
        if !self.write(ticks, subject, &Event::OrderAgain { times }) {
            return None;
        }
        if self.grows_from == 0 {
            self.grow_from(self.sequence);
        }
        Some(Growing {
            page: self.page,
            period: self.period,
            at: self.block + BLOCK_HEAD + self.slots * SLOT_WORDS - 1,
            times: Again::ONCE,
        })
    }

    /// Whether a record of this segment was begun a short time ago.
    #[inline]
    fn may_grow(&self, record: &Growing) -> bool {
        record.period == self.period && record.page == self.page
    }

    /// Adds one to the number of a record; `false` when that is to grow no more, or is another segment's.
    #[inline]
    pub fn grow(&self, record: &mut Growing) -> bool {
        if !self.may_grow(record) {
            return false;
        }
        let Some(more) = record.times.more() else {
            return false;
        };
        record.times = more;
        // Only this thread writes it.
        self.map.words()[record.at].store(more.word(), Ordering::Relaxed);
        true
    }

    /// It is this time: a record that has begun to grow some time ago grows no more.
    pub fn time_passes(&mut self, now_ns: u64) {
        if now_ns >= self.period_ends_ns {
            self.period_ends_ns = now_ns.saturating_add(PERIOD_NS);
            self.end_period();
        }
    }

    fn end_period(&mut self) {
        self.period += 1;
        if self.grows_from != 0 {
            self.grow_from(0);
        }
    }

    /// Says from which block on records may still grow, for whoever takes blocks out.
    fn grow_from(&mut self, sequence: u64) {
        self.grows_from = sequence;
        // A thread that sees this sees what the records have become.
        self.map.words()[self.page + segment::GROWS].store(sequence, Ordering::Release);
    }

    /// Writes a record; `false` when there is no room for it, or it is of a kind that cannot be written.
    #[inline]
    pub fn write(&mut self, ticks: u64, subject: Id, event: &Event<'_>) -> bool {
        let Some(parts) = event.parts() else {
            return false;
        };
        let subject = subject.word();
        let delta = ticks.saturating_sub(self.ticks);
        let simple = parts.words <= 1 && parts.text.is_none();
        if simple
            && self.slots + SIMPLE_SLOTS <= BLOCK_SLOTS
            && let Ok(delta) = u32::try_from(delta)
        {
            self.ticks += u64::from(delta);
            if subject != self.subject {
                self.put(first_word(kind::SUBJECT, 0, 0), subject);
                self.subject = subject;
            }
            self.put_first(first_word(parts.kind, 0, delta), parts.fields[0]);
            self.commit();
            self.count(parts.kind, segment::WRITTEN);
            return true;
        }
        self.write_any(ticks, subject, &parts)
    }

    #[cold]
    fn write_any(&mut self, ticks: u64, subject: u64, parts: &Parts<'_>) -> bool {
        // A text that fills more than a block with its record is cut.
        let text = parts.text.map(|text| cut(text, TEXT_MAX));
        let fields = parts.words.saturating_sub(1);
        let more = fields + text.map_or(0, |text| 1 + text.len().div_ceil(8));
        let extra = more.div_ceil(SLOT_WORDS);
        if self.slots + extra + PREFIX_SLOTS > BLOCK_SLOTS && !self.next_block(ticks, subject) {
            self.count(parts.kind, segment::DROPPED);
            return false;
        }
        let mut delta = ticks.saturating_sub(self.ticks);
        self.ticks += delta;
        if delta > u64::from(u32::MAX) {
            self.put(first_word(kind::TIME, 0, 0), delta);
            delta = 0;
        }
        if subject != self.subject {
            self.put(first_word(kind::SUBJECT, 0, 0), subject);
            self.subject = subject;
        }
        let delta = u32::try_from(delta).unwrap_or(0);
        self.put_extended(parts, extra, delta, text);
        self.commit();
        self.count(parts.kind, segment::WRITTEN);
        true
    }

    fn put_extended(&mut self, parts: &Parts<'_>, extra: usize, delta: u32, text: Option<&str>) {
        let first = first_word(parts.kind, extra, delta);
        let fields = if parts.words == 0 {
            &[0][..]
        } else {
            &parts.fields[..parts.words]
        };
        let length = text.map(|text| text.len() as u64);
        let bytes = text.unwrap_or_default().as_bytes();
        let mut words = std::iter::once(first)
            .chain(fields.iter().copied())
            .chain(length)
            .chain(words_of(bytes));
        let first = words.next().unwrap_or(0);
        let second = words.next().unwrap_or(0);
        self.put_first(first, second);
        while let Some(word) = words.next() {
            let second = words.next().unwrap_or(0);
            self.put(word, second);
        }
    }

    /// Fills a slot, which does not count yet.
    #[inline(always)]
    fn put(&mut self, first: u64, second: u64) {
        self.fill(first, second);
        self.check.add(second);
    }

    /// Fills the first slot of a record. One that grows is in no checksum.
    #[inline(always)]
    fn put_first(&mut self, first: u64, second: u64) {
        match grows(first) {
            true => self.fill(first, second),
            false => self.put(first, second),
        }
    }

    #[inline(always)]
    fn fill(&mut self, first: u64, second: u64) {
        let at = self.block + BLOCK_HEAD + self.slots * SLOT_WORDS;
        let words = self.map.words();
        let slot = &words[at..at + SLOT_WORDS];
        slot[0].store(first, Ordering::Relaxed);
        slot[1].store(second, Ordering::Relaxed);
        self.check.add(first);
        self.slots += 1;
    }

    /// Makes all slots filled so far count.
    #[inline(always)]
    fn commit(&self) {
        let word = self.check.commit(self.sequence, self.slots);
        self.map.words()[self.block].store(word, Ordering::Release);
    }

    /// Counts a record, one of [`segment::WRITTEN`] or [`segment::DROPPED`].
    #[inline(always)]
    fn count(&self, kind: u8, counters: usize) {
        let counter = &self.map.words()[self.page + counters + usize::from(kind)];
        // Only this thread writes it.
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    /// Begins a block, where there is one to be had.
    fn next_block(&mut self, ticks: u64, subject: u64) -> bool {
        let next = self.sequence + 1;
        if self.grows_from != 0 && next - self.grows_from >= self.place.blocks / GROWING_PART {
            self.end_period();
        }
        if self.is_full || !self.has_room(next) {
            // No short record gets into what is left either: those after it would be missed unseen.
            (self.is_full, self.slots) = (true, BLOCK_SLOTS);
            return false;
        }
        self.asked = self.ring.prefault.ask(&self.place, self.asked, next);
        let words = self.map.words();
        let at = (self.place.block_at(next) / 8) as usize;
        let head = &words[at..at + BLOCK_HEAD];
        head[block::COMMIT].store(0, Ordering::Relaxed);
        // A reader that sees a word of the new block sees that the old one counts no more.
        fence(Ordering::Release);
        let anchor = (self.ring.anchor)();
        let mut values = [0; BLOCK_HEAD];
        values[block::SEQUENCE] = next;
        values[block::TICKS] = ticks;
        values[block::SUBJECT] = subject;
        values[block::ANCHOR_TICKS] = anchor.ticks;
        values[block::ANCHOR_NS] = anchor.ns;
        self.check = Check::new();
        for (word, value) in head.iter().zip(values).skip(1) {
            word.store(value, Ordering::Relaxed);
            self.check.add(value);
        }
        words[self.page + segment::HEAD].store(next, Ordering::Release);
        (self.sequence, self.block, self.slots) = (next, at, 0);
        (self.ticks, self.subject) = (ticks, subject);
        self.commit();
        true
    }

    fn has_room(&self, next: u64) -> bool {
        match self.ring.when_full {
            WhenFull::Overwrite => true,
            WhenFull::Stop => next <= self.place.blocks,
            WhenFull::Wait => self.wait(next),
        }
    }

    /// Waits until the block that `next` is to replace has been taken out; `false` when nobody does that.
    fn wait(&self, next: u64) -> bool {
        let drained = &self.map.words()[self.page + segment::DRAINED];
        let (mut seen, mut since) = (None, chance::now());
        loop {
            let now = drained.load(Ordering::Acquire);
            if next <= now.saturating_add(self.place.blocks) {
                return true;
            }
            if seen != Some(now) {
                (seen, since) = (Some(now), chance::now());
            } else if since.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Records grow in this part of a segment's blocks at most: nobody takes these out meanwhile.
const GROWING_PART: u64 = 4;

/// How long a writer waits for a drain that makes no progress.
const PATIENCE: Duration = Duration::from_secs(5);
/// And looks this often.
const PAUSE: Duration = Duration::from_micros(100);

/// Slots of a record with one field at most: its subject, itself.
const SIMPLE_SLOTS: usize = 2;
/// Slots that may come before a record: its time, its subject, its own first one.
const PREFIX_SLOTS: usize = 3;

/// Longer texts are cut.
const TEXT_MAX: usize = 2048;

const _: () = {
    let longest = crate::ring::model::event::FIELDS_MAX + 1 + TEXT_MAX / 8;
    assert!(PREFIX_SLOTS + longest.div_ceil(SLOT_WORDS) < BLOCK_SLOTS);
    assert!(BLOCK_WORDS == PAGE_WORDS);
};
