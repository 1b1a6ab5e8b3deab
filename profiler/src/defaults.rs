//! Defaults of options from `beamline.toml` in the current folder, which is also the file of `beamline ci`.
//!
//! A key of the tables `[profile]` and `[record]` is a long option of that command. What the file gives becomes the
//! option's default, so the command line wins, and help shows it.

use std::fs;
use std::io::ErrorKind;
use std::ops::Range;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The file, in the current folder.
pub(crate) const FILE: &str = "beamline.toml";

/// The option that leaves it out.
pub(crate) const NO_CONFIG: &str = "no-config";

/// The commands whose options have defaults in the file: the tables it may have for them.
pub(crate) const TABLES: [&str; 2] = ["profile", "record"];

/// Gives a command the defaults of the file, if there is one and the arguments (the program's name first) do not say
/// `--no-config`.
///
/// # Errors
/// One line: what is wrong with the file, and where.
pub(crate) fn with_defaults(command: Command, arguments: &[String]) -> Result<Command, String> {
    // What follows is the program's.
    let mut own = arguments.iter().skip(1).take_while(|text| *text != "--");
    let verb = own.clone().find(|text| !text.starts_with('-'));
    let is_left_out = own.any(|text| text.strip_prefix("--") == Some(NO_CONFIG));
    if is_left_out || !verb.is_some_and(|verb| TABLES.contains(&verb.as_str())) {
        return Ok(command);
    }
    match fs::read_to_string(FILE) {
        Ok(text) => apply(command, &text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(command),
        Err(error) => Err(format!("{FILE}: {error}")),
    }
}

/// One line of an error, with the file and the line that it is about.
fn at(text: &str, span: &Range<usize>, message: &str) -> String {
    let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
    format!("{FILE}:{line}: {message}")
}

fn apply(mut command: Command, text: &str) -> Result<Command, String> {
    let parsed = DeTable::parse(text).map_err(|error| {
        let message = error.message().lines().next().unwrap_or_default();
        at(text, &error.span().unwrap_or_default(), message)
    })?;
    for key in parsed.get_ref().keys() {
        // The others are those of `beamline ci`, none of which is like a command.
        let name = key.get_ref();
        if let Some(near) = nearest(name, TABLES.into_iter()).filter(|near| near != name) {
            let message = format!("there is no table {name}; did you mean [{near}]?");
            return Err(at(text, &key.span(), &message));
        }
    }
    for name in TABLES {
        let Some(value) = parsed.get_ref().get(name) else {
            continue;
        };
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!("{name} is not a table; write [{name}]");
            return Err(at(text, &value.span(), &message));
        };
        for (key, value) in table {
            command = with_default(command, name, key.get_ref(), value)
                .map_err(|message| at(text, &key.span(), &message))?;
        }
    }
    Ok(command)
}

/// The texts that the command line would have for a value of the file.
fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    Some(match value {
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Boolean(yes) => vec![yes.to_string()],
        DeValue::Integer(number) => vec![number.as_str().replace('_', "")],
        DeValue::Float(number) => vec![number.as_str().replace('_', "")],
        DeValue::Array(all) => {
            let all = all.iter().map(|one| match one.get_ref() {
                DeValue::Array(_) => None,
                one => texts(one),
            });
            all.collect::<Option<Vec<_>>>()?.concat()
        }
        DeValue::Table(_) | DeValue::Datetime(_) => return None,
    })
}

/// Gives an option of a command the default that the file has for it.
fn with_default(
    command: Command,
    table: &str,
    key: &str,
    value: &Spanned<DeValue<'_>>,
) -> Result<Command, String> {
    let of = command.find_subcommand(table).cloned();
    let of = &of.ok_or("no such command")?;
    let mut options = of.get_arguments().filter(|arg| is_option(arg));
    let Some(option) = options.find(|arg| arg.get_long() == Some(key)) else {
        return Err(unknown(of, table, key));
    };
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    let is_list = matches!(option.get_action(), ArgAction::Append);
    let is_boolean = matches!(value.get_ref(), DeValue::Boolean(_));
    let is_array = matches!(value.get_ref(), DeValue::Array(_));
    let texts = texts(value.get_ref()).ok_or(format!("{key} is a text, a number or a list"))?;
    match (is_flag, is_boolean) {
        (true, false) => return Err(format!("{key} is true or false")),
        (false, true) => return Err(format!("{key} takes a value; write it as a text")),
        _ => {}
    }
    if is_array && !is_list {
        return Err(format!("{key} takes one value, not a list"));
    }
    let id = option.get_id().clone();
    for value in &texts {
        check(of, option, is_flag, value)?;
    }
    Ok(command.mut_subcommand(table, |of| {
        of.mut_arg(id, |option| option.required(false).default_values(texts))
    }))
}

