//! Libraries of NIFs, compiled against the headers of the OTP at hand.

mod library;
mod place;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

use library::compile;
use place::Place;
use serde_json::Value;

/// The folder of `erl_nif.h`, if it is there.
fn headers() -> Option<PathBuf> {
    library::headers("erl_nif.h")
}

/// A place with the module `calls` and its library.
fn calls() -> Option<Place> {
    let headers = headers()?;
    let place = library::place_of("nif", "calls")?;
    let source = library::tests("nif").join("calls.c");
    compile(&place, &headers, &source, "calls.so", &[]);
    Some(place)
}

/// Runs `calls:main/1` as `options` of the command say.
fn run_calls(place: &Place, options: &[&str]) -> String {
    library::run_main(place, "calls", options)
}

#[test]
fn functions_do_what_otp_says() {
    let Some(place) = calls() else { return };
    assert_eq!(run_calls(&place, &["run"]), "all is as it is to be\n");
    assert_eq!(
        run_calls(&place, &["run", "--deterministic"]),
        "all is as it is to be\n"
    );
}

#[test]
fn native_functions_are_profiled() {
    let Some(place) = calls() else { return };
    let options = [
        "profile",
        "--type",
        "call_time",
        "--scope",
        "all",
        "--json",
        "p.json",
    ];
    assert!(run_calls(&place, &options).starts_with("all is as it is to be\n"));
    let profile = place.json("p.json").to_string();
    for function in ["from_thread", "dirty_cpu", "steps"] {
        assert!(profile.contains(function), "{function}");
    }
}

#[test]
fn a_library_that_is_loaded_again_has_new_data() {
    let (Some(place), Some(headers)) = (calls(), headers()) else {
        return;
    };
    let source = library::tests("nif").join("again.c");
    compile(&place, &headers, &source, "again.so", &[]);
    place.write(
        "again.erl",
        "-module(again).\n-export([init/1, count/0]).\n-nifs([count/0]).\n\
         init(Owner) -> erlang:load_nif(\"./again\", Owner).\n\
         count() -> erlang:nif_error(not_loaded).\n",
    );
    library::erlc(&place, "again.erl");
    let code = "[begin {module, again} = code:load_file(again), ok = again:init(self()), 1 = again:count(), \
                true = code:delete(again), false = code:purge(again), receive unloaded -> ok end end \
                || _ <- lists:seq(1, 5)], io:format(\"new~n\"), halt().";
    let program = ["run", "--", "erl", "-noshell", "-pa", ".", "-eval", code];
    assert_eq!(place.printed(&program), "new\n");
}

/// What `tracers.erl` prints on OTP 29 is in `tracers.txt`.
#[test]
fn tracer_modules_are_asked_and_told_as_in_otp() {
    let (Some(place), Some(headers)) = (calls(), headers()) else {
        return;
    };
    let tests = library::tests("nif");
    for module in ["tracers.erl", "plain.erl"] {
        std::fs::copy(tests.join(module), place.file(module)).expect("writable");
        library::erlc(&place, module);
    }
    let source = tests.join("tracers.c");
    let plain = ["-DMODULE=plain", "-DWITHOUT_CALL", "-Wno-unused-function"];
    compile(&place, &headers, &source, "tracers.so", &[]);
    compile(&place, &headers, &source, "plain.so", &plain);
    let folder = place.file("").canonicalize().expect("it is there");
    let folder = folder.to_str().expect("UTF-8");
    let code = format!("tracers:main([{folder:?}]), halt().");
    let program = ["run", "--", "erl", "-noshell", "-pa", ".", "-eval", &code];
    let expect = std::fs::read_to_string(tests.join("tracers.txt")).expect("it is there");
    let told = place.printed(&program).replace(folder, "FOLDER");
    assert_eq!(told, expect);
}

/// Names of the functions that OTP's header declares.
fn declared(headers: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(headers.join("erl_nif_api_funcs.h")).expect("it is there");
    let name = |line: &str| {
        let rest = line.strip_prefix("ERL_NIF_API_FUNC_DECL(")?;
        let name = rest.split(',').nth(1)?.trim();
        name.starts_with("enif_").then(|| name.to_owned())
    };
    let names = text.lines().filter_map(name);
    // Those that are macros where `long` has 64 bits.
    let macros = [
        "enif_get_int64",
        "enif_get_uint64",
        "enif_make_int64",
        "enif_make_uint64",
    ];
    names
        .filter(|name| !macros.contains(&name.as_str()))
        .collect()
}

