//! OTP's own libraries of NIFs. A package of a later Debian may need a later C library or OpenSSL than the machine has:
//! its libraries do not open here, and are compiled from OTP's source instead, against what is here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::otp_home::OtpHome;
use crate::{headers, outside, run};

/// A library of an application, as `lib/APPLICATION/c_src/Makefile.in` makes it.
struct Library {
    application: &'static str,
    name: &'static str,
    /// The files of `c_src` that are in it.
    of: Sources,
    flags: &'static [&'static str],
    links: &'static [&'static str],
}

enum Sources {
    One(&'static str),
    AllBut(&'static [&'static str]),
}

/// `configure` finds that OpenSSL 3 has these.
const CRYPTO: &[&str] = &[
    "-fvisibility=hidden",
    "-DHAVE_DYNAMIC_CRYPTO_LIB",
    "-DHAVE_OPENSSL_CRYPTO_MEMCMP",
    "-DDISABLE_EVP_DH=0",
    "-DDISABLE_EVP_HMAC=0",
];

const LIBRARIES: [Library; 4] = [
    Library {
        application: "crypto",
        name: "crypto",
        of: Sources::AllBut(&["crypto_callback.c", "otp_test_engine.c"]),
        flags: CRYPTO,
        links: &["-lcrypto"],
    },
    Library {
        application: "crypto",
        name: "crypto_callback",
        of: Sources::One("crypto_callback.c"),
        flags: CRYPTO,
        links: &["-lcrypto"],
    },
    Library {
        application: "crypto",
        name: "otp_test_engine",
        of: Sources::One("otp_test_engine.c"),
        flags: &[],
        links: &["-lcrypto"],
    },
    Library {
        application: "asn1",
        name: "asn1rt_nif",
        of: Sources::One("asn1_erl_nif.c"),
        flags: &[],
        links: &[],
    },
];

/// Compiles the libraries of `otp` that do not open on this machine. `source` gives OTP's source tree; it is asked for
/// only where one has to be compiled. Where that fails, what Beamline has of `crypto` itself remains.
pub(crate) fn compile_those_that_do_not_open(
    otp: &OtpHome,
    source: impl Fn() -> Result<PathBuf>,
) -> Result<()> {
    for library in &LIBRARIES {
        let Some(file) = library.file(otp) else {
            continue;
        };
        let Some(missing) = missing(&file)? else {
            continue;
        };
        eprintln!("compiling {}.so ({missing})", library.name);
        if let Err(error) = source().and_then(|source| library.compile(&source, otp, &file)) {
            eprintln!("warning: {}.so does not open here: {error:#}", library.name);
        }
    }
    Ok(())
}

/// What the dynamic linker does not find for the library; none: it opens.
fn missing(file: &Path) -> Result<Option<String>> {
    let mut command = Command::new("ldd");
    command.arg(file).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().context("starting ldd")?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    let lines = || told.lines().map(str::trim);
    let line = lines().find(|line| line.contains("not found"));
    Ok(line.map(|line| match line.split_once(": ") {
        Some((_, why)) => why.split(" (").next().unwrap_or(why).to_owned(),
        None => line.to_owned(),
    }))
}

impl Library {
    /// Where `otp` has it; none if the application is not installed.
    fn file(&self, otp: &OtpHome) -> Option<PathBuf> {
        let applications = fs::read_dir(otp.root.join("lib")).ok()?.flatten();
        let start = format!("{}-", self.application);
        let mut files = applications
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
            .map(|entry| entry.path().join(format!("priv/lib/{}.so", self.name)));
        files.find(|file| file.is_file())
    }

    /// The names of its files in `folder`.
    fn sources(&self, folder: &Path) -> Result<Vec<String>> {
        let except = match self.of {
            Sources::One(file) => return Ok(vec![file.to_owned()]),
            Sources::AllBut(files) => files,
        };
        let entries =
            fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names
            .filter_map(|name| name.into_string().ok())
            .filter(|name| name.ends_with(".c") && !except.contains(&name.as_str()))
            .collect();
        names.sort();
        Ok(names)
    }

    fn compile(&self, source: &Path, otp: &OtpHome, file: &Path) -> Result<()> {
        let folder = source.join(format!("lib/{}/c_src", self.application));
        let new = file.with_extension(format!("new-{}", outside::os_pid()));
        // Errors of `crypto` tell the names that the compiler was given: those of files in this folder.
        let mut cc = headers::cc(&otp.root, &new)?;
        cc.current_dir(&folder);
        // Warnings are for OTP's developers.
        cc.arg("-w").args(self.flags);
        cc.args(self.sources(&folder)?).args(self.links);
        run::output(&mut cc).context("Debian's packages gcc and libssl-dev are needed")?;
        Ok(fs::rename(&new, file)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_there_opens_and_another_does_not() {
        let own = std::env::current_exe().expect("it runs");
        assert_eq!(missing(&own).expect("ldd"), None);
    }
}
