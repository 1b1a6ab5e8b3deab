//! Parses the option lists of `spawn_opt`, `spawn_request`, `monitor/3` and `link/2`, and `max_heap_size`. Source:
//! `erts_parse_spawn_opts()`, `erts_monitor_opts()`, `erts_max_heap_size()`, OTP 29.

use super::{AliasEnd, MaxHeap, SpawnOptions};
use crate::sched::run_queue::Priority;
use crate::term::{Atom, Term, View, am};

/// Options of a monitor.
#[derive(Clone, Copy, Default)]
pub(crate) struct MonitorOptions<'h> {
    pub(crate) alias: Option<AliasEnd>,
    pub(crate) priority: bool,
    pub(crate) tag: Option<Term<'h>>,
}

/// Why an option list is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadOptions {
    /// No proper list.
    NoList,
    /// Unknown option, or bad value.
    Option,
}

/// The elements of a proper list.
fn elements<'h>(list: Term<'h>) -> impl Iterator<Item = Result<Term<'h>, BadOptions>> {
    let elements = list.list_iter();
    elements.map(|element| element.map_err(|_| BadOptions::NoList))
}

fn pair<'h>(option: Term<'h>) -> Option<(Atom, Term<'h>)> {
    match option.as_tuple()?.elements() {
        [key, value] => Some((key.as_atom()?, *value)),
        _ => None,
    }
}

/// Options of `monitor/3`.
pub(crate) fn monitor_options(list: Term<'_>) -> Result<MonitorOptions<'_>, BadOptions> {
    let mut options = MonitorOptions::default();
    for option in elements(list) {
        let option = option?;
        if option == am::priority {
            options.priority = true;
            continue;
        }
        match pair(option).ok_or(BadOptions::Option)? {
            (am::alias, end) => {
                options.alias = Some(match end.as_atom() {
                    Some(am::explicit_unalias) => AliasEnd::Explicit,
                    Some(am::demonitor) => AliasEnd::Demonitor,
                    Some(am::reply_demonitor) => AliasEnd::Reply,
                    _ => return Err(BadOptions::Option),
                });
            }
            (am::tag, tag) => options.tag = Some(tag),
            _ => return Err(BadOptions::Option),
        }
    }
    Ok(options)
}

/// Options of `link/2`, `exit/3` and `exit_signal/3`: is `priority` among them?
pub(crate) fn priority_option(list: Term<'_>) -> Result<bool, BadOptions> {
    let mut priority = false;
    for option in elements(list) {
        if option? != am::priority {
            return Err(BadOptions::Option);
        }
        priority = true;
    }
    Ok(priority)
}

/// Options of a spawn.
pub(crate) struct SpawnRequest<'h> {
    pub(crate) options: SpawnOptions,
    /// Linked; to have priority messages of it.
    pub(crate) link: Option<bool>,
    pub(crate) monitor: Option<MonitorOptions<'h>>,
    /// Send `{Tag, Ref, ok, Pid}`, and `{Tag, Ref, error, Reason}`.
    pub(crate) reply_ok: bool,
    pub(crate) reply_error: bool,
    pub(crate) reply_tag: Term<'h>,
}

/// Parses the options of a spawn; `message` says that a reply is a message, so that options for it are
/// allowed. On a bad option gives what the others say, too, as the error may have to be sent.
pub(crate) fn spawn_options(
    list: Term<'_>,
    message: bool,
) -> (SpawnRequest<'_>, Result<(), BadOptions>) {
    let mut request = SpawnRequest {
        options: SpawnOptions::default(),
        link: None,
        monitor: None,
        reply_ok: true,
        reply_error: true,
        reply_tag: Atom::term(am::spawn_reply),
    };
    let mut result = Ok(());
    for option in elements(list) {
        match option {
            Err(error) => return (request, Err(error)),
            Ok(option) => {
                if spawn_option(&mut request, option, message).is_none() {
                    result = Err(BadOptions::Option);
                }
            }
        }
    }
    if !is_large_enough(&request.options) {
        result = Err(BadOptions::Option);
    }
    (request, result)
}

