//! Running commands below another root directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::paths;

/// Options that say which OTP programs are compared with, and where they are put.
#[derive(clap::Args)]
pub(crate) struct OtpOptions {
    /// The command that starts OTP
    #[arg(long, default_value = "erl", value_name = "COMMAND")]
    pub(crate) erl: String,
    /// The command that compiles the programs
    #[arg(long, default_value = "erlc", value_name = "COMMAND")]
    pub(crate) erlc: String,
    /// Run OTP with this directory as its root; the folder of the programs must be below it
    #[arg(long, value_name = "DIR")]
    pub(crate) chroot: Option<PathBuf>,
    /// Compile the programs in this folder [default: a folder with the task's name in the build folder]
    #[arg(long, value_name = "DIR")]
    build: Option<PathBuf>,
}

impl OtpOptions {
    /// What is used where no OTP is asked for.
    pub(crate) fn of_test() -> Self {
        Self {
            erl: "erl".to_owned(),
            erlc: "erlc".to_owned(),
            chroot: None,
            build: None,
        }
    }

    /// Where OTP runs.
    pub(crate) fn place(&self) -> Result<Place> {
        Place::new(self.chroot.as_deref())
    }

    /// The folder of the programs of `task`; it is made.
    pub(crate) fn folder(&self, task: &str) -> Result<PathBuf> {
        let dir = self.build.clone();
        let dir = dir.unwrap_or_else(|| paths::target().join(task));
        fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        Ok(dir.canonicalize()?)
    }
}

/// Where commands run: in a chroot, or in none.
pub(crate) struct Place {
    chroot: Option<PathBuf>,
}

impl Place {
    /// A place below `chroot`, or this machine's own root.
    pub(crate) fn new(chroot: Option<&Path>) -> Result<Self> {
        let chroot = chroot.map(Path::canonicalize).transpose();
        let chroot = chroot.context("looking for the chroot")?;
        Ok(Self { chroot })
    }

    /// A command that runs `words` in the directory `dir`, which is a path outside of the chroot.
    pub(crate) fn command(&self, dir: &Path, words: &[String]) -> Result<Command> {
        let (program, arguments) = words.split_first().context("an empty command")?;
        let Some(root) = &self.chroot else {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(dir);
            return Ok(command);
        };
        let mut command = Command::new("chroot");
        let script = "cd \"$1\" && shift && exec \"$@\"";
        command.arg(root).args(["sh", "-c", script, "sh"]);
        command.arg(self.inside(dir)?).args(words);
        Ok(command)
    }

    /// A path as the commands see it.
    pub(crate) fn inside(&self, path: &Path) -> Result<String> {
        let path = match &self.chroot {
            None => path.to_str().map(str::to_owned),
            Some(root) => {
                let below = path.strip_prefix(root);
                let below =
                    below.with_context(|| format!("{} is not below the chroot", path.display()))?;
                below.to_str().map(|below| format!("/{below}"))
            }
        };
        path.context("the build folder's name is not UTF-8")
    }

    /// A path as the commands see it, seen from outside.
    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        match &self.chroot {
            None => PathBuf::from(path),
            Some(root) => root.join(path.trim_start_matches('/')),
        }
    }
}

/// A command line as words.
pub(crate) fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_inside_a_chroot() {
        let dir = std::env::temp_dir().canonicalize().unwrap();
        let place = Place::new(Some(&dir)).unwrap();
        assert_eq!(place.inside(&dir.join("a/b")).unwrap(), "/a/b");
        assert!(place.inside(Path::new("/elsewhere")).is_err());
        assert_eq!(place.outside("/a/b"), dir.join("a/b"));
        let open = Place::new(None).unwrap();
        assert_eq!(open.inside(Path::new("/elsewhere")).unwrap(), "/elsewhere");
    }
}
