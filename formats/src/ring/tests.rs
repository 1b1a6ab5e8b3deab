//! Recordings that are written and read again, cut, damaged, and whose writer is killed.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::layout::{BLOCK_HEAD, BLOCK_SLOTS, Check, PAGE, SLOT_WORDS, block, segment, words_of};
use super::*;

fn options(schedulers: u32, blocks: u64, when_full: WhenFull) -> Options {
    Options {
        schedulers,
        // What all other threads get is half of a scheduler's share.
        ring_bytes: blocks / 2 * u64::from(2 * schedulers + 1) * PAGE as u64,
        when_full,
        token: 77,
        clock: Clock {
            counter: false,
            ns_per_4g: 1 << 32,
            anchor: Anchor::default,
            unix_ns: 5,
        },
        description: Description {
            otp: "29.1".into(),
            command: vec!["erl".into(), "-noshell".into()],
            ..Description::default()
        },
    }
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.ring");
    (folder, path)
}

fn create(path: &Path, options: &Options) -> Arc<Ring> {
    Ring::create(path, options).expect("the ring is made")
}

fn open(path: &Path) -> Recording {
    Recording::open(path).expect("the recording is read")
}

/// Time, segment, subject and event of a record, as text.
fn line(record: &Record<'_>) -> String {
    format!(
        "{} {} {} {:?}",
        record.time_ns, record.segment, record.subject, record.event
    )
}

fn lines(path: &Path) -> Result<Vec<String>, Error> {
    let recording = Recording::open(path)?;
    let mut merged = recording.merged()?;
    let mut lines = Vec::new();
    while let Some(record) = merged.read()? {
        lines.push(line(&record));
    }
    Ok(lines)
}

/// The numbers that [`number`] wrote, of one segment.
fn numbers(recording: &Recording, segment: usize) -> Vec<u64> {
    let mut reader = recording.segment(segment);
    let mut numbers = Vec::new();
    while let Some(record) = reader.read().expect("no block is damaged") {
        let Event::Out {
            function,
            messages,
            reductions,
        } = record.event
        else {
            panic!("{record:?}");
        };
        let expect = (NameId(messages as u32), record.time_ns, subject(messages));
        assert_eq!((function, reductions, record.subject), expect);
        numbers.push(messages);
    }
    numbers
}

fn subject(number: u64) -> Id {
    Id::Process(number / 7)
}

fn number(segment: &mut Segment, number: u64) -> bool {
    number_at(segment, 0, 3 * number, number)
}

/// A number, so long after the recording was begun at `start` ticks.
fn number_at(segment: &mut Segment, start: u64, time_ns: u64, number: u64) -> bool {
    let event = Event::Out {
        function: NameId(number as u32),
        messages: number,
        reductions: time_ns,
    };
    segment.write(start + time_ns, subject(number), &event)
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zé日]{0,40}",
        (0_usize..3000).prop_map(|length| "ä".repeat(length)),
    ]
}

fn ids() -> impl Strategy<Value = Id> {
    let value = 0..1_u64 << 60;
    prop_oneof![
        Just(Id::None),
        value.clone().prop_map(Id::Process),
        value.prop_map(Id::Port),
        any::<u32>().prop_map(|name| Id::Name(NameId(name))),
    ]
}

#[derive(Clone, Debug)]
struct Given {
    segment: usize,
    ticks: u64,
    subject: Id,
    kind: Kind,
    fields: [u64; 4],
    text: String,
}

