//! Refuses traces that no run can have.

use std::collections::HashSet;

use super::{Message, Origin, Process, Step, Trace};

impl Trace {
    /// Whether the steps fit together.
    ///
    /// # Errors
    /// One line that names the process and the step that no run can have.
    pub fn check(&self) -> Result<(), String> {
        let places = 0..self.processes.len();
        let sent: Vec<u32> = self.processes.iter().map(sendings).collect();
        let mut spawned = vec![false; self.processes.len()];
        let mut received = HashSet::new();
        let mut delivered = HashSet::new();
        for at in places {
            let process = &self.processes[at];
            let has_deliveries = process
                .steps
                .iter()
                .any(|step| matches!(step, Step::Deliver(_)));
            let (mut spawns, mut sends) = (0, 0);
            for step in &process.steps {
                let wrong = match step {
                    Step::Spawn(child) => {
                        spawns += 1;
                        spawned[*child] = true;
                        let (of, number) = (at, spawns);
                        (self.processes[*child].origin != Origin::Child { of, number })
                            .then_some("another child is the next one")
                    }
                    Step::Send(number) => {
                        sends += 1;
                        (*number != sends).then_some("another sending is the next one")
                    }
                    Step::Deliver(message) | Step::Receive(message) if !is_sent(message, &sent) => {
                        Some("nobody sends this message")
                    }
                    Step::Deliver(message) => {
                        (!delivered.insert((at, *message))).then_some("it was delivered before")
                    }
                    Step::Receive(message)
                        if has_deliveries && !delivered.contains(&(at, *message)) =>
                    {
                        Some("it has not been delivered")
                    }
                    Step::Receive(message) => {
                        (!received.insert((at, *message))).then_some("it was received before")
                    }
                    Step::Timeout | Step::Miss(_) | Step::Load { .. } | Step::Exit => None,
                };
                if let Some(wrong) = wrong {
                    let (name, step) = (self.name(at), self.step(at, step));
                    return Err(format!("{name} cannot {step}: {wrong}"));
                }
            }
        }
        let origins = self.processes.iter().map(|process| process.origin);
        for (at, origin) in origins.enumerate() {
            if let Origin::Child { of, .. } = origin
                && !spawned[at]
            {
                let (parent, child) = (self.name(of), self.name(at));
                return Err(format!("{parent} does not spawn {child}"));
            }
        }
        Ok(())
    }
}

fn sendings(process: &Process) -> u32 {
    let sends = process.steps.iter();
    let sends = sends.filter(|step| matches!(step, Step::Send(_))).count();
    u32::try_from(sends).unwrap_or(u32::MAX)
}

fn is_sent(message: &Message, sent: &[u32]) -> bool {
    match message {
        Message::Sent { from, number } => sent.get(*from).is_some_and(|sent| number <= sent),
        Message::Told(_) => true,
    }
}
