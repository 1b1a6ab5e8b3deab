//! `beamline epmd`: the daemon by which nodes find each other, where OTP's own is not at hand. It speaks the same protocol
//! on the same port, and takes the same arguments.
//!
//! Source: the description of EPMD's protocol in ERTS's documentation, and `epmd.c`, OTP 29.

mod register;
mod server;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use beamline_settings::chance;

use crate::report;

/// The port, where neither `-port` nor `ERL_EPMD_PORT` says another.
const PORT: u16 = 4369;

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) const EXAMPLES: &str = "\
Arguments, with one dash or two:
  -daemon                 go to the background once nodes can register
  -port PORT              another port than 4369 (ERL_EPMD_PORT)
  -address LIST           listen on these addresses, and the machine's own, only (ERL_EPMD_ADDRESS)
  -relaxed_command_check  take -kill while nodes are registered, and -stop (ERL_EPMD_RELAXED_COMMAND_CHECK)
  -names                  print the nodes that are registered
  -kill                   end the daemon
  -stop NAME              forget a node

Examples:
  beamline epmd -daemon
  beamline epmd -names";

/// Arguments of `beamline epmd`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// As OTP's epmd takes them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<String>,
}

/// The subcommand.
pub(crate) fn command(arguments: &Arguments) -> ExitCode {
    run(&arguments.arguments)
}

/// What the command is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    /// Serve, in the foreground or in the background.
    Serve { in_background: bool },
    /// Ask the daemon, and print its answer.
    Ask(Vec<u8>),
}

/// The arguments, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    task: Task,
    port: u16,
    /// Where to listen; everywhere if it is empty.
    addresses: Vec<IpAddr>,
    /// Nodes may be stopped by anybody on this machine, and the daemon while nodes live.
    is_relaxed: bool,
}

