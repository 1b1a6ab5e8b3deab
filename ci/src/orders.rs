//! `cargo xtask orders`: random programs (`ci/orders/orders.erl`) are explored in all their orders, and then run by chance: each of
//! these runs has an order that the exploration has had.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::place::Place;
use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask orders`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of programs
    #[arg(long, default_value_t = 100)]
    programs: u64,
    /// Number of the first one
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Runs by chance of each program
    #[arg(long, default_value_t = 900)]
    runs: u32,
    /// Test this beamline binary [default: a new optimised build]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
}

impl Options {
    /// What `cargo xtask test` runs: the same programs at each commit. Others are for `cargo xtask nightly`: what they find
    /// is a fault of explorations, and most often an older one than the change that is tested.
    pub(crate) fn of_test() -> Self {
        Self {
            programs: 10,
            first: 1,
            runs: 300,
            beamline: None,
        }
    }
}

/// An exploration of more orders says nothing.
const ORDERS_MAX: &str = "20000";

/// Explores as many programs as the options say.
pub(crate) fn main(options: &Options) -> Result<()> {
    let beamline = match &options.beamline {
        Some(file) => file.canonicalize().context("looking for the binary")?,
        None => binary::beamline()?,
    };
    let programs = Programs::compile(&beamline)?;
    let (mut known, mut wrong) = (0, 0);
    for number in options.first..options.first + options.programs {
        let all = programs.explore(number, options.runs)?;
        match () {
            () if all.is_complete => known += 1,
            () if all.is_missed() => {
                (known, wrong) = (known + 1, wrong + 1);
                println!(
                    "program {number}: {} orders were all there are, and runs by chance have others",
                    all.orders
                );
            }
            () => println!("program {number}: not all orders are known: {}", all.why),
        }
    }
    if wrong > 0 {
        bail!("{wrong} of {known} explorations miss orders; orders:program(N) is program N");
    }
    println!(
        "{} programs, {known} of them explored in all their orders; no other was found by chance",
        options.programs
    );
    Ok(())
}

/// The programs, compiled.
struct Programs<'b> {
    beamline: &'b Path,
    otp: PathBuf,
    dir: PathBuf,
}

/// What an exploration tells.
struct Explored {
    orders: u64,
    is_complete: bool,
    /// Why it is not.
    why: String,
}

impl Explored {
    /// Whether it was thought to be complete, and runs by chance have had other orders.
    fn is_missed(&self) -> bool {
        self.why.contains("orders that runs by chance have had")
    }
}

impl Programs<'_> {
    fn compile(beamline: &Path) -> Result<Programs<'_>> {
        let otp = fetch::otp()?.root;
        let dir = paths::target().join("orders");
        fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        let source = paths::workspace().join("ci/orders/orders.erl");
        let erlc = binary::words_of(beamline, &["run"], &otp, &["erlc"])?;
        run::output(Place::new(None)?.command(&dir, &erlc)?.arg(source))?;
        Ok(Programs { beamline, otp, dir })
    }

    fn explore(&self, number: u64, runs: u32) -> Result<Explored> {
        let call = [
            "explore",
            "--call",
            "orders:run",
            "--json",
            JSON,
            "-o",
            "found",
            "--runs",
            ORDERS_MAX,
            "--verify",
        ];
        let runs = runs.to_string();
        let seed = number.to_string();
        let erl = [
            "erl",
            "-noshell",
            "-pa",
            ".",
            "-kernel",
            "orders_seed",
            &seed,
        ];
        let words = binary::words_of(
            self.beamline,
            &[&call[..], &[&runs]].concat(),
            &self.otp,
            &erl,
        )?;
        let ended = Place::new(None)?.command(&self.dir, &words)?.output()?;
        // Some programs fail in some orders.
        if !matches!(ended.status.code(), Some(0 | 3)) {
            let errors = String::from_utf8_lossy(&ended.stderr);
            bail!("program {number}: {}: {errors}", ended.status);
        }
        let text = fs::read_to_string(self.dir.join(JSON)).context("reading what was explored")?;
        let told: Value = serde_json::from_str(&text).context("reading what was explored")?;
        let orders = told["orders"].as_u64().context("the JSON has orders")?;
        Ok(Explored {
            orders,
            is_complete: told["complete"] == true,
            why: told["not_explored"].to_string(),
        })
    }
}

const JSON: &str = "explored.json";
