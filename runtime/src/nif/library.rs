//! Libraries of NIFs: opened, checked, and made the bodies of Erlang functions. Source: `erts_load_nif()`, OTP 29.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, ReentrantMutex};

use super::environment::Own;
use super::resource::{self, Opened};
use super::{Env, api};
use crate::code::bif::{self, Chance};
use crate::code::nif::{Body, Nif, delaying, taints};
use crate::code::op::{Op, entry as head};
use crate::loader::module::{self, MODIFICATION, Module, Versions};
use crate::process::order::director::are_answers_recorded;
use crate::process::{Dirty, Outcome, Process, SpawnOptions, spawn_native};
use crate::sched::schedulers;
use crate::sys::crash::{self, Native};
use crate::term::{Atom, RawTerm, Term, am};
use crate::trace::breakpoint::place::set_first_word;

/// The version of the interface: that of OTP 29.
pub(super) const VERSION: (c_int, c_int) = (2, 18);

/// What libraries are compiled for.
const VM_VARIANT: &[u8] = b"beam.vanilla";

/// `ErlNifFunc`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Func {
    name: *const c_char,
    arity: c_uint,
    body: Body,
    flags: c_uint,
}

/// `ErlNifFunc` of libraries from before 2.7.
#[derive(Clone, Copy)]
#[repr(C)]
struct OldFunc {
    name: *const c_char,
    arity: c_uint,
    body: Body,
}

type Load = unsafe extern "C" fn(*mut Env, *mut *mut c_void, RawTerm) -> c_int;
type Upgrade = unsafe extern "C" fn(*mut Env, *mut *mut c_void, *mut *mut c_void, RawTerm) -> c_int;
type Unload = unsafe extern "C" fn(*mut Env, *mut c_void);

/// `ErlNifEntry`. Older libraries have its first fields only.
#[repr(C)]
struct Entry {
    major: c_int,
    minor: c_int,
    name: *const c_char,
    count: c_int,
    funcs: *const Func,
    load: Option<Load>,
    /// Called no more since OTP 20.
    reload: *const c_void,
    upgrade: Option<Upgrade>,
    unload: Option<Unload>,
    /// Since 2.1.
    vm_variant: *const c_char,
    /// Since 2.7.
    options: c_uint,
    /// Since 2.12.
    init_bytes: usize,
    /// Since 2.14.
    min_erts: *const c_char,
}

/// A text that a library gives, as bytes.
///
/// # Safety
/// NF1.
unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// What `dlopen()` gave: open as long as this value.
pub(crate) struct Handle(NonNull<c_void>);

// SAFETY: the system guards its handles.
unsafe impl Send for Handle {}
// SAFETY: as for `Send`.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: opened, and closed once.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

/// Opens `name` with its ending, as ERTS does; null where that fails.
///
/// # Safety
/// NF1.
pub(crate) unsafe fn open_named(name: *const c_char) -> *mut c_void {
    // SAFETY: by contract.
    let name = OsStr::from_bytes(unsafe { bytes(name) });
    dl_open(name.as_bytes()).map_or(ptr::null_mut(), |handle| {
        let it = handle.0.as_ptr();
        std::mem::forget(handle);
        it
    })
}

/// Whether all is there that the file says it has for a program to load: the system's loader reads what is missing, and
/// dies of it. What is no file of this kind is for the loader to refuse.
fn is_whole(name: &[u8]) -> bool {
    let path = [name, b".so"].concat();
    match File::open(OsStr::from_bytes(&path)) {
        Ok(file) => has_all_segments(&file) != Some(false),
        Err(_) => true,
    }
}

