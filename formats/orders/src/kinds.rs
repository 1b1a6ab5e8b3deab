//! Kinds of races: those of the same places in the code are one, as people look at them.

use std::mem::{Discriminant, discriminant};

use rustc_hash::FxHashMap;

use super::{Act, Common, Message, Pair, ProcessIndex, Race, Races, Site, Sites};

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
    Receives([Option<&'s Site>; 3]),
    /// The places of accesses, and the object.
    Accesses([Option<&'s Site>; 3], u64),
    /// Where places are not known: the receiver, and the two senders.
    Processes(ProcessIndex, [Option<ProcessIndex>; 2]),
    /// The processes of accesses.
    Accessors([ProcessIndex; 2]),
    /// The places of what came before an exit signal and of the signal, and what it was.
    Ends([Option<&'s Site>; 3], Discriminant<Act>),
}

impl Races {
    /// The kinds of these races, each where its first race stands.
    #[must_use]
    pub fn kinds<'r>(
        &self,
        sites: &Sites,
        races: impl IntoIterator<Item = (usize, &'r Race)>,
    ) -> Vec<Kind<'r>> {
        let mut places = FxHashMap::default();
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
    let places = || sites.of_race(race);
    match &race.pair {
        Pair::Messages(_) if !sites.is_empty() => Alike::Receives(places()),
        Pair::Messages(both) => {
            let senders = [both.taken.and_then(Message::sender), both.other.sender()];
            Alike::Processes(race.process, senders)
        }
        Pair::Accesses(both) => match both.common {
            Some(Common { object, .. }) => Alike::Accesses(places(), object),
            None => Alike::Accessors([both.first.of, both.second.of]),
        },
        Pair::End(end) => Alike::Ends(places(), discriminant(&end.before)),
    }
}
