//! Timers of a recorded run whose messages have come.

use beamline_orders::{
    Message, ProcessIndex, Set, Setting as Recorded, Step, SystemMessage, Trace,
};

use super::{Plan, plan};
use crate::hash::HashMap;
use crate::process::order::{Setting, is_followed};
use crate::term::Pid;

/// Whom a timer sent its message to in the run that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// This process, which may be gone by now.
    Process(Pid),
    /// One that has yet to be made.
    Later,
}

/// The places of the processes to which timers' messages came.
pub(super) type Receivers = HashMap<Set, ProcessIndex>;

fn receivers(trace: &Trace) -> Receivers {
    let processes = trace.processes.entries();
    let all = processes.flat_map(|(at, process)| {
        process.steps.iter().filter_map(move |step| match step {
            Step::Deliver(Message::SystemMessage(SystemMessage { set: Some(set), .. })) => {
                let is_timer = matches!(set.what(), Recorded::Timer { .. });
                is_timer.then_some((*set, at))
            }
            _ => None,
        })
    });
    all.collect()
}

/// Whom this timer sent its message to, if it came to anybody.
pub(crate) fn receiver_of_timer(set: Setting) -> Option<Receiver> {
    let plan = plan().filter(|plan| is_followed() && !plan.has_gone_free())?;
    plan.receiver_of_timer(set)
}

impl Plan {
    pub(super) fn receiver_of_timer(&self, set: Setting) -> Option<Receiver> {
        let timer = Set::timer(self.index(set.by)?, set.number)?;
        let all = self.timers.get_or_init(|| receivers(&self.trace));
        let receiver = *all.get(&timer)?;
        Some(
            self.pid(receiver)
                .map_or(Receiver::Later, Receiver::Process),
        )
    }
}