#[test]
fn the_program_exports_every_function_of_the_header() {
    let Some(headers) = headers() else { return };
    let ours: BTreeSet<String> = beamline_runtime::nif_functions()
        .map(str::to_owned)
        .collect();
    let declared = declared(&headers);
    assert!(declared.len() > 150, "the header is read");
    assert_eq!(ours, declared);
    let exported = library::exported();
    let missing: Vec<&String> = declared.difference(&exported).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A library that is not to be loaded, and what OTP says of it.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "no_init",
        "int nothing;",
        "Failed to find library init function: './no_init.so: undefined symbol: _nif_init'",
    ),
    (
        "not_initialised",
        "#include <stddef.h>\nvoid *nif_init(void) { return NULL; }",
        "Library init-call unsuccessful",
    ),
    (
        "other_name",
        "#include <erl_nif.h>\nstatic ErlNifFunc f[] = {{0}};\nERL_NIF_INIT(other, f, NULL, NULL, NULL, NULL)",
        "Library module name 'other' does not match calling module 'calls'",
    ),
    (
        "no_function",
        "#include <erl_nif.h>\nstatic ERL_NIF_TERM g(ErlNifEnv *e, int n, const ERL_NIF_TERM a[]) { return a[0]; }\n\
         static ErlNifFunc f[] = {{\"nothing\", 1, g, 0}};\nERL_NIF_INIT(calls, f, NULL, NULL, NULL, NULL)",
        "Function not found calls:nothing/1",
    ),
    (
        "not_declared",
        "#include <erl_nif.h>\nstatic ERL_NIF_TERM g(ErlNifEnv *e, int n, const ERL_NIF_TERM a[]) { return a[0]; }\n\
         static ErlNifFunc f[] = {{\"main\", 1, g, 0}};\nERL_NIF_INIT(calls, f, NULL, NULL, NULL, NULL)",
        "Function not declared as nif calls:main/1",
    ),
    (
        "too_new",
        "#include <erl_nif.h>\n#undef ERL_NIF_MINOR_VERSION\n#define ERL_NIF_MINOR_VERSION 99\n\
         static ErlNifFunc f[] = {{0}};\nERL_NIF_INIT(calls, f, NULL, NULL, NULL, NULL)",
        "That 'calls' NIF library needs erts-14.0 or newer. Either try to recompile the NIF lib or use a newer erts \
         runtime.",
    ),
    (
        "too_old",
        "#include <erl_nif.h>\n#undef ERL_NIF_MAJOR_VERSION\n#define ERL_NIF_MAJOR_VERSION 1\n\
         static ErlNifFunc f[] = {{0}};\nERL_NIF_INIT(calls, f, NULL, NULL, NULL, NULL)",
        "That old NIF library (1.18) is not compatible with this erts runtime (2.18). Try recompile the NIF lib.",
    ),
];

/// How a library is damaged.
type Damage = fn(&mut Vec<u8>);

/// A library that is damaged, and what OTP says of it. OTP ends with a bus error at one that is cut in half; what is said of
/// that is what it says of one that is cut shorter.
const DAMAGED: &[(&str, Damage, &str)] = &[
    (
        "cut_in_half",
        |bytes| bytes.truncate(bytes.len() / 2),
        "file too short",
    ),
    (
        "cut_in_its_head",
        |bytes| bytes.truncate(30),
        "file too short",
    ),
    ("empty", Vec::clear, "file too short"),
    ("text", |bytes| bytes.fill(b'a'), "invalid ELF header"),
    (
        "of_32_bits",
        |bytes| bytes[4] = 1,
        "wrong ELF class: ELFCLASS32",
    ),
    (
        "of_another_machine",
        // No machine has this number.
        |bytes| bytes[18..20].copy_from_slice(&[0xfe, 0xfe]),
        "cannot open shared object file: No such file or directory",
    ),
];

