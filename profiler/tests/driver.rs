//! Drivers, compiled against the headers of the OTP at hand.

mod library;
mod place;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use library::compile;
use place::{Place, errors};

/// The folder of `erl_driver.h`, if it is there.
fn headers() -> Option<PathBuf> {
    library::headers("erl_driver.h")
}

/// A place with the module `drives` and its driver, which has these flags.
fn drives(flags: &str) -> Option<Place> {
    let headers = headers()?;
    let place = library::place_of("driver", "drives")?;
    let source = library::tests("driver").join("work_drv.c");
    let flags = format!("-DFLAGS={flags}");
    compile(&place, &headers, &source, "work_drv.so", &[&flags]);
    Some(place)
}

/// Runs `drives:main/1` as `options` of the command say.
fn run_drives(place: &Place, options: &[&str]) -> String {
    library::run_main(place, "drives", options)
}

#[test]
fn drivers_do_what_otp_says() {
    // One lock for all ports, or one for each.
    for flags in ["0", "ERL_DRV_FLAG_USE_PORT_LOCKING"] {
        let Some(place) = drives(flags) else { return };
        let expected = "all is as it is to be\n";
        assert_eq!(run_drives(&place, &["run"]), expected, "{flags}");
        let options = ["run", "--deterministic"];
        assert_eq!(run_drives(&place, &options), expected, "{flags}");
    }
}

#[test]
fn profiles_show_drivers_as_native_code() {
    let Some(place) = drives("0") else { return };
    let functions = ["port_command", "port_control", "port_call"];
    run_drives(&place, &["record", "-o", "run.stream"]);
    let report = place.report("run.stream");
    let natives = report["natives"].as_array().expect("a list");
    for function in functions {
        let function = format!("erts_internal:{function}/3");
        let row = natives.iter().find(|row| row["function"] == *function);
        let row = row.unwrap_or_else(|| panic!("{function}: {natives:?}"));
        assert_eq!(row["native"], "ordinary", "{function}");
    }
    let draw = ["flamegraph", "run.stream", "--by", "module", "-o", "m.svg"];
    place.printed(&draw);
    let svg = std::fs::read_to_string(place.file("m.svg")).expect("it was written");
    for text in [
        "<title>erts_internal (native) (",
        "Native code on an ordinary scheduler</text>",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    run_drives(
        &place,
        &["profile", "--type", "call_time", "--json", "p.json"],
    );
    let profile = place.json("p.json");
    let profiled = profile["functions"].as_array().expect("a list");
    let natives: Vec<&str> = functions
        .into_iter()
        .filter(|name| {
            let is_it = |row: &&serde_json::Value| {
                row["module"] == "erts_internal" && row["function"] == **name
            };
            let row = profiled.iter().find(is_it).expect("it was called");
            row["native"] == "ordinary"
        })
        .collect();
    assert_eq!(natives, functions);
}

#[test]
fn a_crash_of_a_driver_names_it() {
    let Some(headers) = headers() else { return };
    let Some(place) = Place::new("") else { return };
    let source = library::tests("driver").join("crash_drv.c");
    compile(&place, &headers, &source, "crash_drv.so", &[]);
    for command in ["now", "job"] {
        let code = format!(
            "ok = erl_ddll:load_driver(\".\", crash_drv), \
             Port = open_port({{spawn_driver, crash_drv}}, []), port_command(Port, {command:?}), \
             timer:sleep(60000), halt()."
        );
        let output = place.run(&["run", "--", "erl", "+A", "1", "-noshell", "-eval", &code]);
        let line = "beamline: driver crash_drv of ./crash_drv.so: ended by SIGSEGV\n";
        assert_eq!(errors(&output), line, "{command}");
        assert!(library::ended_by(&output, 11), "{command}");
    }
}

/// Names of the functions and data that OTP's header declares for Unix.
fn declared(headers: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(headers.join("erl_driver.h")).expect("it is there");
    let is_darwin = |line: &str| line.contains("stolen_main") || line.contains("steal_main");
    let declarations = text
        .split("\nEXTERN ")
        .skip(1)
        .filter(|declaration| !is_darwin(declaration.split('(').next().unwrap_or_default()));
    let name = |declaration: &str| {
        let head = declaration.split(['(', ';']).next()?;
        let mut words = head.split(|c: char| !c.is_alphanumeric() && c != '_');
        let name = words.rfind(|word| !word.is_empty())?;
        name.contains('_').then(|| name.to_owned())
    };
    declarations.filter_map(name).collect()
}

#[test]
fn the_program_exports_all_that_the_header_declares() {
    let Some(headers) = headers() else { return };
    let declared = declared(&headers);
    assert!(declared.len() > 100, "the header is read: {declared:?}");
    let ours: BTreeSet<String> = beamline_runtime::driver_functions()
        .map(str::to_owned)
        .collect();
    let exported = library::exported();
    let missing: Vec<&String> = declared.difference(&exported).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let untold: Vec<&String> = declared.difference(&ours).collect();
    assert!(untold.is_empty(), "{untold:?}");
}

/// A library that is not to be loaded, and what OTP says of it.
const REFUSED: &[(&str, &str, &str)] = &[
    ("no_init", "int nothing;", "no_driver_init"),
    (
        "not_initialised",
        "#include <erl_driver.h>\nDRIVER_INIT(none) { return NULL; }",
        "driver_init_failed",
    ),
    (
        "init_fails",
        "#include <erl_driver.h>\nstatic int init(void) { return -1; }\n\
         static ErlDrvEntry e = {.init = init, .driver_name = \"init_fails\", .extended_marker = ERL_DRV_EXTENDED_MARKER,\n\
         .major_version = 3};\nDRIVER_INIT(none) { return &e; }",
        "driver_init_failed",
    ),
    (
        "other_name",
        "#include <erl_driver.h>\nstatic ErlDrvEntry e = {.driver_name = \"another\",\n\
         .extended_marker = ERL_DRV_EXTENDED_MARKER, .major_version = 3};\nDRIVER_INIT(none) { return &e; }",
        "bad_driver_name",
    ),
    (
        "too_new",
        "#include <erl_driver.h>\nstatic ErlDrvEntry e = {.driver_name = \"too_new\",\n\
         .extended_marker = ERL_DRV_EXTENDED_MARKER, .major_version = 3, .minor_version = 99};\n\
         DRIVER_INIT(none) { return &e; }",
        "driver_incorrect_version",
    ),
    (
        "unmarked",
        "#include <erl_driver.h>\nstatic ErlDrvEntry e = {.driver_name = \"unmarked\", .major_version = 3};\n\
         DRIVER_INIT(none) { return &e; }",
        "driver_incorrect_version",
    ),
];

#[test]
fn a_library_that_does_not_fit_is_refused_as_in_otp() {
    let Some(headers) = headers() else { return };
    let Some(place) = Place::new("") else { return };
    for (name, source, reason) in REFUSED {
        place.write("bad.c", source);
        let library = format!("{name}.so");
        compile(&place, &headers, &place.file("bad.c"), &library, &["-w"]);
        let code = format!(
            "{{error, Reason}} = erl_ddll:try_load(\".\", {name}, []), io:format(\"~p\", [Reason]), halt()."
        );
        let printed = place.printed(&["run", "--", "erl", "-noshell", "-eval", &code]);
        assert_eq!(printed, *reason, "{name}");
    }
}
