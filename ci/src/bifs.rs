//! `cargo xtask bifs`: which of OTP 29's BIFs the runtime has.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{paths, run};

/// OTP 29's BIFs, one `Module:Function/Arity kind` a line.
const OTP: &str = include_str!("../bif29.txt");

/// Options of `cargo xtask bifs`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the names of those that are missing or refused
    #[arg(long)]
    names: bool,
}

/// What the runtime does when a BIF is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Implemented,
    Refused,
}

/// How the runtime's BIFs compare with OTP's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Coverage<'a> {
    implemented: Vec<&'a str>,
    refused: Vec<&'a str>,
    missing: Vec<&'a str>,
    /// BIFs of ours that are none in OTP.
    extra: Vec<&'a str>,
}

/// Prints the coverage.
pub(crate) fn main(options: &Options) -> Result<()> {
    let listed = run::output(Command::new(paths::beamline()?).args(["bifs", "--list"]))?;
    let ours = parse(&listed)?;
    let coverage = compare(OTP, &ours);
    println!("implemented {:4}", coverage.implemented.len());
    println!("refused     {:4}", coverage.refused.len());
    println!("missing     {:4}", coverage.missing.len());
    println!("extra       {:4}", coverage.extra.len());
    if options.names {
        for (state, names) in [
            ("refused", &coverage.refused),
            ("missing", &coverage.missing),
            ("extra", &coverage.extra),
        ] {
            for name in names {
                println!("{state} {name}");
            }
        }
    }
    Ok(())
}

/// Reads `beamline bifs --list`: lines `Module:Function/Arity implemented|refused`.
fn parse(listed: &str) -> Result<BTreeMap<&str, State>> {
    let rows = listed.lines().map(|line| {
        let (name, state) = line
            .rsplit_once(' ')
            .with_context(|| format!("no state in `{line}`"))?;
        let state = match state {
            "implemented" => State::Implemented,
            "refused" => State::Refused,
            other => bail!("unknown state `{other}` in `{line}`"),
        };
        Ok((name, state))
    });
    rows.collect()
}

fn compare<'a>(otp: &'a str, ours: &BTreeMap<&'a str, State>) -> Coverage<'a> {
    let names = otp.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<_> = names
        .filter_map(|line| Some(line.rsplit_once(' ')?.0))
        .collect();
    let mut coverage = Coverage::default();
    for &name in &names {
        match ours.get(name) {
            Some(State::Implemented) => coverage.implemented.push(name),
            Some(State::Refused) => coverage.refused.push(name),
            None => coverage.missing.push(name),
        }
    }
    let extra = ours.keys().filter(|name| !names.contains(name));
    coverage.extra = extra.copied().collect();
    coverage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_ours_and_of_otp_is_counted_once() {
        let otp = "# kinds\nerlang:+/2 ubif\nerlang:abs/1 ubif\nerlang:halt/2 bif\n";
        let ours =
            parse("erlang:+/2 implemented\nerlang:halt/2 refused\nbeamline:x/0 implemented\n")
                .unwrap();
        let expected = Coverage {
            implemented: vec!["erlang:+/2"],
            refused: vec!["erlang:halt/2"],
            missing: vec!["erlang:abs/1"],
            extra: vec!["beamline:x/0"],
        };
        assert_eq!(compare(otp, &ours), expected);
        assert!(parse("erlang:abs/1 perhaps\n").is_err());
    }

    #[test]
    fn the_list_has_every_bif_of_otp_29() {
        let rows: Vec<_> = OTP.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows.len(), 553);
        for row in rows {
            let (mfa, kind) = row.rsplit_once(' ').unwrap();
            let (_, arity) = mfa.rsplit_once('/').unwrap();
            assert!(mfa.contains(':') && arity.parse::<u8>().is_ok(), "{row}");
            assert!(["bif", "ubif", "hbif"].contains(&kind), "{row}");
        }
    }
}
