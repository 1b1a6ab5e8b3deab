//! The triggers of a flight recorder. The emulator overwrites the ring until one of them happens.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ring::model::event::Kind;

/// Something that happens in an emulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A long collection.
    LongGc,
    /// A long time slice.
    LongSchedule,
    /// A large heap.
    LargeHeap,
    /// A long message queue.
    LongMessageQueue,
    /// A process waits for a busy port.
    BusyPort,
    /// A process waits for a busy connection to another node.
    BusyDistPort,
    /// A process exits for this reason. `_` is any reason that is no normal end.
    Exit(String),
}

/// The triggers that have no parameter.
const PLAIN: [(Trigger, Kind); 6] = [
    (Trigger::LongGc, Kind::LongGc),
    (Trigger::LongSchedule, Kind::LongSchedule),
    (Trigger::LargeHeap, Kind::LargeHeap),
    (Trigger::LongMessageQueue, Kind::LongMessageQueue),
    (Trigger::BusyPort, Kind::BusyPort),
    (Trigger::BusyDistPort, Kind::BusyDistPort),
];

/// Reasons that are no failures.
const NORMAL: [&str; 2] = ["normal", "shutdown"];

impl Trigger {
    /// The kind of event that may be this trigger.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let found = PLAIN.iter().find(|(plain, _)| plain == self);
        found.map_or(Kind::Exit, |(_, kind)| *kind)
    }

    /// Is an event of this kind the trigger? `reason` is that of an exit, as Erlang writes it.
    #[must_use]
    pub fn is(&self, kind: Kind, reason: &str) -> bool {
        match self {
            _ if self.kind() != kind => false,
            Trigger::Exit(wanted) if wanted == "_" => {
                !NORMAL.iter().any(|normal| is_reason(reason, normal))
            }
            Trigger::Exit(wanted) => is_reason(reason, wanted),
            _ => true,
        }
    }
}

/// Is the reason `wanted`, or a tuple that begins with it, as that of an error with its stack trace does?
fn is_reason(reason: &str, wanted: &str) -> bool {
    let braces = reason.bytes().take_while(|byte| *byte == b'{').count();
    (0..=braces).any(|at| {
        let rest = reason[at..].strip_prefix(wanted);
        rest.is_some_and(|rest| {
            let is_first = at > 0 && rest.starts_with([',', '}']);
            rest.is_empty() || is_first
        })
    })
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Exit(reason) => write!(f, "exit:{reason}"),
            plain => f.write_str(plain.kind().name()),
        }
    }
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("exit:") {
            Some("") => return Err("exit: needs a reason, such as exit:killed or exit:_".into()),
            Some(reason) => return Ok(Trigger::Exit(reason.to_owned())),
            None => {}
        }
        let found = PLAIN.iter().find(|(_, kind)| kind.name() == text);
        found.map(|(trigger, _)| trigger.clone()).ok_or_else(|| {
            let names: Vec<&str> = PLAIN.iter().map(|(_, kind)| kind.name()).collect();
            let names = names.join(", ");
            format!("'{text}' is not an event to wait for; use {names}, exit:REASON")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::model::event::Group;

    #[test]
    fn reasons_are_compared() {
        for (wanted, reason, expect) in [
            ("killed", "killed", true),
            ("killed", "killed_by", false),
            ("badarg", "{badarg,[{erlang,hd,[[]],[]}]}", true),
            ("badmatch", "{{badmatch,1},[{m,f,1,[]}]}", true),
            ("{badmatch,1}", "{{badmatch,1},[{m,f,1,[]}]}", true),
            ("{badmatch,2}", "{{badmatch,1},[{m,f,1,[]}]}", false),
            ("bad", "{badarg,[]}", false),
            ("x", "{y,x}", false),
            ("_", "normal", false),
            ("_", "shutdown", false),
            ("_", "{shutdown,done}", false),
            ("_", "killed", true),
            ("_", "{noproc,{gen_server,call,[x]}}", true),
        ] {
            let trigger: Trigger = format!("exit:{wanted}").parse().expect("a trigger");
            assert_eq!(trigger.is(Kind::Exit, reason), expect, "{wanted}: {reason}");
            assert!(!trigger.is(Kind::LongGc, reason));
        }
    }

    #[test]
    fn triggers_are_read_as_they_are_written() {
        for text in ["long_gc", "long_schedule", "busy_port", "exit:{a,b}"] {
            let trigger: Trigger = text.parse().expect("a trigger");
            assert_eq!(trigger.to_string(), text);
        }
        for text in ["exit:", "exit", "gc", ""] {
            assert!(text.parse::<Trigger>().is_err(), "{text}");
        }
        assert!(Trigger::LongGc.is(Kind::LongGc, ""));
        assert!(!Trigger::LongGc.is(Kind::LongSchedule, ""));
    }

    #[test]
    fn each_system_event_can_be_waited_for_and_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/recordings.md");
        let text = std::fs::read_to_string(path).expect("it is in the repository");
        for kind in Kind::ALL {
            if kind.group() == Group::System {
                assert!(kind.name().parse::<Trigger>().is_ok(), "{kind:?}");
                assert!(text.contains(&format!("`{}`", kind.name())), "{kind:?}");
            }
        }
    }
}
