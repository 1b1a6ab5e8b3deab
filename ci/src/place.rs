//! Running commands below another root directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

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
        path.context("the build folder's name is no UTF-8")
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
        let open = Place::new(None).unwrap();
        assert_eq!(open.inside(Path::new("/elsewhere")).unwrap(), "/elsewhere");
    }
}
