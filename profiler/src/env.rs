//! `beamline env` prints what makes the programs of OTP and Elixir that are typed into a shell run on Beamline.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::{launch, report};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Have erl, erlc, mix and iex run on Beamline in this shell, until it ends:
    eval \"$(beamline env)\"
  The same in fish:
    beamline env | source
";

/// The arguments of `beamline env`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Use the libraries of this Erlang/OTP [default: $BEAMLINE_OTP, erl on PATH, target/otp].
    #[arg(long, value_name = "DIR")]
    otp: Option<PathBuf>,
}

/// Prints a line for each variable.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let folder = programs()?;
    let variables = launch::of_shell(arguments.otp.as_deref(), &folder)?;
    let lines = variables.iter().map(|(name, value)| line(name, value));
    report::print(&lines.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// The folder of this user's links to `beamline`, by the names of OTP's programs.
fn programs() -> Result<PathBuf, String> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = variable("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.filter(|folder| folder.is_absolute());
    let home = || variable("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let data = data.or_else(home);
    let data = data.ok_or("no folder for the links to beamline: set HOME or XDG_DATA_HOME")?;
    Ok(data.join("beamline/bin"))
}

/// Sets a variable, as a POSIX shell and fish read it.
fn line(name: &str, value: &str) -> String {
    let value = value.replace('\'', r"'\''");
    format!("export {name}='{value}'\n")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_shell_reads_a_value_as_it_is() {
        for value in ["", "/a:/b c", "it's $HOME `x` \\ \"q\"", "'"] {
            let script = format!("{}printf %s \"$V\"", line("V", value));
            let said = std::process::Command::new("sh")
                .args(["-c", &script])
                .output()
                .expect("there is a shell");
            assert_eq!(String::from_utf8_lossy(&said.stdout), value, "{script}");
        }
    }
}
