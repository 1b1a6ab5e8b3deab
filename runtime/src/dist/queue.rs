//! What waits to be sent on a connection, in the order in which it goes. A large message goes in fragments; between two
//! of them go messages of other processes. Its sender waits until the last one has been taken, so that nothing of it is
//! behind them but what others say in its name. Source: `erts_dsig_send()` in `dist.c`, OTP 29; there the sender makes
//! the fragments, one after the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::atom_cache::{AtomCache, FRAGMENT, FragmentNumber, PASS_THROUGH};
use super::capabilities::{Capabilities, DIST_HDR_ATOM_CACHE, FRAGMENTS};
use super::operation::Operation;
use crate::external::{
    COPIED_BYTES, Encoder, HeaderAtoms, PausedEncoder, Pieces, Progress, TooLarge, VERSION_MAGIC,
};
use crate::heap::keeps;
use crate::term::{Pid, Term};
use crate::trace::record::dist::{self, Told};

/// Bytes in a queue at which senders must wait (`+zdbbl`). Source: `ERTS_DE_BUSY_LIMIT`.
static BUSY_LIMIT: AtomicUsize = AtomicUsize::new(1024 * 1024);

/// Sets how many bytes a queue holds before senders must wait.
pub(crate) fn set_busy_limit(bytes: usize) {
    BUSY_LIMIT.store(bytes, Ordering::Relaxed);
}

/// How many bytes a queue holds before senders must wait.
pub(crate) fn busy_limit() -> usize {
    BUSY_LIMIT.load(Ordering::Relaxed)
}

/// Bytes of a fragment. Source: `ERTS_DIST_FRAGMENT_SIZE`.
const FRAGMENT_BYTES: usize = 64 * 1024;

/// Room at the start of a packet for its length, which the controller puts there.
pub(crate) const HEAD_ROOM: usize = 4;

/// A packet, behind [`HEAD_ROOM`]: its first bytes, and others where they are.
pub(crate) struct Packet {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Pieces,
}

impl Packet {
    /// Bytes, without the room at the start.
    pub(crate) fn len(&self) -> usize {
        self.head.len() - HEAD_ROOM + self.body.len()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head[HEAD_ROOM..].to_vec();
        self.body.copy_to(&mut bytes);
        bytes
    }
}

/// What is known of a signal before it is encoded.
struct Framing {
    /// Where its control message ends.
    control_ends: usize,
    has_fragments: bool,
    told: Option<Box<Told>>,
}

/// A signal that is being encoded.
pub(super) struct Encoding<'h> {
    encoder: Encoder<'h>,
    framing: Framing,
}

/// An encoding that does not go on in this time slice.
pub(super) struct PausedEncoding<'h> {
    encoder: PausedEncoder<'h>,
    framing: Framing,
}

keeps! { struct PausedEncoding { encoder; framing } }

impl<'h> Encoding<'h> {
    /// Encodes the control message, and begins with what comes behind it.
    ///
    /// # Errors
    /// [`TooLarge`]
    pub(super) fn begin(
        capabilities: Capabilities,
        control: Term<'_>,
        payload: Option<Term<'h>>,
    ) -> Result<Encoding<'h>, TooLarge> {
        let has = |capability| capabilities & capability != 0;
        let has_header = has(DIST_HDR_ATOM_CACHE);
        let mut encoder = Encoder::of_signal(control, has_header)?;
        let framing = Framing {
            control_ends: encoder.len(),
            has_fragments: has_header && has(FRAGMENTS),
            told: told(control, payload),
        };
        if let Some(payload) = payload {
            encoder.begin_in_signal(payload);
        }
        Ok(Encoding { encoder, framing })
    }

    /// Goes on until this many steps have been made in all.
    ///
    /// # Errors
    /// [`TooLarge`]
    pub(super) fn run(&mut self, steps: usize) -> Result<Progress, TooLarge> {
        self.encoder.run(steps)
    }

    /// Steps made so far.
    pub(super) fn steps(&self) -> usize {
        self.encoder.steps()
    }

    /// Comes to rest.
    pub(super) fn pause(self) -> PausedEncoding<'h> {
        PausedEncoding {
            encoder: self.encoder.pause(),
            framing: self.framing,
        }
    }

    /// The signal, once all is encoded.
    pub(super) fn finish(self) -> Encoded {
        let (atoms, bytes) = self.encoder.into_signal();
        let Framing {
            control_ends,
            has_fragments,
            told,
        } = self.framing;
        // The control message is in the first fragment.
        let first = match has_fragments {
            true => bytes.len().min(control_ends + FRAGMENT_BYTES),
            false => bytes.len(),
        };
        Encoded {
            atoms,
            bytes,
            first,
            told,
        }
    }
}

