//! Tests of streams and of what a flight recorder keeps.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use beamline_settings::random::Numbers;

use super::super::model::frame::HEAD;
use super::*;

/// Writes so many numbers into a ring that holds far less, while they are taken out into a stream.
fn stream(folder: &Path, when_full: WhenFull, all: u64, every: u64) -> PathBuf {
    let (path, out) = (folder.join("a.ring"), folder.join("a.stream"));
    let ring = create(&path, &options(1, 4, when_full));
    let mut drain = Drain::begin(&path, &out).expect("a ring");
    let mut writer = ring.segment(0).expect("free");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (done, ring) = (&done, &ring);
        scope.spawn(move || {
            for at in 0..all {
                if at % 1000 == 0 {
                    ring.name(Name::Atom(&at.to_string()));
                }
                assert!(number(&mut writer, at));
                if at % every == every - 1 {
                    std::thread::yield_now();
                }
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            drain.take().expect("writable");
        }
    });
    ring.end();
    drain.finish().expect("writable");
    out
}

/// What is missing, as reports say it.
fn losses(recording: &Recording) -> String {
    let found = recording.in_parallel(count).expect("readable");
    let losses = Losses::of(recording, &found).expect("readable");
    losses.to_string()
}

#[test]
fn a_stream_has_all_that_was_waited_for() {
    let (folder, _) = place();
    let all = 20_000;
    let out = stream(folder.path(), WhenFull::Wait, all, u64::MAX);
    let recording = open(&out);
    assert_eq!(numbers(&recording, 0), (0..all).collect::<Vec<_>>());
    let found = recording.in_parallel(count).expect("readable");
    assert_eq!(recording.losses(&found), []);
    assert!(recording.has_ended() && !recording.is_wrapped(0));
    assert_eq!(recording.names().atom(NameId(20)), "19000");
    assert!(Recording::is_one(&out) && !recording.is_cut());
    let length = fs::metadata(&out).expect("it is there").len();
    writable(&out).set_len(length - 8).expect("it gets shorter");
    let text = losses(&open(&out));
    assert!(text.starts_with("LOST: everything after the end"), "{text}");
}

/// Takes a part of what a ring gets into the stream beside it, and leaves the rest.
fn left(folder: &Path, when_full: WhenFull, taken: u64, all: u64) -> PathBuf {
    let blocks = if when_full == WhenFull::Wait { 80 } else { 20 };
    let out = folder.join("left.stream");
    let path = part_of(&out);
    let ring = create(&path, &options(1, blocks, when_full));
    let mut drain = Drain::begin(&path, &out).expect("a ring");
    let mut writer = ring.segment(0).expect("free");
    let mut write = |numbers: std::ops::Range<u64>| {
        for at in numbers {
            if at % 1000 == 0 {
                ring.name(Name::Atom(&at.to_string()));
            }
            assert!(number(&mut writer, at));
        }
    };
    write(0..taken);
    while drain.take().expect("writable") > Took::Nothing {}
    write(taken..all);
    out
}

#[test]
fn a_drain_tells_little_from_much() {
    let (folder, _) = place();
    let (path, out) = (folder.path().join("a.ring"), folder.path().join("a.stream"));
    let ring = create(&path, &options(1, 80, WhenFull::Wait));
    let mut drain = Drain::begin(&path, &out).expect("a ring");
    let mut writer = ring.segment(0).expect("free");
    let mut take_behind = |numbers: std::ops::Range<u64>| {
        for at in numbers {
            assert!(number(&mut writer, at));
        }
        drain.take().expect("writable")
    };
    assert_eq!(take_behind(0..0), Took::Nothing);
    assert_eq!(take_behind(0..1), Took::Nothing, "a block that is filled");
    assert_eq!(take_behind(1..1000), Took::Little);
    assert_eq!(take_behind(1000..9000), Took::Much);
    assert_eq!(take_behind(0..0), Took::Nothing);
}