/// Any record: of few subjects, as in life, with short and long times between them.
fn records() -> impl Strategy<Value = Vec<Given>> {
    let ticks = prop_oneof![8 => 0..1000_u64, 1 => 0..1_u64 << 40];
    let subject = prop_oneof![4 => Just(Id::Process(1)), 1 => ids()];
    let kind = prop::sample::select(Kind::ALL);
    let fields = prop::array::uniform4(prop_oneof![any::<u64>(), 0..100_u64]);
    let one = (0..3_usize, ticks, subject, kind, fields, texts());
    let one = one.prop_map(|(segment, ticks, subject, kind, fields, text)| Given {
        segment,
        ticks,
        subject,
        kind,
        fields,
        text,
    });
    prop::collection::vec(one, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_is_read(given in records()) {
        let (_folder, path) = place();
        let ring = create(&path, &options(2, 4096, WhenFull::Stop));
        let mut writers: Vec<_> = (0..3).map(|at| ring.segment(at).expect("free")).collect();
        let (mut expect, mut now) = (Vec::new(), 0);
        for given in &given {
            now += given.ticks;
            let text = names::cut(&given.text, 2048);
            let event = Event::of(given.kind as u8, &given.fields, text);
            let written = Event::of(given.kind as u8, &given.fields, &given.text);
            prop_assert!(writers[given.segment].write(now, given.subject, &written));
            let (time_ns, segment, subject) = (now, given.segment, given.subject);
            expect.push((now, segment, line(&Record { time_ns, segment, subject, event })));
        }
        // Of one time, the first segment comes first.
        expect.sort_by_key(|(now, segment, _)| (*now, *segment));
        let read = lines(&path).expect("readable");
        prop_assert_eq!(read, expect.into_iter().map(|(_, _, line)| line).collect::<Vec<_>>());
    }

    #[test]
    fn names_are_read_again(texts in prop::collection::vec(texts(), 1..40), arity in any::<u8>()) {
        let (_folder, path) = place();
        let ring = create(&path, &options(1, 64, WhenFull::Stop));
        let atoms: Vec<_> = texts.iter().map(|text| ring.name(Name::Atom(text))).collect();
        let (module, name) = (atoms[0], atoms[atoms.len() - 1]);
        let function = ring.name(Name::Function { module, name, arity });
        let id = Id::Process(9);
        ring.name(Name::Process { id, parent: Id::None, function });
        ring.name(Name::Registered { id, name: module });
        let label = ring.name(Name::Label(&texts[0]));
        let recording = open(&path);
        let names = recording.names();
        for (atom, text) in atoms.iter().zip(&texts) {
            prop_assert_eq!(names.atom(*atom), names::cut(text, 1024));
        }
        prop_assert_eq!(names.text(label), names::cut(&texts[0], 1024));
        let read = names.function(function).expect("it was written");
        prop_assert_eq!((read.module.as_str(), read.arity), (names.atom(module), arity));
        let process = names.process(id).expect("it was written");
        prop_assert_eq!((process.function, process.name), (function, module));
        prop_assert_eq!(recording.names_lost(), 0);
    }
}

#[test]
fn labels_and_processes_leave_room_for_names() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 4, WhenFull::Stop));
    let names = (0..10_000).flat_map(|at| {
        let process = Name::Process {
            id: Id::Process(at),
            parent: Id::None,
            function: NameId(1),
        };
        [ring.name(Name::Label(&at.to_string())), ring.name(process)]
    });
    let none = names.filter(|name| *name == NameId::NONE).count() as u64;
    assert!(none > 2000, "{none}");
    let atom = ring.name(Name::Atom("lists"));
    let recording = open(&path);
    assert_eq!(recording.names().text(atom), "lists");
    assert_eq!(recording.names_lost(), none);
}

#[test]
fn the_newest_records_stay() {
    let (_folder, path) = place();
    let ring = create(&path, &options(2, 4, WhenFull::Overwrite));
    let mut writer = ring.segment(1).expect("free");
    assert!(ring.segment(1).is_none(), "a segment has one writer");
    let all = 10_000;
    for at in 0..all {
        assert!(number(&mut writer, at));
    }
    let recording = open(&path);
    let numbers = numbers(&recording, 1);
    let first = numbers[0];
    assert_eq!(numbers, (first..all).collect::<Vec<_>>());
    assert!(numbers.len() > BLOCK_SLOTS, "more than a block is left");
    assert!(recording.is_wrapped(1) && !recording.is_wrapped(0));
    let found = recording.in_parallel(count).expect("readable");
    let loss = Loss {
        scheduler: Some(2),
        kind: Kind::Out,
        overwritten: first,
        dropped: 0,
    };
    assert_eq!(recording.losses(&found), [loss]);
}

/// How many records of each kind there are.
fn count(mut reader: SegmentReader<'_>) -> Result<Counts, Error> {
    let mut counts = [0; KINDS];
    while let Some(record) = reader.read()? {
        if let Some(kind) = record.event.kind() {
            counts[kind as usize] += 1;
        }
    }
    Ok(counts)
}

