//! The BIFs of `ets` that make and delete tables, and that read or change one object or key at a time.

use super::{BifResult, Leave, Raise, badarg, bifs};
use crate::ets::{
    Found, HashKind, Heir, Kind, Objects, Protection, Table, TableOptions, WriteConcurrency, error,
    registry,
};
use crate::heap::{Message, Stored};
use crate::process::order::answer;
use crate::process::order::answer::Native;
use crate::process::order::director::may_timing_show;
use crate::process::{self, Control, Due, PauseWords, Process, Signal, refs, work};
use crate::sched;
use crate::term::{Atom, Term, Tuple, View, am};

bifs! {
    all shared;
    bif ets:"new"/2 => new_2;
    bif ets:"whereis"/1 => whereis_1;
    bif ets:"rename"/2 => rename_2;
    bif ets:"delete"/1 => delete_1;
    bif ets:"give_away"/3 => give_away_3;
    bif ets:"setopts"/2 => setopts_2;
    bif ets:"safe_fixtable"/2 => safe_fixtable_2;
    bif ets:"internal_request_all"/0 => internal_request_all_0;
    bif erts_internal:"ets_super_user"/1 => ets_super_user_1;
    bif ets:"lookup"/2 => lookup_2;
    bif ets:"lookup_element"/3 => lookup_element_3;
    bif ets:"lookup_element"/4 => lookup_element_4;
    bif ets:"member"/2 => member_2;
    bif ets:"delete"/2 => delete_2;
    bif ets:"delete_object"/2 => delete_object_2;
    bif ets:"internal_delete_all"/2 => internal_delete_all_2;
    bif ets:"take"/2 => take_2;
    bif ets:"first"/1 => first_1;
    bif ets:"last"/1 => last_1;
    bif ets:"next"/2 => next_2;
    bif ets:"prev"/2 => prev_2;
    bif ets:"first_lookup"/1 => first_lookup_1;
    bif ets:"last_lookup"/1 => last_lookup_1;
    bif ets:"next_lookup"/2 => next_lookup_2;
    bif ets:"prev_lookup"/2 => prev_lookup_2;
    bif ets:"slot"/2 => slot_2;
    bif erts_internal:"ets_raw_first"/1 => ets_raw_first_1;
    bif erts_internal:"ets_raw_next"/2 => ets_raw_next_2;
    bif erts_internal:"ets_lookup_binary_info"/2 => ets_lookup_binary_info_2;
}

/// The options of `ets:new/2`.
struct Wanted {
    options: TableOptions,
    protection: Protection,
    heir: Option<Heir>,
    decentralized: Option<bool>,
}

/// A hash table with fine-grained locks has no fewer.
const MIN_LOCKS: usize = 64;

fn write_concurrency(wanted: &mut TableOptions, value: Term<'_>) -> Option<()> {
    let ordered = wanted.kind == Kind::OrderedSet;
    match value.view() {
        View::Atom(am::auto) => {
            wanted.write_concurrency = WriteConcurrency::Auto;
            wanted.decentralized_counters = true;
        }
        View::Atom(am::true_) => {
            wanted.write_concurrency = WriteConcurrency::Yes;
            wanted.decentralized_counters &= ordered;
        }
        View::Atom(am::false_) => wanted.write_concurrency = WriteConcurrency::No,
        View::Tuple(tuple) => {
            let [name, locks] = tuple.elements() else {
                return None;
            };
            let locks = locks.as_index()?;
            if !(*name == am::debug_hash_fixed_number_of_locks) || !(1..=32768).contains(&locks) {
                return None;
            }
            let locks = (1 << locks.ilog2()).max(MIN_LOCKS);
            wanted.write_concurrency = WriteConcurrency::Locks(locks);
            wanted.decentralized_counters = true;
        }
        _ => return None,
    }
    Some(())
}

fn pair_option(wanted: &mut Wanted, name: Term<'_>, value: Term<'_>) -> Option<()> {
    let options = &mut wanted.options;
    match name.as_atom()? {
        am::keypos => options.keypos = value.as_index().filter(|keypos| *keypos > 0)?,
        am::write_concurrency => write_concurrency(options, value)?,
        am::read_concurrency => options.read_concurrency = value.as_bool()?,
        am::decentralized_counters => wanted.decentralized = Some(value.as_bool()?),
        am::heir if value == am::none => wanted.heir = None,
        am::heir => {
            wanted.heir = Heir::living(value.as_pid()?, None);
        }
        _ => return None,
    }
    Some(())
}