impl Settings {
    /// Reads arguments, with one dash or two.
    ///
    /// # Errors
    /// One line.
    fn read(
        arguments: &[String],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, String> {
        let mut settings = Settings {
            task: Task::Serve {
                in_background: false,
            },
            port: match variable("ERL_EPMD_PORT") {
                Some(port) => read_port(&port).map_err(|e| format!("ERL_EPMD_PORT: {e}"))?,
                None => PORT,
            },
            addresses: match variable("ERL_EPMD_ADDRESS") {
                Some(list) => {
                    read_addresses(&list).map_err(|e| format!("ERL_EPMD_ADDRESS: {e}"))?
                }
                None => Vec::new(),
            },
            is_relaxed: variable("ERL_EPMD_RELAXED_COMMAND_CHECK").is_some(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || {
                let value = rest.next();
                value.ok_or_else(|| format!("'{argument}' needs a value"))
            };
            match argument.trim_start_matches('-') {
                "daemon" => {
                    settings.task = Task::Serve {
                        in_background: true,
                    };
                }
                "port" => settings.port = read_port(value()?)?,
                "address" => settings.addresses = read_addresses(value()?)?,
                "relaxed_command_check" => settings.is_relaxed = true,
                "names" => settings.task = Task::Ask(vec![server::NAMES]),
                "kill" => settings.task = Task::Ask(vec![server::KILL]),
                "stop" => {
                    let name = value()?.bytes();
                    settings.task = Task::Ask(std::iter::once(server::STOP).chain(name).collect());
                }
                _ => {
                    return Err(format!(
                        "unknown argument '{argument}'; 'beamline epmd --help' lists them"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

fn read_port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| format!("'{text}' is no port"))
}

fn read_addresses(list: &str) -> Result<Vec<IpAddr>, String> {
    let addresses = list.split([',', ' ']).filter(|one| !one.is_empty());
    let read = |one: &str| one.parse().map_err(|_| format!("'{one}' is no address"));
    addresses.map(read).collect()
}

/// Does what the arguments say.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let done = Settings::read(arguments, |name| std::env::var(name).ok())
        .and_then(|settings| obey(&settings, arguments));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(line) => {
            report::error(&format!("epmd: {line}"));
            ExitCode::from(1)
        }
    }
}

fn obey(settings: &Settings, arguments: &[String]) -> Result<(), String> {
    match &settings.task {
        Task::Serve {
            in_background: true,
        } => {
            let rest = arguments
                .iter()
                .filter(|one| one.trim_start_matches('-') != "daemon");
            start_in_background(rest, settings.port)
        }
        Task::Serve { .. } => server::serve(settings),
        Task::Ask(request) => print_answer(settings.port, request),
    }
}

fn here(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Does a daemon answer on this machine?
fn is_there(port: u16) -> bool {
    TcpStream::connect_timeout(&here(port), Duration::from_millis(500)).is_ok()
}

/// Starts this program as the daemon, and waits until it answers.
fn start_in_background<'a>(
    arguments: impl Iterator<Item = &'a String>,
    port: u16,
) -> Result<(), String> {
    if is_there(port) {
        return Ok(());
    }
    let this = std::env::current_exe().map_err(|e| format!("this executable: {e}"))?;
    Command::new(&this)
        .arg("epmd")
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // It outlives the terminal's command that happens to need it first.
        .process_group(0)
        .spawn()
        .map_err(|e| format!("{}: {e}", this.display()))?;
    match wait_for(port) {
        true => Ok(()),
        false => Err(format!("no daemon answers on port {port}")),
    }
}

/// Has a daemon run, as `erl -name` needs one: OTP's, if it is in this folder and works, or else this program's.
///
/// # Errors
/// One line.
pub(crate) fn ensure(bindir: &Path) -> Result<(), String> {
    let settings = Settings::read(&[], |name| std::env::var(name).ok())?;
    if is_there(settings.port) {
        return Ok(());
    }
    let theirs: PathBuf = bindir.join("epmd");
    let started = Command::new(theirs)
        .arg("-daemon")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let works = started.is_ok_and(|status| status.success());
    if works && wait_for(settings.port) {
        return Ok(());
    }
    start_in_background([].iter(), settings.port)
}

/// Waits for a daemon; whether one answers.
fn wait_for(port: u16) -> bool {
    let begun = chance::now();
    while begun.elapsed() < PATIENCE {
        if is_there(port) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// The nodes that the daemon of this machine knows: their names, without a host, and the ports that they listen on. None where no
/// daemon answers.
pub(crate) fn nodes() -> Vec<(String, u16)> {
    let settings = Settings::read(&[], |name| std::env::var(name).ok());
    let answer = settings.and_then(|settings| ask(settings.port, &[server::NAMES]));
    let answer = answer.unwrap_or_default();
    // Behind the daemon's own port.
    let names = String::from_utf8_lossy(answer.get(4..).unwrap_or_default());
    names.lines().filter_map(node).collect()
}

/// A line of the answer to [`server::NAMES`].
fn node(line: &str) -> Option<(String, u16)> {
    let (name, port) = line.strip_prefix("name ")?.split_once(" at port ")?;
    Some((name.to_owned(), port.parse().ok()?))
}

/// Sends a request; what is answered.
fn ask(port: u16, request: &[u8]) -> Result<Vec<u8>, String> {
    let none = |e| format!("no daemon answers on port {port}: {e}");
    let mut stream = TcpStream::connect_timeout(&here(port), PATIENCE).map_err(none)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(none)?;
    let mut packet = (request.len() as u16).to_be_bytes().to_vec();
    packet.extend_from_slice(request);
    stream.write_all(&packet).map_err(none)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(none)?;
    Ok(answer)
}

/// Sends a request, and prints what is answered.
fn print_answer(port: u16, request: &[u8]) -> Result<(), String> {
    let answer = ask(port, request)?;
    let text = match (request[0], answer.get(4..)) {
        (server::NAMES, Some(names)) => {
            let names = String::from_utf8_lossy(names);
            format!("epmd: up and running on port {port} with data:\n{names}")
        }
        (server::KILL, _) if answer == b"OK" => "Killed\n".to_owned(),
        (server::KILL, _) => {
            return Err("nodes are registered; it does not end before they do".to_owned());
        }
        _ => format!("{}\n", String::from_utf8_lossy(&answer)),
    };
    report::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Settings, String> {
        let arguments: Vec<String> = arguments.iter().map(|one| (*one).to_owned()).collect();
        Settings::read(&arguments, |_| None)
    }

    #[test]
    fn lines_name_nodes_and_their_ports() {
        let known = Some(("rabbit".to_owned(), 25_672));
        assert_eq!(node("name rabbit at port 25672"), known);
        for line in ["", "name x at port", "name x at port 70000", "x at port 7"] {
            assert_eq!(node(line), None, "{line}");
        }
    }

    #[test]
    fn arguments_have_one_dash_or_two() {
        let one = read(&["-daemon", "-port", "5000"]).unwrap();
        assert_eq!(read(&["--daemon", "--port", "5000"]).unwrap(), one);
        assert_eq!(one.port, 5000);
        assert_eq!(
            read(&["-stop", "a"]).unwrap().task,
            Task::Ask(vec![server::STOP, b'a'])
        );
        let addresses = read(&["-address", "127.0.0.2,::1"]).unwrap().addresses;
        assert_eq!(addresses.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line() {
        assert_eq!(read(&["-port"]).unwrap_err(), "'-port' needs a value");
        assert_eq!(read(&["-port", "0"]).unwrap_err(), "'0' is no port");
        assert_eq!(read(&["-address", "x"]).unwrap_err(), "'x' is no address");
        assert!(
            read(&["-nonsense"])
                .unwrap_err()
                .starts_with("unknown argument '-nonsense'")
        );
        let settings = Settings::read(&[], |_| Some("70000".to_owned()));
        assert_eq!(settings.unwrap_err(), "ERL_EPMD_PORT: '70000' is no port");
    }
}
