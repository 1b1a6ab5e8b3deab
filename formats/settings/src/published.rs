//! What a running machine keeps in its memory for whoever looks at it from outside: where its machine code is, what its threads
//! run, and where the fields of its structures are. Both ends take the order of the words from here.
//!
//! The machine keeps a [`Published`] in its writable data, which begins with [`MAGIC`] and [`VERSION`]. It leads to the pieces of
//! machine code ([`Piece`]), to a record of each thread ([`Thread`]), and to the names of atoms. The reader trusts nothing of it.

use std::sync::atomic::AtomicU64;

/// How [`Published`] begins.
pub const MAGIC: [u64; 2] = [0x6e69_6c6d_6165_622e, 0x6465_6873_696c_6275];

/// The version of everything here. Who reads another one does not understand it.
pub const VERSION: u64 = 3;

/// What tells a [`Call`] from other words of a stack, which lie where one was when the thread makes no call.
pub const CALL_MARK: u64 = 0x6c6c_6163_7974_7269;

/// Pointers to pieces that are together; and how often there are so many.
pub const CHUNK: usize = 4096;
/// See [`CHUNK`].
pub const CHUNKS: usize = 1024;

/// A row of words with names, as the machine has it and as a reader gets it.
macro_rules! words {
    ($(#[$meta:meta])* $row:ident { $($(#[$doc:meta])* $name:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        pub struct $row<W> {
            $($(#[$doc])* pub $name: W,)*
        }

        impl $row<AtomicU64> {
            /// Zeros.
            #[must_use]
            pub const fn zeros() -> Self {
                Self { $($name: AtomicU64::new(0)),* }
            }
        }

        impl<W> $row<W> {
            /// How many words it has.
            pub const WORDS: usize = [$(stringify!($name)),*].len();

            /// The row of these words, in order.
            #[must_use]
            pub fn of_words(words: [W; [$(stringify!($name)),*].len()]) -> Self {
                let [$($name),*] = words;
                Self { $($name),* }
            }

            /// Its words, in order.
            #[must_use]
            pub fn words(&self) -> [&W; [$(stringify!($name)),*].len()] {
                [$(&self.$name),*]
            }
        }
    };
}

words! {
    /// What the machine publishes. Addresses are 0 until it runs; offsets are in bytes.
    Published {
        /// [`MAGIC`].
        magic,
        /// Its second word.
        magic_end,
        /// [`VERSION`].
        version,
        /// The first byte of machine code.
        code_start,
        /// Behind the last byte that there may be.
        code_end,
        /// What the oldest word of each stack returns to.
        normal_exit,
        /// The address of [`CHUNKS`] addresses of [`CHUNK`] addresses of pieces, of which any may be 0.
        chunks,
        /// How many of these addresses have been in use.
        count,
        /// How often a piece has gone, whose memory others may have got.
        gone,
        /// The first record of a thread.
        threads,
        /// From the frame of a thread to the address in machine code that it returns to.
        frame_back,
        /// From the frame to the entry of the function that is called through its entry.
        frame_entry,
        /// From the frame to the process that runs machine code; 0 there while none does.
        frame_process,
        /// From the frame to the top of the process's stack when machine code was left.
        frame_stop,
        /// In a process: its pid as a term.
        process_pid,
        /// In a process: the start of its heap.
        process_heap,
        /// In a process: the words of heap and stack.
        process_heap_words,
        /// In a process: the top of its stack when it was last saved.
        process_stop,
        /// In a process: a byte that is not 0 while it is collected.
        process_collects,
        /// In a process: indices of the module and of the function it starts in, 32 bits each.
        process_initial,
        /// In a process: the arity of that function, a byte.
        process_initial_arity,
        /// In a process: an address before its shared part.
        process_shared,
        /// How far before that it is.
        shared_within,
        /// In the shared part of a process: its pid without a tag.
        shared_pid,
        /// In the shared part: the index of the name it is registered as, plus one, 32 bits.
        shared_name,
        /// In the shared part: the process while it rests, or 0.
        shared_home,
        /// The address of addresses of rows of atoms.
        atoms,
        /// How many atoms a row has.
        atoms_row,
        /// Bytes of an atom.
        atom_bytes,
        /// In an atom: the address of its name, and the bytes of that.
        atom_name,
        /// From an entry to the module that it is of, as a term.
        entry_module,
        /// From an entry to the function, as a term.
        entry_function,
        /// From an entry to the arity, the low byte of a word.
        entry_arity,
        /// The low 16 bits of the word at the entry of a BIF.
        op_bif_entry,
        /// The low 16 bits of the word at the entry of a NIF.
        op_nif_entry,
        /// In a BIF: the address of its module's name, and the bytes of that.
        bif_module,
        /// In a BIF: likewise its own name.
        bif_function,
        /// In a BIF: its arity, a byte.
        bif_arity,
    }
}

words! {
    /// A thread of the machine that runs processes. It stays as long as the machine does.
    Thread {
        /// The record that was made before, or 0.
        next,
        /// Its number in the operating system.
        tid,
        /// Where its frame is, when machine code has run in it last. The word below says where machine code was left.
        frame,
        /// The process whose time slice or call it runs, or 0.
        process,
        /// The [`Call`] on its stack of a thread that has made calls of dirty schedulers, or 0.
        call,
    }
}

words! {
    /// The call that a dirty scheduler makes, on the stack of its thread: whoever copies the stack has what was called at that
    /// moment, however soon the call ends.
    Call {
        /// [`CALL_MARK`] while the call is made, when all other words are there.
        mark,
        /// The pid of the process as a term.
        pid,
        /// The entry of the function, where it was called by that.
        pc,
        /// The BIF that is called, or 0.
        away,
        /// The machine code that has called that, or 0 where it was called by its entry.
        away_from,
        /// The shared part of the process.
        shared,
    }
}

/// What a piece of machine code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function.
    Function,
    /// A fragment of the machine. Who has called it is in the thread's frame.
    Called,
    /// One whose caller is on the stack of the process.
    Entered,
    /// One that runs no process: it begins and ends time slices.
    Schedules,
    /// One that collects, called as [`Kind::Called`] is.
    Collects,
}

impl Kind {
    const ALL: [Kind; 5] = [
        Kind::Function,
        Kind::Called,
        Kind::Entered,
        Kind::Schedules,
        Kind::Collects,
    ];
}

/// A piece of machine code, in memory as the words of [`Piece::words`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: Kind,
    /// Its first byte.
    pub start: u64,
    /// How many bytes it has.
    pub bytes: u32,
    /// Of a function: the indices of its module and its name, and its arity.
    pub function: (u32, u32, u8),
    /// Of a fragment: its name.
    pub name: String,
    /// Where lines begin, as bytes from the start, ascending; 0 is no line.
    pub lines: Vec<(u32, u32)>,
    /// Behind which calls of BIFs: bytes from the start, ascending, and the address of the BIF.
    pub calls: Vec<(u32, u64)>,
}

