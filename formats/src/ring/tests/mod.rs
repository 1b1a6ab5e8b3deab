//! Tests that write recordings and read them again.

mod damaged;
mod killed;
mod streams;

use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::model::layout::{BLOCK_SLOTS, PAGE, segment};
use super::model::names;
use super::*;

fn options(schedulers: u32, blocks: u64, when_full: WhenFull) -> RingOptions {
    RingOptions {
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

fn create(path: &Path, options: &RingOptions) -> Arc<Ring> {
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
        let labelled = Id::Process(10);
        ring.name(Name::Labelled { id: labelled, label });
        let (listener, accepted) = (Id::Socket(1), Id::Socket(2));
        let (kind, port) = (SocketKind::Tcp, Id::Port(3));
        ring.name(Name::Socket { id: listener, kind, port, listener: Id::None });
        ring.name(Name::Socket { id: accepted, kind, port: Id::None, listener });
        let addresses = [(listener, SocketEnd::Own), (accepted, SocketEnd::Peer)];
        for (id, end) in addresses {
            ring.name(Name::Address { id, end, text: &texts[0] });
        }
        for creation in [4, u32::MAX] {
            ring.name(Name::Node { name: atoms[0], creation });
        }
        ring.name(Name::Connection { number: 7, node: atoms[0], creation: 5 });
        let recording = open(&path);
        let names = recording.names();
        let node = |creation| Node { name: names.atom(atoms[0]).to_owned(), creation };
        prop_assert_eq!(names.node(), Some(&node(u32::MAX)));
        prop_assert!(names.is_node(&node(4)) && !names.is_node(&node(5)));
        prop_assert_eq!(names.connections().collect::<Vec<_>>(), [(7, &node(5))]);
        let address = names::cut(&texts[0], 1024);
        prop_assert_eq!(names.socket(listener).map(|of| (of.port, of.own.as_str())), Some((port, address)));
        prop_assert_eq!(names.socket(accepted).map(|of| (of.listener, of.peer.as_str())), Some((listener, address)));
        prop_assert_eq!(names.process_text(labelled), names.text(label));
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

fn writable(path: &Path) -> File {
    let file = OpenOptions::new().write(true).open(path);
    file.expect("writable")
}

/// Reads all there is; what comes of it does not matter.
fn read_all(path: &Path) -> Result<usize, Error> {
    let recording = Recording::open(path)?;
    let found = recording.in_parallel(count)?;
    let losses = Losses::of(&recording, &found)?;
    Ok(lines(path)?.len() + losses.to_string().len())
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
    assert_eq!(
        recording.os_pid(),
        u64::from(beamline_settings::chance::os_pid())
    );
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
    let small = RingOptions {
        ring_bytes: 100,
        ..options(4, 4, WhenFull::Stop)
    };
    let huge = RingOptions {
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

/// A request of a run whose recordings go into this file.
fn request(file: &Path, token: u64, is_apart: bool) -> Request {
    Request {
        file: file.to_owned(),
        is_apart,
        token,
        events: Vec::new(),
        system: System::default(),
        patterns: Vec::new(),
        ring_bytes: 0,
        when_full: WhenFull::Wait,
        counters: Vec::new(),
        triggers: Vec::new(),
        span: crate::profile::Span::default(),
        folder: PathBuf::new(),
        libraries: crate::profile::Libraries::default(),
        host: Host::default(),
        beamline: String::new(),
        command: Vec::new(),
    }
}

#[test]
fn each_emulator_of_a_run_has_a_file() {
    let (folder, path) = place();
    let file = |name: &str| folder.path().join(name);
    let mine = "not of this run";
    fs::write(file("a-2.ring"), mine).expect("writable");
    for is_apart in [false, true] {
        let request = request(&path, 77, is_apart);
        let options = options(1, 4, WhenFull::Wait);
        let make = || request.create_ring(&options).expect("a ring");
        // The first one has ended when the third one begins.
        let (first, second) = (make(), make());
        drop(first);
        let third = make();
        let names = ["a.ring", "a-3.ring", "a-4.ring"].map(file);
        let names = names.map(|name| if is_apart { part_of(&name) } else { name });
        let expect: Vec<(u32, PathBuf)> = [1, 3, 4].into_iter().zip(names).collect();
        assert_eq!(request.rings().expect("readable"), expect);
        drop((second, third));
        if is_apart {
            assert_eq!(
                fs::read(file("a-2.ring")).expect("readable"),
                mine.as_bytes()
            );
            continue;
        }
        let next = Request {
            token: 78,
            ..request
        };
        let held = lock(&path).expect("writable");
        assert!(matches!(next.remove_earlier(), Err(Error::Busy)));
        drop(held);
        assert!(file("a-3.ring").exists(), "nobody knows whose it is");
        drop(create(&path, &options));
        next.remove_earlier().expect("they are removed");
        assert!(path.exists() && !file("a-3.ring").exists() && !file("a-4.ring").exists());
        assert!(file("a-2.ring").exists());
        fs::remove_file(&path).expect("it is there");
    }
}

/// The numbers that grow, of a whole recording.
fn grown(path: &Path) -> Vec<u32> {
    let recording = open(path);
    let mut merged = recording.merged().expect("readable");
    let mut counts = Vec::new();
    while let Some(record) = merged.read().expect("no block is damaged") {
        if let Event::OrderAgain { times } = record.event {
            counts.extend(Again::from_word(times).map(Again::times));
        }
    }
    counts
}

/// Begins a record of this process that grows.
fn begin_growing(segment: &mut Segment, who: Id) -> Growing {
    let begun = segment.write_growing(None, || 9, who);
    begun.expect("there is room")
}

#[test]
fn a_number_grows_in_its_place_for_a_short_time() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 64, WhenFull::Stop));
    let [mut one, mut other] = [0, 1].map(|at| ring.segment(at).expect("free"));
    let mut first = begin_growing(&mut one, Id::Process(9));
    assert!(number(&mut one, 1) && one.grow(&mut first) && one.grow(&mut first));
    assert!(
        number(&mut other, 1) && !other.grow(&mut first),
        "another thread writes it"
    );
    assert_eq!(grown(&path), [3]);
    (3..256).for_each(|_| assert!(one.grow(&mut first)));
    assert!(!one.grow(&mut first), "it has grown enough");
    let mut second = begin_growing(&mut one, Id::Process(9));
    assert!(one.grow(&mut second));
    (2..BLOCK_SLOTS as u64).for_each(|next| assert!(number(&mut one, next)));
    assert!(one.grow(&mut second), "it is in an older block");
    one.time_passes(5);
    assert!(!one.grow(&mut second), "it is of an earlier time");
    let mut third = begin_growing(&mut one, Id::Process(9));
    for (now_ns, grows) in [
        (5, true),
        (1_000_004, true),
        (1_000_005, false),
        (1_000_006, false),
    ] {
        one.time_passes(now_ns);
        assert_eq!(one.grow(&mut third), grows, "{now_ns}");
    }
    assert_eq!(grown(&path), [256, 3, 3]);
}

/// Fills as many slots as a block has.
fn fill(segment: &mut Segment) {
    for _ in 0..BLOCK_SLOTS {
        segment.write(1, Id::Process(1), &Event::OrderTimeout {});
    }
}

#[test]
fn a_number_grows_in_a_quarter_of_the_blocks_at_most() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 16, WhenFull::Overwrite));
    let mut segment = ring.segment(0).expect("free");
    let mut growing = begin_growing(&mut segment, Id::Process(9));
    let mut blocks = 0;
    while segment.grow(&mut growing) {
        fill(&mut segment);
        blocks += 1;
    }
    assert_eq!(blocks, 4);
}

#[test]
fn a_record_that_grows_has_the_time_of_the_last_one_where_that_is_not_long_ago() {
    let (_folder, path) = place();
    let ring = create(&path, &options(1, 16, WhenFull::Stop));
    let [mut one, mut other] = [0, 1].map(|at| ring.segment(at).expect("free"));
    let write = |segment: &mut Segment, last, now| {
        let reads = Cell::new(false);
        let clock = || {
            reads.set(true);
            now
        };
        let begun = segment.write_growing(last, clock, Id::Process(9));
        (begun.expect("there is room"), reads.get())
    };
    let (first, reads) = write(&mut one, None, 5);
    assert!(reads, "nothing is known of the time");
    let (second, reads) = write(&mut one, Some(first), 6);
    assert!(!reads);
    let (third, reads) = write(&mut other, Some(second), 7);
    assert!(reads, "the last one is another thread's");
    one.time_passes(1);
    assert!(write(&mut one, Some(second), 8).1, "time has passed");
    assert!(!write(&mut other, Some(third), 9).1);
}
