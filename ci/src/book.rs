//! `cargo xtask book`: the documentation as a site.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{paths, run};

/// Has mdBook make the site of `docs/` in `target/book`.
pub(crate) fn main() -> Result<()> {
    if !run::on_path("mdbook") {
        bail!("there is no mdbook on PATH: `cargo install mdbook` installs it");
    }
    let docs = paths::workspace().join("docs");
    run::status(Command::new("mdbook").arg("build").arg(docs))?;
    let first = paths::target().join("book/index.html");
    eprintln!("the first page: {}", first.display());
    Ok(())
}
