//! Traces as JSON: `docs/internals/TraceJson.md`.

use beamline_formats::ring::Id;
use serde::{Deserialize, Serialize};

use super::parse::Read;
use super::{ProcessIndex, Trace};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: String,
    version: u32,
    processes: Vec<ProcessJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProcessJson {
    process: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known_as: Option<String>,
    steps: Vec<String>,
}

const SCHEMA: &str = "beamline-trace";
const VERSION: u32 = 1;

impl Trace {
    /// The processes at these places as JSON.
    #[must_use]
    pub fn to_json(&self, places: &[ProcessIndex]) -> String {
        let processes = places.iter().map(|&at| {
            let process = &self.processes[at];
            let steps = process.steps.iter().map(|step| self.step(at, step));
            ProcessJson {
                process: self.name(at),
                pid: process.pid.map(|pid| Id::Process(pid).to_string()),
                known_as: process.known_as.clone(),
                steps: steps.collect(),
            }
        });
        let file = File {
            schema: SCHEMA.into(),
            version: VERSION,
            processes: processes.collect(),
        };
        serde_json::to_string(&file).unwrap_or_default()
    }

    /// Reads it.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn from_json(text: &str) -> Result<Trace, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.schema != SCHEMA {
            return Err(format!("its schema is {:?}, not {SCHEMA:?}", file.schema));
        }
        if file.version > VERSION {
            return Err(format!(
                "its version {} is newer than {VERSION}",
                file.version
            ));
        }
        let processes = file.processes.into_iter().map(|one| Read {
            process: one.process,
            steps: one.steps,
            pid: one.pid,
            known_as: one.known_as,
        });
        Trace::of_steps(processes)
    }
}
