//! Signals other than messages, as records of them tell.

/// What a signal of a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SignalKind {
    /// It monitors the other process.
    Monitor = 1,
    /// It gives up such a monitor.
    Demonitor = 2,
    /// It links to the other process.
    Link = 3,
    /// It gives up that link.
    Unlink = 4,
    /// An exit signal, which ends whoever does not trap exits: of a call of `exit/2`, or of the end of a linked process.
    Exit = 5,
    /// An exit signal that ends whoever traps exits, too.
    Kill = 6,
    /// An exit signal with the reason `normal`, which ends nobody.
    Normal = 7,
}

impl SignalKind {
    const ALL: [SignalKind; 7] = [
        SignalKind::Monitor,
        SignalKind::Demonitor,
        SignalKind::Link,
        SignalKind::Unlink,
        SignalKind::Exit,
        SignalKind::Kill,
        SignalKind::Normal,
    ];

    /// The one that a record's number stands for; `None` where nobody knows it.
    #[must_use]
    pub fn from_word(word: u64) -> Option<SignalKind> {
        let mut all = SignalKind::ALL.into_iter();
        all.find(|kind| *kind as u64 == word)
    }

    /// Whether it makes, or gives up, a link.
    #[must_use]
    pub fn is_of_link(self) -> bool {
        matches!(self, SignalKind::Link | SignalKind::Unlink)
    }

    /// Whether it is an exit signal.
    #[must_use]
    pub fn is_exit(self) -> bool {
        matches!(
            self,
            SignalKind::Exit | SignalKind::Kill | SignalKind::Normal
        )
    }
}
