//! A driver's work for one port, and the calls into the driver.
//!
//! Each call holds the instance, so that its driver stays, and the lock that the driver has chosen. The port's own lock
//! is taken by what a call comes back to, and for as long as that.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uint};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, Ordering};

use parking_lot::{Mutex, ReentrantMutex, RwLock};

use super::binary::{Counted, IoVec};
use super::entry::{Driver, SOFT_BUSY};
use super::lock::DataLockRef;
use super::monitor::Monitors;
use super::queue::Queue;
use super::table::{self, Use};
use super::timer::Timer;
use super::{Data, DrvPort, TermData, api};
use crate::port::framing::{Framing, Input};
use crate::port::linked::{Linked, Mode};
use crate::port::open::{self, Error};
use crate::port::{Port, Refused};
use crate::process::{Signal, deliver, exists};
use crate::sys::chance::poll::Interest;
use crate::sys::errno;
use crate::term::atom::atom;
use crate::term::{Pid, RawTerm, Term, am};
use crate::value::iolist::Output;

/// How far an instance has come.
pub(super) mod phase {
    pub(in crate::driver) const OPEN: u8 = 0;
    /// The port is gone for its links and monitors, and its queue is not empty.
    pub(in crate::driver) const CLOSING: u8 = 1;
    /// The driver has been told of the end.
    pub(in crate::driver) const STOPPED: u8 = 2;
}

/// No process's pid.
const NOBODY: u64 = u64::MAX;

/// A driver's work for one port.
pub(super) struct Instance {
    pub(super) port: Arc<Port>,
    pub(super) driver: Arc<Driver>,
    /// The port's own lock, where the driver has none for all.
    own_lock: ReentrantMutex<()>,
    data: AtomicPtr<std::ffi::c_void>,
    /// The process whose request the driver serves.
    caller: AtomicU64,
    /// How much of the time that the driver may have in a call it has said that it has used, in percent.
    spent: AtomicI32,
    /// Of `set_port_control_flags()`.
    control_flags: AtomicI32,
    pub(super) mode: Mode,
    pub(super) input: Mutex<Input>,
    pub(super) phase: AtomicU8,
    /// The port waits for its queue to be empty: nobody hears of the driver any more.
    pub(super) is_silent: AtomicBool,
    /// The owner is to be told of the end.
    pub(super) asked: AtomicBool,
    pub(super) queue: Mutex<Queue>,
    pub(super) timer: Mutex<Option<Timer>>,
    pub(super) monitors: Mutex<Monitors>,
    pub(super) data_lock: Mutex<Option<DataLockRef>>,
    pub(super) busy_queue_limits: Mutex<(usize, usize)>,
    /// Last: the driver may end with it.
    pub(super) used: Use,
}

static INSTANCES: RwLock<BTreeMap<u64, Arc<Instance>>> = RwLock::new(BTreeMap::new());

/// The instance of a port, from before its driver's first call until after its last.
pub(super) fn of(port: DrvPort) -> Option<Arc<Instance>> {
    INSTANCES.read().get(&(port.addr() as u64)).cloned()
}

/// As [`Instance::of`], for the port that a term is.
pub(super) fn of_term(port: TermData) -> Option<Arc<Instance>> {
    // SAFETY: NF1: an immediate.
    let port = unsafe { Term::new(RawTerm(port)) }.as_port()?;
    INSTANCES.read().get(&port.0).cloned()
}

/// Those of a driver.
fn of_driver(id: u64) -> Vec<Arc<Instance>> {
    let all = INSTANCES.read();
    let of_it = all.values().filter(|it| it.driver.id == id);
    of_it.cloned().collect()
}

/// Ends the ports of a driver.
pub(super) fn end_all(driver: u64, reason: &str) {
    for this in of_driver(driver) {
        this.locked(|| this.fail(atom(reason), false));
    }
}

/// Begins a driver's work for a port.
pub(super) fn open(
    driver: &Arc<Driver>,
    port: &Arc<Port>,
    command: &[u8],
    mode: Mode,
    caller: Pid,
) -> Result<(), Error> {
    let used = table::use_for_port(driver).ok_or(Error::Badarg)?;
    let this = Instance::new(port, driver, mode, used);
    let command = CString::new(command).map_err(|_| Error::Badarg)?;
    let begun = this.locked(|| this.start(caller, command));
    if begun.is_err() {
        this.end_quietly();
    }
    begun
}

