//! Folders with a recording of each emulator that a command has started.
//!
//! While the command runs, the recordings have numbers: `emulator.stream`, `emulator-2.stream`. Once it has ended, that of a
//! node has the node's name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use beamline_formats::ring::{Recording, numbered, part_of};
use beamline_reports::cluster::Cluster;

/// Whether a recording into this goes into a folder: one that is there, or a name that ends as one.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir()
}

/// The recordings of a folder, by their names.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn recordings(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && Recording::is_one(&path) && !is_part(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the recordings of a folder.
///
/// # Errors
/// One line: the folder has none, or one of them cannot be read.
pub(crate) fn cluster(folder: &Path) -> Result<Cluster, String> {
    let files = recordings(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    if files.is_empty() {
        return Err(format!("{}: a folder without recordings", folder.display()));
    }
    Cluster::open(&files).map_err(|(file, error)| format!("{}: {error}", file.display()))
}

/// Whether it is the ring beside a recording that is there.
fn is_part(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "part") && path.with_extension("").is_file()
}

/// The file of the first recording in the folder. The folder is made where there is none.
///
/// # Errors
/// One line: it cannot be made or read, or has recordings already.
pub(crate) fn first_file(folder: &Path, extension: &str) -> Result<PathBuf, String> {
    let fail = |e: io::Error| format!("{}: {e}; the program was not started", folder.display());
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fail(error)),
        _ => {}
    }
    if let Some(earlier) = recordings(folder).map_err(fail)?.first() {
        return Err(format!(
            "{}: the folder has recordings already ({}): remove them, or give another folder; the program was not started",
            folder.display(),
            earlier.file_name().unwrap_or_default().display()
        ));
    }
    Ok(folder.join("emulator").with_extension(extension))
}

/// Gives each recording the name of its node, if it had one; the files as they are called then. Of nodes with one name, the first keeps
/// it and the others get numbers.
pub(crate) fn name_files(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut named: Vec<PathBuf> = files.iter().map(|file| name_file(file)).collect();
    named.sort();
    named
}

fn name_file(file: &Path) -> PathBuf {
    let keep = || file.to_owned();
    let node = Recording::open(file).ok();
    let node = node.as_ref().and_then(|recording| recording.names().node());
    let Some(node) = node.filter(|_| !part_of(file).exists()) else {
        return keep();
    };
    let mut name = file_name(&node.name);
    if let Some(extension) = file.extension().and_then(|it| it.to_str()) {
        name = format!("{name}.{extension}");
    }
    let wanted = file.with_file_name(name);
    let mut free = (1..).map(|number| numbered(&wanted, number));
    let free = free.find(|to| !to.exists()).unwrap_or_else(keep);
    // Where it cannot be renamed it keeps its number.
    match fs::rename(file, &free) {
        Ok(()) => free,
        Err(_) => keep(),
    }
}

/// The name of a node, as a file may be called.
fn file_name(node: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "@.-_+".contains(c);
    let plain = node.chars().map(|c| if is_plain(c) { c } else { '_' });
    let name: String = plain.collect();
    name.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nodes_become_names_of_files() {
        for (node, expect) in [
            ("a@host.org", "a@host.org"),
            ("../a@host", "_a@host"),
            ("a b@ü", "a_b@ü"),
        ] {
            assert_eq!(file_name(node), expect);
        }
    }

    #[test]
    fn a_folder_with_recordings_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("run");
        let made = first_file(&run, "stream");
        assert_eq!(made, Ok(run.join("emulator.stream")));
        fs::write(run.join("other.txt"), "BL").expect("writable");
        assert!(first_file(&run, "stream").is_ok());
        fs::write(run.join("b.stream"), b"BLRING\r\n").expect("writable");
        let refused = first_file(&run, "stream").expect_err("it has one");
        assert!(refused.contains("(b.stream)"), "{refused}");
        let deep = first_file(&run.join("no/where"), "stream");
        assert!(deep.is_err_and(|line| line.contains("No such file")));
    }
}