/// The text of the error with which `library` is refused. What the module had is still there then, and a library that
/// fits is loaded.
fn refusal(place: &Place, library: &str) -> String {
    let code = format!(
        "{{error, {{_, Text}}}} = calls:init(\"./{library}\", 1), \
         {{'EXIT', {{not_loaded, _}}}} = (catch calls:give(1)), \
         ok = calls:init(\"./calls\", 1), \
         io:format(\"~ts\", [Text]), halt()."
    );
    place.printed(&["run", "--", "erl", "-noshell", "-pa", ".", "-eval", &code])
}

#[test]
fn a_library_that_does_not_fit_is_refused_as_in_otp() {
    let (Some(place), Some(headers)) = (calls(), headers()) else {
        return;
    };
    for (name, source, text) in REFUSED {
        place.write("bad.c", source);
        compile(
            &place,
            &headers,
            &place.file("bad.c"),
            &format!("{name}.so"),
            &["-w"],
        );
        assert_eq!(refusal(&place, name), *text, "{name}");
    }
    let whole = std::fs::read(place.file("calls.so")).expect("it was compiled");
    for (name, damage, text) in DAMAGED {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        std::fs::write(place.file(&format!("{name}.so")), bytes).expect("writable");
        let text = format!("Failed to load NIF library: './{name}.so: {text}'");
        assert_eq!(refusal(&place, name), text);
    }
}

/// A place with the module `times` and its library.
fn times() -> Option<Place> {
    let headers = headers()?;
    let place = library::place_of("nif", "times")?;
    let source = library::tests("nif").join("times.c");
    compile(&place, &headers, &source, "times.so", &[]);
    Some(place)
}

/// Runs `times:main/1` with one dirty CPU scheduler and these further arguments, as `options` of the command say.
fn run_times(place: &Place, options: &[&str], arguments: &str) -> Output {
    let code = format!("times:main([\".\"{arguments}]), halt().");
    let program = ["--", "erl", "+SDcpu", "1:1", "-noshell", "-pa", "."];
    let arguments = [options, &program, &["-eval", &code]].concat();
    place.run(&arguments)
}

const MS: u64 = 1_000_000;