fn option(wanted: &mut Wanted, option: Term<'_>) -> Option<()> {
    let options = &mut wanted.options;
    if let Some(tuple) = option.as_tuple() {
        return match tuple.elements() {
            [name, value] => pair_option(wanted, *name, *value),
            [name, pid, data] if *name == am::heir => {
                wanted.heir = Heir::living(pid.as_pid()?, Some(Message::copy_of(*data)));
                Some(())
            }
            _ => None,
        };
    }
    match option.as_atom()? {
        am::set | am::protected => {}
        am::bag => options.kind = Kind::Hash(HashKind::Bag),
        am::duplicate_bag => options.kind = Kind::Hash(HashKind::DuplicateBag),
        am::ordered_set => {
            options.kind = Kind::OrderedSet;
            options.decentralized_counters = true;
        }
        am::public => wanted.protection = Protection::Public,
        am::private => wanted.protection = Protection::Private,
        am::named_table => options.named = true,
        am::compressed => options.compressed = true,
        _ => return None,
    }
    Some(())
}

impl Wanted {
    fn parse(list: Term<'_>) -> Option<Wanted> {
        let mut wanted = Wanted {
            options: TableOptions::of(Kind::Hash(HashKind::Set)),
            protection: Protection::Protected,
            heir: None,
            decentralized: None,
        };
        for element in list.list_iter() {
            option(&mut wanted, element.ok()?)?;
        }
        wanted.settle()?;
        Some(wanted)
    }

    /// What the options mean together.
    fn settle(&mut self) -> Option<()> {
        let options = &mut self.options;
        if let Some(decentralized) = self.decentralized {
            options.decentralized_counters = decentralized;
        }
        let locks = matches!(options.write_concurrency, WriteConcurrency::Locks(_));
        if locks && options.kind == Kind::OrderedSet {
            return None;
        }
        if self.protection == Protection::Private {
            options.write_concurrency = WriteConcurrency::No;
            options.read_concurrency = false;
        }
        // Only tables with several locks have counters to spread.
        options.decentralized_counters &= options.write_concurrency != WriteConcurrency::No;
        Some(())
    }
}

fn new_2<'p>(p: &'p Process, [name, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let atom = name.as_atom().ok_or_else(badarg)?;
    let wanted = Wanted::parse(options).ok_or_else(badarg)?;
    let Wanted {
        options,
        protection,
        heir,
        ..
    } = wanted;
    let table = Table::new(atom, p.pid(), heir, protection, options);
    match registry::add(p, table)? {
        None => Err(error(am::already_exists).into()),
        Some(_) if options.named => Ok(name),
        Some(reference) => Ok(p.magic_reference(reference)),
    }
}

fn whereis_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    name.as_atom().ok_or_else(badarg)?;
    let found = registry::find(p, name).and_then(|handle| {
        drop(handle.table().info(p, name)?);
        Ok(handle)
    });
    match found {
        Ok(handle) => Ok(handle.tid(p, name)),
        Err(Leave::Raise(_)) => Ok(am::undefined.term()),
        Err(control) => Err(control),
    }
}

fn rename_2<'p>(p: &'p Process, [id, name]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let table = handle.table();
    let new = name.as_atom();
    let wanted = new.filter(|_| table.options.named);
    let (mut state, names) = table.to_rename(p, id, wanted)?;
    let new = new.ok_or_else(badarg)?;
    if !registry::rename(table, &mut state, names, new) {
        return Err(badarg().into());
    }
    Ok(if table.options.named { name } else { id })
}

fn delete_1<'p>(p: &'p Process, [id]: [Term<'p>; 1]) -> BifResult<'p> {
    if let Some(garbage) = p.take_work::<Garbage>() {
        return free(p, *garbage);
    }
    let handle = registry::find(p, id)?;
    let (mut state, names) = handle.table().to_delete(p, id)?;
    let objects = registry::delete(handle.table(), &mut state, names);
    drop(state);
    let shown_as = Some((am::delete_trap, 1));
    let result = am::true_.term();
    free(
        p,
        Garbage {
            objects,
            result,
            shown_as,
            pause_words: 2,
        },
    )
}

/// Objects that no table has any more, on their way to be freed, and what the BIF returns then.
struct Garbage<'p> {
    objects: Objects,
    result: Term<'p>,
    shown_as: Option<(Atom, u8)>,
    /// Words of what ERTS keeps of it when it pauses.
    pause_words: usize,
}