#[test]
fn the_oldest_records_stay_when_asked_for() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 4, WhenFull::Stop));
    let mut writer = ring.segment(0).expect("free");
    let written = (0..10_000).filter(|at| number(&mut writer, *at)).count() as u64;
    let recording = open(&path);
    assert_eq!(numbers(&recording, 0), (0..written).collect::<Vec<_>>());
    let found = recording.in_parallel(count).expect("readable");
    let losses = recording.losses(&found);
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].dropped, 10_000 - written);
    // Nothing short gets into the rest of the last block: that would look like all there was.
    assert!(!writer.write(0, subject(written), &Event::InExiting {}));
}

#[test]
fn names_that_do_not_fit_are_counted() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 4, WhenFull::Stop));
    let names: Vec<_> = (0..1000)
        .map(|n| ring.name(Name::Atom(&format!("atom {n:20}"))))
        .collect();
    let lost = names.iter().filter(|name| **name == NameId::NONE).count() as u64;
    let recording = open(&path);
    assert!(lost > 0 && lost < 1000);
    assert_eq!(recording.names_lost(), lost);
    assert_eq!(
        recording.names().atom(names[0]).trim_end(),
        format!("atom {:20}", 0)
    );
    assert_eq!(recording.names().atom(NameId::NONE), "?");
}

#[test]
fn what_is_known_of_a_recording_is_read() {
    let (_folder, path) = place();
    let given = options(3, 4, WhenFull::Stop);
    let ring = create(&path, &given);
    let recording = open(&path);
    assert_eq!(recording.description(), &given.description);
    assert_eq!((recording.token(), recording.unix_ns()), (77, 5));
    assert_eq!(recording.os_pid(), u64::from(std::process::id()));
    assert_eq!(recording.when_full(), Some(WhenFull::Stop));
    assert!(!recording.has_ended());
    let schedulers: Vec<_> = (0..recording.segments())
        .map(|at| recording.scheduler(at))
        .collect();
    assert_eq!(schedulers, [Some(1), Some(2), Some(3), None]);
    ring.end();
    assert_eq!(open(&path).end_ns(), Some(0));
}

#[test]
fn a_file_has_one_recording_at_a_time() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 4, WhenFull::Stop));
    let again = Ring::create(&path, &options(1, 4, WhenFull::Stop));
    assert!(matches!(again, Err(Error::Busy)));
    assert_eq!(open(&path).token(), 77, "it is as it was");
    drop(ring);
    create(&path, &options(1, 4, WhenFull::Stop));
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let (folder, path) = place();
    let small = Options {
        ring_bytes: 100,
        ..options(4, 4, WhenFull::Stop)
    };
    let huge = Options {
        ring_bytes: 1 << 60,
        ..small.clone()
    };
    for (options, expect) in [(small, "too small for 4 schedulers"), (huge, "")] {
        let error = Ring::create(&path, &options).err().expect("no room");
        let error = error.to_string();
        assert!(
            error.contains(expect) && error.lines().count() == 1,
            "{error}"
        );
        assert!(!path.exists());
    }
    let nowhere = folder.path().join("no/where");
    assert!(Ring::create(&nowhere, &options(1, 4, WhenFull::Stop)).is_err());
}

#[test]
fn files_that_are_no_recording_are_explained() {
    let (_folder, path) = place();
    drop(create(&path, &options(1, 4, WhenFull::Stop)));
    let whole = fs::read(&path).expect("readable");
    let newer = |version: u64| {
        let mut bytes = whole.clone();
        bytes[8..16].copy_from_slice(&version.to_le_bytes());
        bytes
    };
    for (bytes, expect) in [
        (Vec::new(), "empty"),
        (vec![0; 100], "empty"),
        (b"-module(a).\n".to_vec(), "not a recording"),
        (vec![0; PAGE], "not a recording"),
        (whole[..4].to_vec(), "not a recording"),
        (whole[..100].to_vec(), "100 bytes of 4096"),
        (whole[..whole.len() - 1].to_vec(), "the recording is cut"),
        (newer(2), "format 2"),
        (newer(0), "the header at byte 0"),
    ] {
        fs::write(&path, &bytes).expect("writable");
        let error = Recording::open(&path).expect_err(expect).to_string();
        assert!(
            error.contains(expect) && error.lines().count() == 1,
            "{error}"
        );
    }
}

