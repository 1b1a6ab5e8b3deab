//! What the accesses of a trace are to, and where in the code they are, as far as that was recorded.

use std::fmt;

use beamline_formats::name;
use beamline_formats::ring::Shared;
use rustc_hash::FxHashMap;

use super::{Access, Site};

/// An access, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// Which of its process's accesses, from 1.
    pub(super) number: u64,
    /// How many steps its process had made itself by then.
    pub(super) steps: usize,
    /// The place of its place in the code among all of them.
    site: Option<usize>,
    /// What it is to: one object, mostly.
    pub(super) to: Vec<To>,
}

/// An object that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct To {
    /// Its number.
    pub(super) object: u64,
    /// It is changed.
    pub(super) is_change: bool,
    /// The part of it that is accessed, if it is not all.
    pub(super) part: Option<u64>,
}

/// What was recorded of the accesses of all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Of each process, in their order.
    all: Vec<Vec<Made>>,
    sites: Vec<Site>,
    places: FxHashMap<Site, usize>,
    objects: FxHashMap<u64, Object>,
    /// How Erlang writes the parts of objects.
    parts: FxHashMap<(u64, u64), String>,
}

/// Something that processes share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub(super) shared: Shared,
    /// Empty where it has none.
    pub(super) name: String,
}

/// What two accesses have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Common {
    pub(super) object: u64,
    /// The part, if one of the accesses is to no other.
    pub(super) part: Option<u64>,
}

impl Accesses {
    /// Nothing was recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of a process.
    pub(super) fn of(&self, process: usize) -> &[Made] {
        self.all.get(process).map_or(&[], Vec::as_slice)
    }

    fn get(&self, access: Access) -> Option<&Made> {
        let all = self.of(access.of);
        let at = all.binary_search_by_key(&access.number, |made| made.number);
        at.ok().map(|at| &all[at])
    }

    /// What an access is to.
    pub(super) fn to(&self, access: Access) -> &[To] {
        self.get(access).map_or(&[], |made| &made.to)
    }

    /// Whether an object tells whether a process has ended: that process alone changes it, by its end.
    pub(super) fn is_of_end(&self, object: u64) -> bool {
        let object = self.objects.get(&object);
        object.is_some_and(|object| object.shared == Shared::Process)
    }

    /// Whether an object tells whether a process traps exits.
    pub(super) fn is_of_trapping(&self, object: u64) -> bool {
        let object = self.objects.get(&object);
        object.is_some_and(|object| object.shared == Shared::Trapping)
    }

    /// Whether an object tells of the end of nobody.
    pub(super) fn is_of_nobody(&self, object: u64) -> bool {
        let object = self.objects.get(&object);
        object.is_some_and(|object| object.shared == Shared::Nobody)
    }

    /// Those of a process see none of others, and others see none of them.
    pub(super) fn hide(&mut self, process: usize) {
        for made in self.all.get_mut(process).into_iter().flatten() {
            made.to.clear();
        }
    }

    /// A process has not made its own step that `before` of its steps came before.
    pub(super) fn forget_step(&mut self, process: usize, before: usize) {
        for made in self.all.get_mut(process).into_iter().flatten() {
            made.steps -= usize::from(made.steps > before);
        }
    }

    /// Where in the code an access is.
    #[must_use]
    pub fn site(&self, access: Access) -> Option<&Site> {
        self.sites.get(self.get(access)?.site?)
    }

    /// Whether an access changes what it is to.
    #[must_use]
    pub fn is_change(&self, access: Access, common: Common) -> bool {
        let made = self.get(access);
        let mut to = made.into_iter().flat_map(|made| &made.to);
        to.any(|to| to.is_change && to.object == common.object)
    }

