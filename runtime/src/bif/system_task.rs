//! The BIFs by which one process has something done in the context of another: collections, checks of its code,
//! suspension.

use super::process::reply;
use super::{BifResult, Next, badarg, bifs, notsup};
use crate::exec::stack_dump::{Doing, stack_dump};
use crate::heap::Message;
use crate::process::order::answer;
use crate::process::order::answer::Native;
use crate::process::order::director::{may_timing_show, reply_to_request};
use crate::process::refs::make_ref;
use crate::process::suspension::{Suspended, Suspending};
use crate::process::system_tasks::{SystemTask, Task};
use crate::process::{
    ProcShared, Process, REFERS_TO_OLD_CODE, Signal, ask_with, deliver, exists,
    is_of_old_incarnation, options, send,
};
use crate::sys::stderr::complain;
use crate::term::atom::atom;
use crate::term::{Atom, Pid, Term, am, tag};

bifs! {
    hbif erts_internal:"garbage_collect"/1 => garbage_collect_1, own;
    hbif erts_internal:"check_process_code"/1 => check_process_code_1, ordered;
    bif erts_internal:"request_system_task"/3 => request_system_task_3, ordered;
    bif erts_internal:"request_system_task"/4 => request_system_task_4, ordered;
    xbif erts_internal:"suspend_process"/2 => suspend_process_2, ordered;
    bif erlang:"resume_process"/1 => resume_process_1, ordered;
    bif erts_internal:"process_display"/2 => process_display_2, again;
    bif erts_internal:"is_process_executing_dirty"/1 => is_process_executing_dirty_1, answer;
    bif erts_internal:"check_dirty_process_code"/2 => check_dirty_process_code_2, unrecorded;
    bif erts_internal:"dirty_process_handle_signals"/1 => dirty_process_handle_signals_1, unrecorded;
    bif erts_internal:"is_system_process"/1 => is_system_process_1, own;
}

fn garbage_collect_1(p: &mut Process) -> Next {
    let major = match p.x(0).as_atom() {
        Some(am::major) => true,
        Some(am::minor) => false,
        _ => return p.raise(badarg()),
    };
    if let Err(exiting) = p.collect_now(major) {
        return Next::Exit(exiting);
    }
    p.set_x(0, Term::bool(true));
    Next::Return
}

fn check_process_code_1(p: &mut Process) -> Next {
    let Some(module) = p.x(0).as_atom() else {
        return p.raise(badarg());
    };
    let refers = (REFERS_TO_OLD_CODE.get())(p, module);
    p.set_x(0, Term::bool(refers));
    Next::Return
}

fn request_system_task_3<'p>(p: &'p Process, [pid, priority, op]: [Term<'p>; 3]) -> BifResult<'p> {
    request(p, p.pid(), pid, priority, op)
}

fn request_system_task_4<'p>(
    p: &'p Process,
    [requester, pid, priority, op]: [Term<'p>; 4],
) -> BifResult<'p> {
    let requester = requester.as_pid().ok_or_else(badarg)?;
    request(p, requester, pid, priority, op)
}

/// The answer is a message to the requester: `{Type, RequestId, Result}`.
fn request<'p>(
    p: &'p Process,
    requester: Pid,
    pid: Term<'p>,
    priority: Term<'p>,
    operation: Term<'p>,
) -> BifResult<'p> {
    // What was of an old incarnation of this node is gone.
    let is_gone = is_of_old_incarnation(pid)
        && pid
            .as_external()
            .is_some_and(|pid| pid.kind() == tag::EXTERNAL_PID);
    let pid = pid.as_pid();
    if pid.is_none() && !is_gone {
        return Err(badarg().into());
    }
    if priority != am::inherit && options::priority(priority).is_none() {
        return Err(badarg().into());
    }
    let priority = match options::priority(priority) {
        Some(priority) => priority,
        None => p.shared().priority(),
    };
    let operation = operation.as_tuple().ok_or_else(badarg)?.elements();
    let (task, id) = match *operation {
        [kind, id] if kind.same(atom("system_task_test")) => (Task::Test, id),
        [kind, id, argument] => match (kind.as_atom(), argument.as_atom().ok_or_else(badarg)?) {
            (Some(am::garbage_collect), am::major) => (Task::Collect { major: true }, id),
            (Some(am::garbage_collect), am::minor) => (Task::Collect { major: false }, id),
            (Some(am::check_process_code), module) => (Task::CheckCode { module }, id),
            _ => return Err(badarg().into()),
        },
        _ => return Err(badarg().into()),
    };
    let id = Message::copy_of(id);
    let task = SystemTask {
        task,
        requester,
        of: pid.unwrap_or(requester),
        id,
    };
    let Some(pid) = pid else {
        task.answer(false);
        return Ok(am::ok.term());
    };
    let signal = Signal::request(move |p| match p.filter(|p| !p.is_exiting()) {
        Some(p) => p.add_system_task(task, priority),
        None => task.answer(false),
    });
    if let Err(signal) = ask_with(priority, pid, signal) {
        signal.answer_for_gone(pid);
    }
    Ok(am::ok.term())
}

