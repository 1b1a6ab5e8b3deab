//! Translates the paths that programs see. A virtual run, and what prepares one, has a folder whose name no other run
//! has at the time. Programs see the same name in every run, and it means the run's own folder wherever they use it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use beamline_settings::chance::{Chance, folder_of_run};
use memchr::memmem;

use super::form;

/// The form in which programs see a path, an argument or a variable that comes from outside.
pub fn told(text: Vec<u8>) -> Vec<u8> {
    match form() {
        Chance::Live => text,
        Chance::Linked { folder, .. } | Chance::Virtual { folder, .. } => {
            replaced(text, folder, &folder_of_run(0))
        }
    }
}

/// As [`told`], for a text.
pub fn told_text(text: &str) -> String {
    String::from_utf8_lossy(&told(text.as_bytes().to_vec())).into_owned()
}

/// What the system is given for a path, an argument or a variable of a program.
pub fn real(text: Vec<u8>) -> Vec<u8> {
    match form() {
        Chance::Live => text,
        Chance::Linked { folder, .. } | Chance::Virtual { folder, .. } => {
            replaced(text, &folder_of_run(0), folder)
        }
    }
}

fn replaced(text: Vec<u8>, from: &Path, to: &Path) -> Vec<u8> {
    let (from, to) = (from.as_os_str().as_bytes(), to.as_os_str().as_bytes());
    if from == to {
        return text;
    }
    let mut result = Vec::with_capacity(text.len());
    let mut end = 0;
    for start in memmem::find_iter(&text, from) {
        result.extend_from_slice(&text[end..start]);
        result.extend_from_slice(to);
        end = start + from.len();
    }
    result.extend_from_slice(&text[end..]);
    result
}

/// The folder this process is in; in a virtual run by the nearest of the run's links.
pub fn current_dir() -> std::io::Result<PathBuf> {
    let dir = std::env::current_dir()?;
    Ok(match form() {
        Chance::Live => dir,
        Chance::Linked { links, .. } | Chance::Virtual { links, .. } => {
            let linked = through(links, dir).into_os_string().into_vec();
            OsString::from_vec(told(linked)).into()
        }
    })
}

/// A path without links in it, by the nearest of `links`.
fn through(links: &[PathBuf], path: PathBuf) -> PathBuf {
    let places = links.iter().filter_map(|link| {
        let place = link.canonicalize().ok()?;
        let rest = path.strip_prefix(&place).ok()?;
        // Everything is in the root.
        place.parent()?;
        Some((link, rest))
    });
    match places.min_by_key(|(_, rest)| rest.components().count()) {
        Some((link, rest)) if rest.as_os_str().is_empty() => link.clone(),
        Some((link, rest)) => link.join(rest),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_folder_is_replaced_wherever_it_stands() {
        let (own, told) = (Path::new("/run-012"), Path::new("/run-000"));
        for (text, expected) in [
            ("/run-012/otp", "/run-000/otp"),
            ("a:/run-012/x:/run-012", "a:/run-000/x:/run-000"),
            ("/run-01", "/run-01"),
            ("", ""),
        ] {
            let replaced = |text: &str, from, to| replaced(text.as_bytes().to_vec(), from, to);
            assert_eq!(replaced(text, own, told), expected.as_bytes());
            assert_eq!(replaced(expected, told, own), text.as_bytes());
            assert_eq!(replaced(text, own, own), text.as_bytes());
        }
    }

    #[test]
    fn folders_are_known_by_the_nearest_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(path("user/here/sub")).unwrap();
        let links = ["user", "user/here", ""].map(|name| {
            let link = path(&format!("link{}", name.len()));
            let place = match name {
                "" => PathBuf::from("/"),
                name => path(name),
            };
            std::os::unix::fs::symlink(place, &link).unwrap();
            link
        });
        for (name, expected) in [
            ("user/here", "link9"),
            ("user/here/sub", "link9/sub"),
            ("user/other", "link4/other"),
            ("users", "users"),
        ] {
            assert_eq!(through(&links, path(name)), path(expected));
        }
    }
}
