//! The answers that native functions take from outside of a process or from chance: they are recorded, and a replay
//! gives them again.
//!
//! Which function gives what is in its row (`code/bif.rs`), and the row calls what is here.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use super::{OrderEvent, identity, is_active, is_explored, is_followed, is_recorded, replay};
use crate::hash::checksum::crc32;
use crate::heap::{Heap, Literals, MagicBinary, Message, size};
use crate::hook::Hook;
use crate::process::dirty_queues::some_run;
use crate::process::probe::probes;
use crate::process::{BifResult, Control, Leave, Next, Process, work};
use crate::sched::online;
use crate::sys::chance::clock::monotonic_ns;
use crate::term::{Term, am};

/// Hook: the external term format writes terms and reads them again, without the byte that tells its version.
pub(crate) static WRITTEN: Hook<Written> = Hook::new("terms as bytes");

/// The functions of [`WRITTEN`].
pub(crate) struct Written {
    /// `None` where the term is too large.
    pub(crate) write: fn(Term<'_>) -> Option<Vec<u8>>,
    /// `None` where the bytes are no term.
    pub(crate) read: for<'p> fn(&'p Process, &[u8]) -> Option<Term<'p>>,
}

/// A native function whose answers are recorded.
#[derive(Debug)]
pub(crate) struct Native {
    pub(crate) module: &'static str,
    pub(crate) function: &'static str,
    pub(crate) arity: u8,
    /// Its number in the recording; 0 where it has none yet.
    name: AtomicU32,
}

impl Native {
    pub(crate) const fn new(module: &'static str, function: &'static str, arity: u8) -> Native {
        let name = AtomicU32::new(0);
        Native {
            module,
            function,
            arity,
            name,
        }
    }

    /// Its number in the recording, which `find` finds once.
    #[inline]
    pub(crate) fn name(&self, find: impl FnOnce() -> u32) -> u32 {
        match self.name.load(Ordering::Relaxed) {
            0 => {
                let name = find();
                self.name.store(name, Ordering::Relaxed);
                name
            }
            name => name,
        }
    }

    /// Is it what a trace calls so?
    pub(crate) fn is(&self, text: &str) -> bool {
        let rest = text
            .strip_prefix(self.module)
            .and_then(|rest| rest.strip_prefix(':'));
        let arity = rest
            .and_then(|rest| rest.strip_prefix(self.function))
            .and_then(|rest| rest.strip_prefix('/'));
        arity.is_some_and(|arity| arity.parse() == Ok(self.arity))
    }
}

impl std::fmt::Display for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}/{}", self.module, self.function, self.arity)
    }
}

/// The answer of `native` to `p`: the recorded one, or what `call` gives, which is recorded.
///
/// # Errors
/// Those of `call`, which are no answers.
#[inline]
pub(crate) fn replay_or_call<'p, E>(
    p: &'p Process,
    native: &'static Native,
    call: impl FnOnce() -> Result<Term<'p>, E>,
) -> Result<Term<'p>, E> {
    if !is_active() {
        return call();
    }
    if let Some(recorded) = p.recorded_answer(native) {
        return Ok(recorded);
    }
    let reds = p.fcalls.get();
    let answer = identity::without(call)?;
    // A replay does not make the call, and so it charges nothing.
    p.fcalls.set(reds);
    p.record_answer(native, answer);
    Ok(answer)
}

/// The recorded answer of a call on a dirty scheduler, behind which the process was collected before its code went on.
struct Rests<'p> {
    answer: Term<'p>,
}

work! { struct Rests { answer; } }

/// As [`replay_or_call`], for a function that is called on a dirty scheduler: its answer is beside the heap.
///
/// # Errors
/// Those of `call`, which are no answers; or it is to be called again.
#[inline]
pub(crate) fn given_away<'p>(
    p: &'p Process,
    native: &'static Native,
    call: impl FnOnce() -> BifResult<'p>,
) -> BifResult<'p> {
    if let Some(rests) = p.take_work_if::<Rests<'_>>() {
        return Ok(rests.answer);
    }
    let collects = p.wait_to_collect_in_call();
    let Some(recorded) = p.recorded_message(native) else {
        return replay_or_call(p, native, call);
    };
    let answer = p.attach(recorded);
    match collects {
        None => Ok(answer),
        Some(later) => {
            let _yields = p.put_off(Rests { answer });
            Err(later.into())
        }
    }
}

