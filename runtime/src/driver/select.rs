//! Descriptors that drivers wait for (`driver_select()`).
//!
//! A driver is called again and again while a descriptor is ready, until it takes the wish back. The poller tells once,
//! so what is still wished for is watched again after each call. A descriptor has one port: a port that selects the
//! descriptor of another takes it over.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::RawFd;
use std::sync::Arc;

use parking_lot::Mutex;

use super::instance::{Instance, of};
use super::{DrvPort, Event, api};
use crate::sys::chance::poll::{self, Interest, Ready, WatchId};
use crate::term::Term;
use crate::trace::sysmon::{self, PortOp};
use crate::trace::sysprof;

/// Bits of a mode.
const READ: c_int = 1;
const WRITE: c_int = 2;
/// Says when the driver may close it.
const USE: c_int = 4;
/// The driver does not want to be told that it may.
const QUIET: c_int = 8;

/// What is wished for of one kind.
#[derive(Clone, Copy, Default)]
struct Wish {
    is_on: bool,
    watch: Option<WatchId>,
}

/// A descriptor that is selected.
struct Selected {
    port: u64,
    read: Wish,
    write: Wish,
    is_used: bool,
}

impl Selected {
    fn wish(&mut self, interest: Interest) -> &mut Wish {
        match interest {
            Interest::Read => &mut self.read,
            Interest::Write => &mut self.write,
            Interest::Error => unreachable!("a driver does not wait for errors alone"),
        }
    }

    /// Does its port wait for anything?
    fn is_wished(&self) -> bool {
        self.read.is_on || self.write.is_on
    }

    fn unwatch_all(&mut self) {
        for wish in [&mut self.read, &mut self.write] {
            wish.is_on = false;
            if let Some(watch) = wish.watch.take() {
                poll::unwatch(watch);
            }
        }
    }
}

static SELECTED: Mutex<BTreeMap<RawFd, Selected>> = Mutex::new(BTreeMap::new());

/// Tells a port that its descriptor is ready.
struct Teller {
    port: u64,
}

impl Ready for Teller {
    fn ready(self: Arc<Self>, fd: RawFd, interest: Interest) {
        let wished = {
            let mut all = SELECTED.lock();
            let selected = all
                .get_mut(&fd)
                .filter(|selected| selected.port == self.port);
            selected.is_some_and(|selected| {
                let wish = selected.wish(interest);
                wish.watch = None;
                wish.is_on
            })
        };
        let port = std::ptr::without_provenance_mut(self.port as usize);
        if let Some(this) = of(port).filter(|_| wished) {
            tell(&this, fd, interest);
            watch_wished(&this, fd, interest);
        }
    }
}

/// Calls the driver, if it still wants to be.
fn tell(this: &Arc<Instance>, fd: RawFd, interest: Interest) {
    let _runs = sysprof::port_runs(this.port.id);
    let traced = this.port.traced();
    let is_input = interest == Interest::Read;
    this.call(|_, data| {
        let is_wished = {
            let mut all = SELECTED.lock();
            let selected = all.get_mut(&fd).filter(|it| it.port == this.port.id.0);
            selected.is_some_and(|selected| selected.wish(interest).is_on)
        };
        if !is_wished {
            return;
        }
        let operation = if is_input {
            PortOp::Input
        } else {
            PortOp::Output
        };
        let _works = sysmon::port_works(this.port.id, operation);
        if is_input {
            traced.begin(Term::small(0));
        }
        this.ready(data, fd, interest);
        if is_input {
            traced.end(Term::small(0));
        }
    });
}

/// Watches what is wished for and is not watched.
fn watch_wished(this: &Instance, fd: RawFd, interest: Interest) {
    let mut all = SELECTED.lock();
    let port = this.port.id.0;
    let Some(selected) = all.get_mut(&fd).filter(|selected| selected.port == port) else {
        return;
    };
    let wish = selected.wish(interest);
    if wish.is_on && wish.watch.is_none() {
        wish.watch = Some(poll::watch(fd, interest, Arc::new(Teller { port })));
    }
}

fn interests(mode: c_int) -> impl Iterator<Item = Interest> {
    let all = [(READ, Interest::Read), (WRITE, Interest::Write)];
    all.into_iter()
        .filter(move |(bit, _)| mode & bit != 0)
        .map(|(_, interest)| interest)
}

/// Selects a descriptor for a port.
fn select(this: &Instance, fd: RawFd, mode: c_int) {
    let port = this.port.id.0;
    {
        let mut all = SELECTED.lock();
        let selected = all.entry(fd).or_insert_with(|| Selected {
            port,
            read: Wish::default(),
            write: Wish::default(),
            is_used: false,
        });
        if selected.port != port {
            selected.unwatch_all();
            selected.port = port;
        }
        selected.is_used |= mode & USE != 0;
        for interest in interests(mode) {
            selected.wish(interest).is_on = true;
        }
    }
    interests(mode).for_each(|interest| watch_wished(this, fd, interest));
}

/// Takes wishes back. With `USE` all, and the driver may close the descriptor; not so with `QUIET` besides.
fn deselect(this: &Arc<Instance>, fd: RawFd, mode: c_int) -> c_int {
    let ends = mode & (USE | QUIET) == USE;
    {
        let mut all = SELECTED.lock();
        match all.get_mut(&fd) {
            Some(selected) if selected.port != this.port.id.0 && selected.is_wished() => return -1,
            Some(selected) if ends => {
                selected.unwatch_all();
                all.remove(&fd);
            }
            Some(selected) => {
                selected.is_used &= mode & USE == 0;
                for interest in interests(mode) {
                    let wish = selected.wish(interest);
                    wish.is_on = false;
                    if let Some(watch) = wish.watch.take() {
                        poll::unwatch(watch);
                    }
                }
                if !selected.is_used && !selected.is_wished() {
                    all.remove(&fd);
                }
            }
            None => {}
        }
    }
    if ends && let Some(stop) = this.driver.entry.stop_select {
        let _running = this.driver.native.running();
        // SAFETY: D1: nobody waits for it any more.
        unsafe {
            stop(
                std::ptr::without_provenance_mut(fd as usize),
                std::ptr::null_mut(),
            )
        };
    }
    0
}

impl Instance {
    /// Nothing is waited for any more. The driver may close what it was to be told of.
    pub(super) fn end_selects(self: &Arc<Self>) {
        let port = self.port.id.0;
        let left: Vec<(RawFd, bool)> = {
            let all = SELECTED.lock();
            let of_it = all.iter().filter(|(_, selected)| selected.port == port);
            of_it
                .map(|(fd, selected)| (*fd, selected.is_used))
                .collect()
        };
        for (fd, is_used) in left {
            let quiet = if is_used { 0 } else { QUIET };
            deselect(self, fd, READ | WRITE | USE | quiet);
        }
    }
}

api! {
    /// Has the driver called while a descriptor is ready, or no more: 0; -1 where it is none.
    fn driver_select(port: DrvPort, event: Event, mode: c_int, on: c_int) -> c_int {
        let Some(this) = of(port) else { return -1 };
        let Some(fd) = RawFd::try_from(event.addr()).ok().filter(|fd| *fd >= 0) else { return -1 };
        if on == 0 {
            return deselect(&this, fd, mode);
        }
        if mode & (READ | WRITE) != 0 && !crate::sys::file::is_open(fd) {
            return -1;
        }
        select(&this, fd, mode);
        0
    }
}