    /// An access of a process, which comes behind those that are known.
    pub(super) fn insert(
        &mut self,
        process: usize,
        (number, steps): (u64, usize),
        site: Option<Site>,
        to: To,
    ) {
        if self.all.len() <= process {
            self.all.resize_with(process + 1, Vec::new);
        }
        if let Some(last) = self.all[process].last_mut()
            && last.number == number
        {
            last.to.push(to);
            return;
        }
        let site = site.map(|site| {
            let next = self.sites.len();
            let place = *self.places.entry(site.clone()).or_insert(next);
            if place == next {
                self.sites.push(site);
            }
            place
        });
        let made = Made {
            number,
            steps,
            site,
            to: vec![to],
        };
        self.all[process].push(made);
    }

    /// How an object is called, and a part of it.
    pub(super) fn name(&mut self, object: u64, is: Object, part: Option<(u64, &str)>) {
        self.objects.entry(object).or_insert(is);
        if let Some((part, text)) = part {
            let text = || text.to_owned();
            self.parts.entry((object, part)).or_insert_with(text);
        }
    }

    /// These accesses, where processes have other places.
    pub(super) fn moved(self, place: impl Fn(usize) -> Option<usize>) -> Accesses {
        let mut all = Vec::new();
        for (from, made) in self.all.into_iter().enumerate() {
            if let Some(to) = place(from) {
                if all.len() <= to {
                    all.resize_with(to + 1, Vec::new);
                }
                all[to] = made;
            }
        }
        Accesses { all, ..self }
    }

    /// What is accessed, such as `the key balance of the table accounts`.
    #[must_use]
    pub fn text(&self, common: Common) -> String {
        let Some(object) = self.objects.get(&common.object) else {
            return "what they share".into();
        };
        let part = common.part.and_then(|part| self.part(common.object, part));
        match part {
            Some(part) => format!("{} {part} of {object}", object.part_name()),
            None => object.to_string(),
        }
    }

    fn part(&self, object: u64, part: u64) -> Option<&str> {
        self.parts.get(&(object, part)).map(String::as_str)
    }

    /// The kind of what is accessed, as JSON has it, its name, and its part.
    #[must_use]
    pub fn words(&self, common: Common) -> Option<(&'static str, &str, Option<&str>)> {
        let object = self.objects.get(&common.object)?;
        let part = common.part.and_then(|part| self.part(common.object, part));
        Some((object.kind(), &object.name, part))
    }
}

impl Object {
    fn kind(&self) -> &'static str {
        match self.shared {
            Shared::Table => "ets",
            Shared::Name => "name",
            Shared::Names => "names",
            Shared::PersistentTerms => "persistent_term",
            Shared::Atomics => "atomics",
            Shared::Counters => "counters",
            Shared::Process | Shared::Nobody => "process",
            Shared::Timer => "timer",
            Shared::Named => "named",
            Shared::Trapping => "trap_exit",
            Shared::Alive => "alive",
            Shared::Link => "link",
            Shared::Files => "file",
        }
    }

    /// What a part of it is.
    fn part_name(&self) -> &'static str {
        match self.shared {
            Shared::Table | Shared::PersistentTerms => "the key",
            Shared::Name
            | Shared::Names
            | Shared::Process
            | Shared::Nobody
            | Shared::Timer
            | Shared::Named
            | Shared::Trapping
            | Shared::Alive
            | Shared::Link => "the part",
            Shared::Atomics | Shared::Counters => "place",
            Shared::Files => "the file",
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shared {
            Shared::Table => write!(f, "the table {}", name::atom(&self.name)),
            Shared::Name => write!(f, "the name {}", name::atom(&self.name)),
            Shared::Names => f.write_str("the registered names"),
            Shared::PersistentTerms => f.write_str("persistent_term"),
            Shared::Atomics => f.write_str("an array of atomics"),
            Shared::Counters => f.write_str("an array of counters"),
            Shared::Process | Shared::Nobody => f.write_str("the end of a process"),
            Shared::Timer => f.write_str("a timer"),
            Shared::Named => f.write_str("the name of a process"),
            Shared::Trapping => f.write_str("whether a process traps exits"),
            Shared::Alive => f.write_str("whether a process is alive"),
            Shared::Link => f.write_str("the link of two processes"),
            Shared::Files => f.write_str("the file system"),
        }
    }
}