/// As [`is_whole`], for an open file; `None` for what is no ELF file of 64 bits. Source: `elf(5)`.
fn has_all_segments(file: &File) -> Option<bool> {
    const HEADER_BYTES: usize = 64;
    const SEGMENT_BYTES: usize = 56;
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0_u64, |n, byte| n << 8 | u64::from(*byte))
    };
    let length = file.metadata().ok()?.len();
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let first = number(&header[32..40]);
    let (size, count) = (number(&header[54..56]), number(&header[56..58]));
    let is_there = |index: u64| {
        let mut segment = [0; SEGMENT_BYTES];
        let at = first.checked_add(index * size)?;
        file.read_exact_at(&mut segment, at).ok()?;
        let end = number(&segment[8..16]).checked_add(number(&segment[32..40]))?;
        (end <= length).then_some(())
    };
    Some((0..count).all(|index| is_there(index).is_some()))
}

fn dl_open(name: &[u8]) -> Option<Handle> {
    let file = CString::new([name, b".so"].concat()).ok()?;
    // SAFETY: a text that ends in zero.
    let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    NonNull::new(handle).map(Handle)
}

/// Opens the library `name` with its ending.
///
/// # Errors
/// What the system says, without the file's name before it.
pub(crate) fn open(name: &[u8]) -> Result<Handle, String> {
    if !is_whole(name) {
        return Err("file too short".to_owned());
    }
    dl_open(name).ok_or_else(|| {
        let file = String::from_utf8_lossy(name).into_owned() + ".so";
        let text = dl_error();
        match text.strip_prefix(&file) {
            Some(rest) => rest.trim_start_matches([':', ' ']).to_owned(),
            None => text,
        }
    })
}

/// What an open library has under a name.
pub(crate) fn symbol(handle: &Handle, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: open, and a text that ends in zero.
    NonNull::new(unsafe { libc::dlsym(handle.0.as_ptr(), name.as_ptr()) })
}

/// What the system says of the last failure.
fn dl_error() -> String {
    // SAFETY: null or a text.
    let text = unsafe { bytes(libc::dlerror()) };
    String::from_utf8_lossy(text).into_owned()
}

/// A library that a module has loaded. It stays open as long as the module's code lives, or a resource needs it.
pub(crate) struct Library {
    module: Atom,
    /// What is said of its callbacks where one crashes.
    callbacks: Arc<Native>,
    unload: Option<Unload>,
    private: AtomicPtr<c_void>,
    nifs: Vec<(u32, u8, Nif)>,
    is_loading: AtomicBool,
    /// Types that it has opened while it is loaded.
    opened: Mutex<Vec<Opened>>,
    /// What `enif_set_option()` has set.
    options: Mutex<LibraryOptions>,
    has_loaded: AtomicBool,
    /// Gone when the library's end has begun.
    handle: Option<Handle>,
}

/// A function that a library has called with its data.
type Callback = unsafe extern "C" fn(*mut c_void);

/// What a library asks for while it is loaded.
#[derive(Clone, Copy, Default)]
struct LibraryOptions {
    /// A halt waits for calls of its NIFs.
    delays_halt: bool,
    /// Called when the machine halts.
    on_halt: Option<Callback>,
    /// Called on each scheduler's thread before its end.
    on_unload_thread: Option<Callback>,
}

/// The libraries with a function for the halt, and those that were.
static ON_HALT: Mutex<Vec<Weak<Library>>> = Mutex::new(Vec::new());

/// The machine halts: tells the libraries that asked for it, and waits for the calls of those that delay it.
pub(crate) fn at_halt() {
    for library in std::mem::take(&mut *ON_HALT.lock()) {
        if let Some(library) = library.upgrade()
            && let Some(on_halt) = library.options.lock().on_halt
        {
            let _running = library.callbacks.running();
            // SAFETY: N1: the library's own function, with its data.
            unsafe { on_halt(library.private()) };
        }
    }
    delaying::wait();
}

/// A library that nobody uses any more, until all schedulers have said so to it.
struct Ending {
    callbacks: Arc<Native>,
    unload: Option<Unload>,
    private: *mut c_void,
    handle: Option<Handle>,
}

// SAFETY: N1: the library guards its data.
unsafe impl Send for Ending {}
// SAFETY: as for `Send`.
unsafe impl Sync for Ending {}

