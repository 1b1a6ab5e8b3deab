//! Where modules come from: from the program, or from what runs and builds it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::names::names;

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
    Tools = "tools", "Archives of Mix, such as Hex";
});

impl Origin {
    /// Its number in files.
    pub(crate) fn number(self) -> u64 {
        self as u64
    }

    /// The one with this number.
    pub(crate) fn of(number: u64) -> Option<Origin> {
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

/// A folder with `.beam` files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Library {
    origin: Origin,
    folder: PathBuf,
}

/// The folders with the `.beam` files of what runs and builds programs.
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
        let libraries = folders.map(|folder| Library { origin, folder });
        self.0.extend(libraries);
    }

    /// Adds the Elixir that starts an emulator with this command line.
    pub fn add_elixir_of(&mut self, command: &[String]) {
        let mut arguments = command
            .iter()
            .skip_while(|argument| *argument != "-elixir_root");
        if let Some(root) = arguments.nth(1) {
            self.add(Origin::Elixir, folders_in(Path::new(root)));
        }
    }

    /// The modules in them.
    #[must_use]
    pub fn modules(&self) -> Modules {
        let mut files: HashMap<String, Vec<(Origin, PathBuf)>> = HashMap::new();
        for Library { origin, folder } in &self.0 {
            for file in paths_in(folder) {
                let is_beam = file
                    .extension()
                    .is_some_and(|extension| extension == "beam");
                if let Some(module) = file.file_stem().and_then(|stem| stem.to_str())
                    && is_beam
                {
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
    files: HashMap<String, Vec<(Origin, PathBuf)>>,
}

impl Modules {
    /// The files of a module.
    #[must_use]
    pub fn files(&self, module: &str) -> &[(Origin, PathBuf)] {
        self.files.get(module).map_or(&[], Vec::as_slice)
    }
}

/// What is in a folder, in order; nothing where it cannot be read.
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
        libraries.add_elixir_of(&command);
        let modules = libraries.modules();
        assert_eq!(modules.files("Elixir.Mix").len(), 1);
        assert!(modules.files("lists").is_empty());
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
