//! Tests with processes whose code is Rust closures, on real schedulers.

use crate::sys::chance::clock::outside_now;
use crate::term::CodeAddress;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use super::*;
use crate::heap::Message;
use crate::sched;
use crate::term::am;

const LONG: Duration = Duration::from_secs(20);
const GOES_ON: &str = "nothing ends this process";

fn spawn(body: impl FnMut(&mut Process) -> Outcome + Send + 'static) -> Pid {
    crate::scheduler::start();
    spawn_native(&SpawnOptions::default(), body)
}

/// Waits for the next message and hands it to `then`.
fn receive(p: &mut Process, mut then: impl FnMut(&Process, Term<'_>) -> Outcome) -> Outcome {
    loop {
        let message = match p.peek_message() {
            Ok(Some(message)) => message.raw(),
            Ok(None) => {
                p.wait();
                return Outcome::Wait;
            }
            Err(exiting) => return Outcome::Exit(exiting),
        };
        p.remove_message();
        // SAFETY: T1: just attached to this heap.
        let outcome = then(p, unsafe { Term::new(message) });
        if outcome != Outcome::Wait {
            return outcome;
        }
    }
}

fn exit(p: &Process, reason: Atom) -> Outcome {
    Outcome::Exit(p.exit_with(reason.term()))
}

/// A process that sends the text of each message it gets to the channel, and traps exits.
fn reporter() -> (Pid, Receiver<String>) {
    let (out, texts) = channel::<String>();
    let pid = spawn(move |p| {
        p.change_flags(|flags| flags.trap_exit = true);
        receive(p, |p, message| {
            if message == am::normal {
                return exit(p, am::normal);
            }
            let _ = out.send(show(message));
            Outcome::Wait
        })
    });
    (pid, texts)
}

/// Atoms, small integers and tuples as text; other terms as `_`.
fn show(term: Term<'_>) -> String {
    use crate::term::View;
    match term.view() {
        View::Atom(atom) => atom.to_string(),
        View::Small(n) => n.to_string(),
        View::Tuple(tuple) => {
            let parts: Vec<_> = tuple.elements().iter().map(|e| show(*e)).collect();
            format!("{{{}}}", parts.join(","))
        }
        _ => "_".into(),
    }
}

fn request(to: Pid, run: impl FnOnce(&mut Process) + Send + 'static) {
    deliver(
        to,
        Signal::request(move |p| run(p.expect("the process lives"))),
    );
}

/// Runs `run` in the context of `to` and waits for what it gives.
fn ask<T: Send + 'static>(to: Pid, run: impl FnOnce(&mut Process) -> T + Send + 'static) -> T {
    let (out, answer): (Sender<T>, _) = channel();
    request(to, move |p| out.send(run(p)).expect("the test waits"));
    answer.recv_timeout(LONG).expect("an answer")
}

fn idle() -> Pid {
    spawn(|p| receive(p, |p, message| exit(p, message.as_atom().expect("an atom"))))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = outside_now();
    while !holds() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::yield_now();
    }
}

fn send_atom(to: Pid, atom: Atom) {
    let _ = send(to, Signal::message(atom.term(), to));
}

#[test]
fn what_a_process_gives_back_it_has_not_spent() {
    for (before, spent) in [
        (4000, 0),
        (4000, 17),
        (10, 9),
        (10, 10),
        (10, 11),
        (1, 1),
        (7, 4007),
        (4000, 1_000_000),
    ] {
        let p = Process::new(0);
        p.fcalls.set(before);
        let reductions = p.reductions();
        for _ in 0..spent {
            p.bump_reds(1);
            if p.fcalls.get() == 0 {
                p.new_slice();
            }
        }
        assert_eq!(p.reductions(), reductions + spent);
        p.give_back(spent as i64);
        assert_eq!(
            (p.fcalls.get(), p.reductions()),
            (before, reductions),
            "{spent} of {before}"
        );
    }
}

#[test]
fn messages_arrive_in_order_whole() {
    let (pid, texts) = reporter();
    let heap = Heap::detached();
    for i in 0..1000 {
        let message = heap.tuple(&[am::ok.term(), Term::small(i)]);
        deliver(pid, Signal::message(message, pid));
    }
    for i in 0..1000 {
        assert_eq!(texts.recv_timeout(LONG).unwrap(), format!("{{ok,{i}}}"));
    }
    send_atom(pid, am::normal);
    eventually("it exits", || !exists(pid));
}

