//! Translates the command line of `erlc` to one of `erl`.
//!
//! Source: `erlc.c`, OTP 29. Differs: it uses and starts no compile server, since that would compile outside the run
//! that is measured.

use super::Failure;

/// Translates the command line of `erlc` (without the program's name).
pub(super) fn translate(command_line: &[String]) -> Result<Vec<String>, Failure> {
    let mut front: Vec<String> = Vec::new();
    let mut back: Vec<String> = [
        "+sbtu",
        "+A0",
        "+P",
        "65536",
        "+Q",
        "1024",
        "-noinput",
        "-mode",
        "minimal",
        "-boot",
        "no_dot_erlang",
        "-s",
        "erl_compile",
        "compile_cmdline",
        "-extra",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut arguments = command_line.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-d" | "-no-server" | "-server" => {}
            "-smp" => front.insert(0, argument.clone()),
            a if a.starts_with("-pa") || a.starts_with("-pz") => {
                let (option, joined) = a.split_at(3);
                let path = if joined.is_empty() {
                    let next = arguments.next().filter(|next| !next.starts_with('-'));
                    next.cloned()
                        .ok_or_else(|| Failure::Error("No value given to -p option".to_owned()))?
                } else {
                    joined.to_owned()
                };
                // Each goes to the front, as the compiler expects them in reverse.
                front.insert(0, path);
                front.insert(0, option.to_owned());
            }
            _ => back.push(argument.clone()),
        }
    }
    front.insert(0, "+S1".to_owned());
    front.append(&mut back);
    Ok(front)
}