impl Instance {
    /// The instance of a port that is in the table.
    fn new(port: &Arc<Port>, driver: &Arc<Driver>, mode: Mode, used: Use) -> Arc<Instance> {
        let this = Arc::new(Instance {
            port: port.clone(),
            driver: driver.clone(),
            own_lock: ReentrantMutex::new(()),
            data: AtomicPtr::default(),
            caller: AtomicU64::new(NOBODY),
            spent: AtomicI32::new(0),
            control_flags: AtomicI32::new(0),
            mode,
            input: Mutex::new(Input::new(mode.framing)),
            phase: AtomicU8::new(phase::OPEN),
            is_silent: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            queue: Mutex::default(),
            timer: Mutex::default(),
            monitors: Mutex::default(),
            data_lock: Mutex::default(),
            busy_queue_limits: Mutex::new(BUSY_QUEUE_LIMITS),
            used,
        });
        INSTANCES.write().insert(port.id.0, this.clone());
        port.set_linked(Arc::new(Of(this.clone())));
        this
    }

    /// What the library knows the port by.
    pub(super) fn handle(&self) -> DrvPort {
        ptr::without_provenance_mut(self.port.id.0 as usize)
    }

    /// The driver's data for the port.
    pub(super) fn data(&self) -> Data {
        self.data.load(Ordering::Acquire)
    }

    /// Nobody finds it any more.
    pub(super) fn forget(&self) {
        INSTANCES.write().remove(&self.port.id.0);
        // Dropped by the caller's reference, not here.
        let linked = self.port.take_linked();
        drop(linked);
    }

    /// Runs `call` under the lock that the driver has chosen.
    pub(super) fn locked<T>(&self, call: impl FnOnce() -> T) -> T {
        let lock = self.driver.lock.as_deref().unwrap_or(&self.own_lock);
        let _held = lock.lock();
        let _running = self.driver.native.running();
        call()
    }

    /// Has the driver do something for a port that it has not stopped; then the port ends, if it only waits for its
    /// queue to be empty. `None` where the driver has stopped.
    pub(super) fn call<T>(self: &Arc<Self>, call: impl FnOnce(&Driver, Data) -> T) -> Option<T> {
        self.locked(|| {
            if self.phase.load(Ordering::Acquire) == phase::STOPPED {
                return None;
            }
            self.spent.store(0, Ordering::Release);
            let done = call(&self.driver, self.data());
            self.end_if_flushed();
            Some(done)
        })
    }

    /// As [`Instance::call`], in the name of a process, for a port that is open.
    fn serve<T>(
        self: &Arc<Self>,
        caller: Option<Pid>,
        call: impl FnOnce(&Driver, Data) -> T,
    ) -> Option<T> {
        self.locked(|| {
            if self.phase.load(Ordering::Acquire) != phase::OPEN {
                return None;
            }
            let caller = caller.map_or(NOBODY, |pid| pid.0);
            let before = self.caller.swap(caller, Ordering::AcqRel);
            let done = self.call(call);
            self.caller.store(before, Ordering::Release);
            done
        })
    }

    fn start(self: &Arc<Self>, caller: Pid, command: CString) -> Result<(), Error> {
        let Some(start) = self.driver.entry.start else {
            return Ok(());
        };
        self.caller.store(caller.0, Ordering::Release);
        let mut command = command.into_bytes_with_nul();
        // SAFETY: D1, D2; a text that ends in zero.
        let data = unsafe { start(self.handle(), command.as_mut_ptr().cast()) };
        let error = std::io::Error::last_os_error();
        self.caller.store(NOBODY, Ordering::Release);
        match data.addr().cast_signed() {
            -1 => Err(Error::Os("einval")),
            -2 => Err(Error::Os(errno::name_of(&error))),
            -3 => Err(Error::Badarg),
            _ => {
                self.data.store(data, Ordering::Release);
                self.end_if_flushed();
                Ok(())
            }
        }
    }

    fn output(self: &Arc<Self>, caller: Option<Pid>, sent: Output) -> Option<()> {
        self.serve(caller, |driver, data| {
            if let Some(outputv) = driver.entry.outputv {
                let mut parts = Parts::of(&sent);
                // SAFETY: D1, D2; the vector lives as long as the call.
                unsafe {
                    let mut vector = parts.vector();
                    outputv(data, &raw mut vector);
                }
            } else if let Some(output) = driver.entry.output {
                let mut bytes = sent.into_bytes();
                // SAFETY: D1, D2; the bytes live as long as the call.
                unsafe { output(data, bytes.as_mut_ptr().cast(), bytes.len()) };
            }
        })
    }