#[test]
fn a_link_brings_the_exit_reason_both_ways() {
    for linker_dies in [true, false] {
        let (watcher, texts) = reporter();
        let other = idle();
        ask(watcher, move |p| p.link(other.into(), false));
        if linker_dies {
            // The watcher's exit ends the other, which traps nothing.
            ask(watcher, |p| {
                let _ = p.exit_with(am::error.term());
            });
            eventually("the other dies", || !exists(other));
        } else {
            send_atom(other, am::badarg);
            assert_eq!(texts.recv_timeout(LONG).unwrap(), "{EXIT,_,badarg}");
            send_atom(watcher, am::normal);
        }
        eventually("it exits", || !exists(watcher));
    }
}

#[test]
fn a_link_that_is_given_up_accepts_no_priority_messages() {
    let (linker, other) = (idle(), idle());
    let accepts = |peer: Pid, priority: Option<bool>| {
        ask(linker, move |p| {
            match priority {
                Some(priority) => p.link(peer.into(), priority),
                None => p.unlink(peer.into()),
            };
            p.accepts_priority_messages()
        })
    };
    assert!(accepts(other, Some(true)));
    assert!(!accepts(other, Some(false)));
    assert!(accepts(other, Some(true)));
    assert!(!accepts(other, None));
    send_atom(linker, am::normal);
    send_atom(other, am::normal);
}

#[test]
fn linking_the_dead_gives_noproc() {
    let (watcher, texts) = reporter();
    let dead = idle();
    send_atom(dead, am::normal);
    eventually("it exits", || !exists(dead));
    ask(watcher, move |p| p.link(dead.into(), false));
    assert_eq!(texts.recv_timeout(LONG).unwrap(), "{EXIT,_,noproc}");
    let reference = ask(watcher, move |p| {
        p.monitor(Monitored::Process(dead), None, None, false)
    });
    assert_eq!(
        texts.recv_timeout(LONG).unwrap(),
        "{DOWN,_,process,_,noproc}"
    );
    assert!(!ask(watcher, move |p| p.demonitor(reference, true)));
    send_atom(watcher, am::normal);
}

#[test]
fn an_exit_signal_ends_what_does_not_trap() {
    let (watcher, texts) = reporter();
    for (reason, survives) in [(am::normal, true), (am::kill, false), (am::badarg, false)] {
        let other = idle();
        ask(watcher, move |p| {
            p.monitor(Monitored::Process(other), None, None, false);
            p.send_exit(other, None, reason.term(), false, false);
        });
        if survives {
            send_atom(other, am::ok);
        }
        let expect = if survives {
            "ok"
        } else if reason == am::kill {
            "killed"
        } else {
            "badarg"
        };
        let down = texts.recv_timeout(LONG).unwrap();
        assert_eq!(down, format!("{{DOWN,_,process,_,{expect}}}"));
    }
    send_atom(watcher, am::normal);
}

#[test]
fn no_exit_signal_comes_after_unlink() {
    let (watcher, texts) = reporter();
    for _ in 0..if cfg!(miri) { 5 } else { 500 } {
        let other = idle();
        ask(watcher, move |p| p.link(other.into(), false));
        send_atom(other, am::badarg);
        // The other may be exiting just now.
        ask(watcher, move |p| {
            p.unlink(other.into());
            p.mailbox = super::Mailbox::default();
        });
        eventually("it exits", || !exists(other));
    }
    send_atom(watcher, am::ok);
    assert_eq!(
        texts
            .iter()
            .find(|text| !text.starts_with("{EXIT"))
            .as_deref(),
        Some("ok")
    );
    // Whoever has left the table of processes may still have to acknowledge an unlink.
    eventually("all links are given up", || {
        ask(watcher, |p| p.relations().links.is_empty())
    });
    send_atom(watcher, am::normal);
}

#[test]
fn a_receive_times_out() {
    let (out, times) = channel();
    let mut started = None;
    spawn(move |p| {
        assert!(p.peek_message().expect(GOES_ON).is_none());
        let start = *started.get_or_insert_with(outside_now);
        static PLACE: u64 = 0;
        let here = &raw const PLACE;
        match p.wait_timeout(Term::small(30), CodeAddress::of(here)) {
            WaitTimeout::Wait => Outcome::Wait,
            WaitTimeout::Elapsed => {
                assert_eq!(p.pc.get(), CodeAddress::of(here));
                out.send(start.elapsed()).unwrap();
                exit(p, am::normal)
            }
            WaitTimeout::BadTimeout => unreachable!("30 is a timeout"),
        }
    });
    let waited = times.recv_timeout(LONG).unwrap();
    assert!(waited >= Duration::from_millis(29), "{waited:?}");
}

