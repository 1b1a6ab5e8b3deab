//! A trial: processes that a profile of its own measures, as that of a run will measure all of them. It shows what tracing
//! itself costs here.

use std::sync::Arc;

use crate::process::Process;
use crate::term::Atom;
use crate::trace::costs::account::Measures;
use crate::trace::session::flags;
use crate::trace::session::kind;
use crate::trace::session::tracer::TracerId;
use crate::trace::session::{self, OnLoad, Profiled, Shared};

/// What code costs that is loaded while there is a trial.
pub(crate) struct Trial {
    session: Arc<Shared>,
}

impl Trial {
    /// Begins a trial. `None`: there are as many sessions as there may be.
    pub(crate) fn begin(measures: Measures) -> Option<Trial> {
        let profiled = Profiled::new(measures, |_| true);
        let name = Atom::new("beamline_trial");
        let session = session::create(name, None, Some(profiled), None).ok()?;
        *session.on_load.lock() = Some(OnLoad::counting(kind::PROFILE));
        Some(Trial { session })
    }

    /// Measures this process.
    pub(crate) fn measures(&self, p: &Process) {
        let (id, tracee) = (p.pid().term(), &p.shared().tracee);
        tracee.turn_on(id, &self.session, flags::CALL, TracerId::NOBODY);
    }

    /// The own time, in ticks, of the functions of one name since it was last asked for any.
    pub(crate) fn take<const N: usize>(&self, functions: [Atom; N]) -> [u64; N] {
        let arenas = std::mem::take(&mut *self.session.arenas.lock());
        let profiled = self.session.profile.as_ref().expect("a trial's session");
        let accounts = profiled.accounts.lock();
        let mut ticks = [0; N];
        for arena in &arenas {
            for (index, node) in arena.nodes() {
                let function = accounts.get(&node.account()).map(|mfa| mfa.function);
                let at = functions.iter().position(|known| Some(*known) == function);
                if let Some(at) = at {
                    ticks[at] += arena.counted(index).ticks;
                }
            }
        }
        ticks
    }

    /// Ends it. Nobody runs the code that was loaded since it began.
    pub(crate) fn end(self) {
        session::kill(&self.session);
        session::forget(&self.session);
    }
}
