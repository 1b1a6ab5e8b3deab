//! What a record costs: written by one thread, by two at the same time, and read again.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use beamline_formats::ring::{
    Anchor, Clock, Description, Event, Id, NameId, Recording, Ring, RingOptions, Segment, WhenFull,
};
use beamline_settings::chance;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Records that are read at once.
const READ: u64 = 1_000_000;

fn ring(path: &Path) -> Arc<Ring> {
    let options = RingOptions {
        schedulers: 2,
        ring_bytes: 64 << 20,
        when_full: WhenFull::Overwrite,
        token: 0,
        clock: Clock {
            counter: false,
            ns_per_4g: 1 << 32,
            anchor: Anchor::default,
            unix_ns: 0,
        },
        description: Description::default(),
    };
    Ring::create(path, &options).expect("the ring is made")
}

/// Writes calls and returns in turn.
fn write(segment: &mut Segment, records: u64) {
    let subject = Id::Process(1);
    for at in 0..records {
        let function = NameId(at as u32 & 0xff);
        let event = if at & 1 == 0 {
            Event::Call { function }
        } else {
            Event::Return { function }
        };
        assert!(segment.write(10 * at, subject, &event));
    }
}

fn read(recording: &Recording) -> u64 {
    let counts = recording.in_parallel(|mut reader| {
        let mut records = 0;
        while reader.read()?.is_some() {
            records += 1;
        }
        Ok(records)
    });
    counts.expect("readable").into_iter().sum()
}

/// How long `threads` threads take for `records` records each.
fn together(path: &Path, threads: usize, records: u64) -> Duration {
    let ring = ring(path);
    let start = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let start = &start;
        let running: Vec<_> = (0..threads)
            .map(|at| {
                let mut segment = ring.segment(at).expect("free");
                scope.spawn(move || {
                    // The pages are there before the clock runs.
                    write(&mut segment, 4_000_000);
                    start.wait();
                    let from = chance::now();
                    write(&mut segment, records);
                    from.elapsed()
                })
            })
            .collect();
        start.wait();
        let times = running
            .into_iter()
            .map(|thread| thread.join().expect("it writes"));
        times.max().unwrap_or_default()
    })
}

fn ring_benches(criterion: &mut Criterion) {
    let folder = std::env::temp_dir().join(format!("beamline-bench-{}", chance::os_pid()));
    std::fs::create_dir_all(&folder).expect("writable");
    let path = folder.join("ring");
    let mut group = criterion.benchmark_group("ring");
    for threads in [1_usize, 2] {
        group.throughput(Throughput::Elements(threads as u64));
        group.bench_function(format!("write_by_{threads}"), |bencher| {
            bencher.iter_custom(|records| together(&path, threads, records));
        });
    }
    {
        let ring = ring(&path);
        for segment in 0..2 {
            write(&mut ring.segment(segment).expect("free"), READ / 2);
        }
    }
    let recording = Recording::open(&path).expect("readable");
    assert_eq!(read(&recording), READ);
    group.throughput(Throughput::Elements(READ));
    group.sample_size(20);
    group.bench_function("read", |bencher| bencher.iter(|| read(&recording)));
    group.bench_function("read_merged", |bencher| {
        bencher.iter(|| {
            let mut merged = recording.merged().expect("readable");
            let mut records = 0;
            while merged.read().expect("readable").is_some() {
                records += 1;
            }
            assert_eq!(records, READ);
        });
    });
    group.finish();
    // What is left is in the folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
}

criterion_group!(benches, ring_benches);
criterion_main!(benches);
