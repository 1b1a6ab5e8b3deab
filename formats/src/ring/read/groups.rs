//! Which groups of events a recording has, and how to get those that it lacks.

use super::reader::Recording;
use crate::ring::model::description::Sampling;
use crate::ring::model::event::Group;

impl Recording {
    /// Whether events of this group were asked for.
    #[must_use]
    pub fn has(&self, group: Group) -> bool {
        let events = &self.description().settings.events;
        events.iter().any(|name| name == group.name())
    }

    /// How its emulator was looked at from outside, if it was.
    #[must_use]
    pub fn sampling(&self) -> Option<&Sampling> {
        self.description().settings.sampling.as_ref()
    }

    /// As [`Recording::lacks`], of what needs call paths with time: samples have them as well.
    #[must_use]
    pub fn lacks_paths(&self, what: &str, needs: &[Group]) -> Option<String> {
        let is_enough = needs
            .iter()
            .all(|group| matches!(group, Group::Calls | Group::Returns));
        match self.sampling() {
            Some(_) if is_enough => None,
            _ => self.lacks(what, needs),
        }
    }

    /// What was not recorded of that which `what` is made from: one line that says how to get it.
    #[must_use]
    pub fn lacks(&self, what: &str, needs: &[Group]) -> Option<String> {
        let (missing, events) = self.lacking(needs)?;
        if self.sampling().is_some() {
            let missing = missing.join(" and no ");
            return Some(format!(
                "{what} cannot be made of samples, which have no {missing}: record on Beamline's runtime with beamline record --events {events}",
            ));
        }
        let all: Vec<&str> = needs.iter().map(|group| group.name()).collect();
        let (last, first) = all.split_last()?;
        let all = match first {
            [] => (*last).to_owned(),
            first => format!("{} and {last}", first.join(", ")),
        };
        Some(format!(
            "{what} needs {all}, but the recording has no {}: record with --events {events}",
            missing.join(" and no "),
        ))
    }

    /// Which of these groups were not recorded, and the events to ask for to have them beside what there is; none
    /// where all were.
    #[must_use]
    pub fn lacking(&self, needs: &[Group]) -> Option<(Vec<&'static str>, String)> {
        let missing = needs.iter().filter(|group| !self.has(**group));
        let missing: Vec<&str> = missing.map(|group| group.name()).collect();
        let wanted = Group::ALL.iter();
        let wanted = wanted.filter(|group| group.is_recorded_inside());
        let wanted = wanted.filter(|group| needs.contains(group) || self.has(**group));
        let wanted: Vec<&str> = wanted.map(|group| group.name()).collect();
        (!missing.is_empty()).then(|| (missing, wanted.join(",")))
    }
}
