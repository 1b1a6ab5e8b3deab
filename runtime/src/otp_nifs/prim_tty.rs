//! The native functions of `prim_tty`: the standard streams as `user` uses them. Source: `prim_tty_nif.c`, OTP 29.
//!
//! A terminal has the modes from before it was made raw again when the process that made it raw ends, and at the end of the
//! machine.

use std::io::IoSlice;
use std::os::fd::RawFd;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::termios;

use super::terminfo::names::{BOOLEANS, NUMBERS, Row, STRINGS};
use super::terminfo::tparm::{PARAMETERS, tparm, without_pauses};
use super::terminfo::{Terminal, Text};
use super::{atom, error, inspect_iovec, int, int64, new_object, object, ok, posix_error, uint64};
use crate::bif::{BifResult, Raise, badarg, bifs, break_menu, os};
use crate::heap::{Heap, Message};
use crate::process::refs::make_ref;
use crate::process::watcher::{WatchedBy, Watcher};
use crate::process::{Process, Signal};
use crate::sys::chance::outside;
use crate::sys::chance::poll::{self, Interest, Ready};
use crate::sys::{errno, file, locale, terminal};
use crate::term::{Pid, Term, am};
use crate::value::iolist;

bifs! {
    bif prim_tty:"isatty"/1 => isatty_1, answer;
    bif prim_tty:"tty_create"/1 => tty_create_1, again;
    bif prim_tty:"tty_init"/2 => tty_init_2, outside;
    bif prim_tty:"setlocale"/1 => setlocale_1, outside;
    bif prim_tty:"tty_is_open"/2 => tty_is_open_2, answer;
    bif prim_tty:"tty_select"/2 => tty_select_2, outside;
    bif prim_tty:"tty_window_size"/1 => tty_window_size_1, answer;
    bif prim_tty:"write_nif"/2 => write_nif_2, outside;
    bif prim_tty:"tty_encoding"/1 => tty_encoding_1, answer;
    bif prim_tty:"read_nif"/3 => read_nif_3, answer;
    bif prim_tty:"isprint"/1 => isprint_1, own;
    bif prim_tty:"wcwidth"/1 => wcwidth_1, own;
    bif prim_tty:"wcswidth"/1 => wcswidth_1, own;
    bif prim_tty:"sizeof_wchar"/0 => sizeof_wchar_0, own;
    bif prim_tty:"setupterm_nif"/0 => setupterm_nif_0, outside;
    bif prim_tty:"tinfo_nif"/0 => tinfo_nif_0, answer;
    bif prim_tty:"tigetnum_nif"/1 => tigetnum_nif_1, answer;
    bif prim_tty:"tigetflag_nif"/1 => tigetflag_nif_1, answer;
    bif prim_tty:"tigetstr_nif"/1 => tigetstr_nif_1, answer;
    bif prim_tty:"tputs_nif"/2 => tputs_nif_2, own;
}

const STDIN: RawFd = 0;

/// Most bytes of one read.
const READ_BYTES: u64 = 1024;

struct Tty {
    output: RawFd,
}

/// The descriptor that `stdin`, `stdout` or `stderr` stands for.
fn stream(name: Term<'_>) -> Result<RawFd, Raise<'static>> {
    match name.as_atom().map(|name| name.name()) {
        Some("stdin") => Ok(STDIN),
        Some("stdout") => Ok(1),
        Some("stderr") => Ok(2),
        _ => Err(badarg()),
    }
}

fn isatty_1<'p>(_p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(match termios::tcgetattr(file::standard(stream(name)?)) {
        Ok(_) => true.into(),
        Err(Errno::NOTTY | Errno::INVAL) => false.into(),
        Err(_) => atom("ebadf"),
    })
}

fn tty_create_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    match stream(name)? {
        STDIN => Err(badarg().into()),
        output => Ok(ok(p, new_object(p, Tty { output }))),
    }
}

