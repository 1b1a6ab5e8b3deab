//! What others may see of this machine from outside: a table of pieces of machine code, and a record of each thread that runs
//! processes. Nobody here reads any of it.
//!
//! [`PUBLISHED`] leads to all of it, and `beamline_settings::published` says what its words are. A piece is there as long as its
//! [`Listed`], and a record for ever. Readers are other programs, which see a store as it is made: what a word leads to is whole
//! before the word is stored.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use beamline_settings::published::{self, CALL_MARK, CHUNK, CHUNKS, MAGIC, Piece, VERSION};
use parking_lot::Mutex;

use crate::process::Process;
use crate::sys::chance::names;

/// What leads others to everything.
pub(crate) type Published = published::Published<AtomicU64>;

/// A thread, as others see it.
pub(crate) type Thread = published::Thread<AtomicU64>;

/// A call on a dirty scheduler, as others see it.
type Call = published::Call<AtomicU64>;

/// As it begins with words that are not zero, it is in the data of the program's file, where others look for it. Most of the
/// words are stored when the machine starts.
static PUBLISHED: Published = Published {
    magic: AtomicU64::new(MAGIC[0]),
    magic_end: AtomicU64::new(MAGIC[1]),
    version: AtomicU64::new(VERSION),
    ..Published::zeros()
};

type Chunk = [AtomicU64; CHUNK];

/// Where pieces are.
struct Table {
    /// Addresses of chunks, for others.
    addresses: [AtomicU64; CHUNKS],
    chunks: [OnceLock<Box<Chunk>>; CHUNKS],
    /// Places whose pieces are gone, and the first that no piece has had.
    free: Mutex<(Vec<usize>, usize)>,
}

static TABLE: Table = Table {
    addresses: [const { AtomicU64::new(0) }; CHUNKS],
    chunks: [const { OnceLock::new() }; CHUNKS],
    free: Mutex::new((Vec::new(), 0)),
};

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>().addr() as u64
}

/// Publishes these words of a machine that starts; the first three, the table and the threads stay as they are.
pub(crate) fn start(words: &published::Published<u64>) {
    let kept = PUBLISHED.words().map(|word| word.load(Ordering::Relaxed));
    let kept = published::Published::of_words(kept);
    let all = published::Published {
        magic: kept.magic,
        magic_end: kept.magic_end,
        version: kept.version,
        chunks: address(&TABLE.addresses),
        count: kept.count,
        gone: kept.gone,
        threads: kept.threads,
        ..*words
    };
    for (to, word) in PUBLISHED.words().into_iter().zip(all.words()) {
        to.store(*word, Ordering::Release);
    }
}

/// A piece of machine code that others see as long as this lives.
pub(crate) struct Listed {
    place: usize,
    /// What others read.
    _words: Box<[u64]>,
}

impl Table {
    fn word(&self, place: usize) -> &AtomicU64 {
        let at = place / CHUNK;
        let chunk = self.chunks[at].get_or_init(|| {
            let chunk: Box<Chunk> = Box::new([const { AtomicU64::new(0) }; CHUNK]);
            self.addresses[at].store(address(&*chunk), Ordering::Release);
            chunk
        });
        &chunk[place % CHUNK]
    }
}

impl Listed {
    /// Has others see a piece. There are places for as many as there can be blocks of machine code.
    pub(crate) fn new(piece: &Piece) -> Listed {
        let words: Box<[u64]> = piece.words().into();
        let mut free = TABLE.free.lock();
        let place = free.0.pop().unwrap_or(free.1);
        free.1 = free.1.max(place + 1);
        TABLE.word(place).store(address(&*words), Ordering::Release);
        PUBLISHED.count.store(free.1 as u64, Ordering::Release);
        Listed {
            place,
            _words: words,
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut free = TABLE.free.lock();
        TABLE.word(self.place).store(0, Ordering::Release);
        PUBLISHED.gone.fetch_add(1, Ordering::AcqRel);
        free.0.push(self.place);
    }
}

thread_local! {
    static OWN: &'static Thread = register();
}

/// Records of threads are added one after the other.
static REGISTERING: Mutex<()> = Mutex::new(());

fn register() -> &'static Thread {
    let _registering = REGISTERING.lock();
    let first = PUBLISHED.threads.load(Ordering::Acquire);
    let words = [first, names::own_tid().into(), 0, 0, 0];
    let thread: &Thread = Box::leak(Box::new(Thread::of_words(words.map(AtomicU64::new))));
    PUBLISHED.threads.store(address(thread), Ordering::Release);
    thread
}

