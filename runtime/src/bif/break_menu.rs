//! The menu that Ctrl-C opens in an interactive shell. Source: `do_break()` of `break.c`, OTP 29.
//!
//! ERTS stops everything while its menu is open. Here processes go on, and only the shell reads no keys.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::io::retry_on_intr;

use super::system::release;
use super::system_text;
use crate::sys::stderr::complain;
use crate::sys::{file, halt, terminal};

const MENU: &str = "\n\x1b[JBREAK: (a)bort (A)bort with dump (c)ontinue (p)roc info (i)nfo\n       \
    (l)oaded (v)ersion (k)ill (D)b-tables (d)istribution\n";

static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Held by the thread of a menu until the terminal is raw again.
static MENUS: Mutex<()> = Mutex::new(());

/// Is the menu open? Then the keys are for it.
pub(crate) fn is_open() -> bool {
    IS_OPEN.load(Ordering::Acquire)
}

/// Opens the menu. Where it is open, the machine ends at once, as in ERTS.
pub(super) fn open() {
    if IS_OPEN.swap(true, Ordering::AcqRel) {
        return halt::request(0);
    }
    let shown = std::thread::Builder::new()
        .name("break menu".into())
        .spawn(|| {
            let _one_at_a_time = MENUS.lock();
            terminal::with_modes_before(|| {
                show();
                // Before the terminal is raw again: whoever sees that it is may press Ctrl-C for another menu.
                IS_OPEN.store(false, Ordering::Release);
            });
        });
    if let Err(error) = shown {
        complain!("beamline: there is no thread for the break menu: {error}");
        IS_OPEN.store(false, Ordering::Release);
    }
}

fn print(text: &str) {
    let mut out = io::stdout();
    // Where nobody reads, there is nobody to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The first byte of what is typed; `None` at the end of the input.
fn key() -> Option<u8> {
    let mut typed = [0; 64];
    match retry_on_intr(|| rustix::io::read(file::standard(0), &mut typed)) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(typed[0]),
    }
}

/// Shows the menu until something is chosen.
fn show() {
    print(MENU);
    loop {
        match key() {
            None | Some(b'q' | b'a') => return halt::request(0),
            Some(b'A') => {
                print("Crash dump requested by user\n");
                complain!("beamline: crash dumps are not written");
                return halt::request(1);
            }
            Some(b'c' | b'm') => return,
            Some(key) => {
                if let Some(text) = answer(key) {
                    return print(&text);
                }
            }
        }
    }
}

/// What is printed for a key; `None` for one that is not on the menu.
fn answer(key: u8) -> Option<String> {
    let not_there = |instead: &str| {
        format!("beamline: this is not on Beamline's menu; use {instead} in the shell\n")
    };
    Some(match key {
        b'i' => system_text::text("info")?,
        b'l' => system_text::text("loaded")?,
        b'd' => system_text::text("dist")?,
        b'v' => format!("Erlang (BEAM) emulator version {}\n", release().erts),
        b'p' => not_there("i(), or erlang:system_info(procs),"),
        b'o' => not_there("inet:i() and erlang:port_info/1"),
        b'k' => not_there("exit(Pid, kill)"),
        b'D' => not_there("ets:i()"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_menu_are_answered() {
        let answered = |key: &u8| answer(*key).is_some_and(|text| text.ends_with('\n'));
        assert!(b"ildvpokD".iter().all(answered));
        assert!(!b"acx\n".iter().any(answered));
    }
}