impl<'h> PausedEncoding<'h> {
    /// Goes on.
    pub(super) fn resume(self) -> Encoding<'h> {
        Encoding {
            encoder: self.encoder.resume(),
            framing: self.framing,
        }
    }
}

/// An encoded signal.
pub(super) struct Encoded {
    /// None where the other node takes no headers.
    atoms: Option<HeaderAtoms>,
    bytes: Pieces,
    /// Bytes of its first fragment; of all where it goes in one.
    first: usize,
    /// What a recording says of it, where there is one.
    told: Option<Box<Told>>,
}

/// What a recording says of a signal, where there is one.
fn told(control: Term<'_>, payload: Option<Term<'_>>) -> Option<Box<Told>> {
    if !dist::is_asked() {
        return None;
    }
    let (operation, elements) = control.as_tuple()?.elements().split_first()?;
    let operation = Operation::of(operation.as_small()?)?;
    let told = Told::of(operation.told(), elements, payload);
    Some(Box::new(told))
}

impl Encoded {
    /// In one go.
    ///
    /// # Errors
    /// [`TooLarge`]
    pub(super) fn of(
        capabilities: Capabilities,
        control: Term<'_>,
        payload: Option<Term<'_>>,
    ) -> Result<Encoded, TooLarge> {
        let mut encoding = Encoding::begin(capabilities, control, payload)?;
        encoding.run(usize::MAX)?;
        Ok(encoding.finish())
    }

    /// Bytes of its terms.
    fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Its first packet, which may be its only one: then `number` is none.
    fn first_packet(&mut self, cache: &mut AtomCache, number: Option<FragmentNumber>) -> Packet {
        let mut head = vec![0; HEAD_ROOM];
        match &self.atoms {
            Some(atoms) => cache.write_header(atoms, number, &mut head),
            None => head.push(PASS_THROUGH),
        }
        packet(head, self.bytes.split_to(self.first))
    }
}

/// A packet of these bytes behind `head`.
fn packet(mut head: Vec<u8>, mut body: Pieces) -> Packet {
    if body.len() <= COPIED_BYTES {
        body.copy_to(&mut head);
        body = Pieces::default();
    }
    Packet { head, body }
}

/// A signal of a process, if it is known of which.
struct Item {
    from: Option<Pid>,
    encoded: Encoded,
}

/// A signal of which the first fragment has been taken.
struct Stream {
    from: Option<Pid>,
    sequence: u64,
    /// Of the whole signal.
    bytes: usize,
    /// What has not been taken.
    rest: Pieces,
    told: Option<Box<Told>>,
    /// Later signals of its sender.
    behind: VecDeque<Item>,
}

/// How much signals count that are this long. One that fills the queue by itself counts as a fragment: its sender waits
/// for it, and others need not.
fn weight(bytes: usize) -> usize {
    match is_large(bytes) {
        true => FRAGMENT_BYTES,
        false => bytes,
    }
}

/// Does a signal of this length fill the queue by itself?
fn is_large(bytes: usize) -> bool {
    bytes >= busy_limit()
}

impl Stream {
    fn missing(&self) -> u64 {
        self.rest.len().div_ceil(FRAGMENT_BYTES) as u64
    }

    fn next_packet(&mut self) -> Packet {
        let number = FragmentNumber {
            sequence: self.sequence,
            missing: self.missing(),
        };
        let mut head = vec![0; HEAD_ROOM];
        head.extend([VERSION_MAGIC, FRAGMENT]);
        number.write(&mut head);
        let body = self.rest.split_to(self.rest.len().min(FRAGMENT_BYTES));
        packet(head, body)
    }
}

/// Signals that the controller of the connection has not taken yet.
#[derive(Default)]
pub(super) struct Queue {
    items: VecDeque<Item>,
    streams: VecDeque<Stream>,
    /// The [`weight`] of all.
    weight: usize,
    /// How many are large: while there is none, nobody looks through them for its own.
    large: usize,
    /// The last sequence of fragments.
    sequence: u64,
    /// Signals of which the last packet has been taken.
    left: u64,
    /// The last packet was of a stream.
    was_of_stream: bool,
    /// Processes that wait for room.
    waiting: Vec<Pid>,
    /// Processes that wait for the end of what they have sent, which is as long as the queue may be.
    sending: Vec<Pid>,
}

