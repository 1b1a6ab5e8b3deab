//! What the data of the page refers to by number, and what is said where there is none.

use std::collections::HashMap;

use beamline_formats::ring::{Group, Id, NameId, Names, Recording};

/// Texts and processes by number.
pub(super) struct Tables<'r> {
    pub(super) names: &'r Names,
    pub(super) texts: Vec<String>,
    text_of: HashMap<String, u32>,
    name_of: HashMap<NameId, u32>,
    pub(super) processes: Vec<Id>,
    process_of: HashMap<Id, u32>,
}

/// An index: there are never more things of a kind than it can count.
fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl<'r> Tables<'r> {
    pub(super) fn new(names: &'r Names) -> Tables<'r> {
        Tables {
            names,
            texts: Vec::new(),
            text_of: HashMap::new(),
            name_of: HashMap::new(),
            processes: Vec::new(),
            process_of: HashMap::new(),
        }
    }

    pub(super) fn text(&mut self, text: &str) -> u32 {
        if let Some(known) = self.text_of.get(text) {
            return *known;
        }
        let number = index(self.texts.len());
        self.texts.push(text.to_owned());
        self.text_of.insert(text.to_owned(), number);
        number
    }

    pub(super) fn name(&mut self, name: NameId) -> u32 {
        if let Some(known) = self.name_of.get(&name) {
            return *known;
        }
        let text = match name {
            NameId::NONE => "?".to_owned(),
            name => self.names.text(name),
        };
        let number = self.text(&text);
        self.name_of.insert(name, number);
        number
    }

    pub(super) fn process(&mut self, id: Id) -> u32 {
        let new = index(self.processes.len());
        let number = *self.process_of.entry(id).or_insert(new);
        if number == new {
            self.processes.push(id);
        }
        number
    }

    /// Of a process its number and 1; of anything else 0.
    pub(super) fn process_or_none(&mut self, id: Id) -> u32 {
        match id {
            Id::Process(_) | Id::Port(_) => self.process(id) + 1,
            Id::None | Id::Name(_) | Id::Socket(_) => 0,
        }
    }
}

/// What was not recorded of that which `what` is made of, and how to get it; empty where all was.
pub(super) fn missing(recording: &Recording, what: &str, needs: &[Group]) -> String {
    let Some((missing, events)) = recording.lacking(needs) else {
        return String::new();
    };
    let missing = missing.join(" and no ");
    format!(
        "No {what} can be shown: the recording has no {missing}. Record with --events {events}."
    )
}