/// As [`replay_or_call`], for a function that does something outside: it is called in a replay, too, and gives the
/// recorded answer.
///
/// # Errors
/// Those of `call`, where there is no recorded answer, and its words to the loop that runs the process.
#[inline]
pub(crate) fn call_and_replay<'p>(
    p: &'p Process,
    native: &'static Native,
    call: impl FnOnce() -> BifResult<'p>,
) -> BifResult<'p> {
    let answer = call();
    if !is_active() || matches!(answer, Err(Leave::Control(_))) {
        return answer;
    }
    if let Some(recorded) = p.recorded_message(native) {
        return Ok(match answer {
            Ok(answer) if are_written_alike(answer, recorded.term()) => answer,
            _ => {
                let words = answer.map_or(0, |answer| size(answer, Literals::Count));
                p.heap.claim_later(words);
                p.attach(recorded)
            }
        });
    }
    let answer = answer?;
    p.record_answer(native, answer);
    Ok(answer)
}

/// As [`replay_or_call`], for functions that change what can arrive: a link, an alias, whether exits are trapped. A replay calls
/// such a function when all has come that came before it in the recorded run. A log may leave its answer out.
///
/// # Errors
/// Those of `call`; or it is to be called again.
pub(crate) fn in_turn<'p>(
    p: &'p Process,
    native: &'static Native,
    call: impl FnOnce() -> BifResult<'p>,
) -> BifResult<'p> {
    if !is_active() || is_explored() {
        return call();
    }
    // A signal that came before the door opened must not find it open.
    if let Some(later) = p.wait_for_earlier(native) {
        return Err(later.into());
    }
    let answer = call()?;
    Ok(recorded_or(p, native, || answer))
}

/// The function that ends the emulator.
pub(in crate::process) static HALTS: Native = Native::new("erlang", "halt", 2);

/// `p` is about to end the emulator, and `status` says how. Nobody else does anything any more, lest that is
/// not recorded; a replay waits for what the others did.
///
/// # Errors
/// It is to be called again.
pub(crate) fn record_halt(p: &Process, status: Term<'_>) -> Result<(), Control<'static>> {
    if !is_active() || is_explored() {
        return Ok(());
    }
    let later = p.wait_for_earlier(&HALTS).or_else(|| match is_followed() {
        true => p.wait_to_halt(),
        false => (!do_others_rest(p)).then_some(Control::Yield),
    });
    if let Some(later) = later {
        return Err(later);
    }
    noted(p, &HALTS, status);
    Ok(())
}

/// How long a process that halts the emulator waits for native code that runs.
const PATIENCE_NS: u64 = 100_000_000;

/// Whether no other process runs any more, as `p` has asked for.
fn do_others_rest(p: &Process) -> bool {
    static ASKED_NS: OnceLock<u64> = OnceLock::new();
    let waited = monotonic_ns().saturating_sub(*ASKED_NS.get_or_init(monotonic_ns));
    online::block(p.pid().0, false, some_run) || waited > PATIENCE_NS
}

/// Whether something is so, which is chance: as it was in the recorded run, or as `call` says. A log may leave it out.
pub(crate) fn decided(p: &Process, native: &'static Native, call: impl FnOnce() -> bool) -> bool {
    if !is_active() || is_explored() {
        return call();
    }
    recorded_or(p, native, || Term::bool(call())) == am::true_
}

/// As [`decided`], where what `of` refers to is recorded as well.
pub(crate) fn decided_of(
    p: &Process,
    native: &'static Native,
    of: impl FnOnce() -> Option<Arc<MagicBinary>>,
    call: impl FnOnce() -> bool,
) -> bool {
    if !is_active() || is_explored() {
        return call();
    }
    let answer = recorded_or(p, native, || {
        let of = of().map_or(Term::NIL, |of| p.magic_reference(of));
        p.tuple(&[of, Term::bool(call())])
    });
    let last = answer.as_tuple().and_then(|it| it.elements().last());
    last.is_some_and(|last| *last == am::true_)
}

/// What `call` finds, if it does, of something that may end at any time: as it was in the recorded run. A log may leave it out.
pub(crate) fn found<'p>(
    p: &'p Process,
    native: &'static Native,
    call: impl FnOnce() -> Option<Term<'p>>,
) -> Option<Term<'p>> {
    if !is_active() || is_explored() {
        return call();
    }
    let answer = recorded_or(p, native, || match call() {
        Some(found) => p.tuple(&[found]),
        None => am::false_.term(),
    });
    answer.as_tuple()?.elements().first().copied()
}

