//! Whole files, from which the damaged ones are made: those of OTP, those of this project, and new ones.

use std::fs;
use std::path::{Path, PathBuf};

use beamline_formats::profile::{Cost, Count, Header, Native, Origin, TracingCost, Type, Writer};
use beamline_formats::ring::{
    Anchor, Clock, Description, Drain, Event, Group, Id, Kind, Name, Ring, RingOptions, Settings,
    WhenFull, least_bytes,
};
use beamline_needs::{Need, skipped};
use beamline_reports::gate::Results;
use beamline_runtime_beam::BeamModule;
use beamline_runtime_otp_home::{self as otp_home, Lookup};

use crate::beam;

/// A larger file takes too long.
const BYTES_MAX: usize = 12 << 10;
/// Files of OTP, from all of its applications.
const OTP_FILES: usize = 150;

fn workspace() -> &'static Path {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    fuzz.ancestors().nth(2).expect("it is ci/fuzz")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder and those below it, in order.
fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_in(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// `.beam` files: the project's, and small ones of OTP where there is one.
#[must_use]
pub fn beam_files() -> Vec<Vec<u8>> {
    let own = ["runtime/tests/beams", "benches/workloads"];
    let own = own.map(|folder| files_in(&workspace().join(folder), "beam"));
    let mut files: Vec<_> = own.iter().flatten().map(|path| read(path)).collect();
    match otp_home::find(&Lookup::of_process(None)) {
        Ok(otp) => {
            let all = files_in(&otp.root.join("lib"), "beam");
            let every = all.len().div_ceil(OTP_FILES * 3).max(1);
            files.extend(all.iter().step_by(every).map(|path| read(path)));
        }
        Err(_) => skipped(
            Need::Otp,
            "there are no files of an OTP; BEAMLINE_OTP names one",
        ),
    }
    let plain = files.iter().filter_map(|file| beam::plain(file));
    let small = plain.filter(|file| file.len() < BYTES_MAX);
    small.take(OTP_FILES).collect()
}

/// Terms: the literals of those files, and those of the golden file of the format.
#[must_use]
pub fn terms() -> Vec<Vec<u8>> {
    let mut terms = Vec::new();
    for file in beam_files() {
        let module = BeamModule::decode(&file).expect("a whole file");
        terms.extend(module.literals.iter().map(<[u8]>::to_vec));
        terms.push(module.attributes);
    }
    terms.sort();
    terms.dedup();
    let golden = read(&workspace().join("runtime/tests/golden/external.txt"));
    for word in String::from_utf8_lossy(&golden).split_whitespace() {
        let digits = word.as_bytes().chunks_exact(2);
        let bytes = digits.map(|two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok());
        terms.extend(bytes.collect::<Option<Vec<u8>>>());
    }
    terms
}

/// Rings with events of every kind: one that has ended, and one whose writer was killed.
#[must_use]
pub fn rings() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.ring");
    let rings = [true, false].map(|ends| {
        write_ring(&path, WhenFull::Overwrite, ends, |_| {});
        read(&path)
    });
    rings.to_vec()
}

/// Streams of the same.
#[must_use]
pub fn streams() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, out) = (folder.path().join("a.ring"), folder.path().join("a.stream"));
    let streams = [true, false].map(|ends| {
        let mut drain = None;
        write_ring(&path, WhenFull::Overwrite, ends, |path| {
            let drain = drain.get_or_insert_with(|| Drain::begin(path, &out).expect("a ring"));
            drain.take().expect("writable");
        });
        let drain = drain.expect("it was begun");
        if ends {
            drain.finish().expect("writable");
        }
        read(&out)
    });
    streams.to_vec()
}

