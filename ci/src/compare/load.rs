//! Requests of a load generator that is not ours: `wrk`, from Debian.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Sample;
use super::rows::Load;
use crate::{natives, run};

/// `wrk`, and the shared libraries that it needs.
const PACKAGES: [&str; 3] = ["wrk", "libluajit-5.1-2", "libluajit-5.1-common"];

/// Connections that it has at once, of two threads of its own.
const CONNECTIONS: &str = "64";
const SECONDS: &str = "3";

/// Starts the server that `server` is, has `wrk` ask it, and ends it.
pub(super) fn measure(server: &mut Command, load: Load) -> Result<Sample> {
    let mut child = server
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the server")?;
    let stdout = child.stdout.take().context("the pipe was asked for")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let said = match line.trim().strip_prefix("PORT ") {
        Some(port) => requests(port),
        None => bail!("the server printed {line:?}"),
    };
    // Its standard input ends, and so does the server.
    drop(child.stdin.take());
    child.wait().context("waiting for the server")?;
    Ok(Sample {
        value: value(&said?, load)?,
        digest: None,
    })
}

/// What `wrk` says.
fn requests(port: &str) -> Result<String> {
    let unpacked = natives::unpacked("wrk", &PACKAGES)?;
    let mut wrk = Command::new(unpacked.join("usr/bin/wrk"));
    wrk.env("LD_LIBRARY_PATH", natives::shared(&unpacked)?);
    wrk.args(["--latency", "-t", "2", "-c", CONNECTIONS, "-d", SECONDS]);
    run::output(wrk.arg(format!("http://127.0.0.1:{port}/")))
}

/// Nanoseconds of what it says of this.
fn value(said: &str, load: Load) -> Result<f64> {
    if let Some(line) = said
        .lines()
        .find(|line| line.contains("errors") || line.contains("Non-2xx"))
    {
        bail!("wrk says {}", line.trim());
    }
    let start = match load {
        Load::Request => "Requests/sec:",
        Load::Percentile99 => "99%",
    };
    let mut lines = said.lines().map(str::trim_start);
    let text = lines.find_map(|line| line.strip_prefix(start));
    let text = text
        .with_context(|| format!("no {start} in {said:?}"))?
        .trim();
    match load {
        Load::Request => Ok(1e9 / text.parse::<f64>()?),
        Load::Percentile99 => nanoseconds(text),
    }
}

/// A time as it writes them: `1.05ms`.
fn nanoseconds(text: &str) -> Result<f64> {
    let at = text.find(char::is_alphabetic).context("no unit")?;
    let (number, unit) = text.split_at(at);
    let unit = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => bail!("no unit of time: {unit}"),
    };
    Ok(number.parse::<f64>()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Running 3s test @ http://127.0.0.1:1/\n  Thread Stats   Avg      Stdev\n    Latency     1.35ms    2.04ms\n  \
        Latency Distribution\n     50%  841.00us\n     99%   10.50ms\n  143 requests in 3.10s\nRequests/sec:  50000.00\n";

    #[test]
    fn what_wrk_says_is_read() {
        assert_eq!(value(SAID, Load::Request).unwrap(), 20_000.0);
        assert_eq!(value(SAID, Load::Percentile99).unwrap(), 10.5e6);
        let failed = format!("{SAID}  Socket errors: connect 0, read 3, write 0, timeout 0\n");
        assert!(value(&failed, Load::Request).is_err());
        assert!(value("", Load::Request).is_err());
    }
}
