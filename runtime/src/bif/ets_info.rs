//! `ets:info/1,2`, which give information about a table.

use std::io::Write as _;

use super::{BifResult, Control, Leave, badarg, bifs};
use crate::code;
use crate::ets::registry::Handle;
use crate::ets::{Hash, Objects, State, Table, WriteConcurrency, registry};
use crate::process::Process;
use crate::term::counted::node_name;
use crate::term::{Atom, Term, am};

bifs! {
    all shared;
    bif ets:"info"/1 => info_1;
    bif ets:"info"/2 => info_2;
}

/// What `info/1` shows, in its order.
const ITEMS: [Atom; 15] = [
    am::id,
    am::decentralized_counters,
    am::read_concurrency,
    am::write_concurrency,
    am::compressed,
    am::memory,
    am::owner,
    am::heir,
    am::name,
    am::size,
    am::node,
    am::named_table,
    am::type_,
    am::keypos,
    am::protection,
];

/// A table of which something is shown.
struct Shown<'p, 't> {
    p: &'p Process,
    id: Term<'p>,
    handle: &'t Handle<'p>,
    table: &'t Table,
    state: &'t State,
}

impl<'p> Shown<'p, '_> {
    fn item(&self, item: Atom) -> Option<Term<'p>> {
        let options = &self.table.options;
        Some(match item {
            // One of its own, beside the one it was found by.
            am::id if self.id.as_ref().is_some() => self.p.copy_in(self.id),
            am::id => self.handle.tid(self.p, self.id),
            am::decentralized_counters => Term::bool(options.decentralized_counters),
            am::read_concurrency => Term::bool(options.read_concurrency),
            am::write_concurrency => self.write_concurrency(options.write_concurrency),
            am::compressed => Term::bool(options.compressed),
            am::memory => self
                .p
                .unsigned(self.state.words(&self.table.options) as u64),
            am::owner => self.state.owner.term(),
            am::heir => match &self.state.heir {
                Some(heir) => heir.pid.term(),
                None => am::none.term(),
            },
            am::name => self.state.name.term(),
            am::size => self.p.unsigned(self.state.objects.len() as u64),
            am::node => node_name().term(),
            am::named_table => Term::bool(options.named),
            am::type_ => options.kind.atom().term(),
            am::keypos => Term::small(options.keypos as i64),
            am::protection => self.state.protection.atom().term(),
            am::fixed => Term::bool(self.state.fixes.any()),
            am::safe_fixed_monotonic_time => self.fixed(true),
            am::safe_fixed => self.fixed(false),
            am::stats => self.stats(),
            _ => return None,
        })
    }

    fn write_concurrency(&self, kind: WriteConcurrency) -> Term<'p> {
        match kind {
            WriteConcurrency::No => am::false_.term(),
            WriteConcurrency::Yes => am::true_.term(),
            WriteConcurrency::Auto => am::auto.term(),
            WriteConcurrency::Locks(locks) => {
                let name = am::debug_hash_fixed_number_of_locks.term();
                self.p.tuple(&[name, self.p.unsigned(locks as u64)])
            }
        }
    }

    /// `{Time, [{Pid, Count}]}`, or `false`.
    fn fixed(&self, monotonic: bool) -> Term<'p> {
        let p = self.p;
        if !self.state.fixes.any() {
            return am::false_.term();
        }
        let (by, since) = self.state.fixes.list();
        let list = by.iter().rev().fold(Term::NIL, |rest, (pid, count)| {
            p.cons(p.tuple(&[pid.term(), p.unsigned(*count as u64)]), rest)
        });
        let time = if monotonic {
            p.integer(since)
        } else {
            let micros = (since + crate::sched::clock::time_offset_ns()) / 1000;
            let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
            let parts = [seconds / 1_000_000, seconds % 1_000_000, micros];
            p.tuple(&parts.map(|part| p.integer(part)))
        };
        p.tuple(&[time, list])
    }

    /// Of hash tables: buckets, average, standard deviation and its expectation, shortest and longest
    /// chain, objects kept for traversals, locks. Of trees with fine-grained locks: routes, base nodes,
    /// depth.
    fn stats(&self) -> Term<'p> {
        let p = self.p;
        let hash = match &self.state.objects {
            Objects::Hash(hash) => hash,
            Objects::Tree(_) if self.table.options.write_concurrency == WriteConcurrency::No => {
                return am::false_.term();
            }
            Objects::Tree(tree) => {
                let (routes, bases, depth) = tree.splits();
                return p.tuple(&[routes, bases, depth].map(|n| p.unsigned(n as u64)));
            }
        };
        let stats = Stats::of(hash);
        p.tuple(&[
            p.unsigned(stats.buckets as u64),
            p.float(stats.average.into()),
            p.float(stats.deviation.into()),
            p.float(stats.expected.into()),
            p.unsigned(stats.shortest as u64),
            p.unsigned(stats.longest as u64),
            p.unsigned(hash.kept() as u64),
            p.unsigned(hash.locks() as u64),
        ])
    }

    /// The table as ERTS prints it: what it is, and the objects of a hash table by bucket; of a compressed one their
    /// keys.
    fn text(&self) -> String {
        let shown = |item| match self.item(item) {
            Some(value) => value.display().to_string(),
            None => String::new(),
        };
        let id = match self.table.options.named {
            true => am::name,
            false => am::id,
        };
        let mut text = format!("Table: {}\nName: {}\n", shown(id), shown(am::name));
        match &self.state.objects {
            Objects::Hash(hash) => {
                text += &Stats::of(hash).text();
                match self.state.fixes.any() {
                    true => text += &format!("Fixed: {}\n", hash.kept()),
                    false => text += "Fixed: false\n",
                }
                self.buckets(&mut text);
            }
            Objects::Tree(_) => {
                text += &format!("Ordered set (AVL tree), Elements: {}\n", shown(am::size));
            }
        }
        for (label, item) in [
            ("Objects", am::size),
            ("Words", am::memory),
            ("Type", am::type_),
            ("Protection", am::protection),
            ("Compressed", am::compressed),
            ("Write Concurrency", am::write_concurrency),
            ("Read Concurrency", am::read_concurrency),
        ] {
            text += &format!("{label}: {}\n", shown(item));
        }
        text
    }

    /// A line for each bucket that has objects.
    fn buckets(&self, text: &mut String) {
        let options = &self.table.options;
        for index in 0.. {
            let Ok(objects) = self.state.objects.slot(index) else {
                return;
            };
            let objects: Vec<_> = objects
                .map(|object| self.p.copy_stored(object))
                .filter_map(|object| match options.compressed {
                    true => {
                        let key = object.as_tuple()?.elements().get(options.keypos - 1)?;
                        Some(format!("key={}", key.display()))
                    }
                    false => Some(object.display().to_string()),
                })
                .collect();
            if !objects.is_empty() {
                *text += &format!("{index}: [{}]\n", objects.join(","));
            }
        }
    }
}