    fn control(
        self: &Arc<Self>,
        caller: Pid,
        command: u32,
        request: &[u8],
    ) -> Option<(Vec<u8>, bool)> {
        let control = self.driver.entry.control?;
        let mut request = request.to_vec();
        let answered = self.serve(Some(caller), |_, data| {
            let mut room = [0_u8; ANSWER_BYTES];
            let own: *mut c_char = room.as_mut_ptr().cast();
            let mut answer = own;
            // SAFETY: D1, D2; all of it lives as long as the call.
            let size = unsafe {
                let (bytes, count) = (request.as_mut_ptr().cast(), request.len());
                control(data, command, bytes, count, &raw mut answer, room.len())
            };
            let size = usize::try_from(size).ok()?;
            let is_binary = self.control_flags.load(Ordering::Acquire) & CONTROL_BINARY != 0;
            // SAFETY: NF1: what the driver has answered.
            let bytes = unsafe { answer_of(answer, own, size, is_binary) };
            // Nothing at all is the empty list.
            Some((bytes, is_binary && !answer.is_null()))
        });
        answered?
    }

    fn call_operation(
        self: &Arc<Self>,
        caller: Pid,
        operation: u32,
        request: &mut [u8],
    ) -> Option<Vec<u8>> {
        let call = self.driver.entry.call?;
        let answered = self.serve(Some(caller), |_, data| {
            let mut room = [0_u8; CALL_ANSWER_BYTES];
            let own: *mut c_char = room.as_mut_ptr().cast();
            let (mut answer, mut flags): (_, c_uint) = (own, 0);
            // SAFETY: D1, D2; all of it lives as long as the call.
            let size = unsafe {
                let (bytes, count) = (request.as_mut_ptr().cast(), request.len());
                let room = room.len();
                call(
                    data,
                    operation,
                    bytes,
                    count,
                    &raw mut answer,
                    room,
                    &raw mut flags,
                )
            };
            let size = usize::try_from(size).ok().filter(|size| *size > 0);
            let keeps = flags & KEEP_BUFFER != 0 || size.is_none();
            // SAFETY: NF1: what the driver has answered; its memory is the caller's, if it does not keep it.
            unsafe {
                let bytes = size.map(|size| super::binary::bytes_at(answer, size).to_vec());
                if answer != own && !keeps {
                    libc::free(answer.cast());
                }
                bytes
            }
        });
        answered?.filter(|answer| answer.first() == Some(&EXTERNAL_VERSION))
    }

    /// A descriptor is ready.
    pub(super) fn ready(&self, data: Data, fd: RawFd, interest: Interest) {
        let event = ptr::without_provenance_mut(fd as usize);
        let ready = match interest {
            Interest::Read => self.driver.entry.ready_input,
            Interest::Write => self.driver.entry.ready_output,
            Interest::Error => None,
        };
        if let Some(ready) = ready {
            // SAFETY: D1, D2.
            unsafe { ready(data, event) };
        }
    }
}

/// The first byte of the external format.
const EXTERNAL_VERSION: u8 = 131;

/// `PORT_CONTROL_FLAG_BINARY`.
const CONTROL_BINARY: c_int = 1;

/// Bytes that a driver has room for, before it must find its own. Source: `ERL_ONHEAP_BINARY_LIMIT`,
/// `ERTS_PORT_CALL_RESP_BUF`.
const ANSWER_BYTES: usize = 64;
const CALL_ANSWER_BYTES: usize = 256;

/// `DRIVER_CALL_KEEP_BUFFER`.
const KEEP_BUFFER: c_uint = 1;

/// The answer of a control operation: in the room that it was given, in the driver's memory, or in a binary.
///
/// # Safety
/// NF1.
unsafe fn answer_of(
    answer: *mut c_char,
    own: *mut c_char,
    size: usize,
    is_binary: bool,
) -> Vec<u8> {
    // SAFETY: by contract.
    unsafe {
        if answer == own {
            return super::binary::bytes_at(own, size).to_vec();
        }
        if answer.is_null() {
            return Vec::new();
        }
        if is_binary {
            let binary = Counted::given(answer.cast());
            return binary.map_or_else(Vec::new, |it| it.bytes(0, it.size()).to_vec());
        }
        let bytes = super::binary::bytes_at(answer, size).to_vec();
        libc::free(answer.cast());
        bytes
    }
}