impl Drop for Ending {
    fn drop(&mut self) {
        // A program that hears of the end from the library, and loads it again, gets a new one.
        let _loading = LOADING.lock();
        if let Some(unload) = self.unload {
            let mut own = Own::new(ptr::null());
            let _running = self.callbacks.running();
            // SAFETY: N1: the library's own function, with its data.
            unsafe { unload(own.env(), self.private) };
        }
        drop(self.handle.take());
    }
}

impl Ending {
    /// Has `callback` called on each scheduler's thread, before the end.
    fn told_everywhere(self, callback: Callback) {
        let this = Arc::new(self);
        for id in 1..=schedulers() as u16 {
            let options = SpawnOptions {
                scheduler: id,
                system: true,
                ..SpawnOptions::default()
            };
            let mut this = Some(this.clone());
            spawn_native(&options, move |p| {
                if let Some(ending) = this.take() {
                    let _running = ending.callbacks.running();
                    // SAFETY: N1: the library's own function, with its data.
                    unsafe { callback(ending.private) };
                }
                Outcome::Exit(p.exit_with(am::normal.term()))
            });
        }
    }
}

// SAFETY: C3, N1: the library guards its data.
unsafe impl Send for Library {}
// SAFETY: as for `Send`.
unsafe impl Sync for Library {}

impl Library {
    pub(super) fn module(&self) -> Atom {
        self.module
    }

    pub(super) fn is_loading(&self) -> bool {
        self.is_loading.load(Ordering::Acquire)
    }

    /// Its type is opened, if loading goes well.
    pub(super) fn add_opened(&self, opened: Opened) {
        self.opened.lock().push(opened);
    }

    /// What is said of its callbacks where one crashes.
    pub(super) fn callbacks(&self) -> &Native {
        &self.callbacks
    }

    fn private(&self) -> *mut c_void {
        self.private.load(Ordering::Acquire)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let handle = self.handle.take();
        if !*self.has_loaded.get_mut() {
            return;
        }
        let ending = Ending {
            callbacks: self.callbacks.clone(),
            unload: self.unload,
            private: self.private(),
            handle,
        };
        if let Some(callback) = self.options.get_mut().on_unload_thread {
            ending.told_everywhere(callback);
        }
    }
}

/// A module's hold on its library.
struct Loaded(Arc<Library>);

impl Drop for Loaded {
    fn drop(&mut self) {
        resource::forget_types_of(&self.0);
    }
}

/// The library whose code runs with an environment.
pub(super) fn library(env: &Env) -> Option<&Library> {
    // SAFETY: N2: an environment's library is open as long as its code runs.
    unsafe { env.library.cast::<Library>().as_ref() }
}

/// The data of the library whose code runs with an environment.
pub(super) fn priv_data(env: &Env) -> *mut c_void {
    library(env).map_or(ptr::null_mut(), Library::private)
}

