//! Signals that their senders encode in time slices. Source: `erts_dsig_send()` and `ERTS_DSIG_SEND_CONTINUE` in `dist.c`,
//! OTP 29.

use std::sync::Arc;

use super::capabilities::Capabilities;
use super::entry::DistEntry;
use super::output::Fate;
use super::queue::{Encoded, Encoding, PausedEncoding};
use crate::external::{Progress, STEPS_PER_REDUCTION, TooLarge};
use crate::process::{Process, work};
use crate::term::Term;

/// Where a signal goes that is being encoded.
pub(super) struct Way {
    pub(super) entry: Arc<DistEntry>,
    /// The number of the connection that stood when the encoding began. The signal goes on no other.
    pub(super) connection: u32,
    /// Its sender waits where the connection is busy.
    pub(super) waits: bool,
}

/// A signal that its sender goes on to encode when its BIF is called again.
pub(super) struct Unsent<'p> {
    encoding: PausedEncoding<'p>,
    way: Way,
    /// Steps paid for.
    paid: usize,
}

work! { struct Unsent { encoding; way, paid } }

/// A signal that is encoded.
pub(super) struct Whole {
    encoded: Encoded,
    way: Way,
}

/// How far a time slice has led.
pub(super) enum Sliced<'p> {
    Whole(Whole),
    Part(Unsent<'p>),
}

/// Steps that are made at once, whatever is left of the time slice.
const STEPS_AT_ONCE: usize = 1024;

impl<'p> Unsent<'p> {
    /// Encodes a signal of `p`, its control message and what is behind it, for as long as the time slice lasts.
    ///
    /// # Errors
    /// [`TooLarge`]
    pub(super) fn begin(
        p: &'p Process,
        way: Way,
        capabilities: Capabilities,
        (control, payload): (Term<'_>, Option<Term<'p>>),
    ) -> Result<Sliced<'p>, TooLarge> {
        let encoding = Encoding::begin(capabilities, control, payload)?;
        encode(p, encoding, way, 0)
    }

    /// Goes on.
    ///
    /// # Errors
    /// [`TooLarge`]
    pub(super) fn go_on(self, p: &'p Process) -> Result<Sliced<'p>, TooLarge> {
        encode(p, self.encoding.resume(), self.way, self.paid)
    }
}

fn encode<'p>(
    p: &'p Process,
    mut encoding: Encoding<'p>,
    way: Way,
    paid: usize,
) -> Result<Sliced<'p>, TooLarge> {
    let payable = p.reds_left() * STEPS_PER_REDUCTION;
    let until = paid + payable.max(STEPS_AT_ONCE);
    if encoding.run(until)? == Progress::Part {
        return Ok(Sliced::Part(Unsent {
            encoding: encoding.pause(),
            way,
            paid: until,
        }));
    }
    let due = encoding.steps().saturating_sub(paid) / STEPS_PER_REDUCTION;
    p.bump_reds(due as i64);
    let encoded = encoding.finish();
    Ok(Sliced::Whole(Whole { encoded, way }))
}

impl Whole {
    pub(super) fn entry(&self) -> Arc<DistEntry> {
        Arc::clone(&self.way.entry)
    }

    /// Queues it, as a signal of `p`.
    pub(super) fn queue(self, p: &Process) -> Fate {
        let Way {
            entry,
            connection,
            waits,
        } = self.way;
        entry.queue_on(connection, waits, (Some(p.pid()), self.encoded))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::capabilities;
    use super::super::entry::Phase;
    use super::super::input::Input;
    use super::*;
    use crate::heap::Heap;
    use crate::process::in_small_steps;
    use crate::term::compare::eq_exact;
    use crate::term::{Atom, am};

    #[test]
    fn a_large_message_is_encoded_in_many_slices() {
        let entry = DistEntry::of(Atom::new("unsent_tests@nowhere"));
        entry.state.lock().phase = Phase::Connected;
        let connection = entry.connection();
        let mut p = Process::new(233);
        let numbers: Vec<_> = (0..40_000).map(Term::small).collect();
        let parts = [
            p.binary(&[7; 2000]),
            am::ok.term(),
            p.list(&numbers),
            p.binary(&[8; 100_000]),
        ];
        let message = p.root(p.list(&parts));
        let way = || Way {
            entry: Arc::clone(&entry),
            connection,
            waits: false,
        };
        let turns = in_small_steps(
            &mut p,
            &message,
            |p, message| {
                let signal = (Atom::new("unsent_tests").term(), Some(message));
                let sliced = match p.take_work_if::<Unsent>() {
                    Some(unsent) => unsent.go_on(p),
                    None => Unsent::begin(p, way(), capabilities::DEFAULT, signal),
                };
                match sliced.expect("small") {
                    Sliced::Whole(signal) => {
                        assert_eq!(signal.queue(p), Fate::Sent);
                        Ok(am::ok.term())
                    }
                    Sliced::Part(unsent) => Err(p.yield_with(unsent).into()),
                }
            },
            |_| true,
        );
        assert!(turns > 50, "{turns}");
        let (mut input, heap) = (Input::default(), Heap::detached());
        let packets = std::iter::from_fn(|| entry.next_packet(connection));
        let packets: Vec<_> = packets.map(|packet| packet.bytes()).collect();
        let (last, others) = packets.split_last().expect("there are some");
        let mut parts = others.iter();
        assert!(parts.all(|packet| matches!(input.take(packet), Ok(None))));
        let whole = input.take(last).expect("a packet").expect("the last one");
        let control = whole.term(&heap, 0).expect("a term");
        let came = whole.term(&heap, control.used).expect("a term");
        assert!(eq_exact(came.term, p.get(&message)));
    }
}