/// Whether the recorded answer of `native` is what `p` gets next.
pub(crate) fn is_given(p: &Process, native: &'static Native) -> bool {
    is_followed() && p.is_given(native)
}

/// As [`replay_or_call`] where the call has no effect outside, as it is of a socket, or of no port; else as
/// [`call_and_replay`]. A replay has no sockets, and makes no call of one.
///
/// # Errors
/// Those of `call`, as these say.
#[inline]
pub(crate) fn of_port<'p>(
    p: &'p Process,
    native: &'static Native,
    is_of_socket: impl FnOnce() -> bool,
    call: impl FnOnce() -> BifResult<'p>,
) -> BifResult<'p> {
    if !is_active() {
        return call();
    }
    match is_of_socket() {
        true => replay_or_call(p, native, call),
        false => call_and_replay(p, native, call),
    }
}

/// Whether `p` finds a port closed because it follows no recorded process, and the port is a socket of a replay's.
pub(crate) fn finds_closed(p: &Process, is_replayed: impl FnOnce() -> bool) -> bool {
    is_active() && is_replayed() && !p.is_replayed()
}

/// Whether `p` does what a recorded process did.
pub(crate) fn is_replayed(p: &Process) -> bool {
    p.is_replayed()
}

/// What a socket is given to send, for [`Sent::by`].
#[derive(Debug)]
pub(crate) struct Sent([u64; 2]);

impl Sent {
    /// What `payload` finds and has digested, if it does. `None` also where answers are not recorded.
    pub(crate) fn of(payload: impl FnOnce(fn(&[u8]) -> Sent) -> Option<Sent>) -> Option<Sent> {
        let is_told = is_active() && !is_explored();
        is_told.then(|| payload(Sent::digest)).flatten()
    }

    fn digest(bytes: &[u8]) -> Sent {
        Sent([bytes.len() as u64, crc32(0, bytes).into()])
    }

    /// `p` has sent it. A replay sends nothing, but it has to be what the recorded run sent.
    pub(crate) fn by(self, p: &Process) {
        static SENDS: Native = Native::new("erts_internal", "port_sends", 1);
        let digest = Heap::detached()
            .into_message(|heap| heap.tuple(&self.0.map(|number| heap.unsigned(number))));
        let is_same = is_followed()
            .then(|| p.take_same(&SENDS, &digest))
            .flatten();
        if is_same == Some(false) {
            replay::report_other_send(p);
        }
        if is_recorded() {
            p.write_answer(&SENDS, digest.term());
        }
    }
}

/// What another process is to answer `p`, which waits for it in code, if that was recorded; else what it answers is.
pub(crate) fn awaited(p: &Process, native: &'static Native) -> Option<Message> {
    if !is_active() || is_explored() {
        return None;
    }
    let recorded = p.recorded_message(native);
    if recorded.is_none() {
        p.own_order().awaits = Some(native);
    }
    recorded
}

/// Notes this answer, or that a replay has come to where it was noted. A log may leave it out.
pub(crate) fn noted<'p>(p: &'p Process, native: &'static Native, answer: Term<'p>) {
    if is_active() && !is_explored() {
        recorded_or(p, native, || answer);
    }
}

