//! Instances of a runtime that may die or hang.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{cases, outside};

/// A running instance, with a process group of its own: what it starts is stopped with it.
pub(crate) struct Instance(Child);

impl Instance {
    /// Starts `command`; it has nothing to read.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.process_group(0).stdin(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| format!("starting {program}"))?))
    }

    /// Waits for its end; it is killed, with all it has started, once `is_late` says so.
    pub(crate) fn wait(&mut self, mut is_late: impl FnMut() -> bool) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                // What it has left behind; mostly there is nothing.
                self.kill()?;
                return Ok(status);
            }
            if is_late() {
                self.kill()?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&self) -> Result<()> {
        let group = format!("-{}", self.0.id());
        let mut kill = Command::new("kill");
        kill.args(["-KILL", "--", &group]).stderr(Stdio::null());
        kill.status().context("killing an instance")?;
        Ok(())
    }
}

/// How an instance ended.
pub(crate) fn shown(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// A file that an instance writes as it goes: one that stops growing is an instance that hangs.
pub(crate) struct Silence {
    file: PathBuf,
    limit: Duration,
    bytes: u64,
    since: Instant,
}

impl Silence {
    /// Watches `file`, which may stay as it is for `limit`.
    pub(crate) fn new(file: &Path, limit: Duration) -> Self {
        Self {
            file: file.to_owned(),
            limit,
            bytes: 0,
            since: outside::now(),
        }
    }

    /// Has the file been the same for too long?
    pub(crate) fn is_over(&mut self) -> bool {
        let bytes = fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        if bytes != self.bytes {
            self.bytes = bytes;
            self.since = outside::now();
        }
        self.since.elapsed() > self.limit
    }
}

/// Runs instances one behind the other until one has written `end` as the last line of `out`, and gives the cases
/// before it. `command` says how to start an instance behind the cases that are done. A case that ends or hangs its
/// instance is said to do so, and the next instance goes on behind it.
pub(crate) fn run_to_end(
    out: &Path,
    limit: Duration,
    command: impl Fn(usize) -> Result<Command>,
) -> Result<String> {
    fs::write(out, "").with_context(|| format!("emptying {}", out.display()))?;
    let mut done = 0;
    loop {
        let mut silence = Silence::new(out, limit);
        let mut command = command(done)?;
        // A case may end the machine as OTP does, with a dump that nobody reads.
        command.env("ERL_CRASH_DUMP_SECONDS", "0");
        let status = Instance::start(command)?.wait(|| silence.is_over())?;
        let text = fs::read(out)?;
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if let Some(all) = text.strip_suffix("end\n") {
            return Ok(all.to_owned());
        }
        let begun = cases::names(&text).count();
        if begun == done {
            bail!("no case ran ({})", shown(status));
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let how = match silence.is_over() {
            true => "hangs".to_owned(),
            false => format!("ends the machine: {}", shown(status)),
        };
        text.push_str(&format!("{}{how}\n", cases::INDENT));
        fs::write(out, text)?;
        done = begun;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Instance {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Instance::start(command).unwrap()
    }

    #[test]
    fn ends_are_told() {
        let ended = shell("exit 3").wait(|| false).unwrap();
        assert_eq!(shown(ended), "exit code 3");
        let killed = shell("sleep 100 & wait").wait(|| true).unwrap();
        assert_eq!(shown(killed), "signal 9");
    }

    #[test]
    fn cases_behind_one_that_ends_its_instance_are_run() {
        let out = std::env::temp_dir().join(format!("xtask-cases-{}", outside::os_pid()));
        let run = |script: &'static str| {
            run_to_end(&out, Duration::from_secs(100), |done| {
                let mut command = Command::new("sh");
                command.args(["-c", script, &done.to_string()]).arg(&out);
                Ok(command)
            })
        };
        let text = run(
            "case $0 in 0) printf 'a\\n    1\\nb\\n    2' >>$1; exit 3;; 2) printf 'c\\n    3\\nend\\n' >>$1;; esac",
        );
        let expected = "a\n    1\nb\n    2\n    ends the machine: exit code 3\nc\n    3\n";
        assert_eq!(text.unwrap(), expected);
        assert!(run("exit 1").is_err());
        fs::remove_file(&out).unwrap();
    }

    #[test]
    fn a_file_that_stops_growing() {
        let file = std::env::temp_dir().join(format!("xtask-silence-{}", outside::os_pid()));
        let mut silence = Silence::new(&file, Duration::from_secs(100));
        assert!(!silence.is_over());
        silence.limit = Duration::ZERO;
        fs::write(&file, "x").unwrap();
        silence.is_over();
        std::thread::sleep(Duration::from_millis(2));
        assert!(silence.is_over());
        fs::remove_file(&file).unwrap();
    }
}
