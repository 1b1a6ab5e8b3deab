//! Input in a replay: a process that waits for input hears of it when it did in the recorded run, and what it reads
//! then is recorded, too.

use std::fmt;

use crate::heap::Message as HeapMessage;
use crate::process::{Process, Signal};
use crate::term::Pid;

/// The message that a process gets that waits for input, and how it waits where nothing is recorded.
pub(super) struct Input {
    word: HeapMessage,
    reader: Pid,
    watch: Box<dyn FnOnce(HeapMessage) + Send>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Input")
    }
}

impl Input {
    /// The reader's message in the recorded run.
    pub(super) fn tell(&self) -> Signal {
        Signal::own(HeapMessage::copy_of(self.word.term()), self.reader)
    }

    /// The reader runs free: it waits for input.
    pub(super) fn go_on(self) {
        (self.watch)(self.word);
    }
}

impl Process {
    /// Waits for input by `watch`, which has `word` sent to it. As long as it follows a recorded run, the word comes
    /// when it came there.
    pub(crate) fn await_input(
        &self,
        word: HeapMessage,
        watch: impl FnOnce(HeapMessage) + Send + 'static,
    ) {
        let follows = self.replay_state();
        let Some(mut follows) = follows.filter(|follows| !follows.cursor.is_over()) else {
            return watch(word);
        };
        follows.input = Some(Input {
            word,
            reader: self.pid(),
            watch: Box::new(watch),
        });
    }
}
