//! System tasks: work that others have a process do in its own context, each with a priority of its own. Source:
//! `execute_sys_tasks()` in `erl_process.c`, OTP 29.

use std::collections::VecDeque;

use super::{Exiting, Process, REFERS_TO_OLD_CODE, send};
use crate::heap::Message;
use crate::process::order::director::{may_timing_show, reply_to_request};
use crate::sched::run_queue::Priority;
use crate::term::{Atom, Pid, Term, am};

/// Time slices of normal tasks before one of low priority. Source: `RESCHEDULE_LOW`.
const RESCHEDULE_LOW: u8 = 8;

/// The work of a system task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// `{garbage_collect, Id, major | minor}`.
    Collect {
        /// With the old heap.
        major: bool,
    },
    /// `{check_process_code, Id, Module}`.
    CheckCode {
        /// Whose old code is asked for.
        module: Atom,
    },
    /// `{copy_literals, Id}`: have copies of the literals under release.
    CopyLiterals,
    /// `{system_task_test, Id}`: nothing.
    Test,
}

/// A task that somebody waits for.
pub(crate) struct SystemTask {
    pub(crate) task: Task,
    pub(crate) requester: Pid,
    /// The process that is to do it.
    pub(crate) of: Pid,
    pub(crate) id: Message,
}

impl SystemTask {
    /// The answer is a message to the requester: `{Type, RequestId, Result}`.
    pub(crate) fn answer(&self, result: bool) {
        let kind = match self.task {
            Task::Collect { .. } => am::garbage_collect,
            Task::CheckCode { .. } => am::check_process_code,
            Task::CopyLiterals => am::copy_literals,
            Task::Test => Atom::new("system_task_test"),
        };
        let result = match self.task {
            // One that is gone holds none.
            Task::CopyLiterals => am::ok.term(),
            _ => Term::bool(result),
        };
        let answer = Message::of_tuple(&[kind.term(), self.id.term(), result]);
        // Gone: then nobody waits for it.
        let _ = send(self.requester, reply_to_request(answer, self.of));
    }
}

/// The tasks that wait for a process.
#[derive(Default)]
pub(crate) struct SystemTasks {
    queues: [VecDeque<SystemTask>; 4],
    /// Normal tasks since the last one of low priority, while such a one waits.
    passed_low: u8,
    /// Collections that wait for the process to allow them.
    delayed: Vec<SystemTask>,
    /// What waits for the process to come back from dirty schedulers.
    until_back: Vec<SystemTask>,
    /// The process allows none.
    collections_off: bool,
}

impl SystemTasks {
    fn pop(&mut self) -> Option<SystemTask> {
        let [max, high, normal, low] = &mut self.queues;
        if let Some(task) = max.pop_front().or_else(|| high.pop_front()) {
            return Some(task);
        }
        if normal.is_empty() || low.is_empty() {
            let task = normal.pop_front().or_else(|| low.pop_front());
            if normal.is_empty() && low.is_empty() {
                self.passed_low = 0;
            }
            return task;
        }
        self.passed_low += 1;
        if self.passed_low <= RESCHEDULE_LOW {
            return normal.pop_front();
        }
        self.passed_low = 0;
        low.pop_front()
    }
}

impl SystemTasks {
    /// The process is back: what has waited for that is due.
    fn go_on(&mut self) {
        if self.until_back.is_empty() {
            return;
        }
        let normal = &mut self.queues[Priority::Normal as usize];
        normal.extend(self.until_back.drain(..));
    }
}

impl Process {
    /// Puts a task in the queue of its priority.
    pub(crate) fn add_system_task(&mut self, task: SystemTask, priority: Priority) {
        let tasks = &mut self.psd().system_tasks;
        tasks.queues[priority as usize].push_back(task);
    }

    /// Does what waits to be done. Where the order of a run is recorded or followed, it costs nothing: when it comes is chance.
    ///
    /// # Errors
    /// When a collection kills the process; the tasks behind it are refused when it ends.
    #[inline]
    pub(crate) fn run_system_tasks(&mut self) -> Result<(), Exiting> {
        // Most processes have none at any time, and are not to get room for them.
        match self.psd.get_mut().is_some() {
            true => self.run_queued_tasks(),
            false => Ok(()),
        }
    }

    fn run_queued_tasks(&mut self) -> Result<(), Exiting> {
        if !self.is_away() {
            self.psd().system_tasks.go_on();
        }
        while let Some(task) = self.next_system_task() {
            let reds = self.fcalls.get();
            let result = match task.task {
                Task::Collect { .. } | Task::CopyLiterals if self.is_away() => {
                    self.psd().system_tasks.until_back.push(task);
                    continue;
                }
                Task::Collect { .. } if self.psd().system_tasks.collections_off => {
                    self.psd().system_tasks.delayed.push(task);
                    continue;
                }
                // It is collected where the recorded process was.
                Task::Collect { .. } if self.is_replayed() => true,
                Task::Collect { major } => self.collect_for_others(major).is_ok(),
                Task::CheckCode { module } => (REFERS_TO_OLD_CODE.get())(self, module),
                Task::CopyLiterals => self.copy_literals().is_ok(),
                Task::Test => true,
            };
            self.forget_reds(reds);
            task.answer(result);
            self.check_exiting()?;
        }
        Ok(())
    }

    /// A collection that another process has asked for. Where the order of a run is recorded or followed, the message that its
    /// receive looks at next is laid on the heap before: whether it has looked is chance.
    pub(super) fn collect_for_others(&mut self, major: bool) -> Result<(), Exiting> {
        if !may_timing_show() && self.mailbox.has_looked() {
            self.place_first();
        }
        self.record_collection(major);
        self.collect_now(major)
    }

    fn next_system_task(&self) -> Option<SystemTask> {
        let mut psd = self.psd.borrow_mut();
        psd.as_mut()?.system_tasks.pop()
    }

    /// Allows collections that others ask for, or has them wait; whether they were allowed.
    pub(crate) fn allow_collections(&self, allow: bool) -> bool {
        let tasks = &mut self.psd().system_tasks;
        if allow {
            let delayed = tasks.delayed.drain(..);
            tasks.queues[Priority::Normal as usize].extend(delayed);
        }
        !std::mem::replace(&mut tasks.collections_off, !allow)
    }

    /// The process exits: nothing of it is done.
    pub(super) fn refuse_system_tasks(&mut self) {
        while let Some(task) = self.next_system_task() {
            task.answer(false);
        }
        if let Some(psd) = self.psd.get_mut() {
            let tasks = &mut psd.system_tasks;
            let waiting = tasks.delayed.drain(..).chain(tasks.until_back.drain(..));
            waiting.for_each(|task| task.answer(false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_tasks_go_between_normal_ones() {
        let mut tasks = SystemTasks::default();
        for (priority, count) in [
            (Priority::Low, 2),
            (Priority::Normal, 10),
            (Priority::Max, 1),
        ] {
            for _ in 0..count {
                tasks.queues[priority as usize].push_back(SystemTask {
                    task: Task::Collect {
                        major: priority == Priority::Low,
                    },
                    requester: Pid(0),
                    of: Pid(0),
                    id: Message::copy_of(Term::small(priority as i64)),
                });
            }
        }
        let order = std::iter::from_fn(|| tasks.pop());
        let order: Vec<_> = order.filter_map(|task| task.id.term().as_small()).collect();
        assert_eq!(order, [0, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 2, 3]);
    }
}
