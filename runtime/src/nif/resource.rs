//! Resources: objects of a library behind references.
//!
//! The memory that a library sees is preceded by a [`Head`]: where the resource is, and the magic binary whose object it
//! is. The library's own references to it are counts of the magic binary, as those of terms are.
//!
//! A type is known by its module and name. Its callbacks belong to the library that opened it last, which stays open as
//! long as there are resources that need them.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::environment::Own;
use super::library::{Library, library};
use super::read::{Encoding, atom_of};
use super::{Env, api, env, term};
use crate::heap::MagicBinary;
use crate::process::refs::make_ref;
use crate::term::{Atom, RawTerm};

type Dtor = unsafe extern "C" fn(*mut Env, *mut c_void);
pub(super) type Stop = unsafe extern "C" fn(*mut Env, *mut c_void, c_int, c_int);
pub(super) type Down =
    unsafe extern "C" fn(*mut Env, *mut c_void, *mut RawTerm, *mut super::monitor::NifMonitor);
type DynCall = unsafe extern "C" fn(*mut Env, *mut c_void, *mut c_void);

/// `ErlNifResourceTypeInit`.
#[repr(C)]
pub(super) struct Init {
    dtor: Option<Dtor>,
    stop: Option<Stop>,
    down: Option<Down>,
    members: c_int,
    dyncall: Option<DynCall>,
}

/// The functions that a library gives for resources of a type.
#[derive(Clone, Copy, Default)]
pub(super) struct Callbacks {
    dtor: Option<Dtor>,
    pub(super) stop: Option<Stop>,
    pub(super) down: Option<Down>,
    dyncall: Option<DynCall>,
}

impl Callbacks {
    fn are_none(&self) -> bool {
        let Callbacks {
            dtor,
            stop,
            down,
            dyncall,
        } = self;
        dtor.is_none() && stop.is_none() && down.is_none() && dyncall.is_none()
    }

    /// The first `members` of those in `init`: what a library of this age knows.
    fn of(init: &Init, members: c_int) -> Callbacks {
        Callbacks {
            dtor: init.dtor.filter(|_| members >= 1),
            stop: init.stop.filter(|_| members >= 2),
            down: init.down.filter(|_| members >= 3),
            dyncall: init.dyncall.filter(|_| members >= 4),
        }
    }
}

/// What a library knows as `ErlNifResourceType`.
pub(super) struct Type {
    module: Atom,
    name: Atom,
    owner: RwLock<Owner>,
}

/// Callbacks, and the library whose they are.
#[derive(Clone, Default)]
pub(super) struct Owner {
    pub(super) callbacks: Callbacks,
    /// Open as long as there may be callbacks to call; `None` where there are none.
    pub(super) library: Option<Arc<Library>>,
    /// The address of the library that has opened the type last.
    opened_by: usize,
}

impl Type {
    pub(super) fn owner(&self) -> Owner {
        self.owner.read().clone()
    }
}

/// The types there are.
static TYPES: Mutex<BTreeMap<(Atom, Atom), Arc<Type>>> = Mutex::new(BTreeMap::new());

/// A type that a library has opened while it is loaded: it takes effect when that has gone well.
pub(super) struct Opened {
    of_type: Arc<Type>,
    callbacks: Callbacks,
}

/// What a library has opened takes effect.
pub(super) fn commit(opened: Vec<Opened>, library: &Arc<Library>) {
    // Libraries whose types these were end, perhaps, and not under the lock.
    let mut gone = Vec::new();
    let mut types = TYPES.lock();
    for Opened { of_type, callbacks } in opened {
        let owner = Owner {
            callbacks,
            library: (!callbacks.are_none()).then(|| library.clone()),
            opened_by: Arc::as_ptr(library) as usize,
        };
        let before = std::mem::replace(&mut *of_type.owner.write(), owner);
        gone.push(before);
        types.insert((of_type.module, of_type.name), of_type);
    }
}

/// A library's module is gone: nobody opens its types any more. They live as long as their resources.
pub(super) fn forget_types_of(library: &Arc<Library>) {
    let address = Arc::as_ptr(library) as usize;
    let mut gone = Vec::new();
    TYPES.lock().retain(|_, of_type| {
        let stays = of_type.owner.read().opened_by != address;
        if !stays {
            gone.push(of_type.clone());
        }
        stays
    });
    // Each lives as long as it has resources, and its library with it; not under the lock.
    drop(gone);
}

