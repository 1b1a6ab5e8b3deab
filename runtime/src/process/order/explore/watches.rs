//! Monitors and links of an explored run, and the order of what depends on an end.
//!
//! The outcome of a monitor or a link depends on whether the other process is alive. So its end is modelled as a write to an
//! object of its own, and a monitor or a link as a read of it.

use beamline_orders::Ends;

use super::timers::wait_to_go_off;
use super::traps::whether_trapping;
use super::{Kept, RUN, is_timer, kept, note_unexplored};
use crate::process::order::access::{Access, Part, Shared, Touch};
use crate::process::order::is_explored;
use crate::process::refs::RefNumbers;
use crate::process::registry::whether_named;
use crate::process::{Control, Process, exists};
use crate::term::{Pid, Term, am};

/// A monitor or a link: a process hears of the end of another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) by: Pid,
    pub(crate) whom: Pid,
    /// The monitor, if it is one.
    monitor: Option<RefNumbers>,
    /// How many receives the watcher had made when it gave up a monitor, if no message of the monitor could be left
    /// then.
    pub(crate) until: Option<u32>,
    /// The access with which it has linked to the other one itself.
    pub(crate) links: Option<u64>,
    /// The access with which it gave up a link.
    pub(crate) unlinks: Option<u64>,
    /// The watcher heard nothing of the end of a link: the other process ended normally, and it did not trap exits.
    pub(crate) is_lost: bool,
    /// The access with which it found that the other one was gone, where it monitors it.
    pub(crate) finds_gone: Option<u64>,
    /// The exit signal of the link has come.
    is_heard: bool,
    is_over: bool,
}

impl Watch {
    /// One that a process has asked for, or was born with.
    pub(super) fn new(by: Pid, whom: Pid, monitor: Option<RefNumbers>) -> Watch {
        Watch {
            by,
            whom,
            monitor,
            until: None,
            links: None,
            unlinks: None,
            is_lost: false,
            finds_gone: None,
            is_heard: false,
            is_over: false,
        }
    }

    pub(crate) fn is_link(&self) -> bool {
        self.monitor.is_none()
    }

    fn is_of_link(&self, by: Pid, whom: Pid) -> bool {
        self.is_link() && !self.is_over && (self.by, self.whom) == (by, whom)
    }
}

/// `p` is about to do what depends on whether another process has ended: it links to it, or monitors it.
///
/// # Errors
/// As [`Process::access`].
pub(crate) fn access_end_of(p: &Process, of: Pid) -> Result<(), Control<'static>> {
    match is_explored() && of != p.pid() {
        true => p.access(end_of(of, Access::Read)),
        false => Ok(()),
    }
}

/// `p` asks whether another process is alive. `None` where it has to ask that one: no exploration is on, or it has sent
/// an exit signal that may end it, and the answer comes behind that.
///
/// # Errors
/// As [`access_end_of`].
pub(crate) fn ask_alive(p: &Process, of: Pid) -> Result<Option<bool>, Control<'static>> {
    if !is_explored() || asks_behind_an_exit(p, of) {
        return Ok(None);
    }
    p.access(whether_alive(of, Access::Read))?;
    Ok(Some(exists(of)))
}

/// Whether `p` has sent an exit signal to another process that may end it: an answer about that process comes behind
/// the signal.
pub(super) fn asks_behind_an_exit(p: &Process, of: Pid) -> bool {
    let may_end = kept(|kept| {
        let mut calls = kept.exit_calls.iter();
        calls.any(|call| (call.by, call.to) == (p.pid(), of) && call.ends != Ends::Nobody)
    });
    let may_end = may_end == Some(true);
    if may_end {
        note_unexplored("whether processes are alive that get exit signals");
    }
    may_end
}

pub(super) fn whether_alive(pid: Pid, access: Access) -> Touch<'static> {
    Touch {
        object: RUN.objects.alive.of(pid),
        access,
        shared: Shared::Alive,
        name: None,
        part: Part::All,
    }
}