static SUSPENDS: Native = Native::new("erlang", "suspend_process", 2);
static RESUMES: Native = Native::new("erlang", "resume_process", 1);

fn suspend_process_2(p: &mut Process) -> Next {
    let answer = request_suspension(p, [p.x(0), p.x(1)]);
    let is_awaited = answer.as_ref().is_some();
    p.set_x(0, answer);
    if is_awaited && !may_timing_show() {
        // Which messages the receive of the answer looks at before that is chance.
        p.mailbox.skip_all();
    }
    Next::Return
}

/// What `suspend_process/2` gives: the reference of a message with the answer, if the process is to wait for one.
fn request_suspension<'p>(p: &'p Process, [pid, opts]: [Term<'p>; 2]) -> Term<'p> {
    let Some(pid) = pid.as_pid().filter(|pid| *pid != p.pid()) else {
        return am::badarg.term();
    };
    let (mut unless_suspending, mut asynchronous, mut tag) = (false, false, None);
    for option in opts.list_iter() {
        let Ok(option) = option else {
            return am::badopt.term();
        };
        let pair = option.as_tuple().map(crate::term::Tuple::elements);
        match (option.as_atom(), pair) {
            (Some(am::unless_suspending), _) => unless_suspending = true,
            (Some(am::asynchronous), _) => asynchronous = true,
            (_, Some([key, value])) if *key == am::asynchronous => {
                asynchronous = true;
                tag = Some(*value);
            }
            _ => return am::badopt.term(),
        }
    }
    let suspend = Suspend {
        pid,
        asynchronous,
        tag,
    };
    suspend.run(p, unless_suspending)
}

/// `suspend_process/2` with its options.
struct Suspend<'p> {
    pid: Pid,
    asynchronous: bool,
    tag: Option<Term<'p>>,
}