/// Why a library is not loaded: a reason and a text.
pub(crate) type Refusal = (&'static str, String);

fn bad_lib(text: String) -> Refusal {
    ("bad_lib", text)
}

/// Held while a library is loaded, so that a module gets one, and while one is unloaded and closed, which the loading of
/// another may lead to.
static LOADING: ReentrantMutex<()> = ReentrantMutex::new(());

/// Loads the library in the file `name` for the module whose code calls `erlang:load_nif/2`: `code`, and where in it.
///
/// # Errors
/// As in OTP.
pub(crate) fn load(
    p: &Process,
    code: &Arc<Module>,
    name: &[u8],
    info: Term<'_>,
) -> Result<(), Refusal> {
    let _loading = LOADING.lock();
    let versions = module::versions(code.name);
    let is =
        |version: &Option<Arc<Module>>| version.as_ref().is_some_and(|it| Arc::ptr_eq(it, code));
    if is(&versions.old) {
        let text = format!(
            "Calling load_nif from old module '{}' not allowed",
            code.name
        );
        return Err(("old_code", text));
    }
    if code.library.get().is_some() {
        let text = "NIF library already loaded (reload disallowed since OTP 20).";
        return Err(("reload", text.to_owned()));
    }
    if !is_whole(name) {
        let name = String::from_utf8_lossy(name);
        let text = format!("Failed to load NIF library: '{name}.so: file too short'");
        return Err(("load_failed", text));
    }
    let handle = dl_open(name).ok_or_else(|| load_failed(name))?;
    let entry = entry_of(&handle)?;
    taints::add(code.name);
    crash::watch();
    let file = String::from_utf8_lossy(name).into_owned() + ".so";
    // SAFETY: N1: the entry of a library that is open.
    let (entry, nifs) = unsafe {
        check_version(&*entry, code.name)?;
        (&*entry, nifs_of(&*entry, code, &file)?)
    };
    let (load, upgrade) = (entry.load, entry.upgrade);
    let library = library_of(entry, code.name, nifs, handle, &file);
    let before = before(&versions, code).and_then(|module| of_module(&module));
    begin(p, &library, before.as_deref(), load, upgrade, info)?;
    library.has_loaded.store(true, Ordering::Release);
    take_options(&library);
    resource::commit(std::mem::take(&mut *library.opened.lock()), &library);
    install(code, library);
    Ok(())
}

fn load_failed(name: &[u8]) -> Refusal {
    let (name, error) = (String::from_utf8_lossy(name), dl_error());
    let text = match error.contains(&*name) {
        true => format!("Failed to load NIF library: '{error}'"),
        false => format!("Failed to load NIF library {name}: '{error}'"),
    };
    ("load_failed", text)
}

/// The version of a module whose library a new one takes over from.
fn before(versions: &Versions, code: &Arc<Module>) -> Option<Arc<Module>> {
    let is_current = versions
        .current
        .as_ref()
        .is_some_and(|it| Arc::ptr_eq(it, code));
    match &versions.current {
        Some(current) if !is_current => Some(current.clone()),
        _ => versions.old.clone(),
    }
}

fn of_module(module: &Module) -> Option<Arc<Library>> {
    let loaded = module.library.get()?.downcast_ref::<Loaded>()?;
    Some(loaded.0.clone())
}

fn entry_of(handle: &Handle) -> Result<*const Entry, Refusal> {
    // Some systems have an underscore before the names of C. What is said of a missing one is of the last.
    let find = |name: &CStr| {
        // SAFETY: open, and a text that ends in zero.
        let found = unsafe { libc::dlsym(handle.0.as_ptr(), name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let Some(init) = find(c"nif_init").or_else(|| find(c"_nif_init")) else {
        let text = format!("Failed to find library init function: '{}'", dl_error());
        return Err(bad_lib(text));
    };
    // SAFETY: N1: what `ERL_NIF_INIT` defines under this name.
    let init: unsafe extern "C" fn() -> *const Entry = unsafe { std::mem::transmute(init) };
    // SAFETY: N1.
    let entry = unsafe { init() };
    match entry.is_null() {
        true => Err(bad_lib("Library init-call unsuccessful".to_owned())),
        false => Ok(entry),
    }
}

/// # Safety
/// N1.
unsafe fn check_version(entry: &Entry, module: Atom) -> Result<(), Refusal> {
    let (major, minor) = (entry.major, entry.minor);
    let version = (major, minor);
    let module = Term::from(module);
    let module = module.display();
    if version > VERSION {
        // SAFETY: by contract; newer libraries have it.
        let min = String::from_utf8_lossy(unsafe { bytes(entry.min_erts) });
        return Err(bad_lib(format!(
            "That '{module}' NIF library needs {min} or newer. Either try to recompile the NIF lib or use a newer erts \
             runtime."
        )));
    }
    if major < 2 || version == (2, 5) {
        return Err(bad_lib(format!(
            "That old NIF library ({major}.{minor}) is not compatible with this erts runtime ({}.{}). Try recompile the \
             NIF lib.",
            VERSION.0, VERSION.1
        )));
    }
    let variant = match version >= (2, 1) {
        // SAFETY: by contract: since 2.1.
        true => unsafe { bytes(entry.vm_variant) },
        false => VM_VARIANT,
    };
    if variant != VM_VARIANT {
        return Err(bad_lib(format!(
            "Library ({}) not compiled for this vm variant ({}).",
            String::from_utf8_lossy(variant),
            String::from_utf8_lossy(VM_VARIANT)
        )));
    }
    // SAFETY: by contract.
    let name = unsafe { bytes(entry.name) };
    let name: String = name.iter().map(|byte| char::from(*byte)).collect();
    match module.to_bytes() == Term::from(Atom::new(&name)).display().to_bytes() {
        true => Ok(()),
        false => Err(bad_lib(format!(
            "Library module name '{name}' does not match calling module '{module}'"
        ))),
    }
}

/// The functions of a library, as a new one has them.
///
/// # Safety
/// N1.
unsafe fn funcs(entry: &Entry) -> Vec<Func> {
    let count = usize::try_from(entry.count).unwrap_or(0);
    // SAFETY: by contract.
    let func = |i| unsafe {
        if (entry.major, entry.minor) >= (2, 7) {
            return *entry.funcs.add(i);
        }
        let OldFunc { name, arity, body } = *entry.funcs.cast::<OldFunc>().add(i);
        Func {
            name,
            arity,
            body,
            flags: 0,
        }
    };
    (0..count).map(func).collect()
}

/// The NIFs of a library, with the entries of the functions whose bodies they are.
///
/// # Safety
/// N1.
unsafe fn nifs_of(
    entry: &Entry,
    code: &Module,
    file: &str,
) -> Result<Vec<(u32, u8, Nif)>, Refusal> {
    let mut nifs: Vec<(u32, u8, Nif)> = Vec::new();
    // SAFETY: by contract.
    for func in unsafe { funcs(entry) } {
        let Func {
            name,
            arity,
            body,
            flags,
        } = func;
        // SAFETY: by contract.
        let name: String = unsafe { bytes(name) }
            .iter()
            .map(|byte| char::from(*byte))
            .collect();
        let shown = format!("{}:{name}/{arity}", code.name);
        let place = u8::try_from(arity).ok().and_then(|arity| {
            let at = code.find(Atom::existing(&name)?, arity)?;
            Some((at, arity))
        });
        let Some((at, arity)) = place else {
            return Err(bad_lib(format!("Function not found {shown}")));
        };
        if !code.may_be_nif(at) {
            return Err(bad_lib(format!("Function not declared as nif {shown}")));
        }
        let dirty = match flags {
            0 => None,
            1 => Some(Dirty::Cpu),
            2 => Some(Dirty::Io),
            _ => {
                return Err(bad_lib(format!(
                    "Illegal flags field value {flags} for NIF {shown}"
                )));
            }
        };
        if nifs.iter().any(|(other, ..)| *other == at) {
            return Err(bad_lib(format!("Duplicate NIF entry for {shown}")));
        }
        if is_recorded_here(code.name, &name, arity) {
            continue;
        }
        let native = Native::new(&shown, file);
        nifs.push((at, arity, Nif::new(body, dirty, native)));
    }
    Ok(nifs)
}

/// Whether the order of the run is asked for, and Beamline has a function of its own whose answers it holds: random
/// numbers of `crypto`.
fn is_recorded_here(module: Atom, name: &str, arity: u8) -> bool {
    let row = || bif::nif(module, Atom::existing(name)?, arity);
    are_answers_recorded() && row().is_some_and(|row| row.chance == Chance::Answer)
}

fn library_of(
    entry: &Entry,
    module: Atom,
    mut nifs: Vec<(u32, u8, Nif)>,
    handle: Handle,
    file: &str,
) -> Arc<Library> {
    Arc::new_cyclic(|this: &std::sync::Weak<Library>| {
        for (_, _, nif) in &mut nifs {
            nif.library = NonNull::new(this.as_ptr().cast_mut().cast()).unwrap_or(nif.library);
        }
        Library {
            module,
            callbacks: Arc::new(Native::new(&format!("a callback of module {module}"), file)),
            unload: entry.unload,
            private: AtomicPtr::new(ptr::null_mut()),
            nifs,
            is_loading: AtomicBool::new(true),
            opened: Mutex::default(),
            options: Mutex::default(),
            has_loaded: AtomicBool::new(false),
            handle: Some(handle),
        }
    })
}

/// Calls the function of a library that begins it, or takes over from `before`.
fn begin(
    p: &Process,
    library: &Arc<Library>,
    before: Option<&Library>,
    load: Option<Load>,
    upgrade: Option<Upgrade>,
    info: Term<'_>,
) -> Result<(), Refusal> {
    let env = Env::of_process(p, Arc::as_ptr(library).cast());
    let this = (&raw const env).cast_mut();
    // The library may ask for its data before it returns.
    let private = library.private.as_ptr();
    let _running = library.callbacks.running();
    let told = match (before, load, upgrade) {
        (Some(before), _, Some(upgrade)) => {
            let old = before.private();
            // SAFETY: N1.
            let veto = unsafe { upgrade(this, private, before.private.as_ptr(), info.raw()) };
            if veto != 0 {
                before.private.store(old, Ordering::Release);
            }
            refused(veto, "upgrade")
        }
        (Some(_), _, None) => {
            let text = "Upgrade not supported by this NIF library.";
            Err(("upgrade", text.to_owned()))
        }
        // SAFETY: N1.
        (None, Some(load), _) => refused(unsafe { load(this, private, info.raw()) }, "load"),
        (None, None, _) => Ok(()),
    };
    library.is_loading.store(false, Ordering::Release);
    told
}

/// What the library has asked for takes effect.
fn take_options(library: &Arc<Library>) {
    let options = *library.options.lock();
    for (_, _, nif) in &library.nifs {
        nif.delay_halt(options.delays_halt);
    }
    if options.on_halt.is_some() {
        let mut all = ON_HALT.lock();
        all.retain(|library| library.strong_count() > 0);
        all.push(Arc::downgrade(library));
    }
}

fn refused(veto: c_int, call: &'static str) -> Result<(), Refusal> {
    match veto {
        0 => Ok(()),
        _ => Err((call, format!("Library {call}-call unsuccessful ({veto})."))),
    }
}

/// Makes the library's functions the bodies of those of the module.
fn install(code: &Arc<Module>, library: Arc<Library>) {
    let _permission = MODIFICATION.lock();
    for (at, arity, nif) in &library.nifs {
        code.word(*at, head::ARITY)
            .store(head::with_nif(*arity, nif), Ordering::Release);
        set_first_word(code, *at, Op::NifEntry.word(0, 0, 0));
    }
    let _ = code.library.set(Box::new(Loaded(library)));
}

api! {
    /// Option 1: a halt waits for calls; 2: `callback` is called when the machine halts; 3: on each scheduler's thread
    /// before the library is closed. While it is loaded only, and each once: else `EINVAL`.
    fn beamline_nif_set_callback(e: *mut Env, option: c_int, callback: *mut c_void) -> c_int {
        let library = e.as_ref().and_then(library).filter(|library| library.is_loading());
        let Some(library) = library else { return libc::EINVAL };
        let mut options = library.options.lock();
        let callback = NonNull::new(callback);
        // The library gives a function where one is asked for.
        let callback = callback.map(|it| std::mem::transmute::<NonNull<c_void>, Callback>(it));
        let is_new = match option {
            1 => !std::mem::replace(&mut options.delays_halt, true),
            2 if options.on_halt.is_none() => { options.on_halt = callback; callback.is_some() }
            3 if options.on_unload_thread.is_none() => { options.on_unload_thread = callback; callback.is_some() }
            _ => false,
        };
        if is_new { 0 } else { libc::EINVAL }
    }
}
