//! Reads the emulator flags of OTP's JIT, `+J`.
//!
//! Source: `erl_start()` in `erl_init.c`, OTP 29. Differs: compiled code keeps no frame pointers, memory for code is
//! always mapped twice, and native coverage is not there.

use std::path::PathBuf;

use super::StartError;
use crate::jit::perf::Asked;

/// What these flags ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) perf: Asked,
}

/// Flags with a value, the longer names of the same beginning first.
const WITH_VALUE: [&str; 5] = ["Pperfdirectory", "Pperf", "Pcover", "Ddump", "Msingle"];

impl Flags {
    /// Takes a flag that begins with `-J`, and its value from behind its name, or else the `next` argument.
    ///
    /// # Errors
    /// One line that says what is wrong with it.
    pub(super) fn take<'a>(
        &mut self,
        flag: &'a str,
        next: impl FnOnce() -> Option<&'a str>,
    ) -> Result<(), StartError> {
        let option = &flag[2..];
        let Some(name) = WITH_VALUE.iter().find(|name| option.starts_with(**name)) else {
            return Err(StartError(format!("invalid JIT option {flag}")));
        };
        let attached = &option[name.len()..];
        let value = match attached {
            "" => next().ok_or_else(|| StartError(format!("bad {flag}: a value is missing")))?,
            attached => attached,
        };
        match (*name, value) {
            ("Pperfdirectory", folder) => self.perf.folder = Some(PathBuf::from(folder)),
            ("Pperf", what) => self.perf(what)?,
            ("Msingle", "true" | "false") | ("Pcover" | "Ddump", "false") => {}
            ("Pcover", _) => return Err(not_there("+JPcover", "there is no native coverage")),
            ("Ddump", "true") => {
                let instead = "beamline disasm --native prints machine code";
                return Err(not_there("+JDdump", instead));
            }
            (name, value) => return Err(StartError(format!("bad +J{name} flag {value}"))),
        }
        Ok(())
    }

    /// The value of `+JPperf`; each further one adds to those before.
    fn perf(&mut self, what: &str) -> Result<(), StartError> {
        let perf = &mut self.perf;
        match what {
            "true" => (perf.map, perf.dump) = (true, true),
            "false" => (perf.map, perf.dump) = (false, false),
            "map" => perf.map = true,
            "dump" => perf.dump = true,
            "no_fp" => {}
            "fp" => {
                return Err(not_there(
                    "+JPperf fp",
                    "compiled code keeps no frame pointers",
                ));
            }
            _ => return Err(StartError(format!("bad +JPperf support flag {what}"))),
        }
        Ok(())
    }
}

fn not_there(flag: &str, why: &str) -> StartError {
    StartError(format!("{flag} is not supported: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Asked, String> {
        let mut flags = Flags::default();
        let mut words = text.split(' ');
        while let Some(flag) = words.next() {
            let taken = flags.take(flag, || words.next());
            taken.map_err(|error| error.to_string())?;
        }
        Ok(flags.perf)
    }

    fn asked(map: bool, dump: bool, folder: Option<&str>) -> Result<Asked, String> {
        let folder = folder.map(PathBuf::from);
        Ok(Asked { map, dump, folder })
    }

    #[test]
    fn perf_is_told_what_the_flags_say() {
        assert_eq!(of("-JPperf true"), asked(true, true, None));
        assert_eq!(of("-JPperfmap"), asked(true, false, None));
        assert_eq!(of("-JPperf dump -JPperf map"), asked(true, true, None));
        assert_eq!(of("-JPperf true -JPperf no_fp"), asked(true, true, None));
        assert_eq!(of("-JPperf true -JPperf false"), asked(false, false, None));
        let folder = "-JPperfdirectory /var/tmp -JPperf dump";
        assert_eq!(of(folder), asked(false, true, Some("/var/tmp")));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for (flag, says) in [
            ("-JPperf fp", "no frame pointers"),
            ("-JPperf maybe", "bad +JPperf support flag maybe"),
            ("-JPperf", "a value is missing"),
            ("-JPcover true", "no native coverage"),
            ("-JDdump true", "disasm --native"),
            ("-JMsingle maybe", "bad +JMsingle flag maybe"),
            ("-Jx", "invalid JIT option -Jx"),
        ] {
            let error = of(flag).expect_err(flag);
            assert!(error.contains(says), "{flag}: {error}");
        }
        assert_eq!(
            of("-JMsingle true -JDdump false"),
            asked(false, false, None)
        );
    }
}
