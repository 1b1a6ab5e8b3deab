//! Kinds of races: those of the same places in the code are one, as people look at them.

use std::collections::HashMap;

use super::{Message, Race, Races, Site, Sites};

/// Races of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'r> {
    /// The number of its likeliest race, from 1.
    pub number: usize,
    /// That race.
    pub race: &'r Race,
    /// How many further races are of this kind.
    pub more: usize,
}

/// What races of one kind have in common.
#[derive(PartialEq, Eq, Hash)]
enum Alike<'s> {
    /// The places of the receive, and of the sends of what was taken and of the other message.
    Sites([Option<&'s Site>; 3]),
    /// Where places are not known: the receiver, and the two senders.
    Processes(usize, [Option<usize>; 2]),
}

impl Races {
    /// The kinds of these races, each where its first race stands.
    #[must_use]
    pub fn kinds<'r>(
        &self,
        sites: &Sites,
        races: impl IntoIterator<Item = (usize, &'r Race)>,
    ) -> Vec<Kind<'r>> {
        let mut places = HashMap::new();
        let mut kinds: Vec<Kind<'_>> = Vec::new();
        for (number, race) in races {
            let place = *places.entry(alike(sites, race)).or_insert(kinds.len());
            match kinds.get_mut(place) {
                Some(kind) => kind.more += 1,
                None => kinds.push(Kind {
                    number,
                    race,
                    more: 0,
                }),
            }
        }
        kinds
    }
}

fn alike<'s>(sites: &'s Sites, race: &Race) -> Alike<'s> {
    if !sites.is_empty() {
        return Alike::Sites(sites.of_race(race));
    }
    let senders = [race.taken.and_then(Message::sender), race.other.sender()];
    Alike::Processes(race.process, senders)
}
