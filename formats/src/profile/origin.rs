//! Where modules come from: from the program, or from what runs and builds it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use beamline_settings::names;
use serde::{Deserialize, Serialize};
use zip::ZipArchive;

/// Whose a module is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The program's: it is of no other.
    #[default]
    App,
    /// One of Erlang/OTP.
    Otp,
    /// One of Elixir, its compiler's modules included.
    Elixir,
    /// One of the build tools.
    Tools,
}

names!(Origin {
    App = "app", "The program and its dependencies";
    Otp = "otp", "Erlang/OTP";
    Elixir = "elixir", "Elixir";
    Tools = "tools", "Rebar3, and archives of Mix such as Hex";
});

impl Origin {
    /// Its number in files.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The one with this number.
    pub fn of(number: u64) -> Option<Origin> {
        let mut all = Origin::ALL.iter().copied();
        all.find(|origin| origin.number() == number)
    }

    /// Modules that Elixir's compiler makes of the bodies of files, by their names.
    #[must_use]
    pub fn of_name(module: &str) -> Option<Origin> {
        let number = module.strip_prefix("elixir_compiler_")?;
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        is_number.then_some(Origin::Elixir)
    }
}

/// The escript that is a build tool, not a program: all its modules are the tool's.
const BUILD_TOOL: &str = "rebar3";

/// A folder with `.beam` files, or an escript whose archive has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Library {
    origin: Origin,
    place: PathBuf,
}

/// The folders and escripts with the `.beam` files of what runs and builds programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Libraries(Vec<Library>);

impl Libraries {
    /// Those in an OTP, in an Elixir, and in these folders of Mix's archives. What cannot be read is left out.
    #[must_use]
    pub fn find(otp: &Path, elixir: Option<&Path>, archives: &[PathBuf]) -> Libraries {
        let mut all = Libraries::default();
        all.add(Origin::Otp, folders_in(&otp.join("lib")));
        if let Some(elixir) = elixir {
            all.add(Origin::Elixir, folders_in(&elixir.join("lib")));
        }
        for archive in archives.iter().flat_map(|archives| folders_in(archives)) {
            all.add(Origin::Tools, folders_in(&archive));
            all.add(Origin::Tools, vec![archive]);
        }
        all
    }

    /// Adds applications that have a folder `ebin`.
    fn add(&mut self, origin: Origin, applications: Vec<PathBuf>) {
        let folders = applications.into_iter().map(|folder| folder.join("ebin"));
        let folders = folders.filter(|folder| folder.is_dir());
        let libraries = folders.map(|place| Library { origin, place });
        self.0.extend(libraries);
    }

    /// Adds what an emulator with this command line runs in: its Elixir, or Rebar3.
    pub fn add_those_of(&mut self, command: &[String]) {
        let after = |flag: &str| {
            let mut arguments = command.iter().skip_while(|argument| *argument != flag);
            arguments.nth(1).map(PathBuf::from)
        };
        if let Some(root) = after("-elixir_root") {
            self.add(Origin::Elixir, folders_in(&root));
        }
        let escript = after("-extra").filter(|file| file.file_name() == Some(BUILD_TOOL.as_ref()));
        // The program may go to another folder before its modules are looked for.
        let place = escript.and_then(|file| file.canonicalize().ok());
        self.0.extend(place.map(|place| Library {
            origin: Origin::Tools,
            place,
        }));
    }

    /// The modules in them.
    #[must_use]
    pub fn modules(&self) -> Modules {
        let mut files: HashMap<String, Vec<(Origin, CodeFile)>> = HashMap::new();
        for Library { origin, place } in &self.0 {
            let all = if place.is_dir() {
                paths_in(place).into_iter().map(CodeFile::Path).collect()
            } else {
                archived(place).unwrap_or_default()
            };
            for file in all {
                if let Some(module) = file.module() {
                    let of_module = files.entry(module.to_owned()).or_default();
                    of_module.push((*origin, file));
                }
            }
        }
        Modules { files }
    }
}

/// The modules of [`Libraries`], with their files.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    files: HashMap<String, Vec<(Origin, CodeFile)>>,
}

impl Modules {
    /// The files of a module.
    #[must_use]
    pub fn files(&self, module: &str) -> &[(Origin, CodeFile)] {
        self.files.get(module).map_or(&[], Vec::as_slice)
    }
}

/// Where a module's code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeFile {
    /// In a file.
    Path(PathBuf),
    /// In the archive of an escript, under this name.
    Archived(PathBuf, String),
}