/// A small recording with all kinds of records, two segments and a wrapped one.
fn small(path: &Path) -> Vec<u8> {
    let ring = create(path, &options(1, 4, WhenFull::Overwrite));
    let module = ring.name(Name::Atom("lists"));
    let name = ring.name(Name::Atom("seq"));
    let function = ring.name(Name::Function {
        module,
        name,
        arity: 2,
    });
    let id = Id::Process(1);
    ring.name(Name::Process {
        id,
        parent: Id::None,
        function,
    });
    ring.name(Name::Registered { id, name });
    let fields = [u64::from(function.0), 2, 3, 4];
    for (segment, rounds) in [(0, 40), (1, 2)] {
        let mut writer = ring.segment(segment).expect("free");
        for round in 0..rounds {
            for kind in Kind::ALL {
                let event = Event::of(*kind as u8, &fields, "some text");
                let ticks = round << 31 | *kind as u64;
                assert!(writer.write(ticks, Id::Process(round % 3), &event));
            }
        }
    }
    ring.end();
    fs::read(path).expect("readable")
}

/// Reads all there is; what comes of it does not matter.
fn read_all(path: &Path) -> Result<usize, Error> {
    let recording = Recording::open(path)?;
    let found = recording.in_parallel(count)?;
    let losses = recording.losses(&found);
    let (summary, _) = Summary::of(&recording, 3)?;
    let text = summary.to_string();
    Ok(lines(path)?.len() + losses.len() + text.len())
}

#[test]
fn every_truncation_is_an_error() {
    let (_folder, path) = place();
    let whole = small(&path);
    assert!(read_all(&path).is_ok());
    let file = writable(&path);
    for length in (0..whole.len() as u64).rev() {
        file.set_len(length).expect("it gets shorter");
        let error = Recording::open(&path)
            .expect_err("a part is missing")
            .to_string();
        assert_eq!(error.lines().count(), 1);
    }
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Makes the check of a block fit its words again.
pub(crate) fn mend(bytes: &mut [u8], at: usize) {
    let words: Vec<u64> = words_of(&bytes[at..at + PAGE]).collect();
    let slots = (words[block::COMMIT] & 0xffff) as usize;
    if slots <= BLOCK_SLOTS {
        let used = &words[1..BLOCK_HEAD + slots * SLOT_WORDS];
        let check = Check::of(used.iter().copied());
        let commit = check.commit(words[block::SEQUENCE], slots);
        bytes[at..at + 8].copy_from_slice(&commit.to_le_bytes());
    }
}

fn writable(path: &Path) -> File {
    let file = OpenOptions::new().write(true).open(path);
    file.expect("writable")
}

#[test]
fn a_damaged_recording_is_an_error_or_a_result() {
    let (_folder, path) = place();
    let whole = small(&path);
    let file = writable(&path);
    let pages = whole.len() / PAGE;
    let mut random = Numbers(1);
    let (mut errors, mut results) = (0, 0);
    for round in 0..10_000 {
        let mut bytes = whole.clone();
        let page = random.below(pages) * PAGE;
        for _ in 0..=random.below(4) {
            let at = page + random.below(PAGE);
            bytes[at] = random.below(256) as u8;
        }
        // Half of the blocks are damaged so that only what is in them can show it.
        if round % 2 == 0 {
            mend(&mut bytes, page);
        }
        file.write_all_at(&bytes, 0).expect("writable");
        match read_all(&path) {
            Ok(_) => results += 1,
            Err(_) => errors += 1,
        }
    }
    assert!(
        errors > 1000 && results > 1000,
        "{errors} errors, {results} results"
    );
}

#[test]
fn a_damaged_block_does_not_pass() {
    let (_folder, path) = place();
    let whole = small(&path);
    let file = writable(&path);
    // The last pages are blocks of the segment of other threads; its first page comes before them.
    let last = whole.len() - 2 * PAGE;
    assert_eq!(
        whole[last - PAGE + segment::HEAD * 8],
        1,
        "one block is used"
    );
    for at in 1..200 {
        let mut bytes = whole.clone();
        bytes[last + at] ^= 1;
        file.write_all_at(&bytes, 0).expect("writable");
        let error = read_all(&path).expect_err("a bit has changed").to_string();
        assert!(error.contains("damaged"), "{error}");
    }
}

#[test]
fn a_recording_is_read_while_it_is_written() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 64, WhenFull::Stop));
    let mut writer = ring.segment(0).expect("free");
    let (done, mut read) = (std::sync::atomic::AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..).take_while(|at| number(&mut writer, *at)).count();
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        loop {
            let last = done.load(std::sync::atomic::Ordering::Acquire);
            // A block that grows while it is read may look damaged, but no record is ever wrong.
            if let Ok(lines) = lines(&path) {
                let expect = lines.len() as u64;
                assert!(expect >= read);
                read = expect;
            }
            if last {
                break;
            }
        }
    });
    assert_eq!(numbers(&open(&path), 0).len() as u64, read);
}

