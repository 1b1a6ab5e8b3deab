//! The terminal that the machine runs on: raw while a shell edits lines itself, and as it was at the end.

use std::os::fd::RawFd;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr,
    tcsetattr,
};

use crate::file::standard;

/// A terminal that is raw.
struct Raw {
    fd: RawFd,
    /// Its modes before.
    before: Termios,
    now: Termios,
}

static RAW: Mutex<Option<Raw>> = Mutex::new(None);

/// Makes the terminal behind the standard stream `fd` raw: each key is read as it is typed, and nothing is echoed or
/// translated. Ctrl-C and its like still send signals. Source: `tty_init_nif()` of `prim_tty_nif.c`.
///
/// # Errors
/// There is no terminal, or the system refuses.
pub fn make_raw(fd: RawFd) -> Result<(), Errno> {
    let mut raw = RAW.lock();
    let before = match &*raw {
        Some(raw) => raw.before.clone(),
        None => tcgetattr(standard(fd))?,
    };
    let mut now = before.clone();
    now.input_modes
        .remove(InputModes::ISTRIP | InputModes::ICRNL);
    now.local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO);
    now.output_modes.remove(OutputModes::OPOST);
    now.special_codes[SpecialCodeIndex::VMIN] = 1;
    now.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(standard(fd), OptionalActions::Now, &now)?;
    *raw = Some(Raw { fd, before, now });
    Ok(())
}

/// The modes of standard input from before its interrupt key was disabled.
static WITH_KEY: Mutex<Option<Termios>> = Mutex::new(None);

/// Has the terminal behind standard input, if there is one, send no signal for Ctrl-C until [`restore`]. Source:
/// `erts_replace_intr()` of `sys.c`.
pub fn disable_interrupt_key() {
    let Ok(before) = tcgetattr(standard(0)) else {
        return;
    };
    let mut now = before.clone();
    now.special_codes[SpecialCodeIndex::VINTR] = 0;
    if tcsetattr(standard(0), OptionalActions::Now, &now).is_ok() {
        *WITH_KEY.lock() = Some(before);
    }
}

/// Gives the terminal the modes that it had before it was made raw, if it was, and its interrupt key.
///
/// # Errors
/// The system refuses.
pub fn restore() -> Result<(), Errno> {
    if let Some(raw) = RAW.lock().take() {
        tcsetattr(standard(raw.fd), OptionalActions::Now, &raw.before)?;
    }
    match WITH_KEY.lock().take() {
        Some(before) => tcsetattr(standard(0), OptionalActions::Now, &before),
        None => Ok(()),
    }
}

/// Is the terminal raw?
pub fn is_raw() -> bool {
    RAW.lock().is_some()
}

/// Calls `work` while the terminal has the modes from before it was made raw. Where it is not a terminal any more, `work` is
/// called all the same.
pub fn with_modes_before(work: impl FnOnce()) {
    let set = |modes: fn(&Raw) -> &Termios| {
        if let Some(raw) = &*RAW.lock() {
            // A terminal that has gone has no modes to keep.
            let _ = tcsetattr(standard(raw.fd), OptionalActions::Now, modes(raw));
        }
    };
    set(|raw| &raw.before);
    work();
    set(|raw| &raw.now);
}
