//! A poller of the test's own watches pipes, files and sockets.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

use super::*;
use crate::chance::clock::outside_now;

/// A number that no descriptor of the tests has.
const NOT_OPEN: RawFd = 5000;

/// Sends its name when it is called.
struct Tell(u32, Sender<u32>);

impl Ready for Tell {
    fn ready(self: Arc<Self>, _fd: RawFd, _interest: Interest) {
        self.1.send(self.0).expect("the test lives");
    }
}

/// A poller of the test's own, and which of its watches were called.
struct Test {
    poller: Arc<Poller>,
    tell: Sender<u32>,
    told: Receiver<u32>,
}

impl Test {
    fn new() -> Test {
        let (tell, told) = channel();
        let poller = Arc::new(Poller::new());
        Test { poller, tell, told }
    }

    fn watch(&self, fd: &impl AsRawFd, interest: Interest, name: u32) -> WatchId {
        let whom = Arc::new(Tell(name, self.tell.clone()));
        self.poller.watch(fd.as_raw_fd(), interest, whom)
    }

    #[track_caller]
    fn calls(&self, names: &[u32]) {
        self.poller.look();
        assert_eq!(self.poller.call_due(|| {}), !names.is_empty());
        assert_eq!(self.told.try_iter().collect::<Vec<_>>(), names);
    }
}

fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).expect("two descriptors are free")
}

fn put(fd: &OwnedFd) {
    rustix::io::write(fd, b"x").expect("room for a byte");
}

fn get(fd: &OwnedFd) {
    rustix::io::read(fd, &mut [0; 1]).expect("a byte");
}

#[test]
fn a_watch_is_called_once_when_there_is_data() {
    let (test, (read, write)) = (Test::new(), pipe());
    test.watch(&read, Interest::Read, 1);
    test.calls(&[]);
    put(&write);
    test.calls(&[1]);
    test.calls(&[]);
    test.watch(&read, Interest::Read, 2);
    test.calls(&[2]);
    test.watch(&write, Interest::Write, 3);
    test.calls(&[3]);
    get(&read);
    test.watch(&read, Interest::Read, 4);
    test.calls(&[]);
    drop(write);
    test.calls(&[4]);
}

#[test]
fn a_descriptor_is_read_and_written_at_once() {
    let test = Test::new();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    test.watch(&ours, Interest::Read, 1);
    test.watch(&ours, Interest::Write, 2);
    test.calls(&[2]);
    test.watch(&ours, Interest::Write, 3);
    theirs.write_all(b"x").unwrap();
    test.calls(&[1, 3]);
    test.watch(&ours, Interest::Write, 4);
    test.calls(&[4]);
}

#[test]
fn an_error_is_waited_for_alone() {
    let (test, (read, write)) = (Test::new(), pipe());
    let file = File::open(std::env::current_exe().unwrap()).unwrap();
    test.watch(&write, Interest::Error, 1);
    test.watch(&file, Interest::Error, 2);
    test.calls(&[]);
    test.watch(&write, Interest::Write, 3);
    test.calls(&[3]);
    drop(read);
    test.calls(&[1]);
    test.watch(&NOT_OPEN, Interest::Error, 4);
    test.calls(&[4]);
}

#[test]
fn all_watches_on_a_descriptor_and_its_copies_are_called() {
    let (test, (read, write)) = (Test::new(), pipe());
    let copy = read.try_clone().unwrap();
    test.watch(&copy, Interest::Read, 1);
    test.watch(&read, Interest::Read, 2);
    test.watch(&read, Interest::Read, 3);
    test.calls(&[]);
    put(&write);
    test.calls(&[1, 2, 3]);
    get(&read);
    test.watch(&copy, Interest::Read, 4);
    test.watch(&read, Interest::Read, 5);
    drop(read);
    put(&write);
    // The copy keeps the pipe open: the watch on the closed number is called for nothing.
    test.calls(&[4, 5]);
}

#[test]
fn what_is_ready_together_is_called_in_the_order_of_setting() {
    let test = Test::new();
    let pipes: Vec<_> = (0..3 * BATCH as u32).map(|n| (n, pipe())).collect();
    for (name, (read, _)) in &pipes {
        test.watch(read, Interest::Read, *name);
    }
    for (_, (_, write)) in pipes.iter().rev() {
        put(write);
    }
    let names: Vec<_> = pipes.iter().map(|(name, _)| *name).collect();
    test.calls(&names);
}

#[test]
fn what_epoll_refuses_is_due_at_once() {
    let (test, (read, write)) = (Test::new(), pipe());
    put(&write);
    let file = File::open(std::env::current_exe().unwrap()).unwrap();
    test.watch(&read, Interest::Read, 1);
    test.watch(&file, Interest::Read, 2);
    test.watch(&File::open("/dev/null").unwrap(), Interest::Read, 3);
    test.watch(&NOT_OPEN, Interest::Write, 4);
    test.calls(&[1, 2, 3, 4]);
    test.calls(&[]);
}

#[test]
fn what_is_set_while_others_are_called_waits_for_the_next_time() {
    struct Again(Arc<Poller>, Sender<u32>);
    impl Ready for Again {
        fn ready(self: Arc<Self>, fd: RawFd, interest: Interest) {
            self.1.send(1).expect("the test lives");
            let poller = Arc::clone(&self.0);
            poller.watch(fd, interest, self);
        }
    }
    let test = Test::new();
    let file = File::open(std::env::current_exe().unwrap()).unwrap();
    let again = Arc::new(Again(Arc::clone(&test.poller), test.tell.clone()));
    test.poller.watch(file.as_raw_fd(), Interest::Read, again);
    test.calls(&[1]);
    test.calls(&[1]);
}

