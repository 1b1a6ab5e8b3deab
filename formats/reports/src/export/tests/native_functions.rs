//! Native code in exports.

use std::collections::BTreeMap;
use std::io::Read as _;

use beamline_formats::profile::Native;

use super::*;

#[test]
fn native_code_is_told_from_other_code() {
    let mut sample = sample::varied();
    sample.native("fib", Native::DirtyIo);
    let recording = sample.open();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(export(&recording, Target::Pprof).as_slice())
        .read_to_end(&mut plain)
        .expect("gzip");
    let profile = pprof_proto::Profile::decode(plain.as_slice()).expect("its protocol buffer");
    let text = |index: i64| profile.string_table[index as usize].as_str();
    let places = profile.location.iter().map(|location| {
        let id = location.line[0].function_id;
        let function = profile.function.iter().find(|f| f.id == id);
        let place = profile.mapping.iter().find(|m| m.id == location.mapping_id);
        let place = place.expect("it is there");
        assert!(place.has_functions);
        let name = function.expect("it is there").name;
        (text(name), text(place.filename))
    });
    let about = Native::DirtyIo.about();
    assert_eq!(
        places.collect::<BTreeMap<_, _>>(),
        [
            ("m:fib/1", about),
            ("m:loop/1", "Erlang"),
            ("m:main/1", "Erlang"),
        ]
        .into()
    );
    let callgrind = String::from_utf8(export(&recording, Target::Callgrind)).expect("UTF-8");
    let called = format!("cob=(4) {about}\ncfl=(1)\ncfn=(2) m:fib/1\ncalls=20 0\n");
    assert!(callgrind.contains(&called), "{callgrind}");
    assert!(
        callgrind.contains("\nob=(4)\nfl=(1)\nfn=(2)\n"),
        "{callgrind}"
    );
    assert!(callgrind.contains("\nob=(1) Erlang\n"), "{callgrind}");
    let speedscope = String::from_utf8(export(&recording, Target::Speedscope)).expect("UTF-8");
    let frame = format!("{{\"name\":\"m:fib/1\",\"file\":\"{about}\"}}");
    assert!(speedscope.contains(&frame), "{speedscope}");
}
