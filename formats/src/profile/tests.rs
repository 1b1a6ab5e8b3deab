//! Tests of profile files: written, read, merged, and damaged.

use proptest::prelude::*;

use super::layout::{MAGIC, SECTION_HEAD, Tag, checksum};
use super::*;

fn header(kind: Type) -> Header {
    Header {
        kind,
        command: vec!["erl".into(), "-noshell".into()],
        host: "büro".into(),
        otp: "29.1".into(),
        run_ns: 1_234_567,
        os_pid: 42,
        node: "one@büro".into(),
        processes: 3,
        patterns: Vec::new(),
        tracing: TracingCost {
            inside_ps: 9_000,
            outside_ps: 4_000,
            again_ps: 700,
        },
    }
}

fn cost() -> impl Strategy<Value = Cost> {
    any::<[u64; 5]>().prop_map(|[calls, time_ns, words, dirty_wait_ns, tracing_ns]| Cost {
        calls,
        time_ns,
        words,
        dirty_wait_ns,
        tracing_ns,
    })
}

prop_compose! {
    fn profile()(
        kind in prop_oneof![Just(Type::CallCount), Just(Type::CallTime), Just(Type::CallMemory)],
        functions in prop::collection::vec(("[a-cé]{0,2}", ".{0,4}", 0_u32..256), 1..40),
        processes in prop::collection::vec((".{0,9}", ".{0,9}", any::<u64>()), 1..9),
    )(
        counts in prop::collection::vec(
            (0..functions.len(), prop::option::of(0..processes.len()), cost()), 0..60),
        nodes in prop::collection::vec(
            (0..functions.len(), any::<prop::sample::Index>(), any::<bool>(),
             0..processes.len(), cost(), any::<u64>()), 0..60),
        kind in Just(kind), functions in Just(functions), processes in Just(processes),
    ) -> Profile {
        let small = |i: usize| u32::try_from(i).expect("small");
        let mut tree: Vec<Node> = Vec::new();
        for (function, parent, root, process, cost, reductions) in nodes {
            let parent = (!root && !tree.is_empty()).then(|| parent.index(tree.len()));
            let process = parent.map_or(small(process), |p| tree[p].process);
            let (parent, function) = (parent.map(small), small(function));
            tree.push(Node { process, parent, function, cost, reductions, wait_ns: 0 });
        }
        Profile {
            runs: vec![header(kind)],
            functions: functions.into_iter()
                .map(|(module, name, arity)| Function { module, name, arity }).collect(),
            processes: processes.into_iter()
                .map(|(pid, name, reductions)| Process { run: 0, pid, name, reductions }).collect(),
            counts: counts.into_iter().map(|(function, process, cost)| Count {
                function: small(function), run: 0, process: process.map(small), cost }).collect(),
            nodes: tree,
            origins: BTreeMap::new(),
            natives: BTreeMap::new(),
        }
    }
}

fn encode(profile: &Profile) -> Vec<u8> {
    profile.write(Vec::new()).expect("a Vec takes all")
}

fn sample() -> Profile {
    let function = |name: &str| Function {
        module: "lists".into(),
        name: name.into(),
        arity: 2,
    };
    let cost = Cost {
        calls: 300,
        time_ns: 5_000,
        words: 70,
        dirty_wait_ns: 11,
        tracing_ns: 13,
    };
    let node = |parent, function| Node {
        process: 0,
        parent,
        function,
        cost,
        reductions: 4,
        wait_ns: 0,
    };
    Profile {
        runs: vec![header(Type::CallTime)],
        functions: vec![function("seq"), function("map")],
        processes: vec![Process {
            run: 0,
            pid: "<0.9.0>".into(),
            name: "init".into(),
            reductions: 5,
        }],
        counts: vec![Count {
            function: 1,
            run: 0,
            process: Some(0),
            cost,
        }],
        nodes: vec![node(None, 0), node(Some(0), 1)],
        origins: [("lists".to_owned(), Origin::Otp)].into(),
        natives: [(function("map"), Native::DirtyIo)].into(),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(profile in profile()) {
        prop_assert_eq!(Profile::decode(&encode(&profile)), Ok(profile));
    }

    #[test]
    fn bytes_of_any_kind_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Profile::decode(&bytes).is_err());
        let mut file = encode(&sample())[..12].to_vec();
        file.extend(bytes);
        prop_assert!(Profile::decode(&file).is_err());
    }
}

#[test]
fn every_truncation_is_refused() {
    let bytes = encode(&sample());
    for length in 0..bytes.len() {
        let error = Profile::decode(&bytes[..length]).expect_err("cut short");
        assert!(error.offset <= length, "{error}");
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn every_changed_byte_is_refused() {
    let bytes = encode(&sample());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            Profile::decode(&bytes).expect_err("changed");
        }
    }
}