impl<'p> Suspend<'p> {
    fn run(&self, p: &'p Process, unless_suspending: bool) -> Term<'p> {
        let (result, is_active) = match self.count(p, unless_suspending) {
            Ok(known) => known,
            Err(suspended) => {
                if answer::decided(p, &SUSPENDS, || exists(self.pid)) {
                    deliver(self.pid, Signal::request(|p| begin(p, suspended)));
                } else {
                    p.relations().suspending.remove(&self.pid);
                    if !self.asynchronous {
                        return am::badarg.term();
                    }
                }
                (true, false)
            }
        };
        if !self.asynchronous && !is_active {
            return self.confirm(p, result);
        }
        if let Some(tag) = self.tag {
            self.answer(p, tag);
        }
        Term::bool(result)
    }

    /// Counts one suspension more, or not: what to return, and whether the other is suspended already.
    /// The error is the other's end of a new suspension.
    fn count(&self, p: &Process, unless_suspending: bool) -> Result<(bool, bool), Suspended> {
        let mut relations = p.relations();
        let known = relations.suspending.get_mut(&self.pid);
        if let Some(known) = known
            && !answer::decided(p, &SUSPENDS, || known.is_over())
        {
            known.count += u32::from(!unless_suspending);
            // Whether it stands already is chance.
            let is_active = may_timing_show() && known.is_active();
            return Ok((!unless_suspending, is_active));
        }
        let (suspending, suspended) = Suspending::new(p.pid());
        relations.suspending.insert(self.pid, suspending);
        Err(suspended)
    }

    /// Has the suspended process confirm, behind the signals sent to it so far: the reference of a message
    /// that holds `result`.
    fn confirm(&self, p: &'p Process, result: bool) -> Term<'p> {
        let (asker, reference) = (p.pid(), make_ref());
        if let Some(recorded) = answer::awaited(p, &SUSPENDS) {
            reply(asker, reference, recorded.term());
            return p.reference(reference);
        }
        let tell = move |p: Option<&mut Process>| {
            let result = match p {
                Some(_) => Term::bool(result),
                None => am::exited.term(),
            };
            reply(asker, reference, result);
        };
        let signal = Signal::request(move |p| when_it_stands(p, tell));
        deliver(self.pid, signal);
        p.reference(reference)
    }

    /// Has the process tell `{Tag, State}`, in the same place.
    fn answer(&self, p: &Process, tag: Term<'_>) {
        let (asker, pid) = (p.pid(), self.pid);
        let tag = Message::copy_of(tag);
        let tell = move |state: Atom| {
            let answer = Message::of_tuple(&[tag.term(), state.term()]);
            // Gone: then nobody waits for it.
            let _ = send(asker, reply_to_request(answer, pid));
        };
        let guard = crate::sched::ptab::pin();
        if crate::process::lookup(self.pid, &guard).is_none() {
            return tell(am::badarg);
        }
        let tell = move |p: Option<&mut Process>| {
            tell(match p {
                None => am::exited,
                Some(p) if p.is_suspended() => am::suspended,
                Some(_) => am::not_suspended,
            });
        };
        let signal = Signal::request(move |p| when_it_stands(p, tell));
        deliver(self.pid, signal);
    }
}

fn begin(mut p: Option<&mut Process>, suspended: Suspended) {
    if let Some(p) = p.as_deref_mut() {
        p.suspend_for(suspended);
    }
    when_it_stands(p, |p| {
        if let Some(p) = p {
            p.psd().suspended.iter().for_each(Suspended::activate);
        }
    });
}

/// Does `request` where a suspended process stands still: one that runs dirty does when it comes back.
fn when_it_stands(
    p: Option<&mut Process>,
    request: impl FnOnce(Option<&mut Process>) + Send + 'static,
) {
    match p {
        Some(p) if p.is_away() => {
            p.call_back();
            p.when_back(Box::new(request));
        }
        p => request(p),
    }
}

fn resume_process_1<'p>(p: &'p Process, [pid]: [Term<'p>; 1]) -> BifResult<'p> {
    let pid = pid.as_pid().ok_or_else(badarg)?;
    let last = {
        let mut relations = p.some_relations().ok_or_else(badarg)?;
        let suspending = relations.suspending.get_mut(&pid).ok_or_else(badarg)?;
        let is_over = answer::decided(p, &RESUMES, || suspending.is_over());
        suspending.count -= 1;
        let last = suspending.count == 0;
        if last || is_over {
            relations.suspending.remove(&pid);
        }
        if is_over {
            return Err(badarg().into());
        }
        last
    };
    if last {
        let by = p.pid();
        deliver(
            pid,
            Signal::request(move |p| crate::process::suspension::resume(p, by)),
        );
    }
    Ok(Term::bool(true))
}

/// The process itself prints its stack, on standard error.
fn process_display_2<'p>(p: &'p Process, [pid, what]: [Term<'p>; 2]) -> BifResult<'p> {
    if what != am::backtrace {
        return Ok(am::badopt.term());
    }
    let Some(pid) = pid.as_pid() else {
        return Ok(am::badarg.term());
    };
    let print = |p: &Process, doing| {
        let text = stack_dump(p, doing);
        if !text.is_empty() {
            complain!("{}", text.trim_end_matches('\n'));
        }
    };
    if pid == p.pid() {
        print(p, Doing::calls(am::erts_internal, am::process_display, 2));
        return Ok(Term::bool(true));
    }
    let (asker, reference) = (p.pid(), make_ref());
    let signal = Signal::request(move |p| {
        if let Some(p) = &p {
            print(p, Doing::Runs);
        }
        let result = if p.is_some() { am::true_ } else { am::badarg };
        reply(asker, reference, result.term());
    });
    deliver(pid, signal);
    Ok(p.reference(reference))
}

fn is_process_executing_dirty_1<'p>(_: &'p Process, [pid]: [Term<'p>; 1]) -> BifResult<'p> {
    let pid = pid.as_pid().ok_or_else(badarg)?;
    let guard = crate::sched::ptab::pin();
    let runs = crate::process::lookup(pid, &guard).is_some_and(ProcShared::is_dirty_running);
    Ok(Term::bool(runs))
}

/// Ordinary schedulers handle the signals of a process that runs dirty: no process may ask.
fn check_dirty_process_code_2<'p>(_: &'p Process, _: [Term<'p>; 2]) -> BifResult<'p> {
    Err(notsup().into())
}

fn dirty_process_handle_signals_1<'p>(_: &'p Process, [_pid]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(am::normal.term())
}

fn is_system_process_1<'p>(p: &'p Process, [pid]: [Term<'p>; 1]) -> BifResult<'p> {
    let pid = pid.as_pid().ok_or_else(badarg)?;
    let system = if pid == p.pid() {
        p.shared().is_system()
    } else {
        let guard = crate::sched::ptab::pin();
        crate::process::lookup(pid, &guard).is_some_and(crate::process::ProcShared::is_system)
    };
    Ok(Term::bool(system))
}
