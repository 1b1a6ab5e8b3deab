//! Translates the command line of `erl` to the emulator's.
//!
//! Source: `erlexec.c`, OTP 29. Differs: it shows no manual page (`-man`).

use super::arguments;
use super::{Environment, Failure, Otp};
use beamline_settings::emulator_flags::{is_optional_value, takes_value};

/// What `erl` does with its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Start the emulator with these arguments (without the program's name) and variables.
    Start {
        /// The emulator's flags, `--`, and the arguments of `init`.
        arguments: Vec<String>,
        /// Variables to set first (`-env`).
        variables: Vec<(String, String)>,
        /// A node that others find by name: the daemon of names is to run, and how it is started if not as usual.
        names: Option<Names>,
        /// In the background, without a terminal.
        is_detached: bool,
    },
    /// Print this and end.
    Print(String),
}

/// How the daemon is started by which nodes find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// OTP's own, or this program's.
    Usual,
    /// By a command (`-epmd`).
    Command(String),
}

#[derive(Default)]
struct Translation {
    emulator: Vec<String>,
    init: Vec<String>,
    variables: Vec<(String, String)>,
    print_arguments: bool,
    halt: bool,
    no_epmd: bool,
    proto_dist: bool,
    /// It is to have a name.
    is_node: bool,
    /// `-start_epmd false`.
    starts_no_epmd: bool,
    /// `-epmd`.
    epmd: Option<String>,
    is_detached: bool,
}

/// Translates the command line of `erl` (without the program's name).
pub(super) fn translate(
    command_line: &[String],
    otp: &Otp,
    environment: &dyn Environment,
) -> Result<Action, Failure> {
    let arguments = arguments::gather(command_line, environment)?;
    refuse_smp(&arguments)?;
    if arguments.iter().any(|a| a == "-emu_name_exit") {
        return Ok(Action::Print("beam.smp\n".to_owned()));
    }
    let mut t = Translation::default();
    for (flag, variable) in [("-home", "HOME"), ("-epmd_port", "ERL_EPMD_PORT")] {
        if let Some(value) = environment.variable(variable) {
            t.init.extend([flag.to_owned(), value]);
        }
    }
    t.init.push("--".to_owned());
    let mut rest = arguments.as_slice();
    while let Some((argument, after)) = rest.split_first() {
        rest = match argument.as_bytes().first() {
            Some(b'-') => t.dash(argument, after)?,
            Some(b'+') => t.plus(argument, after)?,
            _ => {
                t.init.push(argument.clone());
                after
            }
        };
    }
    t.finish(otp)
}

/// The flag's value: the next argument, unless that is a `--`.
fn value<'a>(flag: &str, after: &'a [String]) -> Result<(&'a String, &'a [String]), Failure> {
    match after.split_first() {
        Some((value, rest)) if value != "--" => Ok((value, rest)),
        _ => Err(Failure::missing(flag)),
    }
}

fn refuse_smp(arguments: &[String]) -> Result<(), Failure> {
    let flags = arguments
        .iter()
        .take_while(|a| *a != "-extra" && *a != "++S");
    let mut previous = "";
    for argument in flags {
        if argument == "-smpdisable" || (previous == "-smp" && argument == "disable") {
            return Err(Failure::Usage(
                "Argument '-smp disable' not supported. Use \"+S 1\" instead.".to_owned(),
            ));
        }
        previous = argument;
    }
    Ok(())
}

impl Translation {
    fn init(&mut self, arguments: &[&str]) {
        self.init.extend(arguments.iter().map(|&a| a.to_owned()));
    }