/// Payloads changed under a checksum that is right: the reader's own checks are all there is.
#[test]
fn changed_payloads_with_a_right_checksum_never_break_an_index() {
    let bytes = encode(&sample());
    let (mut read, mut refused) = (0, 0);
    let mut at = 12;
    while at < bytes.len() {
        let size = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().expect("4")) as usize;
        for byte in at + SECTION_HEAD..at + SECTION_HEAD + size {
            for value in 0..=255 {
                let mut bytes = bytes.clone();
                bytes[byte] = value;
                let end = at + SECTION_HEAD + size;
                let sum = checksum(&[&bytes[at..at + 8], &bytes[at + SECTION_HEAD..end]]);
                bytes[at + 8..at + 12].copy_from_slice(&sum.to_le_bytes());
                match Profile::decode(&bytes) {
                    Ok(profile) => {
                        // Written again, the writer's own checks pass on every index.
                        encode(&profile);
                        read += 1;
                    }
                    Err(error) => {
                        assert!(error.offset >= at && error.offset <= bytes.len());
                        refused += 1;
                    }
                }
            }
        }
        at += SECTION_HEAD + size;
    }
    assert!(read > 100 && refused > 100, "{read} {refused}");
}

#[test]
fn errors_name_the_section_and_the_offset() {
    let bytes = encode(&sample());
    let message = |bytes: &[u8]| Profile::decode(bytes).expect_err("refused").to_string();
    assert_eq!(
        message(b"hello"),
        "section file, offset 0: not a Beamline profile"
    );
    assert_eq!(
        message(&bytes[..20]),
        "section file, offset 12: ends within a section's head"
    );
    let mut changed = bytes.clone();
    changed[26] ^= 1;
    assert_eq!(
        message(&changed),
        "section HEAD, offset 24: checksum does not match"
    );
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert_eq!(
        message(&newer),
        "section file, offset 8: version 9, this program reads versions 2 to 5"
    );
    let end = bytes.len() - SECTION_HEAD - 5;
    let cut = message(&bytes[..end]);
    assert!(cut.ends_with("the file is cut short"), "{cut}");
}

#[test]
fn long_tables_take_several_sections() {
    let mut profile = sample();
    for i in 0..40_000 {
        profile.functions.push(Function {
            module: "m".into(),
            name: format!("f{i}"),
            arity: 1,
        });
    }
    let bytes = encode(&profile);
    assert!(bytes.windows(4).filter(|w| w == b"FUNS").count() > 5);
    assert_eq!(Profile::decode(&bytes), Ok(profile));
}

#[test]
fn the_file_appears_when_it_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("1.blprof");
    let writer = Writer::create(&path, &header(Type::CallCount)).expect("created");
    assert!(!path.exists() && folder.path().join("1.blprof.tmp").exists());
    writer.commit().expect("renamed");
    let profile = Profile::read(&path).expect("read");
    assert_eq!(profile.kind(), Some(Type::CallCount));
    assert_eq!(Request::files(folder.path()).expect("listed"), [path]);

    let given_up = folder.path().join("2.blprof");
    drop(Writer::create(&given_up, &header(Type::CallCount)).expect("created"));
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("listed").count(),
        1,
        "a file given up is removed"
    );
}

#[test]
fn the_writer_refuses_indices_it_did_not_give() {
    let mut w = Writer::new(Vec::new(), &header(Type::CallTime)).expect("started");
    w.function(0, "f", 1, None).expect_err("no module yet");
    let m = w.module("m", Origin::App).expect("added");
    let f = w.function(m, "f", 1, None).expect("added");
    let count = |run, process| Count {
        function: f,
        run,
        process,
        cost: Cost::default(),
    };
    w.count(&count(0, Some(0))).expect_err("no process yet");
    w.count(&count(1, None)).expect_err("one run");
    let p = w.process("<0.1.0>", "a", 0).expect("added");
    let q = w.process("<0.2.0>", "b", 0).expect("added");
    let node = w.node(p, None, f, Cost::default(), 0).expect("added");
    w.node(q, Some(node), f, Cost::default(), 0)
        .expect_err("another process");
    let profile = Profile::decode(&w.finish().expect("finished")).expect("read");
    assert_eq!((profile.nodes.len(), profile.counts.len()), (1, 0));
}

#[test]
fn merging_joins_functions_and_keeps_processes_apart() {
    let mut other = sample();
    other.functions.reverse();
    other.counts[0].function = 0;
    let merged = Profile::merge([sample(), other]).expect("same type");
    assert_eq!(merged.functions.len(), 2);
    assert_eq!(merged.processes[1].run, 1);
    assert_eq!(merged.counts[0].function, merged.counts[1].function);
    assert_eq!(merged.nodes[3].parent, Some(2));
    assert_eq!(merged.nodes[3].process, 1);
    assert_eq!(Profile::decode(&encode(&merged)), Ok(merged));

    let mut counted = sample();
    counted.runs[0].kind = Type::CallCount;
    let error = Profile::merge([sample(), counted]).expect_err("two types");
    assert_eq!(
        error,
        "a profile of type call_count cannot be merged with one of type call_time"
    );
}