/// The element of a list in which `key` has this value.
fn find<'v>(list: &'v Value, key: &str, value: &str) -> &'v Value {
    let mut list = list.as_array().expect("a list").iter();
    list.find(|row| row[key] == value)
        .unwrap_or_else(|| panic!("no {key} {value}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn a_recording_tells_native_time_and_what_blocks_a_scheduler() {
    let Some(place) = times() else { return };
    let output = run_times(&place, &["record", "-o", "run.ring"], "");
    assert!(output.status.success(), "{}", place::errors(&output));
    let report = place.report("run.ring");
    // Three calls of 16 ms together, and none of those that take no time.
    let block = find(&report["blocks"], "function", "times:spin/1");
    assert!(number(&block["times"]) >= 3 && number(&block["total_ns"]) >= 16 * MS);
    assert!(number(&block["longest_ns"]) >= 6 * MS);
    let caller = find(&block["callers"], "function", "times:blocks/0");
    assert_eq!(caller["times"], 3);
    // A process that runs on a dirty scheduler blocks none, whatever it takes.
    let blocks = report["blocks"].to_string();
    assert!(!blocks.contains("dirty_cpu") && !blocks.contains("dirty_io"));
    let kinds = [
        ("dirty_cpu", "dirty_cpu", 80),
        ("goes_on", "dirty_io", 10),
        ("dirty_io", "dirty_io", 10),
        ("spin", "ordinary", 16),
    ];
    for (function, kind, least_ms) in kinds {
        let function = format!("times:{function}/1");
        let row = find(&report["natives"], "function", &function);
        assert_eq!(row["native"], kind, "{function}");
        assert!(number(&row["own_ns"]) >= least_ms * MS, "{function}");
    }
    // Of four callers one runs; the second waits while the first spins, the others longer.
    let waited = find(&report["natives"], "function", "times:dirty_cpu/1");
    assert!(number(&waited["dirty_wait_ns"]) >= (20 + 40 + 60) * MS);
    let cpu = find(&report["dirty_schedulers"], "kind", "dirty_cpu");
    assert_eq!(cpu["calls"], 4);
    let text = place.printed(&["report", "run.ring"]);
    assert!(text.contains("\nBlocks its scheduler: "), "{text}");
    assert!(
        text.contains("Dirty CPU schedulers ran 4 calls for "),
        "{text}"
    );
}

#[test]
fn pictures_and_exports_show_native_code() {
    let Some(place) = times() else { return };
    let output = run_times(&place, &["record", "-o", "run.ring"], "");
    assert!(output.status.success(), "{}", place::errors(&output));
    let read = |name: &str| {
        let bytes = std::fs::read(place.file(name)).expect("it was written");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    place.printed(&["flamegraph", "run.ring", "-o", "time.svg"]);
    let svg = read("time.svg");
    for text in [
        "Native code on an ordinary scheduler",
        "Native code on a dirty CPU scheduler",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    for chart in [&[][..], &["--chart"]] {
        let command = [
            &[
                "flamegraph",
                "run.ring",
                "--width",
                "wait",
                "-o",
                "wait.svg",
            ],
            chart,
        ];
        place.printed(&command.concat());
        let svg = read("wait.svg");
        assert!(svg.contains("<title>(waits for a dirty scheduler) ("));
        assert!(svg.contains("Waits for a dirty scheduler</text>"));
    }
    let exports = [
        (
            "perfetto",
            &["Dirty CPU scheduler ", "(waits for a dirty scheduler)"][..],
        ),
        (
            "firefox",
            &[
                "Native code on a dirty I/O scheduler",
                "(waits for a dirty scheduler)",
            ],
        ),
        (
            "speedscope",
            &[
                "(waits for a dirty scheduler)",
                "\"file\":\"Native code on a dirty CPU scheduler\"",
            ],
        ),
        ("callgrind", &["DirtyWaitNanoseconds"]),
        (
            "jsonl",
            &["\"times:dirty_io/1\":\"dirty_io\"", "[\"dirty_queued\","],
        ),
    ];
    for (format, texts) in exports {
        place.printed(&["export", "run.ring", "--to", format, "-o", "out"]);
        let out = read("out");
        for text in texts {
            assert!(out.contains(text), "{format}: {text}");
        }
    }
    let waits = ["histogram", "run.ring", "--of", "dirty-wait"];
    let waits = place.printed(&waits);
    assert!(waits.contains("times:dirty_cpu/1"), "{waits}");
    place.printed(&["html", "run.ring", "-o", "run.html"]);
    assert!(read("run.html").contains("\"blocks\":[{"));
}

#[test]
fn a_profile_tells_runs_on_dirty_schedulers_from_waiting() {
    let Some(place) = times() else { return };
    let options = [
        "profile",
        "--type",
        "call_time",
        "--json",
        "p.json",
        "--output",
        "p.blprof",
    ];
    let output = run_times(&place, &options, "");
    assert!(output.status.success(), "{}", place::errors(&output));
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        told.contains("\nWaited for dirty schedulers, beside these times:\n"),
        "{told}"
    );
    let functions = &place.json("p.json")["functions"];
    let of_times: Vec<Value> = functions.as_array().expect("a list").clone();
    let of_times = Value::from_iter(of_times.into_iter().filter(|f| f["module"] == "times"));
    let cpu = find(&of_times, "function", "dirty_cpu");
    assert_eq!(
        (&cpu["native"], &cpu["calls"]),
        (&"dirty_cpu".into(), &4.into())
    );
    assert!(number(&cpu["time_ns"]) >= 80 * MS);
    assert!(number(&cpu["dirty_wait_ns"]) >= (20 + 40 + 60) * MS);
    let spin = find(&of_times, "function", "spin");
    assert_eq!(
        (&spin["native"], &spin["dirty_wait_ns"]),
        (&"ordinary".into(), &0.into())
    );
    assert!(number(&spin["time_ns"]) >= 16 * MS);
    // A function that is no native code is not said to be any.
    assert!(find(&of_times, "function", "work").get("native").is_none());
    place.printed(&["flamegraph", "p.blprof", "-o", "p.svg"]);
    let svg = std::fs::read_to_string(place.file("p.svg")).expect("it was written");
    assert!(svg.contains("Native code on a dirty I/O scheduler"));
}

#[test]
fn a_recording_names_the_native_code_that_crashed() {
    let Some(place) = times() else { return };
    for (how, kind) in [
        ("crash", "ordinary"),
        ("dirty_crash", "dirty_cpu"),
        ("aborts", "ordinary"),
    ] {
        let output = run_times(
            &place,
            &["record", "-o", "run.ring"],
            &format!(", \"{how}\""),
        );
        assert!(!output.status.success(), "{how}");
        let report = place.report("run.ring");
        let function = format!("times:{how}/0");
        let row = find(&report["unfinished"], "function", &function);
        assert_eq!(
            (&row["native"], &row["caller"]),
            (&kind.into(), &"times:main/1".into())
        );
        // What was before is whole.
        let spin = find(&report["natives"], "function", "times:spin/1");
        assert_eq!(spin["calls"], 3);
        let text = place.printed(&["report", "run.ring"]);
        let expect = format!("When it broke off, {function} (");
        assert!(text.contains(&expect), "{text}");
    }
}

/// How a run of `faults:main/1` ends that calls `function`, and what it writes to standard error.
fn fault(place: &Place, function: &str) -> (Output, String) {
    let code = format!("faults:main([\".\", {function:?}]), halt().");
    let program = ["run", "--", "erl", "-noshell", "-pa", ".", "-eval", &code];
    let output = place.run(&program);
    let told = place::errors(&output);
    (output, told)
}

/// A place with the module `faults` and its library.
fn faults() -> Option<Place> {
    let headers = headers()?;
    let place = library::place_of("nif", "faults")?;
    let source = library::tests("nif").join("faults.c");
    compile(
        &place,
        &headers,
        &source,
        "faults.so",
        &["-Wno-infinite-recursion"],
    );
    Some(place)
}

#[test]
fn a_crash_of_native_code_names_library_and_function() {
    let Some(place) = faults() else { return };
    for (function, what, signal) in [
        ("writes_to_null", "faults:writes_to_null/1", "SIGSEGV"),
        (
            "dirty_writes_to_null",
            "faults:dirty_writes_to_null/1",
            "SIGSEGV",
        ),
        ("calls_abort", "faults:calls_abort/1", "SIGABRT"),
        ("traps", "faults:traps/1", "SIGILL"),
        ("overflows", "faults:overflows/1", "SIGSEGV"),
        ("frees", "a callback of module faults", "SIGSEGV"),
    ] {
        let (output, told) = fault(&place, function);
        let line = format!("beamline: {what} of ./faults.so: ended by {signal}\n");
        assert_eq!(told, line, "{function}");
        let number = match signal {
            "SIGSEGV" => 11,
            "SIGABRT" => 6,
            _ => 4,
        };
        assert!(library::ended_by(&output, number), "{function}");
    }
}

/// With the checks the fault is found, and without them it is none that a test could look at.
#[cfg(feature = "nif_checks")]
#[test]
fn a_term_of_another_environment_is_found() {
    let Some(place) = faults() else { return };
    for (function, named, wrong) in [
        ("gives_dead", "gives_dead", "what it gives holds "),
        (
            "dirty_gives_dead",
            "dirty_gives_dead",
            "what it gives holds ",
        ),
        ("hides_dead", "hides_dead", "a cell holds "),
        ("dirty_hides_dead", "dirty_hides_dead", "a cell holds "),
        ("raises_dead", "raises_dead", "what it gives holds "),
        ("passes_dead", "passes_dead", "what it gives holds "),
        ("gives_kept", "gives_kept", "what it gives holds "),
        ("gives_moved", "gives_kept", "what it gives holds "),
        ("sends_own", "sends_own", "in a message: a cell holds "),
    ] {
        let (output, told) = fault(&place, function);
        let line = format!("beamline: faults:{named}/1 of ./faults.so: {wrong}");
        assert!(told.starts_with(&line), "{function}: {told}");
        assert!(told.ends_with(", which is outside the heap\n"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(library::ended_by(&output, 6), "{function}");
    }
}
