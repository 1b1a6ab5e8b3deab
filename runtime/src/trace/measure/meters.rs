//! The meters of a process.
//!
//! Invariants: ME3 of `meter.rs`.
#![expect(unsafe_code, reason = "a process holds its meters without their type")]

use std::sync::Arc;

use smallvec::SmallVec;

use super::meter::Meter;
use crate::process::Process;
use crate::term::CodeAddress;
use crate::trace::costs::in_line::{InLine, METERS};
use crate::trace::costs::known::Known;
use crate::trace::costs::node::Node;

/// The meters of a process.
#[derive(Default)]
pub(crate) struct Meters {
    /// Compiled code knows one by its address.
    #[expect(clippy::vec_box, reason = "they do not move")]
    pub(in crate::trace) meters: Vec<Box<Meter>>,
    next_uid: u32,
    /// Those that are to be charged for what compiled code counts.
    running: SmallVec<[usize; METERS]>,
    pub(in crate::trace) in_line: Arc<InLine>,
}

impl Meters {
    /// A name for one more meter.
    pub(in crate::trace) fn uid(&mut self) -> u32 {
        // 28 bits fit a frame's word beside a node.
        self.next_uid = (self.next_uid + 1) & 0xfff_ffff;
        self.next_uid
    }
    /// The meter of this [`Measures::key`].
    #[inline]
    pub(in crate::trace) fn by_key(&mut self, key: u64) -> Option<&mut Meter> {
        let mut all = self.meters.iter_mut().map(|meter| &mut **meter);
        all.find(|meter| meter.key == key)
    }
    pub(in crate::trace) fn by_uid(&mut self, uid: u32) -> Option<&mut Meter> {
        let mut all = self.meters.iter_mut().map(|meter| &mut **meter);
        all.find(|meter| meter.uid == uid)
    }
    /// Charges for the calls that compiled code has counted.
    #[inline(always)]
    pub(in crate::trace) fn settle(&mut self) {
        if !self.running.is_empty() {
            self.charge_running();
        }
    }
    fn charge_running(&mut self) {
        let pending = self.in_line.pending();
        self.in_line.together().begin();
        for at in self.running.drain(..) {
            self.meters[at].ran(&pending);
        }
        self.in_line.charged();
        self.in_line.together().end();
    }
    /// Are some to be charged for what compiled code counts?
    pub(in crate::trace) fn charges_later(&self) -> bool {
        !self.running.is_empty()
    }
    /// Compiled code counts calls of the function that is the current one of `running`, which measure no reductions, as
    /// [`InLine::runs`] says.
    pub(in crate::trace) fn count_in_line(
        &mut self,
        running: SmallVec<[usize; METERS]>,
        changes: u64,
        count: u64,
        top: u64,
    ) {
        debug_assert!(self.running.is_empty(), "they have been charged");
        let meters = || running.iter().map(|at| &self.meters[*at]);
        let nodes: SmallVec<[&Node; METERS]> = meters().map(|meter| meter.current()).collect();
        let words = meters().find(|meter| meter.measures.words);
        let words = words.map(|meter| meter.current());
        self.in_line.charge_to(changes, count, &nodes, words, top);
        self.running = running;
    }
    /// Compiled code uses the meter of this key.
    pub(in crate::trace) fn use_in_line(&mut self, key: u64) {
        let meter = self.meters.iter().find(|meter| meter.key == key);
        self.in_line
            .use_meter(meter.map_or(0, |meter| meter.in_line()));
    }
}

/// Those of `p`, if any of its calls has been measured.
#[inline]
pub(in crate::trace) fn meters_of(p: &mut Process) -> Option<&mut Meters> {
    let held = p.meters.as_deref_mut()?;
    debug_assert!(held.is::<Meters>(), "only `meters` puts something there");
    // SAFETY: ME3.
    Some(unsafe { &mut *std::ptr::from_mut(held).cast::<Meters>() })
}

pub(in crate::trace) fn meters(p: &mut Process) -> &mut Meters {
    if p.meters.is_none() {
        let meters = Box::new(Meters::default());
        p.in_line.set(meters.in_line.address());
        p.meters = Some(meters);
    }
    meters_of(p).expect("they are there now")
}

/// The meters of `p`, to be read.
pub(in crate::trace) fn all_of(p: &Process) -> impl Iterator<Item = &Meter> {
    let meters = p.meters.as_deref().and_then(|all| all.downcast_ref());
    let meters: Option<&Meters> = meters;
    meters
        .into_iter()
        .flat_map(|all| &all.meters)
        .map(|meter| &**meter)
}

/// Tells the profiles of a process, if there are any.
pub(in crate::trace) fn note_known(p: &Process, known: &Known) {
    for meter in all_of(p) {
        meter.arena.known(known.clone());
    }
}

/// Another function may become a meter's current one: compiled code counts no calls of this one any more, and meters are
/// charged for those that it has counted.
pub(in crate::trace) fn settle(p: &mut Process) {
    p.runs_on.set(CodeAddress::NULL);
    if let Some(meters) = meters_of(p) {
        meters.settle();
    }
}