#[test]
fn a_number_that_is_closed_and_opened_again_is_another_descriptor() {
    let (test, (mut number, to_first)) = (Test::new(), pipe());
    let (second, to_second) = pipe();
    // A child holds a copy of what is closed here.
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .stdin(number.try_clone().unwrap())
        .spawn()
        .expect("a program");
    test.watch(&number, Interest::Read, 1);
    test.calls(&[]);
    rustix::io::dup2(&second, &mut number).expect("both are open");
    test.watch(&number, Interest::Read, 2);
    put(&to_first);
    test.calls(&[]);
    put(&to_second);
    // Whoever left a watch behind on the number is called with it.
    test.calls(&[1, 2]);
    child.kill().expect("the child runs");
    child.wait().expect("the child ends");
}

#[test]
fn a_watch_that_is_taken_back_is_not_called() {
    let (test, (read, write)) = (Test::new(), pipe());
    let first = test.watch(&read, Interest::Read, 1);
    let second = test.watch(&read, Interest::Read, 2);
    assert!(test.poller.unwatch(first) && !test.poller.unwatch(first));
    put(&write);
    test.poller.look();
    let third = test.watch(&read, Interest::Read, 3);
    assert!(test.poller.unwatch(second));
    test.calls(&[3]);
    assert!(!test.poller.unwatch(third));
}

#[test]
fn who_has_the_turn_is_told_of_data_interrupts_and_the_time() {
    let test = Test::new();
    let (read, write) = pipe();
    let short = Some(Duration::from_millis(5));
    test.watch(&read, Interest::Read, 1);
    let poller = &test.poller;
    poller.wait_in_turn(short);
    assert!(!poller.is_due());
    poller.interrupt();
    poller.interrupt();
    // A look of another takes no interrupt away.
    poller.look();
    poller.wait_in_turn(None);
    assert_eq!(poller.wait(Some(Duration::ZERO)), (0, false));
    let puts = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        put(&write);
        write
    });
    poller.wait_in_turn(None);
    assert!(poller.is_due());
    test.calls(&[1]);
    puts.join().expect("a byte is put");
}

#[test]
fn who_does_not_get_the_turn_does_not_give_it_back() {
    let poller = Poller::new();
    let first = poller.take_turn();
    assert!(first.is_some() && poller.take_turn().is_none());
    assert!(poller.take_turn().is_none() && poller.turn.is_taken());
    drop(first);
    assert!(poller.take_turn().is_some());
}

#[test]
fn nobody_looks_during_a_watch_and_all_do_after_it() {
    let (test, (read, write)) = (Test::new(), pipe());
    let (poller, mut seen) = (Arc::clone(&test.poller), None);
    test.watch(&read, Interest::Read, 1);
    assert!(!poller.turn.begins_watch(&mut seen));
    // A look that finds nothing puts no watch off.
    assert!(poller.look_unless_waited());
    assert!(poller.turn.begins_watch(&mut seen));
    let watch = std::thread::spawn(move || poller.keep_watch());
    assert!(!test.poller.look_unless_waited());
    put(&write);
    watch.join().expect("the event ends the watch");
    assert!(!test.poller.is_due(), "the watch takes no event");
    seen = Some(test.poller.turn.word());
    assert!(test.poller.look_unless_waited() && test.poller.is_due());
    assert!(!test.poller.turn.begins_watch(&mut seen), "more may come");
    test.calls(&[1]);
}

#[test]
fn an_interrupt_for_nobody_ends_one_watch() {
    let poller = Poller::new();
    let mut seen = None;
    poller.interrupt();
    assert!(!poller.turn.begins_watch(&mut seen) && poller.look_unless_waited());
    assert!(poller.turn.begins_watch(&mut seen), "it is no event");
    poller.keep_watch();
    assert_eq!(poller.wait(Some(Duration::ZERO)), (0, false));
    assert!(poller.take_turn().is_some());
}

#[test]
fn a_watch_takes_no_interrupt_of_one_that_waits() {
    let poller = Arc::new(Poller::new());
    let mut seen = None;
    assert!(!poller.turn.begins_watch(&mut seen) && poller.turn.begins_watch(&mut seen));
    let waiting = poller.take_turn().expect("a watch takes no turn");
    poller.interrupt();
    poller.keep_watch();
    // It ends at once.
    waiting.wait(None);
}

#[test]
fn a_wait_is_exact() {
    let poller = Poller::new();
    let begin = outside_now();
    for _ in 0..100 {
        poller.wait_in_turn(Some(Duration::from_micros(100)));
    }
    let most = Duration::from_millis(80);
    assert!((Duration::from_millis(10)..most).contains(&begin.elapsed()));
}

#[test]
fn data_and_the_end_of_it_are_readable() {
    let (read, write) = pipe();
    assert!(!is_readable(read.as_raw_fd()));
    put(&write);
    assert!(is_readable(read.as_raw_fd()));
    get(&read);
    assert!(!is_readable(read.as_raw_fd()));
    assert_eq!(hung_up(read.as_raw_fd()).unwrap(), Some(false));
    drop(write);
    assert!(is_readable(read.as_raw_fd()));
    assert_eq!(hung_up(read.as_raw_fd()).unwrap(), Some(true));
}