work! { struct Garbage { result; objects, shown_as, pause_words } shown as |it| it.shown_as }

/// Frees objects, as many as fit into the time slice, then the others in the next ones.
fn free<'p>(p: &'p Process, mut garbage: Garbage<'p>) -> BifResult<'p> {
    let reds = p.fcalls.get();
    let left = garbage.objects.free_some(reds);
    if left < 0 {
        p.trap_words(std::mem::take(&mut garbage.pause_words));
        return Err(p.yield_with(garbage).into());
    }
    p.bump_reds(reds - left);
    Ok(garbage.result)
}

fn give_away_3<'p>(p: &'p Process, [id, to, data]: [Term<'p>; 3]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let (mut state, owned) = handle.table().to_give(p, id)?;
    let to = to.as_pid().ok_or_else(badarg)?;
    if may_timing_show() && !process::exists(to) {
        return Err(badarg().into());
    }
    if state.owner != p.pid() {
        return Err(error(am::not_owner).into());
    }
    if to == p.pid() {
        return Err(error(am::owner).into());
    }
    let reference = registry::give_away(p, handle.table(), &mut state, owned, to);
    let reference = reference.ok_or_else(badarg)?;
    drop(state);
    registry::send_transfer(p, to, &reference, data);
    Ok(am::true_.term())
}

/// The options of `setopts/2`, each given at most once.
fn new_options(options: Term<'_>) -> Option<(Option<Option<Heir>>, Option<Protection>)> {
    let (mut heir, mut protection) = (None, None);
    let single = options.as_tuple().map(|_| Ok(options));
    let list = options
        .list_iter()
        .take(if single.is_some() { 0 } else { usize::MAX });
    for option in single.into_iter().chain(list) {
        match option.ok()?.as_tuple()?.elements() {
            [name, value, data @ ..] if *name == am::heir && data.len() < 2 && heir.is_none() => {
                heir = Some(if *value == am::none && data.is_empty() {
                    None
                } else {
                    Heir::living(
                        value.as_pid()?,
                        data.first().map(|data| Message::copy_of(*data)),
                    )
                });
            }
            [name, value] if *name == am::protection && protection.is_none() => {
                protection = Some(match value.as_atom()? {
                    am::private => Protection::Private,
                    am::protected => Protection::Protected,
                    am::public => Protection::Public,
                    _ => return None,
                });
            }
            _ => return None,
        }
    }
    Some((heir, protection))
}

fn setopts_2<'p>(p: &'p Process, [id, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let mut state = handle.table().write(p, id)?;
    let (heir, protection) = new_options(options).ok_or_else(badarg)?;
    if state.owner != p.pid() {
        return Err(badarg().into());
    }
    if let Some(heir) = heir {
        state.heir = heir;
    }
    state.protection = protection.unwrap_or(state.protection);
    Ok(am::true_.term())
}

fn safe_fixtable_2<'p>(p: &'p Process, [id, fix]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let table = handle.table();
    let mut state = table.read_exclusive(p, id)?;
    let pid = p.pid();
    match fix.as_bool().ok_or_else(badarg)? {
        true => {
            let now = crate::sched::clock::erlang_monotonic_ns();
            if state.fix(pid, now) {
                registry::note_fix(pid, table);
            }
        }
        false => {
            if state.unfix(pid) {
                registry::note_unfix(pid, table);
            }
        }
    }
    Ok(am::true_.term())
}

/// `ets:all/0` waits for as many answers as there are schedulers; the first one has all tables.
fn internal_request_all_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    // A replay comes here before another process has made a table that it had made by then.
    if p.would_be_given(&ALL, have_been_made) == Some(false) {
        return Err(Control::Yield.into());
    }
    let reference = p.reference(refs::make_ref());
    let all: BifResult<'p> = answer::replay_or_call(p, &ALL, || {
        let tables: Vec<_> = registry::all();
        let tables: Vec<_> = tables
            .iter()
            .map(|table| registry::term_of(p, table))
            .collect();
        let schedulers = p.unsigned(sched::schedulers() as u64);
        Ok(p.tuple(&[schedulers, p.list(&tables)]))
    });
    let all = all?.as_tuple().map_or(&[][..], Tuple::elements);
    let &[schedulers, mut tables] = all else {
        return Err(badarg().into());
    };
    for _ in 0..schedulers.as_u64().unwrap_or(0) {
        let message = p.tuple(&[reference, tables]);
        process::deliver(p.pid(), Signal::message(message, p.pid()));
        tables = Term::NIL;
    }
    Ok(reference)
}