fn tty_init_2<'p>(p: &'p Process, [tty, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let output = object::<Tty>(tty)?.output;
    let input = options
        .as_map()
        .and_then(|map| map.get(atom("input")))
        .ok_or_else(badarg)?;
    let is_raw = input.same(atom("raw"));
    if termios::tcgetattr(file::standard(output)).is_err() {
        return Ok(match is_raw {
            true => error(p, atom("enotsup")),
            false => am::ok.term(),
        });
    }
    let was_raw = terminal::is_raw();
    let set = match is_raw {
        true => terminal::make_raw(output),
        false => terminal::restore(),
    };
    if let Err(errno) = set {
        let errno = atom(errno::errno_name(errno.raw_os_error()));
        return Ok(error(p, p.tuple(&[atom("tcsetattr"), errno])));
    }
    if is_raw && !was_raw {
        os::handle_interrupts();
        restore_behind(p);
    }
    Ok(am::ok.term())
}

/// Restores the terminal when the process ends.
fn restore_behind(p: &Process) {
    // A terminal that has gone is not restored.
    let told = Box::new(|_: Term<'_>| _ = terminal::restore());
    let by = WatchedBy::Runtime;
    let watcher = Watcher { told, by };
    p.relations().watchers.insert(make_ref(), watcher);
}

fn setlocale_1<'p>(_p: &'p Process, [_tty]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(locale::is_utf8().into())
}

fn tty_is_open_2<'p>(p: &'p Process, [tty, name]: [Term<'p>; 2]) -> BifResult<'p> {
    object::<Tty>(tty)?;
    match poll::hung_up(stream(name)?) {
        Ok(Some(hung_up)) => Ok((!hung_up).into()),
        Ok(None) => Err(badarg().into()),
        Err(e) => {
            let reason = p.tuple(&[atom("tty_is_open"), atom(errno::name_of(&e))]);
            Ok(error(p, reason))
        }
    }
}

/// Has `{select, TTY, Ref, ready_input}` sent to this process once there is input.
fn select<'p>(p: &'p Process, tty: Term<'p>, reference: Term<'p>) {
    // No part of its heap: a replay has no need to build it.
    let message = Heap::detached().into_message(|heap| {
        let [tty, reference] = [tty, reference].map(|term| heap.copy_in(term));
        heap.tuple(&[atom("select"), tty, reference, atom("ready_input")])
    });
    let pid = p.pid();
    p.await_input(message, move |message| {
        let message = Mutex::new(Some(message));
        poll::watch(STDIN, Interest::Read, Arc::new(Reader { pid, message }));
    });
}

/// A process that waits for input, and what it is sent once there is some.
struct Reader {
    pid: Pid,
    message: Mutex<Option<Message>>,
}

impl Ready for Reader {
    fn ready(self: Arc<Self>, _fd: RawFd, _interest: Interest) {
        if let Some(message) = self.message.lock().take() {
            // A reader that is gone reads no more.
            let _ = crate::process::send(self.pid, Signal::own(message, self.pid));
        }
    }
}