/// What stands before the memory that a library sees, which is aligned as `malloc`'s.
#[repr(C, align(16))]
struct Head {
    magic: *const MagicBinary,
    resource: *const Resource,
}

const HEAD_BYTES: usize = size_of::<Head>();

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(HEAD_BYTES + bytes, HEAD_BYTES).expect("a size that there may be")
}

/// An object of a library, as the magic binary has it.
pub(super) struct Resource {
    pub(super) of_type: Arc<Type>,
    /// What the library sees.
    data: NonNull<u8>,
    bytes: usize,
    pub(super) monitors: super::monitor::Monitors,
}

// SAFETY: N1: the library guards its object.
unsafe impl Send for Resource {}
// SAFETY: as for `Send`.
unsafe impl Sync for Resource {}

impl Resource {
    /// What the library sees.
    pub(super) fn object(&self) -> *mut c_void {
        self.data.as_ptr().cast()
    }

    /// # Safety
    /// NF1: `object` is of `enif_alloc_resource()`, and lives, or its destructor runs.
    unsafe fn head<'a>(object: *const c_void) -> &'a Head {
        // SAFETY: by contract: what stands before it.
        unsafe { &*object.cast::<Head>().sub(1) }
    }

    /// The magic binary of an object.
    ///
    /// # Safety
    /// As for [`Resource::head`].
    unsafe fn magic_ptr(object: *const c_void) -> *const MagicBinary {
        // SAFETY: by contract.
        unsafe { Resource::head(object) }.magic
    }

    /// One more count of an object's magic binary.
    ///
    /// # Safety
    /// As for [`Resource::magic_ptr`].
    pub(super) unsafe fn magic_of(object: *const c_void) -> Arc<MagicBinary> {
        // SAFETY: by contract: the caller has a count.
        unsafe {
            let magic = Resource::magic_ptr(object);
            Arc::increment_strong_count(magic);
            Arc::from_raw(magic)
        }
    }

    /// The resource of an object.
    ///
    /// # Safety
    /// As for [`Resource::magic_ptr`].
    pub(super) unsafe fn of<'a>(object: *const c_void) -> &'a Resource {
        // SAFETY: by contract: it does not move.
        unsafe { &*Resource::head(object).resource }
    }

    fn alloc(of_type: Arc<Type>, bytes: usize) -> *mut c_void {
        // SAFETY: it has the head's size at least.
        let block = unsafe { alloc_zeroed(layout(bytes)) };
        let Some(block) = NonNull::new(block) else {
            return ptr::null_mut();
        };
        // SAFETY: within the block.
        let data = unsafe { block.add(HEAD_BYTES) };
        let resource = Resource {
            of_type,
            data,
            bytes,
            monitors: super::monitor::Monitors::default(),
        };
        let resource = Box::new(resource);
        let place = &raw const *resource;
        let magic = Arc::into_raw(MagicBinary::new(make_ref(), resource));
        let head = Head {
            magic,
            resource: place,
        };
        // SAFETY: the block begins with room for it.
        unsafe { block.cast::<Head>().write(head) };
        data.as_ptr().cast()
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        self.monitors.end();
        let owner = self.of_type.owner();
        if let Some(dtor) = owner.callbacks.dtor {
            call_with_env(&owner, |env| {
                // SAFETY: N1: the library's own function, for an object of its type.
                unsafe { dtor(env, self.object()) }
            });
        }
        // SAFETY: allocated so; nobody has a count any more.
        unsafe { dealloc(self.data.as_ptr().sub(HEAD_BYTES), layout(self.bytes)) };
    }
}

/// Calls a callback with an environment of no process.
pub(super) fn call_with_env(owner: &Owner, callback: impl FnOnce(*mut Env)) {
    let library = owner
        .library
        .as_ref()
        .map_or(ptr::null(), |library| Arc::as_ptr(library).cast());
    let mut own = Own::new(library);
    let _running = owner.library.as_ref().map(|it| it.callbacks().running());
    callback(own.env());
}

/// The resource that a term refers to, by a reference or as part of a binary.
fn resource_of<'a>(t: RawTerm) -> Option<&'a Resource> {
    // SAFETY: N1.
    let t = unsafe { term(t) };
    let magic = match t.as_ref() {
        Some(reference) => reference.magic(),
        None => t.as_bits()?.binary()?.object(),
    };
    magic?.get()
}