#[test]
fn what_a_recorder_left_in_the_ring_is_read_with_the_stream() {
    let (folder, _) = place();
    for (taken, all) in [(1000, 2500), (0, 1500), (1500, 1500), (3000, 3500)] {
        let out = left(folder.path(), WhenFull::Wait, taken, all);
        let expect: Vec<u64> = (0..all).collect();
        let recording = open(&out);
        assert_eq!(numbers(&recording, 0), expect);
        assert_eq!(recording.names().atom(NameId(1)), "0");
        assert!(!recording.is_cut() && !recording.has_ended());
        let found = recording.in_parallel(count).expect("readable");
        assert_eq!(recording.losses(&found), []);
        let tally = recording.tally().expect("readable");
        assert_eq!((tally.records, tally.lost), (all, None));
        // A frame that was being written counts for nothing.
        let length = fs::metadata(&out).expect("it is there").len();
        writable(&out)
            .write_all_at(&[2; 40], length)
            .expect("writable");
        assert_eq!(numbers(&open(&out), 0), expect);
    }
}

#[test]
fn a_gap_between_stream_and_ring_is_told() {
    let (folder, _) = place();
    let (taken, all) = (2_000, 20_000);
    let out = left(folder.path(), WhenFull::Overwrite, taken, all);
    let recording = open(&out);
    let numbers = numbers(&recording, 0);
    let gap = numbers.windows(2).position(|pair| pair[0] + 1 != pair[1]);
    let gap = gap.expect("some were overwritten");
    assert!(numbers[gap] < taken && numbers.last() == Some(&(all - 1)));
    let tally = recording.tally().expect("readable");
    assert_eq!(tally.records, numbers.len() as u64);
    let lost = all - tally.records;
    let told = tally.lost.expect("some were lost");
    assert!(
        told.starts_with(&format!("LOST: {lost} records, ")),
        "{told}"
    );
    let since = recording.whole_since_ns().expect("readable");
    assert_eq!(since, 3 * numbers[gap + 1]);
}

#[test]
fn only_the_ring_of_a_stream_is_read_with_it() {
    let (folder, _) = place();
    let out = left(folder.path(), WhenFull::Wait, 1000, 1000);
    let mut other = options(1, 20, WhenFull::Wait);
    other.token = 78;
    drop(create(&part_of(&out), &other));
    let recording = open(&out);
    assert!(recording.is_cut() && recording.token() == 77);
    fs::write(&out, "").expect("writable");
    assert_eq!(open(&out).token(), 78);
    fs::write(part_of(&out), "").expect("writable");
    assert!(matches!(Recording::open(&out), Err(Error::Empty)));
}

#[test]
fn what_a_stream_misses_is_counted() {
    let (folder, _) = place();
    let all = 20_000;
    let out = stream(folder.path(), WhenFull::Overwrite, all, 500);
    let recording = open(&out);
    let numbers = numbers(&recording, 0);
    assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.last() == Some(&(all - 1)));
    let found = recording.in_parallel(count).expect("readable");
    let lost: u64 = recording
        .losses(&found)
        .iter()
        .map(|loss| loss.overwritten)
        .sum();
    assert_eq!(lost, all - numbers.len() as u64);
    // After the last gap there is none.
    let gap = numbers.windows(2).rposition(|pair| pair[0] + 1 != pair[1]);
    let whole = gap.map_or(numbers[0], |at| numbers[at + 1]);
    assert_eq!(recording.whole_since_ns().expect("readable"), 3 * whole);
}