/// `p` is about to link to another process. This reads whether that one has ended, and writes their link, which the
/// other one could have made already, or could give up.
///
/// # Errors
/// As [`access_end_of`].
pub(crate) fn access_end_of_peer(p: &Process, peer: Term<'_>) -> Result<(), Control<'static>> {
    match other_process(p, peer) {
        Some(pid) => p.access_all(&[end_of(pid, Access::Read), link_of(p.pid(), pid)]),
        None => Ok(()),
    }
}

/// `p` is about to give up a link. If it has one, this also reads whether the other process has ended: then its exit
/// signal has come, or comes too late.
///
/// # Errors
/// As [`access_end_of`].
pub(crate) fn access_link(p: &Process, peer: Term<'_>) -> Result<(), Control<'static>> {
    let Some(whom) = other_process(p, peer) else {
        return Ok(());
    };
    let link = link_of(p.pid(), whom);
    match kept(|kept| kept.link(p.pid(), whom).map(|link| link.is_heard)).flatten() {
        None => p.access(link),
        Some(is_heard) => {
            p.access_all(&[link, end_of(whom, Access::Read)])?;
            note_unlink_of(p, whom);
            if !is_heard {
                // The signal with which the other one has made the link may still be on its way.
                p.relations().linked_by(whom.into());
            }
            Ok(())
        }
    }
}

/// A process gives up a link: the other one hears nothing of its end.
fn note_unlink_of(by: &Process, whom: Pid) {
    let (number, by) = (by.accesses_made(), by.pid());
    kept(|kept| {
        kept.watches.retain(|watch| !watch.is_of_link(whom, by));
        if let Some(link) = kept.link(by, whom) {
            link.is_over = true;
            link.unlinks = Some(number);
        }
    });
}

/// The process in an explored run, if it is another one.
fn other_process(p: &Process, peer: Term<'_>) -> Option<Pid> {
    peer.as_pid().filter(|pid| is_explored() && *pid != p.pid())
}

/// A change of whether two processes are linked.
fn link_of(one: Pid, other: Pid) -> Touch<'static> {
    Touch {
        object: RUN.objects.links.of((one.min(other), one.max(other))),
        access: Access::Write,
        shared: Shared::Link,
        name: None,
        part: Part::All,
    }
}

/// The object that a process reads which monitors a name that nobody has.
pub(in crate::process) fn end_of_nobody() -> Touch<'static> {
    Touch {
        object: &RUN.objects.nobody,
        access: Access::Read,
        shared: Shared::Nobody,
        name: None,
        part: Part::All,
    }
}

/// `p` has ended: the write to its end, before others can see it.
///
/// # Errors
/// As [`Process::access`].
pub(in crate::process) fn access_own_end(p: &Process) -> Result<(), Control<'static>> {
    match is_explored() {
        true if is_timer(p.pid()) => wait_to_go_off(p),
        true => {
            let linked = match p.exit_reason().is_some_and(|reason| reason == am::normal) {
                true => linked_to(p.pid()),
                false => Vec::new(),
            };
            let mut touches = vec![
                end_of(p.pid(), Access::Write),
                whether_alive(p.pid(), Access::Write),
                whether_named(p.pid()),
            ];
            touches.extend(linked.iter().map(|by| whether_trapping(*by, Access::Read)));
            p.access_all(&touches)?;
            note_lost_links(p.pid(), &linked);
            p.shared().refuse_names();
            Ok(())
        }
        false => Ok(()),
    }
}

/// The processes that hear of the end of a process by links.
fn linked_to(whom: Pid) -> Vec<Pid> {
    let linked = kept(|kept| {
        let watches = kept.watches.iter();
        let links = watches.filter(|it| it.is_of_link(it.by, whom));
        links.map(|it| it.by).collect()
    });
    linked.unwrap_or_default()
}

/// A process ends normally: those that are linked to it hear nothing, unless they trap exits.
fn note_lost_links(whom: Pid, linked: &[Pid]) {
    kept(|kept| kept.lose_links(whom, linked));
}

/// An access to what stands for the end of a process. A run has one thread: no lock guards it.
pub(super) fn end_of(pid: Pid, access: Access) -> Touch<'static> {
    Touch {
        object: RUN.objects.ends.of(pid),
        access,
        shared: match is_timer(pid) {
            true => Shared::Timer,
            false => Shared::Process,
        },
        name: None,
        part: Part::All,
    }
}

/// A process monitors another one, which may be gone.
pub(crate) fn note_monitor(by: &Process, whom: Pid, reference: RefNumbers) {
    if is_explored() {
        note_watch(Watch {
            finds_gone: (!exists(whom)).then(|| by.accesses_made()),
            ..Watch::new(by.pid(), whom, Some(reference))
        });
    }
}

/// A process begins linked to whoever made it, or monitored by that one.
pub(crate) fn record_watched_birth(
    by: Pid,
    child: Pid,
    is_linked: bool,
    monitor: Option<RefNumbers>,
) {
    if !is_explored() {
        return;
    }
    if is_linked {
        note_watch(Watch::new(by, child, None));
        note_watch(Watch::new(child, by, None));
    }
    if monitor.is_some() {
        note_watch(Watch::new(by, child, monitor));
    }
}

impl Kept {
    /// The link that tells a process of another one, if there is one.
    fn link(&mut self, by: Pid, whom: Pid) -> Option<&mut Watch> {
        let mut watches = self.watches.iter_mut();
        watches.find(|watch| watch.is_of_link(by, whom))
    }

    /// `by` links to `whom` with this access: each hears of the end of the other. A second link changes nothing.
    fn add_link(&mut self, by: Pid, whom: Pid, access: u64) {
        if self.link(by, whom).is_none() {
            self.watches.push(Watch {
                links: Some(access),
                ..Watch::new(by, whom, None)
            });
            self.watches.push(Watch::new(whom, by, None));
        }
    }