/// The answer of `native` that was recorded here, or what `make` gives, which is recorded.
fn recorded_or<'p>(
    p: &'p Process,
    native: &'static Native,
    make: impl FnOnce() -> Term<'p>,
) -> Term<'p> {
    if let Some(recorded) = p.recorded_answer(native) {
        return recorded;
    }
    let answer = make();
    if is_recorded() {
        p.write_answer(native, answer);
    }
    answer
}

/// As [`replay_or_call`], for a function that reads from `file`: it is called in a replay, too, and what it gives has
/// to be the same.
///
/// # Errors
/// Those of `call`.
#[inline]
pub(crate) fn checked<'p, E>(
    p: &'p Process,
    native: &'static Native,
    file: Term<'p>,
    call: impl FnOnce() -> Result<Term<'p>, E>,
) -> Result<Term<'p>, E> {
    let answer = call()?;
    if is_active()
        && let Some(digest) = digest(answer)
    {
        match is_followed()
            .then(|| p.take_same(native, &digest))
            .flatten()
        {
            None => p.record_answer(native, digest.term()),
            Some(is_same) => {
                if !is_same {
                    replay::report_other_read(p, file);
                }
                if is_recorded() {
                    p.write_answer(native, digest.term());
                }
            }
        }
    }
    Ok(answer)
}

fn written(term: Term<'_>) -> Option<Vec<u8>> {
    (WRITTEN.get().write)(term)
}

/// Whether both are the same to a recording.
pub(crate) fn are_written_alike(a: Term<'_>, b: Term<'_>) -> bool {
    a.same(b) || written(a) == written(b)
}

/// The size of a term in the external term format, and its checksum.
fn digest(answer: Term<'_>) -> Option<Message> {
    let bytes = (WRITTEN.get().write)(answer)?;
    let numbers = [bytes.len() as u64, crc32(0, &bytes).into()];
    Some(
        Heap::detached()
            .into_message(|heap| heap.tuple(&numbers.map(|number| heap.unsigned(number)))),
    )
}

/// Has `make` give out a number, the recorded one where there is one: what it gave is recorded.
///
/// # Errors
/// Those of `make`.
pub(crate) fn numbered<E>(
    p: &Process,
    native: &'static Native,
    make: impl FnOnce(Option<u64>) -> Result<u64, E>,
) -> Result<(), E> {
    let recorded = is_followed().then(|| p.take_answer(native)).flatten();
    let recorded = recorded.and_then(|number| number.as_u64());
    let number = p.unsigned(make(recorded)?);
    match recorded {
        None if is_active() => p.record_answer(native, number),
        Some(_) if is_recorded() => p.write_answer(native, number),
        _ => {}
    }
    Ok(())
}

/// As [`replay_or_call`], for a function that has the process to itself.
#[inline]
pub(crate) fn given_alone(
    p: &mut Process,
    native: &'static Native,
    call: fn(&mut Process) -> Next,
) -> Next {
    if !is_active() {
        return call(p);
    }
    // A signal may end the process in the call: it makes one reduction, so that they say in which one.
    let reds = p.fcalls.get() - 1;
    if let Some(recorded) = p.recorded_message(native) {
        return told_again(p, recorded, call, reds);
    }
    let next = identity::without(|| call(p));
    match next {
        Next::Return => {
            p.fcalls.set(reds);
            p.record_answer(native, p.x(0));
        }
        // Code waits for what another process answers.
        Next::Call => p.own_order().awaits = Some(native),
        _ => {}
    }
    next
}

/// The recorded answer to a question of the process about itself or another one. The function is called: mostly its answer
/// is the same now, and then it is made of the same words; or code waits for it again, as what it spends and allocates is
/// counted. What makes the answer may take [`Process::recorded_in_hand`] and give that itself.
fn told_again(
    p: &mut Process,
    recorded: Message,
    call: fn(&mut Process) -> Next,
    reds: i64,
) -> Next {
    p.own_order().given = Some(recorded);
    let next = identity::without(|| call(p));
    if matches!(next, Next::Exit(_) | Next::Call) {
        return next;
    }
    let is_given = matches!(next, Next::Return);
    if is_given {
        p.fcalls.set(reds);
    }
    let Some(recorded) = p.recorded_in_hand() else {
        return next;
    };
    if !(is_given && are_written_alike(p.x(0), recorded.term())) {
        p.set_x(0, p.attach(recorded));
    }
    Next::Return
}