fn tty_select_2<'p>(p: &'p Process, [tty, reference]: [Term<'p>; 2]) -> BifResult<'p> {
    object::<Tty>(tty)?;
    select(p, tty, reference);
    Ok(am::ok.term())
}

fn read_nif_3<'p>(p: &'p Process, [tty, reference, size]: [Term<'p>; 3]) -> BifResult<'p> {
    object::<Tty>(tty)?;
    let size = uint64(size).ok_or_else(badarg)?.min(READ_BYTES);
    let mut bytes = vec![0; size as usize];
    // A port may read it too, and have been faster: nobody is to wait for more here.
    let taken = match !break_menu::is_open() && poll::is_readable(STDIN) {
        true => rustix::io::read(file::standard(STDIN), &mut bytes),
        false => Err(Errno::AGAIN),
    };
    let read = match taken {
        Ok(0) => return Ok(error(p, atom("closed"))),
        Ok(n) => {
            outside::take(|| "standard input".to_owned());
            n
        }
        Err(Errno::AGAIN | Errno::INTR) => 0,
        Err(e) => {
            let errno = atom(errno::errno_name(e.raw_os_error()));
            return Ok(error(p, p.tuple(&[atom("read"), errno])));
        }
    };
    select(p, tty, reference);
    Ok(ok(p, p.binary(&bytes[..read])))
}

fn write_nif_2<'p>(p: &'p Process, [tty, iovec]: [Term<'p>; 2]) -> BifResult<'p> {
    let output = object::<Tty>(tty)?.output;
    let mut rest = iovec;
    while !rest.is_nil() {
        let (pieces, tail) = inspect_iovec(rest)?;
        let bytes: Vec<_> = pieces.iter().map(|bits| bits.bytes()).collect();
        let mut slices: Vec<IoSlice<'_>> = bytes.iter().map(|b| IoSlice::new(b)).collect();
        if let Err(errno) = write_all(output, &mut slices) {
            return Ok(posix_error(p, errno.raw_os_error()));
        }
        rest = tail;
    }
    Ok(am::ok.term())
}

fn write_all(output: RawFd, mut slices: &mut [IoSlice<'_>]) -> Result<(), Errno> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match rustix::io::writev(file::standard(output), slices) {
            Ok(n) => IoSlice::advance_slices(&mut slices, n),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => poll::wait_writable(output),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn tty_window_size_1<'p>(p: &'p Process, [tty]: [Term<'p>; 1]) -> BifResult<'p> {
    let output = object::<Tty>(tty)?.output;
    let size = [STDIN, output]
        .into_iter()
        .find_map(|fd| termios::tcgetwinsize(file::standard(fd)).ok());
    let Some(size) = size.filter(|size| size.ws_col > 0 || size.ws_row > 0) else {
        return Ok(error(p, atom("enotsup")));
    };
    let number = |n: u16| Term::small(if n > 0 { n.into() } else { -1 });
    let size = p.tuple(&[number(size.ws_col), number(size.ws_row)]);
    Ok(ok(p, size))
}

fn tty_encoding_1<'p>(_p: &'p Process, [_tty]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(atom("utf8"))
}

fn isprint_1<'p>(_p: &'p Process, [c]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok((0x20..0x7f).contains(&int(c)?).into())
}

fn not_printable(p: &Process) -> Term<'_> {
    error(p, atom("not_printable"))
}

fn wcwidth_1<'p>(p: &'p Process, [c]: [Term<'p>; 1]) -> BifResult<'p> {
    let c = int(c)?;
    let width = u32::try_from(c).ok().and_then(locale::column_width);
    Ok(width.map_or_else(|| not_printable(p), |n| Term::small(n.into())))
}

fn wcswidth_1<'p>(p: &'p Process, [text]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = iolist::to_vec(text)?;
    let chars = bytes
        .chunks_exact(size_of::<libc::wchar_t>())
        .map(|c| u32::from_ne_bytes(c.try_into().expect("four bytes")))
        .take_while(|&c| c != 0);
    let width: Option<u32> = chars.map(locale::column_width).sum();
    Ok(match width {
        Some(width) => ok(p, Term::small(width.into())),
        None => not_printable(p),
    })
}

fn sizeof_wchar_0<'p>(_p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(Term::small(size_of::<libc::wchar_t>() as i64))
}

/// The terminal that `$TERM` names, once it has been asked for.
static TERMINAL: Mutex<Option<Terminal>> = Mutex::new(None);

fn setupterm_nif_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    match Terminal::of_environment() {
        Some(terminal) => {
            *TERMINAL.lock() = Some(terminal);
            Ok(am::ok.term())
        }
        None => Ok(error(p, p.tuple(&[atom("setupterm"), atom("enoent")]))),
    }
}

/// All capabilities of a kind, the last one first: `[#{name, code, full_name}]`.
fn capabilities<'p>(p: &'p Process, rows: &[Row]) -> Term<'p> {
    let capability = |&(name, code, full_name): &Row| {
        let value = |key: &str, value: &str| (atom(key), p.string(value));
        let pairs = [
            value("name", name),
            value("code", code),
            value("full_name", full_name),
        ];
        crate::value::map::from_pairs(p, &pairs)
    };
    p.list(&rows.iter().rev().map(capability).collect::<Vec<_>>())
}

