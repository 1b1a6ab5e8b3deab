//! Plans how to run a `.erl`, `.beam`, `.exs` or `.escript` file that is given as the command, or a program of the
//! current folder, and whether to compile it first.

use std::path::Path;

use beamline_runtime_beam::BeamModule;

/// The plan for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Run it as it is.
    Command(Vec<String>),
    /// Compile the first argument into `folder`, then run the second.
    Compile {
        /// The command that compiles.
        compile: Vec<String>,
        /// The command that runs the module.
        run: Vec<String>,
    },
}

/// Plans how a command is run in the folder `here`; compiled modules go to `folder`. `search` is PATH for it.
///
/// # Errors
/// One line for a file that does not exist or is named as no module can be.
pub(super) fn plan(
    command: &[String],
    here: Option<&Path>,
    folder: &Path,
    search: &str,
) -> Result<Plan, String> {
    let Some((file, arguments)) = command.split_first() else {
        return Err("no command is given".to_owned());
    };
    let path = Path::new(file);
    let extension = path.extension().and_then(|e| e.to_str());
    let is_here = here.unwrap_or(Path::new("")).join(path).is_file();
    let own = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
    let extension = match extension {
        Some(extension @ ("erl" | "beam" | "exs")) => extension,
        Some(extension @ "escript") if is_here => extension,
        _ => {
            let mut command = command.to_vec();
            if is_here && !file.contains('/') && super::on_path(file, search) == path {
                // A shell would not find it. Nobody can mean another.
                command[0] = format!("./{file}");
            }
            return Ok(Plan::Command(command));
        }
    };
    if !is_here {
        return Err(format!("{file}: no such file"));
    }
    if let "exs" | "escript" = extension {
        let program = if extension == "exs" {
            "elixir"
        } else {
            extension
        };
        let mut run = own(&[program, file]);
        run.extend_from_slice(arguments);
        return Ok(Plan::Command(run));
    }
    let module = path.file_stem().and_then(|stem| stem.to_str());
    let module = module.ok_or_else(|| format!("{file}: the name is not UTF-8"))?;
    let folder = folder
        .to_str()
        .ok_or_else(|| "the temporary folder's name is not UTF-8".to_owned())?;
    let from = match (extension, path.parent().and_then(Path::to_str)) {
        ("erl", _) => folder,
        (_, None | Some("")) => ".",
        (_, Some(parent)) => parent,
    };
    let mut run = own(&[
        "erl",
        "-noshell",
        "-pa",
        from,
        "-eval",
        &call(module),
        "-extra",
    ]);
    run.extend_from_slice(arguments);
    Ok(if extension == "erl" {
        // The path of the source is not to be in the module: it would not be the same everywhere.
        let compile = own(&["erlc", "+debug_info", "+deterministic", "-o", folder, file]);
        Plan::Compile { compile, run }
    } else {
        Plan::Command(run)
    })
}

/// Whether the module of a `.erl` or `.beam` file that is given as the command exports the function that is called. A file
/// that cannot be read is left to the emulator, which says why.
///
/// # Errors
/// One line that says what is missing, and what to do.
pub(super) fn check_main(
    command: &[String],
    here: Option<&Path>,
    folder: &Path,
) -> Result<(), String> {
    let Some(file) = command.first() else {
        return Ok(());
    };
    let path = Path::new(file);
    let beam = match path.extension().and_then(|e| e.to_str()) {
        Some("beam") => here.unwrap_or(Path::new("")).join(path),
        Some("erl") => folder.join(path.with_extension("beam").file_name().unwrap_or_default()),
        _ => return Ok(()),
    };
    let module = std::fs::read(beam).ok();
    let Some(module) = module.and_then(|bytes| BeamModule::decode(&bytes).ok()) else {
        return Ok(());
    };
    let is_main = |function, arity| module.atoms.get(function) == "main" && arity <= 1;
    if module.exports.iter().any(|e| is_main(e.function, e.arity)) {
        return Ok(());
    }
    let name = beamline_formats::name::atom(module.atoms.get(module.name));
    Err(format!(
        "{file}: the module exports neither main/0 nor main/1, one of which would be called; export one, or give a command \
         that calls another function, such as erl -noshell -eval '{name}:start(), halt().'"
    ))
}

/// Calls `main/1` with the arguments, as an escript's, or else `main/0`.
fn call(module: &str) -> String {
    let module = beamline_formats::name::atom(module);
    format!(
        "{{module,_}}=code:ensure_loaded({module}), \
         case erlang:function_exported({module},main,1) of \
         true->{module}:main(init:get_plain_arguments()); false->{module}:main() end, halt()."
    )
}