/// A signal whose last packet has been taken.
pub(super) struct Ended {
    pub(super) from: Option<Pid>,
    /// How many have been before it on this connection, and 1.
    pub(super) number: u64,
    /// Bytes of its terms.
    pub(super) bytes: usize,
    pub(super) told: Option<Box<Told>>,
}

/// A packet, the signal that it ends, and the processes that do not wait any more once it has been taken.
pub(super) struct Taken {
    pub(super) packet: Packet,
    pub(super) ended: Option<Ended>,
    pub(super) wakes: Vec<Pid>,
}

impl Queue {
    /// Adds a signal of the process `from`.
    pub(super) fn push(&mut self, from: Option<Pid>, encoded: Encoded) {
        let item = Item { from, encoded };
        let is_of_sender = |stream: &&mut Stream| from.is_some() && stream.from == from;
        self.weight += weight(item.encoded.len());
        self.large += usize::from(is_large(item.encoded.len()));
        match self.streams.iter_mut().find(is_of_sender) {
            Some(stream) => stream.behind.push_back(item),
            None => self.items.push_back(item),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.streams.is_empty()
    }

    /// Is there no room for what senders that wait send?
    pub(super) fn is_busy(&self) -> bool {
        self.weight >= busy_limit()
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        let of = |items: &VecDeque<Item>| items.iter().map(|it| it.encoded.len()).sum::<usize>();
        let rest = |it: &Stream| it.rest.len() + of(&it.behind);
        of(&self.items) + self.streams.iter().map(rest).sum::<usize>()
    }

    /// Has `pid` wait where there is no room, or until its own large signal has been taken; does it wait?
    pub(super) fn wait_for_room(&mut self, pid: Pid) -> bool {
        let sends = self.large > 0 && self.has_large_of(pid);
        let list = match (sends, self.is_busy()) {
            (true, _) => &mut self.sending,
            (false, true) => &mut self.waiting,
            (false, false) => return false,
        };
        if !list.contains(&pid) {
            list.push(pid);
        }
        true
    }

    /// Does a large signal of this process wait?
    fn has_large_of(&self, pid: Pid) -> bool {
        let is_of = |from, bytes| from == Some(pid) && is_large(bytes);
        let mut newest_first = self.items.iter().rev();
        newest_first.any(|it| is_of(it.from, it.encoded.len()))
            || self.streams.iter().any(|it| is_of(it.from, it.bytes))
    }

    /// All that wait.
    pub(super) fn into_waiting(self) -> impl Iterator<Item = Pid> {
        self.waiting.into_iter().chain(self.sending)
    }

    /// The next packet, with `cache` for its atoms.
    pub(super) fn take(&mut self, cache: &mut AtomCache) -> Option<Taken> {
        let of_stream = !self.streams.is_empty() && (self.items.is_empty() || !self.was_of_stream);
        self.was_of_stream = of_stream;
        let (packet, ended) = match of_stream {
            true => self.take_of_stream()?,
            false => self.take_first(cache)?,
        };
        let mut wakes = Vec::new();
        let sent = ended.as_ref().and_then(|signal| signal.from);
        if sent.is_some() && !self.sending.is_empty() {
            wakes.extend(self.sending.extract_if(.., |pid| Some(*pid) == sent));
        }
        if !self.waiting.is_empty() && !self.is_busy() {
            wakes.append(&mut self.waiting);
        }
        Some(Taken {
            packet,
            ended,
            wakes,
        })
    }

    /// A signal of this length has gone: its number.
    fn forget(&mut self, bytes: usize) -> u64 {
        self.weight -= weight(bytes);
        self.large -= usize::from(is_large(bytes));
        self.left += 1;
        self.left
    }

    /// The packet of the first item, and the signal that it ends.
    fn take_first(&mut self, cache: &mut AtomCache) -> Option<(Packet, Option<Ended>)> {
        let Item { from, mut encoded } = self.items.pop_front()?;
        let bytes = encoded.len();
        if encoded.first == bytes {
            let packet = encoded.first_packet(cache, None);
            let ended = Ended {
                from,
                number: self.forget(bytes),
                bytes,
                told: encoded.told,
            };
            return Some((packet, Some(ended)));
        }
        self.sequence += 1;
        let number = FragmentNumber {
            sequence: self.sequence,
            missing: (bytes - encoded.first).div_ceil(FRAGMENT_BYTES) as u64 + 1,
        };
        let packet = encoded.first_packet(cache, Some(number));
        let is_later = |item: &Item| from.is_some() && item.from == from;
        let items = std::mem::take(&mut self.items).into_iter();
        let (behind, others) = items.partition(is_later);
        self.items = others;
        self.streams.push_back(Stream {
            from,
            sequence: self.sequence,
            bytes,
            rest: encoded.bytes,
            told: encoded.told,
            behind,
        });
        Some((packet, None))
    }

    /// The next fragment of the stream whose turn it is, and the signal that it ends.
    fn take_of_stream(&mut self) -> Option<(Packet, Option<Ended>)> {
        let mut stream = self.streams.pop_front()?;
        let packet = stream.next_packet();
        if stream.missing() > 0 {
            self.streams.push_back(stream);
            return Some((packet, None));
        }
        let ended = Ended {
            from: stream.from,
            number: self.forget(stream.bytes),
            bytes: stream.bytes,
            told: stream.told,
        };
        // Before all others: they have waited for it.
        let behind = stream.behind.into_iter().rev();
        behind.for_each(|item| self.items.push_front(item));
        Some((packet, Some(ended)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dist::capabilities::DEFAULT;
    use crate::dist::input::Input;
    use crate::heap::Heap;

    fn encoded(sender: u64, number: usize, bytes: usize) -> Encoded {
        let heap = Heap::detached();
        let number = [Term::small(sender as i64), Term::small(number as i64)];
        let payload = heap.binary(&vec![sender as u8; bytes]);
        Encoded::of(DEFAULT, heap.tuple(&number), Some(payload)).expect("small")
    }

    proptest! {
        /// The other end puts together what was cut, the signals of each process in their order, and whoever has
        /// waited is woken.
        #[test]
        fn signals_come_whole_and_in_the_order_of_their_sender(
            signals in prop::collection::vec((0_u64..4, 0_usize..400_000), 1..20),
            takes in prop::collection::vec(0_usize..6, 20),
        ) {
            let (mut queue, mut sent, mut received) = (Queue::default(), AtomCache::default(), Input::default());
            let mut heard = vec![Vec::new(); 4];
            let mut waits = std::collections::BTreeSet::new();
            let mut take = |queue: &mut Queue, waits: &mut std::collections::BTreeSet<Pid>| {
                let Some(taken) = queue.take(&mut sent) else {
                    return false;
                };
                taken.wakes.iter().for_each(|pid| assert!(waits.remove(pid)));
                let packet = taken.packet.bytes();
                let whole = received.take(&packet).expect("a packet");
                let left = taken.ended.map(|it| (it.number, it.bytes));
                let came = whole.as_ref().map(|it| (it.number, it.len()));
                assert_eq!(left, came, "a signal has one number on both sides");
                if let Some(whole) = whole {
                    let heap = Heap::detached();
                    let control = whole.term(&heap, 0).expect("a term");
                    let payload = whole.term(&heap, control.used).expect("a term");
                    let (control, payload) = (control.term, payload.term);
                    let numbers = control.as_tuple().expect("a pair");
                    let [sender, number] = [0, 1].map(|at| numbers.get(at).as_index().expect("a number"));
                    let bytes = payload.as_binary().expect("a binary");
                    assert!(bytes.bytes().iter().all(|byte| usize::from(*byte) == sender));
                    heard[sender].push(number);
                }
                true
            };
            let mut expected = vec![Vec::new(); 4];
            for (number, ((sender, bytes), takes)) in signals.into_iter().zip(takes).enumerate() {
                // Large for some, and not for others.
                let pid = Pid(sender);
                // One that waits sends nothing.
                while waits.contains(&pid) {
                    prop_assert!(take(&mut queue, &mut waits));
                }
                queue.push(Some(pid), encoded(sender, number, bytes * (1 + 9 * (number % 2))));
                expected[sender as usize].push(number);
                if queue.wait_for_room(pid) {
                    waits.insert(pid);
                }
                (0..takes).for_each(|_| _ = take(&mut queue, &mut waits));
            }
            while take(&mut queue, &mut waits) {}
            prop_assert_eq!(heard, expected);
            prop_assert!(queue.is_empty() && queue.weight == 0 && queue.large == 0 && queue.bytes() == 0 && waits.is_empty());
        }
    }

    #[test]
    fn a_small_signal_goes_between_the_fragments_of_a_large_one() {
        let (mut queue, mut cache) = (Queue::default(), AtomCache::default());
        queue.push(Some(Pid(1)), encoded(1, 0, 1 << 20));
        queue.push(Some(Pid(2)), encoded(2, 1, 10));
        let mut kinds = Vec::new();
        while let Some(taken) = queue.take(&mut cache) {
            kinds.push(taken.packet.bytes()[1]);
        }
        assert_eq!(kinds.len(), 18);
        assert_eq!(&kinds[..4], b"EFDF");
    }
}