impl Process {
    /// The answer that it was given here in the recorded run, if there was one. A replay that is recorded records it
    /// again.
    fn recorded_answer(&self, native: &'static Native) -> Option<Term<'_>> {
        let recorded = is_followed().then(|| self.take_answer(native)).flatten()?;
        if is_recorded() {
            self.write_answer(native, recorded);
        }
        Some(recorded)
    }

    /// As [`Process::recorded_answer`], outside of its heap, for others to send to it.
    fn recorded_message(&self, native: &'static Native) -> Option<Message> {
        if !is_followed() {
            return None;
        }
        let reader = Process::new(0);
        let recorded = self.take_answer_on(&reader, native)?;
        if is_recorded() {
            self.write_answer(native, recorded);
        }
        Some(Message::copy_of(recorded))
    }

    /// The recorded answer to what it is about to ask another process or itself.
    pub(crate) fn recorded_in_hand(&self) -> Option<Message> {
        if !is_followed() {
            return None;
        }
        self.own_order().given.take()
    }

    /// Records an answer of `native`. A replay that has none recorded notes that.
    fn record_answer(&self, native: &'static Native, answer: Term<'_>) {
        if is_followed() {
            replay::note_unrecorded_answer(self, native);
        }
        if is_recorded() {
            self.write_answer(native, answer);
        }
    }

    /// Records the reply of another process, `{Reference, Answer}`, if a function waits for it whose answers are recorded.
    pub(in crate::process) fn record_reply(&self, message: Term<'_>) {
        if !is_active() {
            return;
        }
        let native = self.own_order().awaits.take();
        let answer = message
            .as_tuple()
            .and_then(|it| it.elements().last().copied());
        if let (Some(native), Some(answer)) = (native, answer) {
            self.record_answer(native, answer);
        }
    }

    fn write_answer(&self, native: &'static Native, answer: Term<'_>) {
        let mut own = self.own_order();
        own.record_rest(self.pid());
        if let Some(integer) = answer.as_i64() {
            let difference = integer.wrapping_sub(own.integer).cast_unsigned();
            own.integer = integer;
            probes().ordered(self.pid(), OrderEvent::Answer { native, difference });
            return;
        }
        drop(own);
        // What is too large to be written is not recorded: a replay calls the function.
        let Some(bytes) = (WRITTEN.get().write)(answer) else {
            return;
        };
        let told = OrderEvent::AnswerTerm {
            function: native,
            bytes: bytes.len(),
        };
        probes().ordered(self.pid(), told);
        self.tell_bytes(&bytes);
    }

    /// The message that is delivered next comes from outside.
    pub(in crate::process) fn record_content(&self, message: Term<'_>) {
        if is_recorded()
            && let Some(bytes) = (WRITTEN.get().write)(message)
        {
            self.own_order().record_rest(self.pid());
            let told = OrderEvent::Content { bytes: bytes.len() };
            probes().ordered(self.pid(), told);
            self.tell_bytes(&bytes);
        }
    }

    fn tell_bytes(&self, bytes: &[u8]) {
        for part in bytes.chunks(32) {
            let mut padded = [0; 32];
            padded[..part.len()].copy_from_slice(part);
            let words = std::array::from_fn(|at| {
                let word: [u8; 8] = padded[at * 8..at * 8 + 8].try_into().expect("eight bytes");
                u64::from_le_bytes(word)
            });
            probes().ordered(self.pid(), OrderEvent::Bytes(words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_known_by_what_traces_call_it() {
        let now = Native::new("erlang", "now", 0);
        assert_eq!(now.to_string(), "erlang:now/0");
        for (text, is) in [
            ("erlang:now/0", true),
            ("erlang:now/1", false),
            ("erlang:nowhere/0", false),
            ("os:now/0", false),
            ("now", false),
        ] {
            assert_eq!(now.is(text), is, "{text}");
        }
    }
}
