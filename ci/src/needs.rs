//! What must be there for the tests of a task: a test that does not find it fails instead of testing nothing.

use std::process::{Command, Stdio};

use beamline_needs::{Need, VARIABLE};

use crate::fetch;
use crate::otp_home::Source;

/// Programs that every machine has that runs tests.
const OF_PROGRAMS: [Need; 3] = [Need::Valgrind, Need::Bash, Need::Script];

/// What the OTP has on which they run.
const OF_OTP: [Need; 3] = [Need::Otp, Need::Elixir, Need::Headers];

/// The registries of packages, each with a question that it answers.
const REGISTRIES: [(Need, &[&str]); 2] = [
    (
        Need::Npm,
        &["npm", "view", "speedscope", "version", "--fetch-retries=0"],
    ),
    (
        Need::Pip,
        &[
            "python3",
            "-m",
            "pip",
            "--retries=0",
            "index",
            "versions",
            "perfetto",
        ],
    ),
];

/// What the tests need, and what they do without.
pub(crate) struct Needs {
    required: Vec<Need>,
    missing: Vec<Need>,
}

impl Needs {
    /// Those of this machine. A registry that does not answer now is no fault of the change that is tested: what comes from
    /// it is not required.
    pub(crate) fn of_machine() -> anyhow::Result<Needs> {
        let mut required = [OF_PROGRAMS, OF_OTP].concat();
        if fetch::otp()?.source == Source::Fetched {
            required.push(Need::FetchedOtp);
        }
        let (answering, missing): (Vec<_>, Vec<_>) = REGISTRIES
            .iter()
            .partition(|(_, question)| answers(question));
        required.extend(answering.iter().map(|(need, _)| *need));
        let missing = missing.into_iter().map(|(need, _)| need).collect();
        Ok(Needs { required, missing })
    }

    /// Those of tests that run no OTP but one that happens to be there.
    pub(crate) fn without_otp() -> Needs {
        Needs {
            required: OF_PROGRAMS.to_vec(),
            missing: Vec::new(),
        }
    }

    /// Has the tests that a command runs require what must be there, unless the environment says something else.
    pub(crate) fn require(&self, command: &mut Command) {
        if std::env::var_os(VARIABLE).is_none() {
            let names: Vec<_> = self.required.iter().map(|need| need.name()).collect();
            command.env(VARIABLE, names.join(","));
        }
    }

    /// A line for each registry that does not answer.
    pub(crate) fn missing(&self) -> Vec<String> {
        let line = |need: &Need| {
            format!(
                "not required: the registry of {} does not answer",
                need.name()
            )
        };
        self.missing.iter().map(line).collect()
    }
}

/// Does a registry answer?
fn answers(question: &[&str]) -> bool {
    let [program, arguments @ ..] = question else {
        return false;
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    let output = command.output();
    output.is_ok_and(|output| output.status.success() && !output.stdout.is_empty())
}
