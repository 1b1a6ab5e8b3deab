//! Translates the command line of `escript` and the script's own flags to a command line of `erl`.
//!
//! Source: `escript.c`, OTP 29.

use super::{Environment, Failure};

/// What `escript` makes of its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// The script's path, for `ESCRIPT_NAME`.
    pub(super) name: String,
    /// The command line of `erl`.
    pub(super) arguments: Vec<String>,
}

/// Translates the command line of `escript` (without the program's name).
pub(super) fn translate(
    command_line: &[String],
    environment: &dyn Environment,
) -> Result<Script, Failure> {
    let options = command_line
        .iter()
        .take_while(|argument| argument.starts_with('-'))
        .count();
    let (options, rest) = command_line.split_at(options);
    let Some((name, own)) = rest.split_first() else {
        return Err(Failure::Error("Missing filename".to_owned()));
    };
    let head = environment
        .head(name)
        .map_err(|_| Failure::Error(format!("Failed to open file: {name}")))?;
    let mut arguments: Vec<String> = ["+B", "-noshell", "-boot", "$ROOT/no_dot_erlang"]
        .map(str::to_owned)
        .to_vec();
    arguments.extend(flags(&head));
    arguments.extend(["-run", "escript", "start"].map(str::to_owned));
    arguments.extend(options.iter().map(|option| option[1..].to_owned()));
    arguments.extend(["-extra".to_owned(), name.clone()]);
    arguments.extend_from_slice(own);
    Ok(Script {
        name: name.clone(),
        arguments,
    })
}

/// The flags of the `%%!` line, which is the script's second or third.
fn flags(head: &str) -> Vec<String> {
    let line = head
        .lines()
        .skip(1)
        .take(2)
        .find_map(|line| line.strip_prefix("%%!"));
    let words = line.unwrap_or_default().split(' ');
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