/// Whether all tables without names of an answer of [`ALL`] have been made.
fn have_been_made(all: Term<'_>) -> bool {
    let tables = all
        .as_tuple()
        .and_then(|all| all.elements().last().copied());
    let mut tables = tables.into_iter().flat_map(Term::list_iter).flatten();
    tables.all(|table| {
        table
            .as_ref()
            .is_none_or(|table| registry::was_made(table.numbers()))
    })
}

/// All tables, in as many messages as there are schedulers: both are chance.
static ALL: Native = Native::new("ets", "all", 0);

fn ets_super_user_1<'p>(p: &'p Process, [yes]: [Term<'p>; 1]) -> BifResult<'p> {
    registry::set_super_user(p.pid(), yes.as_bool().ok_or_else(badarg)?);
    Ok(am::ok.term())
}

/// The tuple `object`, if it is long enough for a key at `keypos`.
pub(super) fn object<'p>(
    object: Term<'p>,
    keypos: usize,
) -> Result<crate::term::Tuple<'p>, Raise<'static>> {
    object
        .as_tuple()
        .filter(|tuple| tuple.arity() >= keypos)
        .ok_or_else(badarg)
}

/// The list of copies of `objects`, the first one last: those of a key come the newest first.
fn copies<'p>(p: &'p Process, objects: Found<'_>) -> Term<'p> {
    objects.fold(Term::NIL, |rest, object| {
        p.cons(p.copy_stored(object), rest)
    })
}

fn lookup_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let state = handle.table().read_key(p, id, key)?;
    Ok(copies(p, state.objects.get(key)))
}

/// The elements at `position` of the objects with `key`; `None` where there is no object.
fn element<'p>(
    p: &'p Process,
    id: Term<'p>,
    key: Term<'p>,
    position: Term<'p>,
) -> Result<Option<Term<'p>>, Leave<'p>> {
    let handle = registry::find(p, id)?;
    let state = handle.table().read_key(p, id, key)?;
    let index = position
        .as_index()
        .and_then(|position| position.checked_sub(1));
    let index = index.ok_or_else(badarg)?;
    let objects = state.objects.get(key);
    if objects
        .clone()
        .any(|object| index >= object.elements().len())
    {
        return Err(badarg().into());
    }
    let mut elements = objects.map(|object| p.copy_in(object.elements()[index]));
    if handle.table().options.kind.is_set() {
        return Ok(elements.next());
    }
    let list = elements.fold(Term::NIL, |rest, element| p.cons(element, rest));
    Ok(Some(list).filter(|list| !list.is_nil()))
}

fn lookup_element_3<'p>(p: &'p Process, [id, key, position]: [Term<'p>; 3]) -> BifResult<'p> {
    element(p, id, key, position)?.ok_or_else(|| error(am::badkey).into())
}

fn lookup_element_4<'p>(
    p: &'p Process,
    [id, key, position, default]: [Term<'p>; 4],
) -> BifResult<'p> {
    Ok(element(p, id, key, position)?.unwrap_or(default))
}

fn member_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let state = handle.table().read_key(p, id, key)?;
    Ok(Term::bool(state.objects.has(key)))
}

fn delete_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let mut state = handle.table().write_key(p, id, Some(key))?;
    state.objects.remove(key);
    Ok(am::true_.term())
}

fn delete_object_2<'p>(p: &'p Process, [id, old]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let keypos = handle.table().options.keypos;
    let key = |old| object(old, keypos).map(|old| old.get(keypos - 1));
    let mut state = handle.table().write_key(p, id, key(old).ok())?;
    let key = key(old)?;
    state.objects.remove_object(old, key);
    Ok(am::true_.term())
}

/// Slots whose objects are marked as deleted for a reduction.
const MARKS_PER_RED: usize = 8;

