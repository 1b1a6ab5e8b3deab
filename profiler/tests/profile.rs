//! `beamline profile` on programs that run on OTP's libraries.

mod place;

use place::Place;
use serde_json::Value;

/// What is counted of `source`'s `main/0` with `--pattern` each of `patterns`; none where there is no OTP.
fn profiled(source: &str, patterns: &[&str]) -> Option<Value> {
    let place = Place::new(source)?;
    let mut arguments = vec!["profile", "--type", "call_count", "--json", "out.json"];
    for pattern in patterns {
        arguments.extend(["--pattern", pattern]);
    }
    arguments.extend(["--", "work.erl"]);
    place.printed(&arguments);
    Some(place.json("out.json"))
}

fn calls(profile: &Value, module: &str, function: &str, arity: u64) -> Option<u64> {
    let functions = profile["functions"].as_array()?;
    let row = functions.iter().find(|row| {
        row["module"] == module && row["function"] == function && row["arity"] == arity
    });
    row?["calls"].as_u64()
}

/// The module `binary` is there before any code has named this function of it.
#[test]
fn a_bif_is_counted_that_is_called_by_code_loaded_later() {
    let source = "\
-module(work).
-export([main/0]).
main() ->
    {module, binary} = code:ensure_loaded(binary),
    Parts = [binary:copy(<<N>>, 3) || N <- lists:seq(1, 100)],
    600 = 2 * iolist_size(Parts).
";
    let Some(profile) = profiled(source, &["binary", "work"]) else {
        return;
    };
    assert_eq!(calls(&profile, "work", "main", 0), Some(1));
    assert_eq!(calls(&profile, "binary", "copy", 2), Some(100));
}

#[test]
fn a_function_that_begins_with_a_bif_is_counted_once_a_call() {
    let source = "\
-module(work).
-export([main/0]).
main() ->
    Binary = binary:copy(<<1>>, 20000),
    [sum(Binary) || _ <- lists:seq(1, 2000)].
sum(Binary) -> erlang:adler32(Binary).
";
    let Some(profile) = profiled(source, &["work"]) else {
        return;
    };
    assert_eq!(calls(&profile, "work", "sum", 1), Some(2000));
}