/// What an output consists of: one binary holds all elements. The first is empty, for a header of the driver's.
struct Parts {
    /// Keeps the binary as long as the call.
    _holder: Option<Counted>,
    size: usize,
    iov: Vec<super::binary::Iov>,
    binaries: Vec<*mut super::binary::DrvBinary>,
}

impl Parts {
    fn of(sent: &Output) -> Parts {
        let size = sent.len();
        let holder = (size > 0).then(|| Counted::of(&sent.bytes()));
        let (start, binary) = match &holder {
            Some(holder) => (holder.data(), holder.as_ptr()),
            None => (ptr::null_mut(), ptr::null_mut()),
        };
        let part = |data: *mut u8, iov_len| super::binary::Iov {
            iov_base: data.cast(),
            iov_len,
        };
        let mut parts = Parts {
            _holder: holder,
            size,
            iov: vec![part(ptr::null_mut(), 0)],
            binaries: vec![ptr::null_mut()],
        };
        let mut at = 0;
        for element in sent.elements() {
            parts.iov.push(part(start.wrapping_add(at), element.len()));
            parts.binaries.push(binary);
            at += element.len();
        }
        parts
    }

    fn vector(&mut self) -> IoVec {
        IoVec {
            count: c_int::try_from(self.iov.len()).expect("a list has fewer elements"),
            size: self.size,
            iov: self.iov.as_mut_ptr(),
            binaries: self.binaries.as_mut_ptr(),
        }
    }
}

/// An instance, as its port knows it.
struct Of(Arc<Instance>);

impl Linked for Of {
    fn command(
        &self,
        caller: Option<Pid>,
        data: Output,
        admit: &mut dyn FnMut() -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        self.0.locked(|| {
            admit()?;
            self.0.output(caller, data).ok_or(Refused::Gone)
        })
    }

    fn has_outputv(&self) -> bool {
        self.0.driver.entry.outputv.is_some()
    }

    fn takes_calls(&self) -> bool {
        self.0.driver.entry.call.is_some()
    }

    fn control(&self, caller: Pid, command: u32, data: &[u8]) -> Option<(Vec<u8>, bool)> {
        self.0.control(caller, command, data)
    }

    fn call(&self, caller: Pid, operation: u32, data: &mut [u8]) -> Option<Vec<u8>> {
        self.0.call_operation(caller, operation, data)
    }

    fn close(&self, reason: Term<'_>, asked: bool) {
        self.0.locked(|| self.0.close(reason, asked));
    }

    fn wait(&self) {
        self.0.locked(|| {});
    }

    fn is_locked_as_driver(&self) -> bool {
        self.0.driver.lock.is_some()
    }

    fn queued_bytes(&self) -> usize {
        self.0.queue.lock().size()
    }

    fn monitored(&self) -> Vec<Pid> {
        self.0.monitors.lock().pids()
    }

    fn is_busy_softly(&self) -> bool {
        self.0.driver.entry.flags & SOFT_BUSY != 0
    }
}

/// Source: `ERTS_PORT_PRE_ALLOC_MSGQ_HIGH_LIMIT` and its low one.
const BUSY_QUEUE_LIMITS: (usize, usize) = (4096, 8192);

/// Limits that are none.
const DISABLED: usize = usize::MAX;

/// A new port of the same driver, linked to `owner`.
fn create(this: &Arc<Instance>, owner: Pid, name: &[u8], data: Data) -> Option<DrvPort> {
    if !exists(owner) {
        return None;
    }
    let used = table::use_for_port(&this.driver)?;
    let port = open::create(owner, name)?;
    let mode = Mode {
        framing: Framing::Stream,
        binary: false,
        eof: false,
    };
    let new = Instance::new(&port, &this.driver, mode, used);
    new.data.store(data, Ordering::Release);
    port.state.lock().links.insert(owner.into());
    deliver(
        owner,
        Signal::Link {
            from: port.id.into(),
        },
    );
    Some(new.handle())
}

/// A pid as the library has it.
fn pid_of(term: TermData) -> Option<Pid> {
    // SAFETY: NF1: an immediate.
    unsafe { Term::new(RawTerm(term)) }.as_pid()
}

