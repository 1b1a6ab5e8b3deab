//! Whose a module of a running emulator is: by the applications that are on its disk. From outside nothing else is known of
//! its code.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use beamline_formats::name::is_outside;
use beamline_formats::profile::Origin;
use beamline_sampler::emulator::Emulator;

/// The applications of OTP.
const OTP: [&str; 32] = [
    "asn1",
    "common_test",
    "compiler",
    "crypto",
    "debugger",
    "dialyzer",
    "diameter",
    "edoc",
    "eldap",
    "erl_interface",
    "erts",
    "et",
    "eunit",
    "ftp",
    "inets",
    "jinterface",
    "kernel",
    "megaco",
    "mnesia",
    "observer",
    "os_mon",
    "parsetools",
    "public_key",
    "reltool",
    "runtime_tools",
    "sasl",
    "snmp",
    "ssh",
    "ssl",
    "stdlib",
    "syntax_tools",
    "tools",
];

/// Those of Elixir.
const ELIXIR: [&str; 6] = ["eex", "elixir", "ex_unit", "iex", "logger", "mix"];

/// The modules that the emulator has in itself: no folder has them. Source: `erts/preloaded`, OTP 25 to 29.
const PRELOADED: [&str; 23] = [
    "atomics",
    "counters",
    "erl_init",
    "erl_prim_loader",
    "erl_tracer",
    "erlang",
    // The name of the code that all modules share.
    "erts_beamasm",
    "erts_code_purger",
    "erts_dirty_process_signal_handler",
    "erts_internal",
    "erts_literal_area_collector",
    "erts_trace_cleaner",
    "init",
    "persistent_term",
    "prim_buffer",
    "prim_eval",
    "prim_file",
    "prim_inet",
    "prim_net",
    "prim_socket",
    "prim_zip",
    "socket_registry",
    "zlib",
];

/// The origins of modules.
#[derive(Default)]
pub(crate) struct Origins {
    of: HashMap<String, Origin>,
}

/// The origin of an application in a folder of this name, such as `stdlib-8.0`.
fn of_folder(folder: &str) -> Option<Origin> {
    let name = folder.split('-').next().unwrap_or(folder);
    if OTP.contains(&name) {
        return Some(Origin::Otp);
    }
    ELIXIR.contains(&name).then_some(Origin::Elixir)
}

impl Origins {
    /// Looks at the folders of an emulator's libraries.
    pub(crate) fn of(emulator: &Emulator) -> Origins {
        let mut origins = Origins { of: HashMap::new() };
        let root = emulator.option("-root").unwrap_or_default();
        let paths = emulator
            .command
            .iter()
            .filter(|text| text.ends_with("/ebin"));
        origins.add_libraries(&emulator.path(&format!("{root}/lib")));
        for path in paths {
            if let Some(application) = Path::new(path).parent() {
                let libraries = application.parent().unwrap_or(application);
                origins.add_libraries(&emulator.path(&libraries.to_string_lossy()));
            }
        }
        if let Some(elixir) = emulator.option("-elixir_root") {
            origins.add_libraries(&emulator.path(elixir));
        }
        origins
    }

    fn add_libraries(&mut self, libraries: &Path) {
        let folders = fs::read_dir(libraries).into_iter().flatten().flatten();
        for folder in folders {
            let Some(origin) = folder.file_name().to_str().and_then(of_folder) else {
                continue;
            };
            let files = fs::read_dir(folder.path().join("ebin"));
            for file in files.into_iter().flatten().flatten() {
                let name = file.file_name();
                let module = name.to_str().and_then(|name| name.strip_suffix(".beam"));
                self.of
                    .extend(module.map(|module| (module.to_owned(), origin)));
            }
        }
    }

    /// Whose a module is. The emulator's own C code counts as OTP's, that of other libraries as the program's.
    pub(crate) fn origin(&self, module: &str) -> Origin {
        let is_emulators =
            is_outside(module) && (module.starts_with("[beam") || module.starts_with("[runtime"));
        if is_emulators || PRELOADED.contains(&module) {
            return Origin::Otp;
        }
        self.of.get(module).copied().unwrap_or(Origin::App)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_of_applications() {
        for (folder, origin) in [
            ("stdlib-8.0", Some(Origin::Otp)),
            ("erl_interface", Some(Origin::Otp)),
            ("elixir", Some(Origin::Elixir)),
            ("my_app-0.1.0", None),
        ] {
            assert_eq!(of_folder(folder), origin, "{folder}");
        }
        let origins = Origins {
            of: HashMap::from([("lists".to_owned(), Origin::Otp)]),
        };
        for (module, origin) in [
            ("lists", Origin::Otp),
            ("erts_internal", Origin::Otp),
            ("init_db", Origin::App),
            ("[beam.smp]", Origin::Otp),
            ("[libmine.so]", Origin::App),
            ("Elixir.My", Origin::App),
        ] {
            assert_eq!(origins.origin(module), origin, "{module}");
        }
    }
}