/// The record of this thread.
#[inline]
pub(crate) fn own_thread() -> &'static Thread {
    OWN.with(|own| *own)
}

/// Says that this thread runs `p`, until it says something else.
#[inline]
pub(crate) fn set_process(p: &Process) {
    own_thread().process.store(address(p), Ordering::Relaxed);
}

/// Says that this thread runs no process.
#[inline]
pub(crate) fn clear_process() {
    own_thread().process.store(0, Ordering::Relaxed);
}

/// Makes the call of a stand-in, which others find on this thread's stack.
pub(crate) fn make_call(stand_in: &Process, call: impl FnOnce()) {
    let words = Call::zeros();
    let away = stand_in.native_pc.get();
    for (to, word) in [
        (&words.pc, stand_in.pc.get().word()),
        (&words.away, away.pc.word()),
        (&words.away_from, away.native),
        (&words.shared, address(stand_in.shared())),
        (&words.pid, stand_in.pid().term().raw().0),
        // Last: it says that the others are there.
        (&words.mark, CALL_MARK),
    ] {
        to.store(word, Ordering::Release);
    }
    own_thread().call.store(address(&words), Ordering::Relaxed);
    set_process(stand_in);
    call();
    clear_process();
    // What was there is still on the stack when others copy it.
    words.mark.store(0, Ordering::Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use beamline_settings::published::Kind;

    use super::*;

    /// The address of the piece in a place, as others find it.
    fn found(place: usize) -> u64 {
        TABLE.word(place).load(Ordering::Acquire)
    }

    fn piece(start: u64) -> Piece {
        Piece {
            kind: Kind::Function,
            start,
            bytes: 64,
            function: (1, 2, 3),
            name: String::new(),
            lines: vec![(0, 9)],
            calls: vec![],
        }
    }

    #[test]
    fn a_piece_is_seen_until_it_is_gone() {
        let gone = || PUBLISHED.gone.load(Ordering::Acquire);
        let one = Listed::new(&piece(64));
        let place = one.place;
        assert_eq!(found(place), address(&*one._words));
        assert_eq!(Piece::of_words(&one._words), Some(piece(64)));
        let before = gone();
        drop(one);
        assert!(gone() > before);
        assert_eq!(found(place), 0);
    }

    #[test]
    fn each_thread_has_a_record_of_its_own() {
        let own = own_thread();
        assert_eq!(own.tid.load(Ordering::Relaxed), u64::from(names::own_tid()));
        assert!(std::ptr::eq(own, own_thread()));
        let other = std::thread::spawn(|| address(own_thread()));
        let other = other.join().expect("it ends");
        assert_ne!(address(own), other);
        assert_ne!(PUBLISHED.threads.load(Ordering::Acquire), 0);
    }

    #[test]
    fn a_thread_says_whose_time_slice_it_runs() {
        let p = Process::new(233);
        set_process(&p);
        let own = own_thread();
        assert_eq!(own.process.load(Ordering::Relaxed), address(&p));
        clear_process();
        assert_eq!(own.process.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_thread_says_where_its_call_is_while_it_makes_it() {
        let p = Process::new(234);
        let own = own_thread();
        let begun = address(&own);
        make_call(&p, || {
            let call = own.call.load(Ordering::Relaxed);
            assert!(
                call.abs_diff(begun) < 1 << 16,
                "it is on this thread's stack"
            );
            assert_eq!(own.process.load(Ordering::Relaxed), address(&p));
        });
        assert_eq!(own.process.load(Ordering::Relaxed), 0);
    }
}
