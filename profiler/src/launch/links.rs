//! Makes links with fixed names, through which a deterministic run sees folders that lie elsewhere on other machines.
//!
//! The work that programs do with the paths of their code and files depends on how long the paths are.

use std::path::{Path, PathBuf};

use super::symlink;

/// The OTP whose libraries are run.
pub(super) const OTP: &str = "otp";

/// The Elixir on PATH.
const ELIXIR: &str = "elixir";

/// The user's own folder.
const HOME: &str = "home";

/// The folder in which the command runs.
const HERE: &str = "here";

/// The links, and what users call the places behind them.
const NAMES: [(&str, &str); 4] = [(HERE, "."), (HOME, "~"), (ELIXIR, "Elixir"), (OTP, "OTP")];

/// The links of a launch.
pub(super) struct Links {
    folder: PathBuf,
}

impl Links {
    /// Makes them in a folder, but for the one to OTP: to the Elixir whose program is named, if there is one, and to the
    /// folder in which the command runs.
    ///
    /// # Errors
    /// One line when a link cannot be made.
    pub(super) fn make(folder: &Path, elixir: &Path, here: &Path) -> Result<Self, String> {
        let home = std::env::var_os("HOME").unwrap_or_else(|| "/".into());
        symlink(Path::new(&home), &folder.join(HOME))?;
        let here = here
            .canonicalize()
            .map_err(|e| format!("{}: {e}", here.display()))?;
        symlink(&here, &folder.join(HERE))?;
        // The program is BASE/bin/elixir behind whatever links lead to it.
        let elixir = elixir.canonicalize();
        if let Some(base) = elixir.iter().flat_map(|file| file.ancestors()).nth(2) {
            symlink(base, &folder.join(ELIXIR))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Variables of the environment that name such places.
    pub(super) fn variables(&self) -> [(&'static str, PathBuf); 2] {
        [
            ("HOME", self.folder.join(HOME)),
            ("PWD", self.folder.join(HERE)),
        ]
    }

    /// A text with places as the user knows them instead of links.
    pub(super) fn known(&self, text: &str) -> String {
        NAMES.iter().fold(text.to_owned(), |text, (name, known)| {
            text.replace(&self.folder.join(name).display().to_string(), known)
        })
    }
}

/// The links in a folder; none in a run that has none.
pub(super) fn present(folder: &Path) -> Vec<PathBuf> {
    let links = NAMES.iter().map(|(name, _)| folder.join(name));
    links.filter(|link| link.is_symlink()).collect()
}

/// The places behind the links in a folder, each with its link.
pub(super) fn places(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut places: Vec<(PathBuf, PathBuf)> = present(folder)
        .iter()
        .flat_map(|link| [link.read_link(), link.canonicalize()].map(|place| (place, link)))
        .filter_map(|(place, link)| Some((place.ok()?, link.clone())))
        .collect();
    // The nearest first: the current folder is often in the user's.
    places.sort_by_key(|(place, _)| std::cmp::Reverse(place.components().count()));
    places
}

/// An argument as a deterministic run is given it: a path in one of the places goes by the link. Scripts resolve
/// links on their way to what they start, as `elixir` does.
pub(super) fn through(places: &[(PathBuf, PathBuf)], argument: String) -> String {
    let path = Path::new(&argument);
    let is_root = |place: &Path| place.parent().is_none();
    let linked = places.iter().find_map(|(place, link)| {
        let rest = path.strip_prefix(place).ok().filter(|_| !is_root(place))?;
        let linked = match rest.as_os_str().is_empty() {
            true => link.clone(),
            false => link.join(rest),
        };
        linked.into_os_string().into_string().ok()
    });
    linked.unwrap_or(argument)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_through_the_nearest_link() {
        let places = [
            ("/u/a/here", "/f/here"),
            ("/u/a", "/f/user"),
            ("/", "/f/root"),
        ];
        let places = places.map(|(place, link)| (place.into(), link.into()));
        for (argument, expected) in [
            ("/u/a/here/x.exs", "/f/here/x.exs"),
            ("/u/a/here/../lib", "/f/here/../lib"),
            ("/u/a/here", "/f/here"),
            ("/u/a/hereafter/x", "/f/user/hereafter/x"),
            ("/u/ab", "/u/ab"),
            ("-pa", "-pa"),
            ("here/x", "here/x"),
        ] {
            assert_eq!(through(&places, argument.to_owned()), expected);
        }
    }

    #[test]
    fn links_lead_to_their_places_and_are_known_by_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["R", "E/bin", "here", "links"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        std::fs::write(path("E/bin/elixir"), "").unwrap();
        let links = Links::make(&path("links"), &path("E/bin/elixir"), &path("here")).unwrap();
        symlink(&path("R"), &path("links").join(OTP)).unwrap();
        let places = places(&path("links"));
        for (place, known) in [
            ("R/lib", "OTP/lib"),
            ("E/lib", "Elixir/lib"),
            ("here/x", "./x"),
        ] {
            let linked = through(&places, path(place).display().to_string());
            assert!(linked.contains("/links/"), "{linked}");
            assert_eq!(links.known(&linked), known);
        }
        assert_eq!(super::places(&path("R")), []);
    }
}
