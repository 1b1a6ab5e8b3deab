//! Messages of an explored run that come through an alias which was given up. They are dropped; a receive could have taken one of
//! them only before its process gave up the alias.

use super::super::Process;
use super::super::refs::RefNumbers;
use super::{is_on, kept};
use crate::term::Pid;

/// A message that was dropped.
pub(crate) struct Dropped {
    pub(crate) from: Pid,
    /// Which of the sendings of that process.
    pub(crate) number: u32,
    pub(crate) to: Pid,
    /// How many receives its receiver had made when it gave up the alias.
    pub(crate) until: u32,
}

/// A process gives up an alias.
pub(crate) fn gives_up_alias(by: Pid, alias: RefNumbers) {
    if is_on() {
        kept(|kept| {
            let receives = kept.receives.get(&by).copied().unwrap_or(0);
            kept.given_up.insert(alias, receives);
        });
    }
}

/// This sending of a process has come to `p` through an alias that is not active. One that has ended by itself, with the first message or
/// the end that it was for, is none that was given up.
pub(in crate::process) fn drops(p: &Process, alias: RefNumbers, from: Pid, number: u32) {
    if is_on() {
        kept(|kept| {
            let until = kept.given_up.get(&alias).copied();
            kept.dropped.extend(until.map(|until| Dropped {
                from,
                number,
                to: p.pid(),
                until,
            }));
        });
    }
}