/// A process's heap, as it is at first, is within the limit of its size.
fn is_large_enough(options: &SpawnOptions) -> bool {
    let most = options.max_heap.unwrap_or_else(MaxHeap::of_system).words;
    let system = super::min_heap_words();
    let least = match options.min_heap_words {
        Some(words) if words >= system => crate::heap::next_heap_size(words, false),
        _ => system,
    };
    most == 0 || most >= least
}

fn spawn_option<'h>(request: &mut SpawnRequest<'h>, option: Term<'h>, message: bool) -> Option<()> {
    if option == am::link {
        request.link = Some(false);
        return Some(());
    }
    if option == am::monitor {
        request.monitor = Some(MonitorOptions::default());
        return Some(());
    }
    let (key, value) = pair(option)?;
    let options = &mut request.options;
    match key {
        am::priority => options.priority = Some(priority(value)?),
        am::async_dist => options.async_dist = Some(value.as_bool()?),
        am::message_queue_data => options.off_heap_messages = Some(queue_data(value)?),
        am::min_heap_size => options.min_heap_words = Some(value.as_index()?),
        am::min_bin_vheap_size => options.min_bin_vheap_words = Some(value.as_index()?),
        am::max_heap_size => options.max_heap = Some(max_heap(value)?),
        am::fullsweep_after => {
            options.fullsweep_after = Some((value.as_index()? as u64).min(0xffff) as u32);
        }
        am::scheduler => options.scheduler = scheduler(value)?,
        am::reply if message => {
            (request.reply_ok, request.reply_error) = match value.as_atom()? {
                am::yes => (true, true),
                am::no => (false, false),
                am::error_only => (false, true),
                am::success_only => (true, false),
                _ => return None,
            };
        }
        am::reply_tag if message => request.reply_tag = value,
        am::link => request.link = Some(priority_option(value).ok()?),
        am::monitor => request.monitor = Some(monitor_options(value).ok()?),
        _ => return None,
    }
    Some(())
}

/// `on_heap` or `off_heap`: is it off?
pub(crate) fn queue_data(value: Term<'_>) -> Option<bool> {
    match value.as_atom()? {
        am::on_heap => Some(false),
        am::off_heap => Some(true),
        _ => None,
    }
}

/// A scheduler, counted from 1, or 0 for any.
pub(crate) fn scheduler(value: Term<'_>) -> Option<u16> {
    let id = value
        .as_index()
        .filter(|id| *id <= crate::sched::schedulers());
    id.and_then(|id| u16::try_from(id).ok())
}

/// A priority by name.
pub(crate) fn priority(value: Term<'_>) -> Option<Priority> {
    match value.as_atom()? {
        am::max => Some(Priority::Max),
        am::high => Some(Priority::High),
        am::normal => Some(Priority::Normal),
        am::low => Some(Priority::Low),
        _ => None,
    }
}

/// The name of a priority.
pub(crate) fn priority_name(priority: Priority) -> Atom {
    match priority {
        Priority::Max => am::max,
        Priority::High => am::high,
        Priority::Normal => am::normal,
        Priority::Low => am::low,
    }
}

/// A `max_heap_size`: words, or a map; what it does not say is the system's.
pub(crate) fn max_heap(value: Term<'_>) -> Option<MaxHeap> {
    let mut max = MaxHeap::of_system();
    match value.view() {
        View::Small(words) => max.words = usize::try_from(words).ok()?,
        View::Map(map) => {
            max.words = map.get(am::size.term())?.as_index()?;
            for (key, flag) in [
                (am::kill, &mut max.kill),
                (am::error_logger, &mut max.error_logger),
                (
                    am::include_shared_binaries,
                    &mut max.include_shared_binaries,
                ),
            ] {
                if let Some(value) = map.get(Atom::term(key)) {
                    *flag = value.as_bool()?;
                }
            }
        }
        _ => return None,
    }
    Some(max)
}