    fn lose_links(&mut self, whom: Pid, linked: &[Pid]) {
        let linked = linked.iter().copied();
        let lost: Vec<Pid> = linked.filter(|by| !self.is_trapping(*by)).collect();
        for watch in &mut self.watches {
            watch.is_lost |= watch.is_of_link(watch.by, whom) && lost.contains(&watch.by);
        }
    }

    /// Ends the first watch of which `is_it` is true. With `keeps`, what it has told before stays in the queue, so that no
    /// receive is a limit.
    fn give_up(&mut self, keeps: bool, is_it: impl Fn(&Watch) -> bool) {
        let mut watches = self.watches.iter();
        let Some(at) = watches.position(|watch| !watch.is_over && is_it(watch)) else {
            return;
        };
        let receives = self.receives_of(self.watches[at].by);
        let watch = &mut self.watches[at];
        watch.is_over = true;
        watch.until = (!keeps).then_some(receives);
    }
}

/// A process links to another one: each hears of the end of the other, also where that one has linked to it before.
pub(crate) fn note_link(p: &Process, other: Pid) {
    if !is_explored() || !exists(other) {
        return;
    }
    kept(|kept| kept.add_link(p.pid(), other, p.accesses_made()));
}

/// The exit signal of a link has come.
pub(in crate::process) fn note_link_news(by: &Process, whom: Option<Pid>) {
    if let Some(whom) = whom.filter(|_| is_explored()) {
        kept(|kept| {
            if let Some(link) = kept.link(by.pid(), whom) {
                link.is_heard = true;
            }
        });
    }
}

pub(super) fn note_watch(watch: Watch) {
    kept(|kept| kept.watches.push(watch));
}

/// A process gives up a monitor. With `keeps`, the message of an end that came before stays in its queue.
pub(crate) fn note_monitor_given_up(by: Pid, reference: RefNumbers, keeps: bool) {
    note_given_up(keeps, |watch| {
        watch.by == by && watch.monitor == Some(reference)
    });
}

/// `p` has given up a monitor that had ended before, and keeps what that has told: it could also have come too late.
pub(crate) fn note_word_kept(p: &Process, reference: Term<'_>) {
    if !is_explored() {
        return;
    }
    let numbers = |term: Term<'_>| term.as_ref().map(|it| it.numbers());
    let is_of_it = |message: Term<'_>| {
        let of = message
            .as_tuple()
            .and_then(|it| it.elements().get(1).copied());
        of.is_some_and(|of| numbers(of).is_some() && numbers(of) == numbers(reference))
    };
    if p.mailbox.messages().any(|it| is_of_it(it.term())) {
        note_unexplored("what monitors have told that are given up without the option flush");
    }
}

fn note_given_up(keeps: bool, is_it: impl Fn(&Watch) -> bool) {
    if is_explored() {
        kept(|kept| kept.give_up(keeps, is_it));
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrapsChange;
    use super::*;

    const ME: Pid = Pid(1);
    const OTHER: Pid = Pid(2);

    #[test]
    fn a_link_is_two_watches_and_is_made_once() {
        let mut kept = Kept::default();
        kept.add_link(ME, OTHER, 5);
        kept.add_link(ME, OTHER, 6);
        kept.add_link(OTHER, ME, 7);
        let links: Vec<_> = kept
            .watches
            .iter()
            .map(|it| (it.by, it.whom, it.links))
            .collect();
        assert_eq!(links, [(ME, OTHER, Some(5)), (OTHER, ME, None)]);
        // One that is given up is another link from then on.
        kept.give_up(false, |watch| watch.is_of_link(ME, OTHER));
        kept.add_link(ME, OTHER, 8);
        assert_eq!(kept.watches.len(), 4);
    }

    #[test]
    fn who_traps_exits_hears_of_a_normal_end() {
        for (traps, is_lost) in [(false, true), (true, false)] {
            let mut kept = Kept::default();
            let change = |traps| TrapsChange {
                by: ME,
                access: 1,
                traps,
            };
            // The last change counts.
            kept.traps = vec![change(!traps), change(traps)];
            kept.add_link(ME, OTHER, 1);
            kept.lose_links(OTHER, &[ME]);
            let lost: Vec<_> = kept.watches.iter().map(|it| it.is_lost).collect();
            assert_eq!(lost, [is_lost, false], "traps: {traps}");
        }
    }

    #[test]
    fn a_monitor_that_is_given_up_has_a_last_receive_unless_what_it_told_stays() {
        for (keeps, until) in [(false, Some(3)), (true, None)] {
            let mut kept = Kept::default();
            let monitor = [9, 0, 0];
            kept.watches = vec![Watch::new(ME, OTHER, Some(monitor))];
            kept.receives.insert(ME, 3);
            kept.give_up(keeps, |watch| watch.monitor == Some(monitor));
            kept.receives.insert(ME, 8);
            // It is over, and a second call finds nothing.
            kept.give_up(!keeps, |watch| watch.monitor == Some(monitor));
            assert_eq!(kept.watches[0].until, until, "keeps: {keeps}");
        }
    }
}