impl CodeFile {
    /// What is in it, packed as it may be.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let (archive, name) = match self {
            CodeFile::Path(path) => return fs::read(path),
            CodeFile::Archived(archive, name) => (archive, name),
        };
        let mut archive = ZipArchive::new(BufReader::new(File::open(archive)?))?;
        let mut code = Vec::new();
        archive.by_name(name)?.read_to_end(&mut code)?;
        Ok(code)
    }

    /// The module, if it is a `.beam` file.
    fn module(&self) -> Option<&str> {
        let path = match self {
            CodeFile::Path(path) => path,
            CodeFile::Archived(_, name) => Path::new(name),
        };
        let is_beam = path.extension() == Some("beam".as_ref());
        path.file_stem().filter(|_| is_beam)?.to_str()
    }
}

/// The files in an escript's archive.
fn archived(escript: &Path) -> io::Result<Vec<CodeFile>> {
    let archive = ZipArchive::new(BufReader::new(File::open(escript)?))?;
    let files = archive.file_names().map(|name| {
        let name = name?.into_owned();
        Ok(CodeFile::Archived(escript.to_owned(), name))
    });
    files.collect()
}

/// The entries of a folder, in order; none if it cannot be read.
fn paths_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    paths_in(folder)
        .into_iter()
        .filter(|path| path.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn libraries_are_found_and_modules_in_them() {
        let folder = tempfile::tempdir().expect("a folder");
        for file in [
            "otp/lib/stdlib-8/ebin/lists.beam",
            "otp/lib/stdlib-8/ebin/stdlib.app",
            "otp/lib/README",
            "elixir/lib/mix/ebin/Elixir.Mix.beam",
            "archives/hex-2/hex-2/ebin/Elixir.Hex.beam",
            "archives/other-1/ebin/lists.beam",
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("in a folder")).expect("writable");
            fs::write(path, "").expect("writable");
        }
        let at = |name: &str| folder.path().join(name);
        let archives = [at("archives"), at("none")];
        let modules = Libraries::find(&at("otp"), Some(&at("elixir")), &archives).modules();
        let of = |module: &str| {
            modules
                .files(module)
                .iter()
                .map(|(origin, _)| *origin)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("lists"), [Origin::Otp, Origin::Tools]);
        assert_eq!(of("Elixir.Mix"), [Origin::Elixir]);
        assert_eq!(of("Elixir.Hex"), [Origin::Tools]);
        assert_eq!(of("stdlib"), []);
        let root = at("elixir/lib").to_str().expect("UTF-8").to_owned();
        let command = ["erl".to_owned(), "-elixir_root".to_owned(), root];
        let mut libraries = Libraries::default();
        libraries.add_those_of(&command);
        let modules = libraries.modules();
        assert_eq!(modules.files("Elixir.Mix").len(), 1);
        assert!(modules.files("lists").is_empty());
    }

    #[test]
    fn modules_in_the_archive_of_rebar3_are_of_a_tool() {
        let folder = tempfile::tempdir().expect("a folder");
        let escript = folder.path().join("rebar3");
        let mut file = File::create(&escript).expect("writable");
        file.write_all(b"#!/usr/bin/env escript\n%%! +A1\n")
            .expect("writable");
        let mut archive = ZipWriter::new(file);
        for name in ["rebar/ebin/rebar3.beam", "rebar/ebin/rebar.app"] {
            archive
                .start_file(name, SimpleFileOptions::default())
                .expect("a file");
            archive.write_all(name.as_bytes()).expect("writable");
        }
        archive.finish().expect("written");
        let modules_of = |file: PathBuf| {
            let file = file.to_str().expect("UTF-8").to_owned();
            let command = ["-run", "escript", "start", "-extra"].map(str::to_owned);
            let mut libraries = Libraries::default();
            libraries.add_those_of(&[command.to_vec(), vec![file, "eunit".to_owned()]].concat());
            libraries.modules()
        };
        let modules = modules_of(escript.clone());
        let [(Origin::Tools, code)] = modules.files("rebar3") else {
            panic!("{modules:?}");
        };
        assert_eq!(code.read().expect("read"), b"rebar/ebin/rebar3.beam");
        assert!(modules.files("rebar").is_empty());
        let renamed = folder.path().join("program");
        fs::rename(escript, &renamed).expect("writable");
        for other in [renamed, folder.path().join("rebar3")] {
            assert!(modules_of(other).files("rebar3").is_empty());
        }
    }

    #[test]
    fn origins_have_numbers_and_names() {
        for origin in Origin::ALL {
            assert_eq!(Origin::of(origin.number()), Some(*origin));
        }
        assert_eq!(Origin::of(4), None);
        assert_eq!(Origin::of_name("elixir_compiler_12"), Some(Origin::Elixir));
        for name in ["elixir_compiler_", "elixir_compiler_x", "lists"] {
            assert_eq!(Origin::of_name(name), None);
        }
    }
}