/// Whether the file may have it: what stands for a help page or for another file has no default.
fn is_option(option: &Arg) -> bool {
    let long = option.get_long();
    long.is_some_and(|long| !["help", "version", NO_CONFIG].contains(&long))
}

/// Has the command line read a value, and gives its error.
fn check(of: &Command, option: &Arg, is_flag: bool, value: &str) -> Result<(), String> {
    if is_flag {
        return Ok(());
    }
    let long = option.get_long().unwrap_or_default();
    let line = [of.get_name().to_owned(), format!("--{long}={value}")];
    let Err(error) = of.clone().try_get_matches_from(line) else {
        return Ok(());
    };
    // Anything else is what this line leaves out.
    let is_of_value = matches!(
        error.get(ContextKind::InvalidValue),
        Some(ContextValue::String(_))
    );
    if !is_of_value {
        return Ok(());
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let values = lines.find(|line| line.starts_with("[possible values"));
    let values = values.map_or_else(String::new, |values| format!(" {values}"));
    Err(format!("{first}{values}"))
}

/// One line: there is no such option, and which one is like it.
fn unknown(of: &Command, table: &str, key: &str) -> String {
    let all = of.get_arguments().filter(|arg| is_option(arg));
    let near = nearest(key, all.filter_map(Arg::get_long));
    let hint = match near {
        Some(near) => format!("; did you mean {near}?"),
        None => format!("; its keys are the options of beamline {table} --help"),
    };
    format!("[{table}] has no key {key}{hint}")
}

/// What is most like a text, if it is much like it.
pub(crate) fn nearest<'a>(text: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |one: &&str| strsim::jaro_winkler(text, one);
    let best = all.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    best.filter(|one| likeness(one) >= 0.75)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command line like that of `profile`, with what the file gives.
    fn matches(text: &str, arguments: &[&str]) -> Result<(Vec<String>, String, bool), String> {
        let profile = Command::new("profile")
            .arg(
                Arg::new("kind")
                    .long("type")
                    .value_parser(["count", "time"])
                    .default_value("count"),
            )
            .arg(
                Arg::new("patterns")
                    .long("pattern")
                    .action(ArgAction::Append),
            )
            .arg(Arg::new("output").long("output").required(true))
            .arg(
                Arg::new("fixed")
                    .long("deterministic")
                    .action(ArgAction::SetTrue),
            );
        let command = Command::new("beamline")
            .subcommand(profile)
            .subcommand(Command::new("record"));
        let line = ["beamline", "profile"].iter().chain(arguments);
        let found = apply(command, text)?.try_get_matches_from(line);
        let found = found.map_err(|error| error.to_string())?;
        let (_, found) = found.subcommand().expect("profile");
        let all = found.get_many::<String>("patterns").unwrap_or_default();
        let kind = found.get_one::<String>("kind").expect("a default");
        Ok((
            all.cloned().collect(),
            kind.clone(),
            found.get_flag("fixed"),
        ))
    }

    #[test]
    fn the_file_gives_defaults_and_the_command_line_wins() {
        let text = "baseline = \"b\"\nmissing = \"fail\"\n[profile]\ntype = \"time\"\npattern = [\"a\", \"b\"]\n\
                    output = \"o\"\ndeterministic = true\n[limits]\nwords = \"2%\"\n[[workload]]\n[[functions]]\n";
        let list = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            matches(text, &[]),
            Ok((list(&["a", "b"]), "time".to_owned(), true))
        );
        assert_eq!(
            matches(text, &["--type=count", "--pattern=c"]),
            Ok((list(&["c"]), "count".to_owned(), true))
        );
        let error = matches("", &[]).expect_err("--output is missing");
        assert!(error.contains("--output"), "{error}");
    }

    #[test]
    fn what_is_wrong_with_the_file_is_said_in_one_line() {
        for (text, expect) in [
            (
                "[profile]\ntpye = \"time\"",
                "beamline.toml:2: [profile] has no key tpye; did you mean type?",
            ),
            (
                "\n[record]\nx = 1",
                "beamline.toml:3: [record] has no key x; its keys are the options of beamline record --help",
            ),
            (
                "[profile]\ntype = \"speed\"",
                "beamline.toml:2: invalid value 'speed' for '--type <kind>' [possible values: count, time]",
            ),
            (
                "[profile]\ntype = [\"time\"]",
                "beamline.toml:2: type takes one value, not a list",
            ),
            (
                "[profile]\ndeterministic = 1",
                "beamline.toml:2: deterministic is true or false",
            ),
            (
                "profile = 1",
                "beamline.toml:1: profile is not a table; write [profile]",
            ),
            ("[profile", "beamline.toml:1: "),
            (
                "baseline = \"b\"\n[proflie]\ntype = \"time\"",
                "beamline.toml:2: there is no table proflie; did you mean [profile]?",
            ),
        ] {
            let error = matches(text, &["--output=o"]).expect_err(text);
            assert!(error.starts_with(expect), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