fn tinfo_nif_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let pairs = [
        (atom("bool"), capabilities(p, &BOOLEANS)),
        (atom("num"), capabilities(p, &NUMBERS)),
        (atom("str"), capabilities(p, &STRINGS)),
    ];
    Ok(crate::value::map::from_pairs(p, &pairs))
}

/// A name or a string, up to a zero byte.
fn c_string(term: Term<'_>) -> Result<Vec<u8>, Raise<'static>> {
    let mut bytes = iolist::to_vec(term)?;
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    Ok(bytes)
}

fn tigetnum_nif_1<'p>(p: &'p Process, [code]: [Term<'p>; 1]) -> BifResult<'p> {
    let code = c_string(code)?;
    let number = TERMINAL.lock().as_ref().map(|it| it.number(&code));
    Ok(p.integer(number.unwrap_or(-1).into()))
}

fn tigetflag_nif_1<'p>(_p: &'p Process, [code]: [Term<'p>; 1]) -> BifResult<'p> {
    let code = c_string(code)?;
    let flag = TERMINAL.lock().as_ref().map(|it| it.flag(&code));
    Ok(flag.unwrap_or(false).into())
}

fn tigetstr_nif_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = c_string(name)?;
    let text = TERMINAL.lock().as_ref().map(|it| it.string(&name));
    match text {
        Some(Text::Is(text)) => Ok(ok(p, p.binary(&text))),
        Some(Text::Absent) => Ok(false.into()),
        Some(Text::Cancelled) | None => Err(badarg().into()),
    }
}

fn tputs_nif_2<'p>(p: &'p Process, [string, list]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut string = c_string(string)?;
    let mut parameters = [0; PARAMETERS];
    let mut count = 0;
    for parameter in list.list_iter() {
        let parameter = int64(parameter.map_err(|_| badarg())?).ok_or_else(badarg)?;
        *parameters.get_mut(count).ok_or_else(badarg)? = parameter;
        count += 1;
    }
    if count > 0 {
        string = tparm(&string, parameters);
    }
    Ok(ok(p, p.binary(&without_pauses(&string))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'p>(result: BifResult<'p>) -> Term<'p> {
        result.ok().expect("no exception")
    }

    #[test]
    fn widths_of_characters() {
        let p = &Process::new(233);
        let width = |c: i64| value(wcwidth_1(p, [Term::small(c)]));
        assert_eq!(width(0x61).as_small(), Some(1));
        assert!(
            width(7)
                .as_tuple()
                .is_some_and(|t| t.get(1).same(atom("not_printable")))
        );
        let text: Vec<u8> = "abc"
            .chars()
            .flat_map(|c| u32::from(c).to_ne_bytes())
            .collect();
        let sum = value(wcswidth_1(p, [p.binary(&text)])).as_tuple().unwrap();
        assert!(sum.get(0) == am::ok && sum.get(1).as_small() == Some(3));
        assert!(value(isprint_1(p, [Term::small(0x7f)])) == am::false_);
        assert!(value(isprint_1(p, [Term::small(0x20)])) == am::true_);
    }

    #[test]
    fn raw_mode_is_refused_where_there_is_no_terminal() {
        let p = &Process::new(233);
        assert!(tty_create_1(p, [atom("stdin")]).is_err());
        let tty = value(tty_create_1(p, [atom("stdout")]))
            .as_tuple()
            .unwrap()
            .get(1);
        let options = |mode| p.flat_map(p.tuple(&[atom("input")]), &[atom(mode)]);
        assert!(value(tty_init_2(p, [tty, options("cooked")])) == am::ok);
        assert!(
            value(tty_init_2(p, [tty, options("raw")]))
                .as_tuple()
                .unwrap()
                .get(1)
                .same(atom("enotsup"))
        );
        assert!(tty_init_2(p, [tty, atom("raw")]).is_err());
    }
}