#[test]
fn selective_receive_takes_from_the_middle() {
    let (out, taken) = channel();
    let pid = spawn(move |p| {
        // Takes 7 first, then the rest in order.
        loop {
            let Some(message) = p.peek_message().expect(GOES_ON) else {
                p.wait();
                return Outcome::Wait;
            };
            if message.as_small() == Some(7) {
                p.remove_message();
                break;
            }
            p.next_message();
        }
        let mut rest = Vec::new();
        while let Some(message) = p.peek_message().expect(GOES_ON) {
            rest.extend(message.as_small());
            p.remove_message();
        }
        out.send(rest).unwrap();
        exit(p, am::normal)
    });
    for i in 0..8 {
        deliver(pid, Signal::message(Term::small(i), pid));
    }
    let rest = taken.recv_timeout(LONG).unwrap();
    assert_eq!(rest, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn examined_messages_survive_collections() {
    let (out, done) = channel();
    let mut collected = false;
    let pid = spawn(move |p| {
        let mut sum = 0;
        while let Some(message) = p.peek_message().expect(GOES_ON) {
            let message = message.raw();
            // SAFETY: T1: a message that is being examined.
            p.set_x(0, unsafe { Term::new(message) });
            let number = |p: &Process| p.x(0).as_tuple().unwrap().get(1).as_small().unwrap();
            let before = number(p);
            if before % 10 == 3 {
                p.garbage_collect(10, 1).unwrap();
                p.garbage_collect(1000, 1).unwrap();
            }
            assert_eq!(number(p), before);
            p.next_message();
        }
        if p.mailbox.len() < 100 {
            p.wait();
            return Outcome::Wait;
        }
        if !std::mem::replace(&mut collected, true) {
            p.garbage_collect(10, 0).unwrap();
            p.garbage_collect(1000, 0).unwrap();
        }
        p.timeout_reset_save();
        while let Some(message) = p.peek_message().expect(GOES_ON) {
            let tuple = message.as_tuple().unwrap();
            sum += tuple.get(1).as_small().unwrap();
            p.remove_message();
        }
        out.send(sum).unwrap();
        exit(p, am::normal)
    });
    let heap = Heap::detached();
    for i in 0..100 {
        let message = heap.tuple(&[am::ok.term(), Term::small(i)]);
        deliver(pid, Signal::message(message, pid));
    }
    assert_eq!(done.recv_timeout(LONG).unwrap(), 4950);
}

#[test]
fn messages_that_were_passed_over_are_not_the_heap_s() {
    let (out, done) = channel();
    let pid = spawn(move |p| {
        while p.peek_message().expect(GOES_ON).is_some() {
            p.next_message();
        }
        if p.mailbox.len() < 100 {
            p.wait();
            return Outcome::Wait;
        }
        out.send((p.mailbox_words(), p.fragment_words(), p.wants_collection()))
            .unwrap();
        p.timeout_reset_save();
        p.peek_message().expect(GOES_ON).unwrap();
        p.remove_message();
        out.send((p.mailbox_words(), p.fragment_words(), p.wants_collection()))
            .unwrap();
        exit(p, am::normal)
    });
    let heap = Heap::detached();
    for i in 0..100 {
        let message = heap.tuple(&[am::ok.term(), Term::small(i)]);
        deliver(pid, Signal::message(message, pid));
    }
    let zeal = cfg!(feature = "gc_zeal");
    assert_eq!(done.recv_timeout(LONG).unwrap(), (300, 0, zeal));
    assert_eq!(done.recv_timeout(LONG).unwrap(), (297, 3, zeal));
}

/// A process that takes a message behind a collection, and tells its text and words: of the queue and of fragments, and
/// those allocated by taking it.
fn taker(off_heap_messages: bool) -> (Pid, Receiver<(String, [usize; 3])>) {
    let (out, taken) = channel();
    crate::scheduler::start();
    let options = SpawnOptions {
        off_heap_messages: Some(off_heap_messages),
        ..SpawnOptions::default()
    };
    let pid = spawn_native(&options, move |p| {
        if p.peek_message().expect(GOES_ON).is_none() {
            p.wait();
            return Outcome::Wait;
        }
        p.next_message();
        let queued = p.mailbox.messages().map(Message::words).sum();
        p.garbage_collect(0, 0).expect(GOES_ON);
        p.mailbox.restart();
        let before = p.heap.allocated_words();
        let text = show(p.peek_message().expect(GOES_ON).unwrap());
        p.remove_message();
        let words = (p.heap.allocated_words() - before) as usize;
        out.send((text, [queued, p.fragment_words(), words]))
            .unwrap();
        exit(p, am::normal)
    });
    (pid, taken)
}

/// Waits until a process waits.
fn until_idle(pid: Pid) {
    let state = || lookup(pid, &crate::sched::ptab::pin()).map(|p| format!("{:?}", p.run_state));
    while state().is_some_and(|state| state != "RunState(IDLE)") {
        std::thread::yield_now();
    }
}

#[test]
fn a_message_to_who_waits_lies_on_its_heap() {
    let send = |off_heap_messages, from_outside: bool| {
        let (pid, taken) = taker(off_heap_messages);
        until_idle(pid);
        spawn(move |p| {
            let message = p.tuple(&[am::ok.term(), p.tuple(&[Term::small(1)])]);
            match from_outside {
                true => deliver(pid, Signal::message(message, SYSTEM)),
                false => send_to(p, pid.term(), message).unwrap(),
            }
            exit(p, am::normal)
        });
        taken.recv_timeout(LONG).unwrap()
    };
    let text = "{ok,{1}}".to_owned();
    assert_eq!(send(false, false), (text.clone(), [0, 0, 5]));
    assert_eq!(send(true, false), (text.clone(), [5, 5, 5]));
    assert_eq!(send(false, true), (text, [5, 5, 5]));
}

#[test]
fn names_go_with_their_process() {
    let name = Atom::new("a process of this test");
    let pid = idle();
    assert_eq!(
        registry::register_process(registry::to_change_now(), name, pid),
        Ok(())
    );
    let again =
        registry::register_process(registry::to_change_now(), Atom::new("another name"), pid);
    assert_eq!(again, Err(am::registered_name));
    assert_eq!(
        registry::whereis(name)
            .map(registry::Named::term)
            .map(Term::raw),
        Some(pid.term().raw())
    );
    send_atom(pid, am::normal);
    eventually("the name is free", || registry::whereis(name).is_none());
    assert_eq!(
        registry::register_process(registry::to_change_now(), name, pid),
        Err(am::notalive)
    );
}

#[test]
fn crowds_of_linked_processes_die_together() {
    const CROWD: usize = if cfg!(miri) { 20 } else { 2000 };
    let first = idle();
    let others: Vec<Pid> = (0..CROWD).map(|_| idle()).collect();
    let mut last = first;
    for pid in &others {
        let (from, to) = (last, *pid);
        ask(from, move |p| p.link(to.into(), false));
        last = *pid;
    }
    send_atom(others[CROWD / 2], am::badarg);
    eventually("all die", || {
        !exists(first) && others.iter().all(|pid| !exists(*pid))
    });
}

#[test]
fn a_process_at_rest_is_small() {
    let words = size_of::<Process>() + size_of::<ProcShared>() + 16 + 233 * 8;
    assert!(words <= 2760, "{words} bytes");
}

/// Calls a BIF in the context of `p`; what it gives as text, exceptions as `error:Reason`.
fn bif(p: &Process, module: &str, function: &str, args: &[Term<'_>]) -> String {
    let arity = args.len() as u8;
    let index = crate::code::bif::find(Atom::new(module), Atom::new(function), arity);
    let row = crate::code::bif::all()[index.expect("a BIF of that name")];
    let args: Vec<Term<'_>> = args.iter().map(|arg| p.copy_in(*arg)).collect();
    let result = row.call.plain(p, &args);
    match result.expect("only plain BIFs are called here") {
        Ok(term) => show(term),
        Err(Leave::Raise(Raise::Error(reason) | Raise::ErrorCause(reason, _))) => {
            format!("error:{}", show(reason))
        }
        Err(_) => "other".into(),
    }
}

/// As [`bif`], for a BIF that has the process to itself, and its arguments in registers.
fn exclusive(p: &mut Process, module: &str, function: &str, arity: u8) -> String {
    let index = crate::code::bif::find(Atom::new(module), Atom::new(function), arity);
    let row = crate::code::bif::all()[index.expect("a BIF of that name")];
    let crate::code::bif::Call::Exclusive(call) = row.call else {
        panic!("only exclusive BIFs are called here");
    };
    match call(p) {
        Next::Return => show(p.x(0)),
        _ => "other".into(),
    }
}

#[test]
fn the_dictionary_keeps_terms_by_equality() {
    let pid = idle();
    ask(pid, |p| {
        let call = |p: &Process, f: &str, args: &[Term<'_>]| bif(p, "erlang", f, args);
        for i in 0..50 {
            let key = p.tuple(&[am::ok.term(), Term::small(i)]);
            assert_eq!(call(p, "put", &[key, Term::small(i)]), "undefined");
        }
        p.garbage_collect(100, 0).unwrap();
        for i in 0..50 {
            let key = p.tuple(&[am::ok.term(), Term::small(i)]);
            assert_eq!(call(p, "get", &[key]), i.to_string());
            assert_eq!(call(p, "put", &[key, am::ok.term()]), i.to_string());
            assert_eq!(call(p, "erase", &[key]), "ok");
            assert_eq!(call(p, "get", &[key]), "undefined");
        }
        assert_eq!(p.dictionary().len(), 0);
    });
    send_atom(pid, am::normal);
}

#[test]
fn a_reply_alias_takes_one_message() {
    let (pid, texts) = reporter();
    let alias = ask(pid, |p| {
        let alias = refs::make_pid_ref();
        let kind = Alias {
            end: AliasEnd::Reply,
            priority: false,
        };
        p.relations().aliases.insert(alias, kind);
        alias
    });
    let other = idle();
    ask(other, move |p| {
        p.send_exit(pid, Some(alias), am::error.term(), false, false)
    });
    assert_eq!(texts.recv_timeout(LONG).unwrap(), "{EXIT,_,error}");
    send_atom(other, am::normal);
    for i in 0..3 {
        let message = crate::heap::Message::copy_of(Term::small(i));
        deliver(
            pid,
            Signal::AliasMessage {
                alias,
                message,
                priority: false,
            },
        );
    }
    send_atom(pid, am::ok);
    assert_eq!(texts.recv_timeout(LONG).unwrap(), "0");
    assert_eq!(texts.recv_timeout(LONG).unwrap(), "ok");
    send_atom(pid, am::normal);
}

#[test]
fn timers_go_off_and_are_cancelled() {
    let (pid, texts) = reporter();
    ask(pid, move |p| {
        let to = pid.term();
        let send_after = |ms: i64, message: Atom| {
            bif(
                p,
                "erlang",
                "send_after",
                &[Term::small(ms), to, message.term()],
            )
        };
        send_after(40, am::error);
        send_after(1, am::ok);
        let reference = crate::process::user_timers::start(
            p.note_timer(),
            sched::timers::deadline_after(60_000),
            crate::process::user_timers::Receiver::Pid(pid),
            |_| crate::heap::Message::copy_of(am::value.term()),
        );
        assert!(crate::process::user_timers::read(reference).is_some_and(|ms| ms > 50_000));
        assert!(crate::process::user_timers::cancel(reference).is_some());
        assert_eq!(crate::process::user_timers::cancel(reference), None);
    });
    assert_eq!(texts.recv_timeout(LONG).unwrap(), "ok");
    assert_eq!(texts.recv_timeout(LONG).unwrap(), "error");
    send_atom(pid, am::normal);
}

#[test]
fn bifs_check_their_arguments() {
    let pid = idle();
    ask(pid, |p| {
        let ok = am::ok.term();
        for (function, args) in [
            ("link", vec![ok]),
            ("unlink", vec![ok]),
            ("monitor", vec![ok, ok]),
            ("demonitor", vec![ok]),
            ("exit", vec![ok, ok]),
            ("register", vec![ok, ok]),
            ("unregister", vec![Atom::new("nobody has this name").term()]),
            ("send", vec![Atom::new("nobody has this name").term(), ok]),
            ("spawn", vec![ok, ok, ok]),
            ("spawn_opt", vec![ok, ok, Term::NIL, ok]),
            ("start_timer", vec![ok, ok, ok]),
            ("unique_integer", vec![ok]),
            ("monotonic_time", vec![ok]),
        ] {
            assert_eq!(
                bif(p, "erlang", function, &args),
                "error:badarg",
                "{function}"
            );
        }
    });
    send_atom(pid, am::normal);
}

/// Fails if a reporter that has a message tells of it. It answers requests while it is suspended. Had it gone on after the
/// first one, it would have told before the second one.
fn stands_still(reporter: Pid, texts: &Receiver<String>) {
    for _ in 0..2 {
        assert!(ask(reporter, |p| p.is_suspended()));
    }
    assert_eq!(texts.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_suspended_process_runs_when_it_is_resumed() {
    let (watcher, texts) = reporter();
    let (done, has_suspended) = channel();
    let mut to_suspend = 2;
    let suspender = spawn(move |p| {
        while to_suspend > 0 {
            to_suspend -= 1;
            p.set_x(0, watcher.term());
            p.set_x(1, p.list(&[am::asynchronous.term()]));
            assert_eq!(exclusive(p, "erts_internal", "suspend_process", 2), "true");
            done.send(()).expect("the test waits");
        }
        receive(p, |p, message| exit(p, message.as_atom().expect("an atom")))
    });
    for _ in 0..2 {
        has_suspended.recv_timeout(LONG).expect("it suspends");
    }
    send_atom(watcher, am::ok);
    stands_still(watcher, &texts);
    ask(suspender, move |p| {
        assert_eq!(
            bif(p, "erlang", "resume_process", &[watcher.term()]),
            "true"
        );
    });
    stands_still(watcher, &texts);
    // Who suspended it ends: then it runs again.
    send_atom(suspender, am::normal);
    assert_eq!(texts.recv_timeout(LONG).unwrap(), "ok");
    send_atom(watcher, am::normal);
}

#[test]
fn monitors_of_the_time_offset_hear_of_its_changes() {
    let (watcher, texts) = reporter();
    ask(watcher, |p| {
        let what = [am::time_offset, am::clock_service].map(Atom::term);
        bif(p, "erlang", "monitor", &what);
    });
    time_offset::changed(7);
    let text = texts.recv_timeout(LONG).unwrap();
    assert_eq!(text, "{CHANGE,_,time_offset,clock_service,7}");
    send_atom(watcher, am::normal);
}

#[test]
fn another_process_collects_when_asked() {
    let (asker, texts) = reporter();
    let target = idle();
    ask(asker, move |p| {
        let operation = [am::garbage_collect, am::ok, am::major].map(Atom::term);
        let operation = p.tuple(&operation);
        let args = [target.term(), am::inherit.term(), operation];
        assert_eq!(bif(p, "erts_internal", "request_system_task", &args), "ok");
    });
    assert_eq!(
        texts.recv_timeout(LONG).unwrap(),
        "{garbage_collect,ok,true}"
    );
    send_atom(target, am::normal);
    eventually("it exits", || !exists(target));
    ask(asker, move |p| {
        let operation = [am::garbage_collect, am::ok, am::minor].map(Atom::term);
        let operation = p.tuple(&operation);
        let args = [target.term(), am::inherit.term(), operation];
        assert_eq!(bif(p, "erts_internal", "request_system_task", &args), "ok");
    });
    assert_eq!(
        texts.recv_timeout(LONG).unwrap(),
        "{garbage_collect,ok,false}"
    );
    send_atom(asker, am::normal);
}

/// Sends `to` a signal that sends itself again when it is handled, and counts how often it has been.
fn send_without_end(to: Pid, handled: Arc<AtomicUsize>) {
    let again = move |p: Option<&mut Process>| {
        if p.is_some() {
            handled.fetch_add(1, Ordering::Relaxed);
            send_without_end(to, handled);
        }
    };
    deliver(to, Signal::request(again));
}

#[test]
fn signals_without_end_hold_up_neither_code_nor_a_call() {
    const SIGNALS: usize = 30_000;
    let (done, told) = channel();
    let handled = Arc::new(AtomicUsize::new(0));
    let mut slices = 0;
    let _ = spawn(move |p| {
        slices += 1;
        if slices == 1 {
            for _ in 0..SIGNALS {
                send_without_end(p.pid(), Arc::clone(&handled));
            }
            return Outcome::Yield;
        }
        let before_call = handled.load(Ordering::Relaxed);
        let is_called_again = p.fetch_in_call().is_some();
        let seen = (
            before_call,
            is_called_again,
            handled.load(Ordering::Relaxed),
        );
        done.send(seen).expect("the test waits");
        match is_called_again {
            true => Outcome::Wait,
            false => exit(p, am::normal),
        }
    });
    let (before_call, is_called_again, _) = told.recv_timeout(LONG).expect("its code runs");
    assert!(before_call < 1000 && is_called_again, "{before_call}");
    let (_, is_called_again, by_then) = told.recv_timeout(LONG).expect("it is called again");
    assert!(!is_called_again, "more than had been sent is waited for");
    assert!(by_then >= SIGNALS + before_call, "{by_then}");
}
