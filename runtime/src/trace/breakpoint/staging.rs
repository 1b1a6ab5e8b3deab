//! Finds the places that a change of breakpoints touches, one after the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::vec::IntoIter;

use super::BpData;
use super::change::{Pattern, Setting, Switch, changed};
use super::place::{Place, has_stubs};
use crate::code::entry::{Export, all_exports, export};
use crate::loader::module::{self, Mfa, Module};
use crate::term::Atom;
use crate::trace::session::Shared;
use crate::trace::session::kind;

/// The places that are still to be staged.
pub(in crate::trace) struct Staging {
    session: Arc<Shared>,
    /// None: all that the session has goes.
    pattern: Option<Pattern>,
    switch: Switch,
    kinds: u32,
    setting: Setting,
    modules: IntoIter<Arc<Module>>,
    /// The module that is looked at, and how many of its functions and exports have been.
    now: Option<(Arc<Module>, usize)>,
    /// Exports of modules are places too.
    with_exports: bool,
    /// What comes behind the modules.
    exports: IntoIter<&'static Export>,
}

/// The change at a place.
pub(in crate::trace) struct Wanted {
    /// It is one of those that the pattern asks for.
    pub(in crate::trace) matches: bool,
    pub(in crate::trace) switch: Switch,
}

impl Staging {
    pub(in crate::trace) fn pattern(
        session: &Arc<Shared>,
        pattern: Pattern,
        switch: Switch,
        kinds: u32,
        setting: &Setting,
    ) -> Staging {
        let modules: Vec<_> = match pattern.module {
            Some(name) => module::versions(name).current.into_iter().collect(),
            None => module::loaded(),
        };
        Staging {
            session: session.clone(),
            pattern: Some(pattern),
            switch,
            kinds,
            setting: setting.clone(),
            modules: modules.into_iter(),
            now: None,
            with_exports: kinds == kind::GLOBAL || has_stubs(),
            exports: Vec::new().into_iter(),
        }
    }

    pub(in crate::trace) fn clear(session: &Arc<Shared>) -> Staging {
        let exports = if has_stubs() {
            all_exports()
        } else {
            Vec::new()
        };
        Staging {
            session: session.clone(),
            pattern: None,
            switch: Switch::Off,
            kinds: kind::ALL,
            setting: Setting::default(),
            modules: module::all_versions().into_iter(),
            now: None,
            with_exports: false,
            exports: exports.into_iter(),
        }
    }

    /// The next places to look at, `most` if there are as many, and their functions. All are found before any is
    /// changed: waiting for memory, which is most of it, then goes on for many at the same time.
    pub(in crate::trace) fn next(&mut self, most: usize) -> Vec<(Place, Mfa)> {
        let mut places = Vec::with_capacity(most);
        loop {
            if let Some((code, at)) = &mut self.now {
                let functions = code.functions.iter().skip(*at).take(most - places.len());
                let before = places.len();
                places.extend(
                    functions.map(|&entry| (Place::Code(code.clone(), entry), code.mfa(entry))),
                );
                if self.with_exports {
                    let behind = (*at + places.len() - before).saturating_sub(code.functions.len());
                    let exports = code.exports.iter().skip(behind).take(most - places.len());
                    let stub = |&(function, arity, _): &(Atom, u8, u32)| {
                        Place::Export(export(code.name, function, arity))
                    };
                    places.extend(exports.map(stub).map(named));
                }
                *at += places.len() - before;
            }
            if places.len() == most {
                return places;
            }
            let Some(code) = self.modules.next() else {
                self.now = None;
                let exports = self.exports.by_ref().take(most - places.len());
                places.extend(exports.map(Place::Export).map(named));
                return places;
            };
            self.now = self.is_looked_at(&code).then_some((code, 0));
        }
    }

    /// Is there something to do in `code`? What was replaced since the change began is not.
    fn is_looked_at(&self, code: &Arc<Module>) -> bool {
        match self.pattern {
            None => code.breakpoints.load(Ordering::Acquire) > 0,
            Some(_) => module::versions(code.name)
                .current
                .is_some_and(|current| Arc::ptr_eq(&current, code)),
        }
    }

    /// What is to happen at `place`, the function `mfa`. Where calls are traced in the export, no breakpoint is
    /// left in the code, and the other way round.
    pub(in crate::trace) fn wanted(&self, place: &Place, mfa: Mfa) -> Option<Wanted> {
        let off = Wanted {
            matches: false,
            switch: Switch::Off,
        };
        let Some(pattern) = self.pattern else {
            return (!place.breakpoint().is_null()).then_some(off);
        };
        let is_global = self.kinds == kind::GLOBAL;
        if !pattern.matches(mfa) {
            None
        } else if matches!(place, Place::Export(_)) == is_global {
            Some(Wanted {
                matches: true,
                switch: self.switch,
            })
        } else {
            (self.switch != Switch::Off).then_some(off)
        }
    }

    /// `now`, of the function `mfa`, as it shall be; `None` when nothing changes.
    pub(in crate::trace) fn changed(
        &self,
        now: Option<&BpData>,
        mfa: Mfa,
        wanted: &Wanted,
    ) -> Option<BpData> {
        let (session, switch) = (&self.session, wanted.switch);
        if wanted.matches {
            return changed(now, session, mfa, switch, self.kinds, &self.setting);
        }
        changed(now, session, mfa, switch, kind::ALL, &Setting::default())
    }
}

fn named(place: Place) -> (Place, Mfa) {
    let mfa = place.mfa();
    (place, mfa)
}