/// The lengths of a hash table's chains. ERTS calculates with single-precision numbers.
struct Stats {
    buckets: usize,
    average: f32,
    deviation: f32,
    expected: f32,
    shortest: usize,
    longest: usize,
}

impl Stats {
    fn of(hash: &Hash) -> Stats {
        let chains = hash.chains();
        let buckets = chains.len() as f32;
        let (mut sum, mut squares) = (0, 0);
        for length in &chains {
            sum += length;
            squares += length * length;
        }
        let average = sum as f32 / buckets;
        let variance = (squares as f32 - average * sum as f32) / buckets;
        Stats {
            buckets: chains.len(),
            average,
            deviation: variance.max(0.0).sqrt(),
            expected: (f64::from(average) * (1.0 - 1.0 / f64::from(buckets))).sqrt() as f32,
            shortest: chains.iter().min().copied().unwrap_or(0),
            longest: chains.iter().max().copied().unwrap_or(0),
        }
    }

    fn text(&self) -> String {
        format!(
            "Buckets: {}\nChain Length Avg: {:.6}\nChain Length Max: {}\nChain Length Min: {}\n\
             Chain Length Std Dev: {:.6}\nChain Length Expected Std Dev: {:.6}\n",
            self.buckets, self.average, self.longest, self.shortest, self.deviation, self.expected
        )
    }
}

/// The table `id` names; `None` where it is gone.
fn existing<'p>(p: &Process, id: Term<'p>) -> Result<Option<Handle<'p>>, Leave<'p>> {
    match registry::find(p, id) {
        Ok(handle) => Ok(Some(handle)),
        Err(Leave::Raise(_)) if id.as_atom().is_some() => Ok(None),
        Err(leave) => Err(leave),
    }
}

fn info_1<'p>(p: &'p Process, [id]: [Term<'p>; 1]) -> BifResult<'p> {
    let Some(handle) = existing(p, id)? else {
        return Ok(am::undefined.term());
    };
    let table = handle.table();
    let state = match table.info(p, id) {
        Err(Leave::Raise(_)) => return Ok(am::undefined.term()),
        Err(control) => return Err(control),
        Ok(state) => state,
    };
    let shown = Shown {
        p,
        id,
        handle: &handle,
        table,
        state: &state,
    };
    let mut list = Term::NIL;
    for item in ITEMS.iter().rev() {
        let value = shown.item(*item).ok_or_else(badarg)?;
        list = p.cons(p.tuple(&[item.term(), value]), list);
    }
    Ok(list)
}

fn info_2<'p>(p: &'p Process, [id, item]: [Term<'p>; 2]) -> BifResult<'p> {
    if item == am::binary {
        let export = code::entry::export(am::erts_internal, am::ets_info_binary, 1);
        return Err(Control::Trap(export, vec![id]).into());
    }
    let Some(handle) = existing(p, id)? else {
        return Ok(am::undefined.term());
    };
    let table = handle.table();
    let state = match table.info(p, id) {
        Err(Leave::Raise(_)) => return Ok(am::undefined.term()),
        Err(control) => return Err(control),
        Ok(state) => state,
    };
    let shown = Shown {
        p,
        id,
        handle: &handle,
        table,
        state: &state,
    };
    let item = item.as_atom().ok_or_else(badarg)?;
    if item.name() == "data" {
        let text = shown.text();
        // As in ERTS, a closed standard output is no error of the program's.
        let mut out = std::io::stdout().lock();
        let _written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        return Ok(am::true_.term());
    }
    Ok(shown.item(item).ok_or_else(badarg)?)
}