/// Writes every kind of event, with calls that return, of processes with names. `between` is called now and then.
fn write_ring(path: &Path, when_full: WhenFull, ends: bool, mut between: impl FnMut(&Path)) {
    let options = RingOptions {
        schedulers: 2,
        ring_bytes: least_bytes(2),
        when_full,
        token: 7,
        clock: Clock {
            counter: false,
            ns_per_4g: 1 << 32,
            anchor: Anchor::default,
            unix_ns: 5,
        },
        description: Description {
            otp: "29".into(),
            command: vec!["erl".into()],
            settings: Settings {
                events: Group::ALL
                    .iter()
                    .map(|group| group.name().to_owned())
                    .collect(),
                ..Settings::default()
            },
            ..Description::default()
        },
    };
    let ring = Ring::create(path, &options).expect("the ring is made");
    let (module, name) = (ring.name(Name::Atom("lists")), ring.name(Name::Atom("map")));
    let function = ring.name(Name::Function {
        module,
        name,
        arity: 2,
    });
    for id in [Id::Process(1), Id::Process(2)] {
        let parent = Id::None;
        ring.name(Name::Process {
            id,
            parent,
            function,
        });
    }
    ring.name(Name::Registered {
        id: Id::Process(2),
        name,
    });
    ring.name(Name::Label("'label'"));
    let mut writers = [0, 1].map(|at| ring.segment(at).expect("free"));
    for round in 0..30_u64 {
        for kind in Kind::ALL {
            let fields = [u64::from(function.0), round, 2 + round % 3, 40];
            let event = Event::of(*kind as u8, &fields, "some text");
            let ticks = 10_000 * round + 100 * *kind as u64;
            for (at, writer) in (0..).zip(&mut writers) {
                writer.write(ticks + at, Id::Process(at + round % 2), &event);
            }
        }
        between(path);
    }
    if ends {
        ring.end();
    }
}

/// Profiles of every type.
#[must_use]
pub fn profiles() -> Vec<Vec<u8>> {
    let kinds = [Type::CallCount, Type::CallTime, Type::CallMemory];
    kinds.map(profile).to_vec()
}

fn profile(kind: Type) -> Vec<u8> {
    let header = Header {
        kind,
        command: vec!["erl".into(), "-noshell".into()],
        host: "host".into(),
        otp: "29".into(),
        run_ns: 1_000_000,
        os_pid: 42,
        node: "one@host".into(),
        processes: 2,
        patterns: Vec::new(),
        tracing: TracingCost::default(),
    };
    let cost = |calls| Cost {
        calls,
        time_ns: 5_000 * calls,
        words: 7 * calls,
        dirty_wait_ns: 3 * calls,
        tracing_ns: 2 * calls,
    };
    let write = || -> std::io::Result<Vec<u8>> {
        let mut writer = Writer::new(Vec::new(), &header)?;
        let module = writer.module("lists", Origin::Otp)?;
        let functions = [
            writer.function(module, "map", 2, None)?,
            writer.function(module, "-map/2-fun-0-", 1, Some(Native::DirtyIo))?,
        ];
        let process = writer.process("<0.1.0>", "init", 300)?;
        for (calls, function) in (3..).zip(functions) {
            writer.count(&Count {
                function,
                run: 0,
                process: (kind != Type::CallCount).then_some(process),
                cost: cost(calls),
            })?;
        }
        if kind != Type::CallCount {
            let root = writer.node(process, None, functions[0], cost(3), 30)?;
            writer.node(process, Some(root), functions[1], cost(4), 40)?;
        }
        writer.finish()
    };
    write().expect("a Vec takes all")
}

/// Traces as text.
pub fn traces() -> Vec<Vec<u8>> {
    let texts = [
        "{p0, [spawn(p0.1), send(l0:1), timeout, exit]} % init\n\
         {p0.1, [deliver(l0:1), receive(l0:1), miss('a module'), load(lists, 2)]}\n",
        "{p0, [spawn(p0.1), receive(t0:1, p0.1, gone), receive(t0:2)]}\n{p0.1, []}\n",
        "% a chain\n{p7, [spawn(p7.1)]}\n{p7.1^9, [receive(l7:1)]}\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

/// Baselines: the samples' own, each workload for itself and with few functions.
#[must_use]
pub fn baselines() -> Vec<Vec<u8>> {
    let text = read(&workspace().join("samples/baseline.json"));
    let all = Results::parse(&String::from_utf8_lossy(&text)).expect("the samples' baseline");
    let each = all.workloads.iter().map(|workload| {
        let mut workload = workload.clone();
        workload.functions.truncate(5);
        workload.paths.truncate(5);
        workload.times.runs_ns = vec![500, 600, 700];
        Results::new("1.0".into(), all.machine.clone(), vec![workload])
    });
    let texts = each.map(|results| serde_json::to_vec(&results).expect("numbers and texts"));
    texts.collect()
}

/// `beamline.toml`: the samples' own, and the examples of the documentation.
#[must_use]
pub fn configs() -> Vec<Vec<u8>> {
    let mut configs = vec![read(&workspace().join("samples/beamline.toml"))];
    let text = read(&workspace().join("docs/ci.md"));
    let text = String::from_utf8_lossy(&text);
    for example in text.split("```toml\n").skip(1) {
        let end = example.find("```").unwrap_or(example.len());
        configs.push(example.as_bytes()[..end].to_vec());
    }
    configs
}