/// Words before its parts: how many there are, start, bytes and kind, module and function, arity and bytes of the name, how many
/// lines and calls.
pub const PIECE_HEAD: usize = 6;

/// The most words that a piece has: more are none.
pub const PIECE_MAX: usize = 1 << 20;

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn parts(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

impl Piece {
    /// Its words.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        let length = |of: usize| u32::try_from(of).unwrap_or(0);
        let (module, function, arity) = self.function;
        let mut words = vec![
            0,
            self.start,
            pair(self.bytes, self.kind as u32),
            pair(module, function),
            pair(u32::from(arity), length(self.name.len())),
            pair(length(self.lines.len()), length(self.calls.len())),
        ];
        words.extend(self.lines.iter().map(|&(at, line)| pair(at, line)));
        for &(at, bif) in &self.calls {
            words.extend([u64::from(at), bif]);
        }
        for part in self.name.as_bytes().chunks(8) {
            let mut bytes = [0; 8];
            bytes[..part.len()].copy_from_slice(part);
            words.push(u64::from_le_bytes(bytes));
        }
        words[0] = words.len() as u64;
        words
    }

    /// The piece of these words; `None` where they are none.
    #[must_use]
    pub fn of_words(words: &[u64]) -> Option<Piece> {
        let (head, rest) = words.split_first_chunk::<PIECE_HEAD>()?;
        let [count, start, of, function, about, counts] = *head;
        let (bytes, kind) = parts(of);
        let (module, function) = parts(function);
        let (arity, name_bytes) = parts(about);
        let (lines, calls) = parts(counts);
        let (lines, rest) = rest.split_at_checked(lines as usize)?;
        let (calls, rest) = rest.split_at_checked(2 * calls as usize)?;
        let name: Vec<u8> = rest.iter().flat_map(|word| word.to_le_bytes()).collect();
        let name = name.get(..name_bytes as usize)?;
        let is_whole = count == words.len() as u64 && name_bytes.div_ceil(8) as usize == rest.len();
        is_whole.then_some(Piece {
            kind: *Kind::ALL.get(kind as usize)?,
            start,
            bytes,
            function: (module, function, u8::try_from(arity).ok()?),
            name: std::str::from_utf8(name).ok()?.to_owned(),
            lines: lines.iter().map(|word| parts(*word)).collect(),
            calls: calls
                .as_chunks::<2>()
                .0
                .iter()
                .map(|&[at, bif]| Some((u32::try_from(at).ok()?, bif)))
                .collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_read_as_it_was_written_and_a_part_of_it_is_none() {
        let function = Piece {
            kind: Kind::Function,
            start: 0x7f00_0000_0040,
            bytes: 640,
            function: (12, 7, 255),
            name: String::new(),
            lines: vec![(0, 3), (17, 4)],
            calls: vec![(33, 0x7f11_2233_4455)],
        };
        let fragment = Piece {
            kind: Kind::Collects,
            function: (0, 0, 0),
            name: "collect_words".into(),
            lines: vec![],
            calls: vec![],
            ..function.clone()
        };
        for piece in [function, fragment] {
            let words = piece.words();
            assert_eq!(Piece::of_words(&words), Some(piece));
            for count in 0..words.len() {
                assert_eq!(Piece::of_words(&words[..count]), None, "{count}");
            }
            let mut other = words.clone();
            other[2] |= 7 << 32;
            assert_eq!(Piece::of_words(&other), None, "a kind that there is not");
        }
    }

    #[test]
    fn words_have_the_order_of_their_names() {
        let words: [u64; Thread::<u64>::WORDS] = [1, 2, 3, 4, 5];
        let thread = Thread::of_words(words);
        assert_eq!((thread.next, thread.frame, thread.process), (1, 3, 4));
        assert_eq!(thread.words().map(|word| *word), words);
        assert_eq!(std::mem::offset_of!(Thread<u64>, frame), 16);
    }
}
