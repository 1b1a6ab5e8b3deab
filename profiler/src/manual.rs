//! `beamline completions` and `beamline man` write what shells and `man` want to know of the command line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::report;

pub(crate) const COMPLETIONS_EXAMPLES: &str = "\
EXAMPLES:
  For bash, in ~/.bashrc:
    source <(beamline completions bash)
  For zsh, in a folder of $fpath:
    beamline completions zsh > ~/.zfunc/_beamline
  For fish:
    beamline completions fish > ~/.config/fish/completions/beamline.fish
";

pub(crate) const MAN_EXAMPLES: &str = "\
EXAMPLES:
  Install the pages for this user, and read one:
    beamline man ~/.local/share/man/man1
    man beamline-record
  Read the first page without installing it:
    beamline man | man -l -
";

/// The arguments of `beamline completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    shell: Shell,
}

/// The arguments of `beamline man`.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command to this folder, which is made if it is missing [default: print the page of beamline].
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(crate) fn completions(
    args: &CompletionsArguments,
    mut command: Command,
) -> Result<ExitCode, String> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "beamline", &mut text);
    report::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// The manual page of a command.
fn page(command: Command) -> Result<Vec<u8>, String> {
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command).manual("Beamline");
    man.render(&mut page).map_err(|e| e.to_string())?;
    Ok(page)
}

/// Writes the page of a command and of those below it, each to a file of its name.
fn write_pages(folder: &Path, command: &Command, name: &str) -> Result<(), String> {
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        write_pages(folder, below, &format!("{name}-{}", below.get_name()))?;
    }
    // The page's title and the first word of its synopsis.
    let shown = name.replacen('-', " ", 1);
    let command = command.clone().name(name.to_owned()).display_name(name);
    let page = page(command.bin_name(shown))?;
    report::write(&folder.join(format!("{name}.1")), |out| {
        out.write_all(&page).map_err(|e| e.to_string())
    })
}

/// Writes the manual pages.
pub(crate) fn man(args: &ManArguments, mut command: Command) -> Result<ExitCode, String> {
    command = command.disable_help_subcommand(true);
    command.build();
    match &args.folder {
        None => report::print(&String::from_utf8_lossy(&page(command)?))?,
        Some(folder) => {
            let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
            std::fs::create_dir_all(folder).map_err(fail)?;
            write_pages(folder, &command, "beamline")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