    fn dash<'a>(&mut self, flag: &str, after: &'a [String]) -> Result<&'a [String], Failure> {
        match flag {
            "-compile" => {
                self.init(&["-noshell", "-noinput", "-s", "c", "lc_batch"]);
                self.emulator.push("-B".to_owned());
            }
            "-configfd" => {
                let (fd, _) = value(flag, after)?;
                if fd == "0" {
                    self.init(&["-noshell", "-noinput"]);
                }
                self.init(&[flag]);
            }
            "-detached" => {
                self.is_detached = true;
                self.init(&["-noshell", "-noinput"]);
            }
            "-man" => {
                return Err(Failure::Error(format!("'{flag}' is not supported")));
            }
            "-extra" => {
                self.init(&[flag]);
                self.init.extend_from_slice(after);
                return Ok(&[]);
            }
            // A verbose start has nothing to tell: no other program is executed.
            "-emu_args" | "-emu_qouted_cmd_exit" | "-keep_window" => {}
            "-emu_args_exit" => self.print_arguments = true,
            "-env" => {
                let (name, after) = value(flag, after)?;
                let (text, after) = value(flag, after)?;
                self.variables.push((name.clone(), text.clone()));
                return Ok(after);
            }
            "-epmd" => {
                let (program, after) = value(flag, after)?;
                self.epmd = Some(program.clone());
                return Ok(after);
            }
            "-make" => {
                self.init(&["-noshell", "-noinput", "-s", "make", "all_or_nothing"]);
                self.emulator.push("-B".to_owned());
                self.halt = true;
                return Ok(&[]);
            }
            "-name" | "-sname" | "-proto_dist" | "-start_epmd" => {
                let (text, after) = value(flag, after)?;
                if flag == "-start_epmd" && text != "true" && text != "false" {
                    let reason = "Expected boolean argument for '-start_epmd'.";
                    return Err(Failure::Usage(reason.to_owned()));
                }
                self.is_node |= flag == "-name" || flag == "-sname";
                self.starts_no_epmd |= flag == "-start_epmd" && text == "false";
                self.proto_dist |= flag == "-proto_dist";
                self.init(&[flag, text]);
                return Ok(after);
            }
            "-noinput" => self.init(&["-noshell", "-noinput"]),
            "-no_epmd" => {
                self.no_epmd = true;
                self.init(&[flag]);
            }
            "-version" => self.emulator.push("-V".to_owned()),
            _ => self.init(&[flag]),
        }
        Ok(after)
    }

    fn plus<'a>(&mut self, flag: &str, after: &'a [String]) -> Result<&'a [String], Failure> {
        if flag == "++S" {
            self.init(&["-noshell", "-S"]);
            self.init.extend_from_slice(after);
            return Ok(&[]);
        }
        if flag.starts_with("++") {
            self.init(&[flag]);
            return Ok(after);
        }
        let unknown = (flag.starts_with("+I") && !takes_value(&flag[1..]) && !known_io(flag))
            || (flag.starts_with("+SD") && !known_dirty(flag))
            || (flag.starts_with("+B") && flag.len() > 2 && !"icd".contains(&flag[2..=2]));
        if unknown {
            return Err(Failure::missing(flag));
        }
        self.emulator.push(format!("-{}", &flag[1..]));
        let next = after.first().map(String::as_str);
        let name = &flag[1..];
        let has_value = takes_value(name) || next.is_some_and(|next| is_optional_value(name, next));
        if !has_value {
            return Ok(after);
        }
        let (text, after) = value(flag, after)?;
        self.emulator.push(text.clone());
        Ok(after)
    }

    fn finish(mut self, otp: &Otp) -> Result<Action, Failure> {
        // OTP's own protocol of distribution relies on epmd.
        if self.no_epmd && !self.proto_dist {
            return Err(Failure::Error(
                "Missing -proto_dist option, expected when using -no_epmd.".to_owned(),
            ));
        }
        if self.halt {
            self.init(&["-s", "erlang", "halt"]);
        }
        let mut arguments = self.emulator;
        let own = [
            "--",
            "-root",
            &otp.root,
            "-bindir",
            &otp.bindir,
            "-progname",
            "erl",
            "--",
        ];
        arguments.extend(own.map(str::to_owned));
        arguments.append(&mut self.init);
        Ok(if self.print_arguments {
            Action::Print(arguments.iter().map(|a| format!("{a}\n")).collect())
        } else {
            let is_found = self.is_node && !self.starts_no_epmd && !self.no_epmd;
            Action::Start {
                arguments,
                variables: self.variables,
                is_detached: self.is_detached,
                names: is_found.then(|| self.epmd.map_or(Names::Usual, Names::Command)),
            }
        })
    }
}

fn known_io(flag: &str) -> bool {
    ["+IOt", "+IOp", "+IOPt", "+IOPp", "+IOs"]
        .iter()
        .any(|known| flag.starts_with(known))
}

fn known_dirty(flag: &str) -> bool {
    ["+SDcpu", "+SDPcpu", "+SDio"]
        .iter()
        .any(|known| flag.starts_with(known))
}