fn internal_delete_all_2<'p>(p: &'p Process, [id, _]: [Term<'p>; 2]) -> BifResult<'p> {
    if let Some(result) = p.pay_on(PauseWords::Each(0)) {
        return result;
    }
    if let Some(garbage) = p.take_work::<Garbage>() {
        return free(p, *garbage);
    }
    let handle = registry::find(p, id)?;
    let mut state = handle.table().write(p, id)?;
    let count = p.unsigned(state.objects.len() as u64);
    let options = &handle.table().options;
    if state.fixes.any() && options.kind != Kind::OrderedSet {
        let slots = match &state.objects {
            Objects::Hash(hash) => hash.slot_count(),
            Objects::Tree(_) => 0,
        };
        state.objects.clear();
        drop(state);
        let marks = Due::new(slots, MARKS_PER_RED * process::CONTEXT_REDS as usize);
        return p.pay(count, &[marks], PauseWords::Each(0));
    }
    let objects = state.objects.take(options);
    drop(state);
    let garbage = Garbage {
        objects,
        result: count,
        shown_as: None,
        pause_words: 0,
    };
    free(p, garbage)
}

fn take_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let mut state = handle.table().write_key(p, id, Some(key))?;
    let objects = copies(p, state.objects.get(key));
    state.objects.remove(key);
    Ok(objects)
}

/// The key of `objects`, with the objects where they are wanted.
fn step<'p>(
    p: &'p Process,
    id: Term<'p>,
    lookup: bool,
    objects: impl FnOnce(&Objects) -> Option<Found<'_>>,
) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let state = handle.table().read(p, id)?;
    let objects = objects(&state.objects).ok_or_else(badarg)?;
    let Some(object) = objects.clone().next() else {
        return Ok(am::end_of_table.term());
    };
    let key = p.copy_in(object.elements()[handle.table().options.keypos - 1]);
    if !lookup {
        return Ok(key);
    }
    Ok(p.tuple(&[key, copies(p, objects)]))
}

fn first_1<'p>(p: &'p Process, [id]: [Term<'p>; 1]) -> BifResult<'p> {
    step(p, id, false, |objects| Some(objects.first()))
}

fn last_1<'p>(p: &'p Process, [id]: [Term<'p>; 1]) -> BifResult<'p> {
    step(p, id, false, |objects| Some(objects.last()))
}

fn next_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    step(p, id, false, |objects| objects.next(key, false))
}

fn prev_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    step(p, id, false, |objects| objects.next(key, true))
}

fn first_lookup_1<'p>(p: &'p Process, [id]: [Term<'p>; 1]) -> BifResult<'p> {
    step(p, id, true, |objects| Some(objects.first()))
}

fn last_lookup_1<'p>(p: &'p Process, [id]: [Term<'p>; 1]) -> BifResult<'p> {
    step(p, id, true, |objects| Some(objects.last()))
}

fn next_lookup_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    step(p, id, true, |objects| objects.next(key, false))
}

fn prev_lookup_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    step(p, id, true, |objects| objects.next(key, true))
}

/// As `first/1`, but nobody is refused, and what is left of deleted objects counts.
fn ets_raw_first_1<'p>(p: &'p Process, [id]: [Term<'p>; 1]) -> BifResult<'p> {
    raw_step(p, id, |objects| Some(objects.raw_first()))
}

fn ets_raw_next_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    raw_step(p, id, |objects| objects.raw_next(key))
}

fn raw_step<'p>(
    p: &'p Process,
    id: Term<'p>,
    object: impl FnOnce(&Objects) -> Option<Option<&Stored>>,
) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let state = handle.table().info(p, id)?;
    Ok(match object(&state.objects).ok_or_else(badarg)? {
        Some(object) => p.copy_in(object.elements()[handle.table().options.keypos - 1]),
        None => am::end_of_table.term(),
    })
}

fn slot_2<'p>(p: &'p Process, [id, index]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let state = handle.table().read(p, id)?;
    let index = index.as_index().ok_or_else(badarg)?;
    // Where objects are not counted, no last place of an empty tree is known. Source: `slot_search()` in `erl_db_tree.c`.
    let is_uncounted_tree = matches!(state.objects, Objects::Tree(_))
        && state.objects.len() == 0
        && handle.table().options.decentralized_counters;
    match state.objects.slot(index) {
        Err(_) if is_uncounted_tree => Err(badarg().into()),
        Ok(objects) => Ok(copies(p, objects)),
        Err(true) => Ok(am::end_of_table.term()),
        Err(false) => Err(badarg().into()),
    }
}

/// The binaries that the objects with `key` refer to: `[{Address, Bytes, Holders}]`.
fn ets_lookup_binary_info_2<'p>(p: &'p Process, [id, key]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let state = handle.table().info(p, id)?;
    let mut list = Term::NIL;
    for object in state.objects.raw_get(key) {
        for of in object.binaries() {
            let numbers = [of.address, of.bytes, of.holders].map(|n| p.unsigned(n as u64));
            list = p.cons(p.tuple(&numbers), list);
        }
    }
    Ok(list)
}
