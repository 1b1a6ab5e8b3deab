//! The threads that do what drivers have done asynchronously (`+A`). A job with a key is done after the earlier ones with
//! that key.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use parking_lot::Mutex;

use crate::sys::msacc::{self, State};

/// Threads of the pool (`+A`).
static THREADS: AtomicUsize = AtomicUsize::new(1);

/// The part that the first thread plays in microstate accounting.
static FIRST_ACCOUNT: AtomicUsize = AtomicUsize::new(usize::MAX / 2);

type Job = Box<dyn FnOnce() + Send>;

/// Sets how many threads there are, before the first job.
pub(crate) fn set_threads(count: usize) {
    THREADS.store(count, Ordering::Relaxed);
}

/// Sets which part the first thread plays in microstate accounting; the others play the next ones.
pub(crate) fn set_first_account(part: usize) {
    FIRST_ACCOUNT.store(part, Ordering::Relaxed);
}

/// How many threads there are.
pub(crate) fn threads() -> usize {
    THREADS.load(Ordering::Relaxed)
}

/// The way to each thread.
fn pool() -> &'static [Mutex<Sender<Job>>] {
    static POOL: OnceLock<Vec<Mutex<Sender<Job>>>> = OnceLock::new();
    POOL.get_or_init(|| (0..threads()).map(thread).collect())
}

fn thread(number: usize) -> Mutex<Sender<Job>> {
    let (sender, jobs) = channel::<Job>();
    std::thread::Builder::new()
        .name(format!("async_{}", number + 1))
        .spawn(move || {
            for job in jobs {
                msacc::take_up(FIRST_ACCOUNT.load(Ordering::Relaxed) + number, State::Port);
                job();
                msacc::put_down();
            }
        })
        .expect("a thread can be started");
    Mutex::new(sender)
}

/// Has the thread of this key do `job`. There must be threads.
pub(crate) fn run(key: usize, job: impl FnOnce() + Send + 'static) {
    let pool = pool();
    let sent = pool[key % pool.len()].lock().send(Box::new(job));
    sent.expect("the threads never end");
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn jobs_with_a_key_are_done_in_turn() {
        let (tell, told) = channel();
        for number in 0..100 {
            let tell = tell.clone();
            run(7, move || tell.send(number).expect("the test lives"));
        }
        let all: Vec<_> = told.iter().take(100).collect();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}