/// Opens a type while the library of `env` is loaded; null where that is not allowed.
///
/// # Safety
/// NF1.
unsafe fn open(
    env: &Env,
    name: *const c_char,
    callbacks: Callbacks,
    flags: c_int,
    tried: *mut c_int,
) -> *const Type {
    const CREATE: c_int = 1;
    const TAKEOVER: c_int = 2;
    let opened = library(env)
        .filter(|library| library.is_loading())
        .and_then(|library| {
            // SAFETY: by contract.
            let name = unsafe { atom_of(name, libc::strlen(name), Encoding::Latin1, false) }?;
            let known = TYPES.lock().get(&(library.module(), name)).cloned();
            let (of_type, op) = match known {
                Some(known) if flags & TAKEOVER != 0 => (known, TAKEOVER),
                None if flags & CREATE != 0 => {
                    let (module, owner) = (library.module(), RwLock::default());
                    (
                        Arc::new(Type {
                            module,
                            name,
                            owner,
                        }),
                        CREATE,
                    )
                }
                _ => return None,
            };
            let address = Arc::as_ptr(&of_type);
            library.add_opened(Opened { of_type, callbacks });
            Some((address, op))
        });
    if !tried.is_null() {
        // SAFETY: by contract.
        unsafe { tried.write(opened.map_or(flags, |(_, op)| op)) };
    }
    opened.map_or(ptr::null(), |(address, _)| address)
}

api! {
    /// Opens a type with a destructor.
    fn enif_open_resource_type(
        e: *mut Env, _module: *const c_char, name: *const c_char, dtor: Option<Dtor>, flags: c_int, tried: *mut c_int,
    ) -> *const Type {
        open(env(e), name, Callbacks { dtor, ..Callbacks::default() }, flags, tried)
    }
    /// Opens a type with a destructor, a function to stop and one for processes that end.
    fn enif_open_resource_type_x(
        e: *mut Env, name: *const c_char, init: *const Init, flags: c_int, tried: *mut c_int,
    ) -> *const Type {
        open(env(e), name, Callbacks::of(&*init, 3), flags, tried)
    }
    /// Opens a type with as many functions as are given.
    fn enif_init_resource_type(
        e: *mut Env, name: *const c_char, init: *const Init, flags: c_int, tried: *mut c_int,
    ) -> *const Type {
        open(env(e), name, Callbacks::of(&*init, (*init).members), flags, tried)
    }

    /// An object of a type, with one reference.
    fn enif_alloc_resource(of_type: *const Type, bytes: usize) -> *mut c_void {
        Arc::increment_strong_count(of_type);
        Resource::alloc(Arc::from_raw(of_type), bytes)
    }
    /// One reference more.
    fn enif_keep_resource(object: *mut c_void) { Arc::increment_strong_count(Resource::magic_ptr(object)); }
    /// One reference less.
    fn enif_release_resource(object: *mut c_void) { drop(Arc::from_raw(Resource::magic_ptr(object))); }
    /// The term of an object.
    fn enif_make_resource(e: *mut Env, object: *mut c_void) -> RawTerm {
        env(e).heap().magic_reference(Resource::magic_of(object)).raw()
    }
    /// The object of a term, if it is of that type.
    fn enif_get_resource(_e: *mut Env, t: RawTerm, of_type: *const Type, object: *mut *mut c_void) -> c_int {
        let Some(resource) = resource_of(t) else { return 0 };
        if Arc::as_ptr(&resource.of_type) != of_type {
            return 0;
        }
        object.write(resource.object());
        1
    }
    /// Bytes of an object.
    fn enif_sizeof_resource(object: *mut c_void) -> usize { Resource::of(object).bytes }
    /// Calls another library's function with an object of its type; 0 where it was called.
    fn enif_dynamic_resource_call(
        e: *mut Env, module: RawTerm, name: RawTerm, t: RawTerm, data: *mut c_void,
    ) -> c_int {
        let Some(resource) = resource_of(t) else { return 1 };
        let of_type = &*resource.of_type;
        let is_it = of_type.module.raw() == module && of_type.name.raw() == name;
        match of_type.owner().callbacks.dyncall.filter(|_| is_it) {
            Some(call) => {
                call(e, resource.object(), data);
                0
            }
            None => 1,
        }
    }
}
