//! Tests of files that are cut, damaged, foreign, or written while they are read.

use beamline_settings::random::Numbers;

use super::*;

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
        (newer(3), "format 3"),
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
    for (segment, rounds) in [(0, 40), (1, 1)] {
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
        let page = random.index(pages) * PAGE;
        for _ in 0..=random.index(4) {
            let at = page + random.index(PAGE);
            bytes[at] = random.index(256) as u8;
        }
        // Half of the blocks are damaged so that only what is in them can show it.
        if round % 2 == 0 {
            super::seal::seal_block(&mut bytes, page);
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

#[test]
fn a_name_that_is_longer_than_names_are_is_damage() {
    let entry = |words: usize| {
        let payload = vec![0x6161_6161_6161_6161; words];
        let first = (words as u64 * 8) | (1 << 32);
        let first = first | crate::ring::model::names::check(first, &payload);
        let words = std::iter::once(first).chain(payload);
        words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()
    };
    let names = Names::read(&entry(128), 0).expect("as long as may be");
    assert_eq!(names.atom(NameId(1)).len(), 1024);
    let error = Names::read(&entry(129), 0).expect_err("too long");
    assert!(matches!(error, Error::Corrupt { what: "a name", .. }));
}