#[test]
fn what_is_overwritten_while_it_is_read_is_not_said_to_be_damaged() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 4, WhenFull::Overwrite));
    let mut writer = ring.segment(0).expect("free");
    for at in 0..10 {
        number(&mut writer, at);
    }
    let recording = open(&path);
    for at in 10..10_000 {
        number(&mut writer, at);
    }
    let mut reader = recording.segment(0);
    assert!(matches!(reader.read(), Err(Error::Overwritten)));
}

/// Set for the process that is to be killed: the file it writes.
const VICTIM: &str = "BEAMLINE_RING_VICTIM";

/// Writes records without end, and after each its number to another file.
#[test]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM).map(PathBuf::from) else {
        return;
    };
    let ring = create(&path, &options(1, 8, WhenFull::Overwrite));
    let log = File::create(path.with_extension("log")).expect("writable");
    let mut writer = ring.segment(0).expect("free");
    for at in 0_u64.. {
        number(&mut writer, at);
        if at % 64 == 0 {
            log.write_all_at(&(at + 1).to_le_bytes(), 0)
                .expect("writable");
        }
    }
}

#[test]
fn whoever_is_killed_leaves_whole_records() {
    let (_folder, path) = place();
    let this = std::env::current_exe().expect("it runs");
    let mut random = Numbers(2);
    for _ in 0..30 {
        let log = path.with_extension("log");
        let _ = fs::remove_file(&log);
        let mut child = Command::new(&this)
            .args(["--exact", "ring::tests::victim"])
            .env(VICTIM, &path)
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let logged = |log: &Path| {
            let bytes = fs::read(log).ok()?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        while logged(&log).is_none() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_micros(random.below(20_000) as u64));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let recording = open(&path);
        let numbers = numbers(&recording, 0);
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        assert_eq!(numbers, (first..=last).collect::<Vec<_>>());
        let logged = logged(&log).expect("it was there");
        assert!(
            last + 1 >= logged,
            "record {logged} was written, {last} is read"
        );
    }
}

#[test]
fn the_table_of_the_documentation_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/FORMAT.md");
    let text = fs::read_to_string(&path).expect("it is in the repository");
    let (start, end) = ("<!-- kinds -->\n", "<!-- end of kinds -->");
    let from = text.find(start).expect("the table begins") + start.len();
    let to = text.find(end).expect("the table ends");
    if std::env::var_os("BLESS").is_some() {
        let new = format!("{}{}{}", &text[..from], table(), &text[to..]);
        fs::write(&path, new).expect("writable");
        return;
    }
    assert_eq!(&text[from..to], table(), "run the test with BLESS=1");
}

/// Writes so many numbers into a ring that holds far less, while they are taken out into a stream.
fn stream(folder: &Path, when_full: WhenFull, all: u64, every: u64) -> PathBuf {
    let (path, out) = (folder.join("a.ring"), folder.join("a.stream"));
    let ring = create(&path, &options(1, 4, when_full));
    let mut drain = Drain::begin(&path, &out).expect("a ring");
    let mut writer = ring.segment(0).expect("free");
    let done = std::sync::atomic::AtomicBool::new(false);
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
            done.store(true, std::sync::atomic::Ordering::Release);
        });
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            drain.take().expect("writable");
        }
    });
    ring.end();
    drain.finish().expect("writable");
    out
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
    let (summary, _) = Summary::of(&open(&out), 3).expect("whole");
    let text = summary.to_string();
    assert!(text.starts_with("LOST: what came after the end"), "{text}");
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
    let (summary, _) = Summary::of(&recording, 3).expect("whole");
    let text = summary.to_string();
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
    let (summary, _) = Summary::of(&recording, 3).expect("whole");
    let text = summary.to_string();
    assert!(
        text.contains("the ring had no room for it; use a larger --ring"),
        "{text}"
    );
    assert!(
        text.contains(" out of scheduler 1, overwritten by newer records, those"),
        "{text}"
    );
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
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        file.write_all_at(&bytes, 0).expect("writable");
        let _ = read_all(&path);
    }
}
