//! Messages of an explored run that were sent through an alias. Where they come behind that one's end they are dropped: a receive
//! could have taken one of them only before its process gave up the alias.

use super::{Kept, is_on, kept};
use crate::process::Process;
use crate::process::refs::RefNumbers;
use crate::term::Pid;

/// A message that was sent through an alias.
#[derive(Clone, Copy)]
pub(crate) struct ThroughAlias {
    pub(crate) from: Pid,
    /// Which of the sendings of that process.
    pub(crate) number: u32,
    pub(crate) to: Pid,
    alias: RefNumbers,
}

/// `p` sends through an alias of a process: its sending of this number.
pub(in crate::process) fn sends_through(p: &Process, number: u32, to: Pid, alias: RefNumbers) {
    if is_on() {
        let from = p.pid();
        kept(|kept| {
            kept.through_aliases.push(ThroughAlias {
                from,
                number,
                to,
                alias,
            });
        });
    }
}

/// A process gives up an alias. One that has ended by itself, with the first message or the end that it was for, is none that
/// was given up.
pub(crate) fn gives_up_alias(by: Pid, alias: RefNumbers) {
    if is_on() {
        kept(|kept| {
            let receives = kept.receives.get(&by).copied().unwrap_or(0);
            kept.aliases_given_up.insert(alias, receives);
        });
    }
}

impl Kept {
    /// The messages through aliases that were given up, each with how many receives its receiver had made by then.
    pub(crate) fn through_given_up(&self) -> impl Iterator<Item = (ThroughAlias, u32)> {
        self.through_aliases.iter().filter_map(|sent| {
            let until = self.aliases_given_up.get(&sent.alias)?;
            Some((*sent, *until))
        })
    }
}
