//! Recordings and logs that no replay can follow are refused before anything runs.

mod place;

use std::fs;

use place::{Place, RECORD_ORDER, errors};

const WORK: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Me = self(),
    [spawn(fun() -> Me ! {N, rand:uniform(1000)} end) || N <- [1, 2, 3]],
    io:format(\"~w~n\", [[receive {_, _} = One -> One end || _ <- [1, 2, 3]]]),
    halt(0).
";

fn record(place: &Place) -> Vec<u8> {
    let recorded = place.run(&[&RECORD_ORDER[..], &["work.erl"]].concat());
    assert!(recorded.status.success());
    fs::read(place.file("run.stream")).expect("a recording")
}

/// A replay of this file says one line, and runs nothing.
fn is_refused(place: &Place, file: &str, what: &str) {
    let refused = place.run(&["replay", file, "--", "work.erl"]);
    let said = errors(&refused);
    assert_eq!(refused.status.code(), Some(1), "{what}: {said}");
    assert_eq!(said.lines().count(), 1, "{what}: {said}");
    assert!(
        said.starts_with(&format!("beamline: {file}: ")),
        "{what}: {said}"
    );
    assert!(refused.stdout.is_empty(), "{what}: nothing is run");
}

/// Where the frames of a stream begin (docs/FORMAT.md).
fn frames(stream: &[u8]) -> Vec<usize> {
    const HEAD: usize = 48;
    const PACKED_BYTES: usize = 32;
    let mut frames = Vec::new();
    let mut at = 16;
    while at + HEAD <= stream.len() {
        frames.push(at);
        let length = stream[at + PACKED_BYTES..][..8]
            .try_into()
            .expect("eight bytes");
        at += HEAD + (u64::from_le_bytes(length) as usize).next_multiple_of(8);
    }
    assert_eq!(at, stream.len(), "frames make up the stream");
    frames
}

#[test]
fn a_recording_that_is_cut_is_refused() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let stream = record(&place);
    let frames = frames(&stream);
    assert!(frames.len() > 4);
    let middles = frames.windows(2).map(|pair| pair[0].midpoint(pair[1]));
    let cuts = frames.iter().copied().chain(middles.step_by(3));
    for cut in cuts.chain([0, 1, 7, 12, stream.len() - 1]) {
        fs::write(place.file("cut.stream"), &stream[..cut]).expect("writable");
        is_refused(
            &place,
            "cut.stream",
            &format!("cut at {cut} of {}", stream.len()),
        );
    }
}

#[test]
fn a_recording_with_flipped_bits_is_refused() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let stream = record(&place);
    let trace = place.printed(&["trace", "run.stream"]);
    let mut refused = 0;
    // Any places: these are spread over the file, and over the bits of a byte.
    for at in (8..stream.len()).step_by(stream.len() / 61) {
        let mut damaged = stream.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(place.file("flipped.stream"), &damaged).expect("writable");
        let read = place.run(&["trace", "flipped.stream"]);
        if read.status.success() {
            // A byte that fills up a frame, and says nothing.
            assert_eq!(String::from_utf8_lossy(&read.stdout), trace, "byte {at}");
            continue;
        }
        refused += 1;
        let bit = at % 8;
        is_refused(&place, "flipped.stream", &format!("bit {bit} of byte {at}"));
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn a_log_that_no_run_can_have_is_refused() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    record(&place);
    let log = place.printed(&["trace", "--log", "run.stream"]);
    let child = log.lines().find(|line| line.contains("-main/1-fun-"));
    let child = child.expect("a process of the workload").to_owned();
    let reference = &child[1..child.find(',').expect("a comma")];
    let number = &reference[1..];
    let main = number.rsplit_once('.').expect("a parent").0;
    let sends = format!("send(l{number}:1)");
    let cases = [
        // It waits for what is sent only when it has sent.
        (sends.clone(), format!("receive(l{main}:9999), {sends}")),
        (sends.clone(), format!("receive(l{number}:1), {sends}")),
        (sends.clone(), format!("{sends}, {sends}")),
        (sends.clone(), format!("send(l{number}:2)")),
        (sends.clone(), format!("exit, {sends}")),
        (sends.clone(), format!("{sends}, spawn({reference})")),
        (
            sends.clone(),
            format!("{sends}, after(a{number}:1, a{number}:1)"),
        ),
        (sends.clone(), format!("{sends}, content(t{main}:1, x)")),
        (sends, String::from("flies")),
        (
            format!("spawn({reference})"),
            format!("spawn({reference}.1)"),
        ),
        (format!("{{{reference}, ["), String::from("{p0, [")),
        (child.clone(), format!("{child}\n{child}")),
    ];
    for (one, other) in cases {
        let edited = log.replacen(&one, &other, 1);
        assert_ne!(edited, log, "{one}");
        place.write("edited.log", &edited);
        is_refused(&place, "edited.log", &other);
    }
}

#[test]
fn the_order_of_another_program_stops_it_at_its_first_other_step() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    record(&place);
    place.write(
        "work.erl",
        "-module(work).\n-export([main/1]).\nmain(_) -> io:format(\"other~n\"), halt(0).\n",
    );
    let other = place.run(&["replay", "run.stream", "--", "work.erl"]);
    assert_eq!(other.status.code(), Some(1), "{}", errors(&other));
    assert!(
        errors(&other).contains("the replay cannot follow: "),
        "{}",
        errors(&other)
    );
}
