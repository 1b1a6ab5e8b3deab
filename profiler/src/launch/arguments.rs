//! Gathers the flags of `erl` that are not on its command line: those in environment variables and in argument files.
//!
//! Source: `erlexec.c`, `build_args_from_string()`, `get_file_args()`, `initial_argv_massage()`, OTP 29.

use super::{Environment, Failure};

/// Splits a text into arguments: white space separates, quotes and backslashes keep it.
///
/// A `--` is added at the end, so that flags of one place do not take arguments of the next; not
/// where `-extra` already ends the flags.
pub(super) fn split(text: &str, comments: bool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| is_space(*c)).is_some() {}
        match chars.peek() {
            None => break,
            Some('#') if comments => while chars.next_if(|c| *c != '\n').is_some() {},
            Some(_) => words.push(word(&mut chars, comments)),
        }
    }
    if !words.is_empty() && !words.iter().any(|word| word == "-extra") {
        words.push("--".to_owned());
    }
    words
}

fn is_space(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | ' ')
}

fn word(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, comments: bool) -> String {
    let mut word = String::new();
    while let Some(&c) = chars.peek() {
        if is_space(c) || (c == '#' && comments) {
            break;
        }
        chars.next();
        match c {
            '"' | '\'' => {
                while let Some(inner) = chars.next_if(|inner| *inner != c) {
                    word.push(inner);
                }
                chars.next();
            }
            '\\' => word.extend(chars.next()),
            c => word.push(c),
        }
    }
    word
}

#[derive(Default)]
struct Gathered {
    flags: Vec<String>,
    extra: Vec<String>,
    start: Vec<String>,
}

/// The whole list of arguments: of the environment, the command line and argument files; what
/// follows `-extra` and `-S` comes last.
pub(super) fn gather(
    command_line: &[String],
    environment: &dyn Environment,
) -> Result<Vec<String>, Failure> {
    let variable = |name: &str| split(&environment.variable(name).unwrap_or_default(), false);
    let mut all = Gathered::default();
    all.place(variable("ERL_OTP29_FLAGS"), false, environment)?;
    all.place(variable("ERL_AFLAGS"), false, environment)?;
    if !command_line.is_empty() {
        all.place(command_line.to_vec(), true, environment)?;
        all.flags.push("--".to_owned());
    }
    all.place(variable("ERL_FLAGS"), false, environment)?;
    all.place(variable("ERL_ZFLAGS"), false, environment)?;
    let mut arguments = all.flags;
    if !all.extra.is_empty() {
        arguments.push("-extra".to_owned());
        arguments.append(&mut all.extra);
    }
    arguments.append(&mut all.start);
    Ok(arguments)
}

impl Gathered {
    fn place(
        &mut self,
        words: Vec<String>,
        is_command_line: bool,
        environment: &dyn Environment,
    ) -> Result<(), Failure> {
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-args_file" => {
                    let name = words.next().ok_or_else(|| Failure::missing("-args_file"))?;
                    self.file(&name, environment, 0)?;
                }
                "-extra" => {
                    self.extra.extend(words);
                    self.flags.push("--".to_owned());
                    return Ok(());
                }
                "-S" if is_command_line => {
                    self.start.push("++S".to_owned());
                    // A backslash tells a literal `--` from those that are added here.
                    self.start.extend(words.map(|word| match word.as_str() {
                        "--" => "\\--".to_owned(),
                        _ => word,
                    }));
                    self.flags.push("--".to_owned());
                    return Ok(());
                }
                _ => self.flags.push(word),
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        name: &str,
        environment: &dyn Environment,
        depth: u32,
    ) -> Result<(), Failure> {
        if depth > 100 {
            return Err(Failure::Error(format!(
                "arguments file \"{name}\" includes itself"
            )));
        }
        let text = environment.file(name).map_err(|e| {
            Failure::Error(format!("Failed to open arguments file \"{name}\": {e}"))
        })?;
        let mut words = split(&text, true).into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-args_file" => {
                    let name = words.next().ok_or_else(|| Failure::missing("-args_file"))?;
                    self.file(&name, environment, depth + 1)?;
                }
                "-extra" => {
                    self.extra.extend(words);
                    return Ok(());
                }
                _ => self.flags.push(word),
            }
        }
        Ok(())
    }
}
