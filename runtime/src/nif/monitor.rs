//! Monitors that resources have on processes.
//!
//! A process that is monitored holds a [`Watcher`], which it calls when it exits. A monitor does not
//! keep its resource alive. It ends with the resource, with the process, or when it is taken back, whichever comes
//! first: the resource's own table says whether it is there still.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use parking_lot::Mutex;

use super::resource::{Resource, call_with_env};
use super::{Env, api, env, term};
use crate::heap::MagicBinary;
use crate::process::exists;
use crate::process::refs::{RefNumbers, make_ref};
use crate::process::watcher::{self, WatchedBy, Watcher, unwatch};
use crate::term::{Pid, RawTerm, Term};

/// `ErlNifMonitor`: the numbers of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct NifMonitor {
    numbers: RefNumbers,
    unused: [u32; 5],
}

/// The monitors of a resource: whom they are on.
#[derive(Default)]
pub(super) struct Monitors(Mutex<BTreeMap<RefNumbers, Pid>>);

impl Monitors {
    /// Takes all of them back.
    pub(super) fn end(&mut self) {
        for (reference, pid) in std::mem::take(self.0.get_mut()) {
            unwatch(pid, reference);
        }
    }
}

/// A process has exited that `magic` monitors by `reference`.
fn fire(magic: &Arc<MagicBinary>, reference: RefNumbers, pid: Pid) {
    let Some(resource) = magic.get::<Resource>() else {
        return;
    };
    if resource.monitors.0.lock().remove(&reference).is_none() {
        return;
    }
    let owner = resource.of_type.owner();
    let Some(down) = owner.callbacks.down else {
        return;
    };
    let (mut pid, mut monitor) = (
        pid.term().raw(),
        NifMonitor {
            numbers: reference,
            unused: [0; 5],
        },
    );
    call_with_env(&owner, |env| {
        // SAFETY: N1: the library's own function, for an object of its type.
        unsafe { down(env, resource.object(), &raw mut pid, &raw mut monitor) }
    });
}

/// Has the process `pid` tell `magic` when it exits.
fn watch(magic: &Arc<MagicBinary>, reference: RefNumbers, pid: Pid) -> bool {
    let object = Arc::downgrade(magic);
    let weak = object.clone();
    let by = WatchedBy::Object(object);
    let told = Box::new(move |_: Term<'_>| {
        if let Some(magic) = weak.upgrade() {
            fire(&magic, reference, pid);
        }
    });
    watcher::watch(pid, reference, Watcher { told, by })
}

api! {
    /// Has the resource told when a process exits: 0; 1 where there is none; -1 where its type has no function for it.
    fn enif_monitor_process(_e: *mut Env, object: *mut c_void, pid: *const RawTerm, out: *mut NifMonitor) -> c_int {
        let resource = Resource::of(object);
        if resource.of_type.owner().callbacks.down.is_none() {
            return -1;
        }
        let Some(pid) = term(*pid).as_pid().filter(|pid| exists(*pid)) else { return 1 };
        let reference = make_ref();
        resource.monitors.0.lock().insert(reference, pid);
        if !watch(&Resource::magic_of(object), reference, pid) {
            resource.monitors.0.lock().remove(&reference);
            return 1;
        }
        if !out.is_null() {
            out.write(NifMonitor { numbers: reference, unused: [0; 5] });
        }
        0
    }
    /// Takes a monitor back: 0; 1 where it is not there any more.
    fn enif_demonitor_process(_e: *mut Env, object: *mut c_void, monitor: *const NifMonitor) -> c_int {
        let reference = (*monitor).numbers;
        let Some(pid) = Resource::of(object).monitors.0.lock().remove(&reference) else { return 1 };
        unwatch(pid, reference);
        0
    }
    /// The order of two monitors.
    fn enif_compare_monitors(a: *const NifMonitor, b: *const NifMonitor) -> c_int {
        (*a).numbers.cmp(&(*b).numbers) as c_int
    }
    /// The reference of a monitor.
    fn enif_make_monitor_term(e: *mut Env, monitor: *const NifMonitor) -> RawTerm {
        env(e).heap().reference((*monitor).numbers).raw()
    }
}
