//! Messages of an explored run that were sent through an alias. A message that comes when its alias has ended is
//! dropped. So a receive could have taken it first only before its process gave up the alias: a limit that the
//! exploration has to know.

use super::{Kept, kept};
use crate::process::Process;
use crate::process::order::is_explored;
use crate::process::refs::RefNumbers;
use crate::term::Pid;

/// A message that was sent through an alias.
#[derive(Clone, Copy)]
pub(crate) struct ThroughAlias {
    pub(crate) from: Pid,
    /// The number of the sending among those of `from`.
    pub(crate) number: u32,
    pub(crate) to: Pid,
    alias: RefNumbers,
}

/// Notes the sending of this number by `p`, through an alias of `to`.
pub(in crate::process) fn note_send_through(p: &Process, number: u32, to: Pid, alias: RefNumbers) {
    if is_explored() {
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

/// Notes that a process gives up an alias. An alias that ends by itself, with its first message or its monitor, needs
/// no note: what ends it has an order of its own.
pub(crate) fn note_alias_given_up(by: Pid, alias: RefNumbers) {
    if is_explored() {
        kept(|kept| kept.give_up_alias(by, alias));
    }
}

impl Kept {
    fn give_up_alias(&mut self, by: Pid, alias: RefNumbers) {
        let receives = self.receives_of(by);
        self.aliases_given_up.insert(alias, receives);
    }

    /// Messages through aliases that were given up, each with the number of receives that its receiver had made by
    /// then.
    pub(crate) fn through_given_up(&self) -> impl Iterator<Item = (ThroughAlias, u32)> {
        self.through_aliases.iter().filter_map(|sent| {
            let until = self.aliases_given_up.get(&sent.alias)?;
            Some((*sent, *until))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_through_an_alias_are_limited_by_the_receives_before_it_was_given_up() {
        let [from, to] = [Pid(1), Pid(2)];
        let [given_up, active] = [[1, 0, 0], [2, 0, 0]];
        let mut kept = Kept::default();
        let through = |number, alias| ThroughAlias {
            from,
            number,
            to,
            alias,
        };
        kept.through_aliases = vec![
            through(1, given_up),
            through(2, active),
            through(3, given_up),
        ];
        kept.receives.insert(to, 4);
        kept.give_up_alias(to, given_up);
        kept.receives.insert(to, 7);
        let limited: Vec<_> = kept
            .through_given_up()
            .map(|(sent, until)| (sent.number, until))
            .collect();
        assert_eq!(limited, [(1, 4), (3, 4)]);
    }
}
