//! What the accesses of a trace are to, and where in the code they are, as far as that was recorded.

use std::fmt;

use beamline_formats::name;
use beamline_formats::ring::Shared;
use rustc_hash::FxHashMap;

use super::{Access, PerProcess, ProcessIndex, Site};

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
    all: PerProcess<Vec<Made>>,
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
    pub(super) fn of(&self, process: ProcessIndex) -> &[Made] {
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
    pub(super) fn hide(&mut self, process: ProcessIndex) {
        for made in self.all.get_mut(process).into_iter().flatten() {
            made.to.clear();
        }
    }

    /// A process has not made its own step that `before` of its own steps came before.
    pub(super) fn forget_step(&mut self, process: ProcessIndex, before: usize) {
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
        process: ProcessIndex,
        (number, steps): (u64, usize),
        site: Option<Site>,
        to: To,
    ) {
        let all = self.all.get_or_insert(process);
        if let Some(last) = all.last_mut()
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
        all.push(made);
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
    pub(super) fn moved(self, place: impl Fn(ProcessIndex) -> Option<ProcessIndex>) -> Accesses {
        let mut all = PerProcess::default();
        for (from, made) in self.all.indexes().zip(self.all) {
            if let Some(to) = place(from) {
                *all.get_or_insert(to) = made;
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
            Some(part) => format!("{} {part} of {object}", object.shared.part()),
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
        Some((object.shared.word(), &object.name, part))
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shared.text())?;
        match self.shared.is_named() {
            true => write!(f, " {}", name::atom(&self.name)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(object: u64, is_change: bool, part: Option<u64>) -> To {
        To {
            object,
            is_change,
            part,
        }
    }

    /// What is accessed, and its name; its text, what a part of it is, and its kind.
    const OBJECTS: [(Shared, &str, &str, &str, &str); 14] = [
        (
            Shared::Table,
            "a table",
            "the table 'a table'",
            "the key",
            "ets",
        ),
        (Shared::Name, "me", "the name me", "the part", "name"),
        (
            Shared::Names,
            "",
            "the registered names",
            "the part",
            "names",
        ),
        (
            Shared::PersistentTerms,
            "",
            "persistent_term",
            "the key",
            "persistent_term",
        ),
        (
            Shared::Atomics,
            "",
            "an array of atomics",
            "place",
            "atomics",
        ),
        (
            Shared::Counters,
            "",
            "an array of counters",
            "place",
            "counters",
        ),
        (
            Shared::Process,
            "",
            "the end of a process",
            "the part",
            "process",
        ),
        (
            Shared::Nobody,
            "",
            "the end of a process",
            "the part",
            "process",
        ),
        (Shared::Timer, "", "a timer", "the part", "timer"),
        (
            Shared::Named,
            "",
            "the name of a process",
            "the part",
            "named",
        ),
        (
            Shared::Trapping,
            "",
            "whether a process traps exits",
            "the part",
            "trap_exit",
        ),
        (
            Shared::Alive,
            "",
            "whether a process is alive",
            "the part",
            "alive",
        ),
        (
            Shared::Link,
            "",
            "the link of two processes",
            "the part",
            "link",
        ),
        (Shared::Files, "", "the file system", "the file", "file"),
    ];

    #[test]
    fn what_is_accessed_has_a_text_and_a_kind() {
        for (shared, name, text, part, kind) in OBJECTS {
            let mut accesses = Accesses::default();
            let name = name.to_owned();
            let object = Object { shared, name };
            accesses.name(7, object.clone(), Some((3, "k")));
            let [all, one, unnamed] =
                [None, Some(3), Some(4)].map(|part| Common { object: 7, part });
            assert_eq!(accesses.text(all), text);
            assert_eq!(accesses.text(one), format!("{part} k of {text}"));
            assert_eq!(accesses.text(unnamed), text);
            let words = (kind, &*object.name, Some("k"));
            assert_eq!(accesses.words(one), Some(words));
        }
        let unknown = Common {
            object: 1,
            part: None,
        };
        assert_eq!(Accesses::default().text(unknown), "what they share");
        assert_eq!(Accesses::default().words(unknown), None);
    }

    #[test]
    fn an_access_is_to_several_objects_from_one_place() {
        let site = |line| Site {
            function: "m:f/0".into(),
            line,
            is_of_application: true,
        };
        let mut accesses = Accesses::default();
        let [first, of] = [0, 1].map(ProcessIndex::new);
        accesses.insert(of, (2, 0), Some(site(5)), to(7, false, Some(3)));
        accesses.insert(of, (2, 0), Some(site(6)), to(8, true, None));
        accesses.insert(of, (4, 1), None, to(7, true, None));
        let access = |number| Access { of, number };
        let common = |object| Common { object, part: None };
        for (number, line, is_change) in [
            (1, None, [false, false]),
            (2, Some(5), [false, true]),
            (3, None, [false, false]),
            (4, None, [true, false]),
        ] {
            let found = accesses.site(access(number)).map(|site| site.line);
            assert_eq!(found, line, "{number}");
            let changes = [7, 8].map(|object| accesses.is_change(access(number), common(object)));
            assert_eq!(changes, is_change, "{number}");
        }
        assert_eq!(accesses.to(access(2)).len(), 2);
        accesses.forget_step(of, 0);
        let steps = accesses.of(of).iter().map(|made| made.steps);
        assert_eq!(steps.collect::<Vec<_>>(), [0, 0]);
        let mut moved = accesses.moved(|place| (place == of).then_some(first));
        assert_eq!((moved.of(first).len(), moved.of(of).len()), (2, 0));
        moved.hide(first);
        let (of, number) = (first, 2);
        assert_eq!(moved.to(Access { of, number }), []);
    }
}