/// Writes a record every millisecond of the ring's own clock, and keeps what is around one of them.
fn kept(folder: &Path, blocks: u64, window: Window) -> Recording {
    let (path, out) = (folder.join("a.ring"), folder.join("a.kept"));
    let mut options = options(1, blocks, WhenFull::Overwrite);
    options.clock.counter = false;
    options.clock.ns_per_4g = 1 << 32;
    options.clock.anchor = || Anchor {
        ticks: NOW.with(Cell::get),
        ns: NOW.with(Cell::get),
    };
    let start = monotonic_ns() - 10_000_000_000;
    NOW.set(start);
    let ring = create(&path, &options);
    let mut writer = ring.segment(0).expect("free");
    let watch = Watch::new(&path).expect("a ring");
    let mut write = |at: u64| {
        NOW.set(NOW.get() + 1_000_000);
        assert!(number_at(&mut writer, start, NOW.get() - start, at));
    };
    (0..9_000).for_each(&mut write);
    assert_eq!(watch.count().expect("readable"), 0);
    ring.trigger(Kind::LongGc, Id::Process(7));
    assert_eq!(watch.count().expect("readable"), 1);
    let (why, at_ns) = watch.last().expect("readable").expect("it happened");
    let mut dump = Dump::begin(&path, &out, why, at_ns, window).expect("writable");
    (9_000..9_500).for_each(&mut write);
    while dump.take().expect("writable") {}
    dump.finish().expect("writable");
    open(&out)
}

thread_local! {
    /// The clock of a ring.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn window(before_ms: u64) -> Window {
    Window {
        before: Duration::from_millis(before_ms),
        after: Duration::ZERO,
    }
}

#[test]
fn what_happened_before_something_is_kept() {
    let (folder, _) = place();
    let recording = kept(folder.path(), 1000, window(2_000));
    let kept = recording.kept().expect("it was kept");
    let who = Id::Process(7);
    let kind = Kind::LongGc;
    assert_eq!(kept.why, Why::Event { kind, who });
    assert_eq!(
        (kept.at_ns - kept.from_ns, kept.is_cut),
        (2_000_000_000, false)
    );
    let numbers = numbers(&recording, 0);
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    assert_eq!(numbers, (first..=last).collect::<Vec<_>>());
    assert!(first <= 7_000 && first + 300 > 7_000, "{first}");
    assert_eq!(last, 9_499);
    let text = losses(&recording);
    assert!(
        text.starts_with("Nothing was lost.\nKept around long_gc of <0.7.0> at 9."),
        "{text}"
    );
    assert!(!text.contains("LOST"), "{text}");
}

#[test]
fn what_the_ring_had_no_room_for_is_lost() {
    let (folder, _) = place();
    let recording = kept(folder.path(), 6, window(8_000));
    let numbers = numbers(&recording, 0);
    assert!(numbers.is_sorted_by(|a, b| a + 1 == *b), "one row");
    assert!(
        numbers[0] > 1_000 && numbers.contains(&8_999),
        "{}",
        numbers[0]
    );
    let text = losses(&recording);
    assert!(
        text.contains("for which the ring had no room; use a larger --ring"),
        "{text}"
    );
    assert!(
        text.contains(" out of scheduler 1, overwritten by newer records, those"),
        "{text}"
    );
}

#[test]
fn a_flipped_bit_in_the_head_of_a_frame_does_not_pass() {
    let (folder, path) = place();
    let out = stream(folder.path(), WhenFull::Wait, 3000, u64::MAX);
    let whole = fs::read(&out).expect("readable");
    let mut at = 16;
    while at < whole.len() {
        for bit in 0..HEAD * 8 {
            let mut bytes = whole.clone();
            bytes[at + bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).expect("writable");
            // A frame that says that it is longer than the file is what a killed writer leaves.
            let is_cut = || open(&path).is_cut();
            assert!(read_all(&path).is_err() || is_cut(), "bit {bit} at {at}");
        }
        let packed = &whole[at + 32..][..8];
        let packed = u64::from_le_bytes(packed.try_into().expect("a word"));
        at += HEAD + (packed as usize).next_multiple_of(8);
    }
}

