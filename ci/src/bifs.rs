//! `cargo xtask bifs`: which of OTP 29's BIFs the runtime has.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Result;

use crate::{binary, run};

/// OTP 29's BIFs, one `Module:Function/Arity kind` a line.
const OTP: &str = include_str!("../bif29.txt");

/// Options of `cargo xtask bifs`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the names of the missing BIFs
    #[arg(long)]
    names: bool,
}

/// How the runtime's BIFs compare with OTP's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Coverage<'a> {
    here: Vec<&'a str>,
    missing: Vec<&'a str>,
    /// BIFs of ours that are none in OTP: what its own NIFs and drivers give.
    extra: Vec<&'a str>,
}

/// Prints the coverage.
pub(crate) fn main(options: &Options) -> Result<()> {
    let listed = run::output(Command::new(binary::beamline()?).args(["bifs", "--list"]))?;
    // OTP's list has no quotes.
    let listed = listed.replace('\'', "");
    let coverage = compare(OTP, &listed);
    println!("here    {:4}", coverage.here.len());
    println!("missing {:4}", coverage.missing.len());
    println!("extra   {:4}", coverage.extra.len());
    if options.names {
        for (state, names) in [("missing", &coverage.missing), ("extra", &coverage.extra)] {
            for name in names {
                println!("{state} {name}");
            }
        }
    }
    Ok(())
}

/// `listed` has a name a line, as `beamline bifs --list` prints them.
fn compare<'a>(otp: &'a str, listed: &'a str) -> Coverage<'a> {
    let ours: BTreeSet<&str> = listed.lines().collect();
    let names = otp.lines().filter(|line| !line.starts_with('#'));
    let names = names.filter_map(|line| Some(line.rsplit_once(' ')?.0));
    let names: BTreeSet<&str> = names.collect();
    Coverage {
        here: names.intersection(&ours).copied().collect(),
        missing: names.difference(&ours).copied().collect(),
        extra: ours.difference(&names).copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_ours_and_of_otp_is_counted_once() {
        let otp = "# kinds\nerlang:+/2 ubif\nerlang:abs/1 ubif\nerlang:halt/2 bif\n";
        let coverage = compare(otp, "erlang:+/2\nerlang:halt/2\nbeamline:x/0\n");
        let expected = Coverage {
            here: vec!["erlang:+/2", "erlang:halt/2"],
            missing: vec!["erlang:abs/1"],
            extra: vec!["beamline:x/0"],
        };
        assert_eq!(coverage, expected);
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