#[test]
fn a_request_survives_its_environment_variable() {
    let request = Request {
        kind: Type::CallMemory,
        patterns: ["lists:seq/2", "_", "'it\\'s a':'x:y'/1", "erlang://2"]
            .map(|p| p.parse().expect("a pattern"))
            .to_vec(),
        call_tree: true,
        span: Span {
            delay_ms: 3,
            duration_ms: Some(4),
            from: Some("a:b/1".parse().expect("a pattern")),
            until: None,
            by_signal: true,
        },
        folder: "/a folder".into(),
        libraries: Libraries::default(),
    };
    use beamline_settings::variable::Variable as _;
    let value = request.to_variable().expect("UTF-8");
    assert_eq!(Request::from_variable(&value), Ok(request.clone()));
    assert!(Request::from_variable("{}").is_err());
    assert!(request.patterns[0].matches("lists", "seq", 2));
    assert!(!request.patterns[0].matches("lists", "seq", 3));
    assert!(request.patterns[1].matches("any", "thing", 9));
}

#[test]
fn a_module_has_a_name_as_long_as_atoms_are() {
    let mut profile = sample();
    profile.functions[0].module = "ä".repeat(600);
    let read = Profile::decode(&encode(&profile)).expect("just written");
    assert_eq!(read.functions[0].module, "ä".repeat(510));

    let mut bytes = encode(&sample());
    let at = bytes.windows(4).position(|tag| tag == b"MODS");
    let start = at.expect("there are modules") + SECTION_HEAD;
    // 1021 as a number, and as many bytes; the last section is not reached.
    let payload = [&[0xfd, 0x07][..], &[b'a'; 1021]].concat();
    bytes.splice(start.., payload);
    bytes[start - 8..start - 4].copy_from_slice(&1023_u32.to_le_bytes());
    seal(&mut bytes);
    let error = Profile::decode(&bytes).expect_err("it is too long");
    assert_eq!(error.section, "MODS");
    assert_eq!(error.reason, "a module's name is too long");
}

/// A file of an older version. Version 2 tells nothing of native code, and version 3 nothing of what tracing costs.
fn older(version: u32) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend(version.to_le_bytes());
    // Texts of one letter, and numbers.
    let head = [1, 0, 1, b'h', 2, b'2', b'9', 9, 7, 3, 0];
    let since_3: &[u8] = if version >= 3 { &[0] } else { &[] };
    for (tag, payload) in [
        (Tag::Head, head.to_vec()),
        (Tag::Modules, vec![1, b'm', 0]),
        (Tag::Functions, [&[0, 1, b'f', 1], since_3].concat()),
        (Tag::Processes, vec![1, b'p', 1, b'n', 5]),
        (Tag::Counts, [&[0, 1, 3, 5, 7], since_3].concat()),
        (Tag::Nodes, [&[0, 0, 0, 3, 5, 7], since_3, &[4]].concat()),
        (Tag::End, vec![1, 1, 1, 1, 1]),
    ] {
        let length = u32::try_from(payload.len()).expect("short").to_le_bytes();
        let tag = tag.name().as_bytes();
        file.extend(tag);
        file.extend(length);
        file.extend(checksum(&[tag, &length, &payload]).to_le_bytes());
        file.extend(payload);
    }
    file
}

#[test]
fn files_of_older_versions_are_read() {
    for version in [2, 3] {
        is_read(&older(version));
    }
}

fn is_read(file: &[u8]) {
    let profile = Profile::decode(file).expect("it is whole");
    let cost = Cost {
        calls: 3,
        time_ns: 5,
        words: 7,
        dirty_wait_ns: 0,
        tracing_ns: 0,
    };
    assert_eq!(profile.counts[0].cost, cost);
    assert_eq!(
        (profile.nodes[0].cost, profile.nodes[0].reductions),
        (cost, 4)
    );
    assert!(profile.natives.is_empty());
    assert_eq!(profile.runs[0].tracing, TracingCost::default());
}

#[test]
fn a_function_that_was_dirty_in_one_run_is() {
    let (mut one, other) = (sample(), sample());
    let map = one.functions[1].clone();
    one.natives.insert(map.clone(), Native::Ordinary);
    for profiles in [[one.clone(), other.clone()], [other, one]] {
        let merged = Profile::merge(profiles).expect("of one type");
        assert_eq!(merged.native(&map), Some(Native::DirtyIo));
    }
}
