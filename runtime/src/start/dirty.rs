//! The flags `+SDcpu`, `+SDPcpu` and `+SDio`. Source: `erl_start()` in `erl_init.c`, OTP 29.

use super::StartError;
use crate::sched::DirtyNumbers;

/// The most dirty schedulers of a kind.
const MOST: i64 = 1024;

/// What flags have asked for so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    cores: i64,
    numbers: DirtyNumbers,
    /// How much of the dirty CPU schedulers there is to be, and to be online.
    percent: (usize, usize),
}

impl Asked {
    /// Nothing is asked for, on a machine with `cores` processors.
    pub(super) fn nothing(cores: usize) -> Asked {
        Asked {
            cores: cores as i64,
            numbers: DirtyNumbers::for_schedulers(cores),
            percent: (100, 100),
        }
    }

    /// What it comes to.
    pub(super) fn numbers(&self) -> DirtyNumbers {
        let DirtyNumbers {
            cpu,
            cpu_online,
            io,
        } = self.numbers;
        DirtyNumbers {
            cpu: cpu * self.percent.0 / 100,
            cpu_online: cpu_online * self.percent.1 / 100,
            io,
        }
    }

    /// Takes the value of a flag, which is attached to it or the `next` argument.
    pub(super) fn take<'a>(
        &mut self,
        flag: &'a str,
        next: impl FnOnce() -> &'a str,
    ) -> Result<(), StartError> {
        let Some((what, attached)) = What::of(flag) else {
            let text = format!("bad or missing dirty scheduler specifier: {flag}");
            return Err(StartError(text));
        };
        let text = match attached {
            "" => next(),
            attached => attached,
        };
        match what {
            What::Cpu => self.take_cpu(text),
            What::PercentCpu => self.take_percent(text),
            What::Io => self.take_io(text),
        }
    }

    fn take_cpu(&mut self, text: &str) -> Result<(), StartError> {
        let bad = || StartError(format!("bad amount of dirty CPU schedulers {text}"));
        let (all, online) = pair(text).ok_or_else(bad)?;
        // What is no more than 0 is less than there would be.
        let amount = |n: i64| {
            if n > 0 {
                n
            } else {
                self.cores.saturating_add(n)
            }
        };
        let default = self.numbers.cpu_online as i64;
        let all_asked = all.unwrap_or(self.cores);
        let online = amount(online.unwrap_or_else(|| all_asked.min(default)));
        let all = amount(all_asked);
        let cpu = amount_of(all).ok_or_else(bad)?;
        let cpu_online = amount_of(online).filter(|online| *online <= cpu);
        let cpu_online = cpu_online.ok_or_else(|| {
            StartError(format!(
                "bad amount of dirty CPU schedulers online {online} (total amount of dirty CPU schedulers {all})"
            ))
        })?;
        self.numbers = DirtyNumbers {
            cpu,
            cpu_online,
            ..self.numbers
        };
        Ok(())
    }

    fn take_percent(&mut self, text: &str) -> Result<(), StartError> {
        let bad = || {
            StartError(format!(
                "bad dirty CPU schedulers percentage specifier {text}"
            ))
        };
        let (all, online) = pair(text).ok_or_else(bad)?;
        let part = |n: i64| {
            usize::try_from(n)
                .ok()
                .filter(|n| *n <= 10_000)
                .ok_or_else(bad)
        };
        let all = part(all.unwrap_or(100))?;
        let online = online.map_or(Ok(all.min(100)), part)?;
        self.percent = (all, online);
        Ok(())
    }

    fn take_io(&mut self, text: &str) -> Result<(), StartError> {
        let io = text.parse().ok().and_then(amount_of);
        self.numbers.io =
            io.ok_or_else(|| StartError(format!("bad number of dirty I/O schedulers {text}")))?;
        Ok(())
    }
}

fn amount_of(n: i64) -> Option<usize> {
    usize::try_from(n).ok().filter(|_| (1..=MOST).contains(&n))
}

/// `All:Online`; either may be missing, and not both.
fn pair(text: &str) -> Option<(Option<i64>, Option<i64>)> {
    let (all, online) = match text.split_once(':') {
        None => (text, None),
        Some((all, online)) => (all, Some(online.parse().ok()?)),
    };
    match all {
        "" => Some((None, Some(online?))),
        all => Some((Some(all.parse().ok()?), online)),
    }
}

/// A flag.
#[derive(Clone, Copy)]
enum What {
    /// `+SDcpu`
    Cpu,
    /// `+SDPcpu`
    PercentCpu,
    /// `+SDio`
    Io,
}

impl What {
    /// Which flag it is, and the value attached to it.
    fn of(flag: &str) -> Option<(What, &str)> {
        let flags = [
            ("-SDcpu", What::Cpu),
            ("-SDPcpu", What::PercentCpu),
            ("-SDio", What::Io),
        ];
        flags
            .into_iter()
            .find_map(|(name, what)| Some((what, flag.strip_prefix(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(flags: &[&str]) -> Result<(usize, usize, usize), String> {
        let mut asked = Asked::nothing(4);
        for flag in flags {
            let flag = format!("-SD{flag}");
            asked.take(&flag, || "").map_err(|error| error.0)?;
        }
        let DirtyNumbers {
            cpu,
            cpu_online,
            io,
        } = asked.numbers();
        Ok((cpu, cpu_online, io))
    }

    #[test]
    fn flags_are_read_as_by_otp() {
        assert_eq!(asked(&[]), Ok((4, 4, 10)));
        assert_eq!(asked(&["cpu3"]), Ok((3, 3, 10)));
        assert_eq!(asked(&["cpu4:2", "io1"]), Ok((4, 2, 1)));
        assert_eq!(asked(&["cpu:1"]), Ok((4, 1, 10)));
        assert_eq!(asked(&["cpu0"]), Ok((4, 4, 10)));
        assert_eq!(asked(&["cpu-1:-2"]), Ok((3, 2, 10)));
        assert_eq!(asked(&["Pcpu50"]), Ok((2, 2, 10)));
        assert_eq!(asked(&["cpu4:4", "Pcpu75:50"]), Ok((3, 2, 10)));
        assert_eq!(asked(&["Pcpu:25"]), Ok((4, 1, 10)));
    }

    #[test]
    fn bad_flags_are_told() {
        let bad = [
            ("x1", "bad or missing dirty scheduler specifier: -SDx1"),
            ("cpux", "bad amount of dirty CPU schedulers x"),
            ("cpu", "bad amount of dirty CPU schedulers "),
            ("cpu2000", "bad amount of dirty CPU schedulers 2000"),
            (
                "cpu2:3",
                "bad amount of dirty CPU schedulers online 3 (total amount of dirty CPU schedulers 2)",
            ),
            ("Pcpu-1", "bad dirty CPU schedulers percentage specifier -1"),
            ("io0", "bad number of dirty I/O schedulers 0"),
        ];
        for (flag, error) in bad {
            assert_eq!(asked(&[flag]), Err(error.to_owned()));
        }
    }
}