/// # Safety
/// NF1.
unsafe fn limit(at: *mut usize) -> Option<usize> {
    // SAFETY: by contract.
    unsafe { at.as_ref() }.copied().filter(|limit| *limit != 0)
}

api! {
    /// Its identifier, as a term.
    fn driver_mk_port(port: DrvPort) -> TermData { of(port).map_or(Term::NIL, |it| it.port.term()).raw().0 }
    /// Its owner.
    fn driver_connected(port: DrvPort) -> TermData {
        of(port).map_or(Term::NIL, |it| it.port.owner().term()).raw().0
    }
    /// The process whose request the driver serves.
    fn driver_caller(port: DrvPort) -> TermData {
        let caller = of(port).map(|it| it.caller.load(Ordering::Acquire)).filter(|pid| *pid != NOBODY);
        caller.map_or(Term::NIL, |pid| Pid(pid).term()).raw().0
    }
    /// Has callers wait until the port is not busy.
    fn set_busy_port(port: DrvPort, on: c_int) {
        if let Some(this) = of(port) && !this.port.is_gone() {
            this.port.set_busy(on != 0);
        }
    }
    /// 1: answers of control operations are binaries.
    fn set_port_control_flags(port: DrvPort, flags: c_int) {
        if let Some(this) = of(port) {
            this.control_flags.store(flags, Ordering::Release);
        }
    }
    /// 1: the owner gets binaries; 2: lines.
    fn get_port_flags(port: DrvPort) -> c_int {
        of(port).map_or(0, |this| {
            let lines = matches!(this.mode.framing, Framing::Line(_));
            c_int::from(this.mode.binary) | c_int::from(lines) << 1
        })
    }
    /// Says how many bytes may wait between processes and the port, and asks where 0 is given. They never wait here.
    fn erl_drv_busy_msgq_limits(port: DrvPort, low: *mut usize, high: *mut usize) {
        let this = of(port);
        let limits = match &this {
            Some(this) if this.driver.entry.flags & super::entry::NO_BUSY_QUEUE == 0 => {
                let mut limits = this.busy_queue_limits.lock();
                let given = (limit(low), limit(high));
                if given.0 == Some(DISABLED) || given.1 == Some(DISABLED) {
                    *limits = (DISABLED, DISABLED);
                }
                if limits.0 != DISABLED {
                    let low = given.0.unwrap_or(limits.0);
                    let high = given.1.unwrap_or(limits.1.max(low));
                    *limits = (low.min(high), high);
                }
                *limits
            }
            _ => (DISABLED, DISABLED),
        };
        if !low.is_null() { low.write(limits.0); }
        if !high.is_null() { high.write(limits.1); }
    }
    /// A new port of the same driver; -1 where that fails.
    fn driver_create_port(port: DrvPort, owner: TermData, name: *mut c_char, data: Data) -> DrvPort {
        let name = std::ffi::CStr::from_ptr(name).to_bytes();
        let made = of(port).zip(pid_of(owner)).and_then(|(this, owner)| create(&this, owner, name, data));
        made.unwrap_or(ptr::without_provenance_mut(usize::MAX))
    }
    /// Takes part of the time that the driver may have; whether it is used up.
    fn erl_drv_consume_timeslice(port: DrvPort, percent: c_int) -> c_int {
        let Some(this) = of(port) else { return -1 };
        let percent = percent.clamp(1, 100);
        c_int::from(this.spent.fetch_add(percent, Ordering::AcqRel) + percent >= 100)
    }
    /// The driver has begun, if `result` is not an error: then it ends.
    fn erl_drv_init_ack(port: DrvPort, result: Data) {
        let error = match result.addr().cast_signed() {
            -1 => atom("einval"),
            -2 => atom(errno::name_of(&std::io::Error::last_os_error())),
            -3 => am::badarg.term(),
            _ => return,
        };
        if let Some(this) = of(port) {
            this.locked(|| this.fail(error, false));
        }
    }
    /// What `port_info/2` says of the system's process.
    fn erl_drv_set_os_pid(port: DrvPort, pid: isize) {
        if let Some(this) = of(port) {
            this.port.state.lock().os_pid = i32::try_from(pid).ok();
        }
    }
    /// Writes the port's name and a zero to room for it.
    fn dtrace_drvport_str(port: DrvPort, to: *mut c_char) {
        let text = of(port).map_or_else(String::new, |this| this.port.term().display().to_string());
        ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), text.len());
        to.add(text.len()).write(0);
    }
}