#[test]
fn a_damaged_stream_is_an_error_or_a_result() {
    let (folder, path) = place();
    let out = stream(folder.path(), WhenFull::Wait, 3000, u64::MAX);
    let whole = fs::read(&out).expect("readable");
    let all = lines(&out).expect("readable");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = file.expect("writable");
    for length in (0..whole.len()).step_by(61) {
        fs::write(&path, &whole[..length]).expect("writable");
        // What is left of it is true.
        match lines(&path) {
            Ok(lines) => assert!(all.starts_with(&lines), "{length}"),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1),
        }
    }
    let mut random = Numbers(3);
    for _ in 0..2_000 {
        let mut bytes = whole.clone();
        for _ in 0..=random.index(4) {
            let at = random.index(bytes.len());
            bytes[at] = random.index(256) as u8;
        }
        file.write_all_at(&bytes, 0).expect("writable");
        let _ = read_all(&path);
    }
}

/// Writes records that grow, of several processes by turns, and after some how often each has grown so far, until it is
/// told to end.
fn grow_until(segment: &mut Segment, is_over: impl Fn() -> bool) {
    let mut processes = [(0_u32, None); 40];
    for at in 0_u64.. {
        let who = (at * 7 % 40) as usize;
        let (total, last) = &mut processes[who];
        if at % 97 == 0 {
            let label = Label {
                from: 1,
                number: *total,
            };
            segment.write(at, Id::Process(who as u64), &Event::OrderTake { label });
            *last = None;
        } else {
            *total += 1;
            let grows = last.as_mut().is_some_and(|last| segment.grow(last));
            if !grows {
                *last = segment.write_growing(last.take(), || at, Id::Process(who as u64));
            }
        }
        if at % 1000 == 0 {
            segment.time_passes(at * 200);
            if is_over() {
                break;
            }
        }
    }
}

/// Checks that each process has grown as often as it says itself, from the first time on that it does; how often one does.
fn check_growth(recording: &Recording) -> u64 {
    let mut totals = std::collections::BTreeMap::new();
    let mut reader = recording.segment(0);
    let mut told = 0;
    while let Some(record) = reader.read().expect("no block is damaged") {
        let total = totals.entry(record.subject).or_insert(None);
        match (record.event, total) {
            (Event::OrderTake { label }, total) => {
                assert!(
                    total.is_none_or(|total| total == label.number),
                    "{record:?}"
                );
                *total = Some(label.number);
                told += 1;
            }
            (Event::OrderAgain { times }, Some(total)) => {
                *total += Again::from_word(times).expect("it is whole").times();
            }
            _ => {}
        }
    }
    told
}

/// Takes out what a thread writes that grows, by `take`, and checks each of the files that this made.
fn check_taken(when_full: WhenFull, take: impl FnOnce(&Path) -> Vec<PathBuf>) {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 1000, when_full));
    let mut writer = ring.segment(0).expect("free");
    let (ends, looks) = (AtomicBool::new(false), AtomicU32::new(0));
    let is_over = || {
        looks.fetch_add(1, Ordering::Relaxed);
        ends.load(Ordering::Relaxed)
    };
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| grow_until(&mut writer, is_over));
        while looks.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        let taken = std::panic::catch_unwind(AssertUnwindSafe(|| take(&path)));
        ends.store(true, Ordering::Relaxed);
        taken
    });
    let told = |path: &PathBuf| check_growth(&open(path));
    assert!(taken.expect("it is taken").iter().map(told).sum::<u64>() > 0);
}

#[test]
fn what_grows_is_streamed_when_it_grows_no_more() {
    check_taken(WhenFull::Wait, |path| {
        let out = path.with_extension("stream");
        let mut drain = Drain::begin(path, &out).expect("a ring");
        let mut taken = 0;
        while taken < 20 {
            taken += u32::from(drain.take().expect("writable") > Took::Nothing);
            std::thread::yield_now();
        }
        vec![out]
    });
}

#[test]
fn what_grows_while_it_is_kept_is_not_in_part_before_what_comes_after_it() {
    check_taken(WhenFull::Overwrite, |path| {
        let keep = |at: u64| {
            let out = path.with_extension(at.to_string());
            let dump = Dump::begin(path, &out, Why::Signal, monotonic_ns(), window(1_000));
            dump.and_then(Dump::finish).expect("writable");
            out
        };
        (0..40).map(keep).collect()
    });
}
