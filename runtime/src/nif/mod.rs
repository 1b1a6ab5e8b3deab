//! The interface of libraries written in C: `erl_nif.h`.
//!
//! The functions have C's calling convention and their names in `erl_nif.h`, and are exported by the program, so that a
//! library compiled against OTP's headers finds them. Each family has a file with a table of its functions, [`api!`];
//! [`names`] gives all. A term is a word as in ERTS (`ERL_NIF_TERM`), and an environment an [`Env`]. `variadic.c` has
//! those with a variable number of arguments.
//!
//! - `library`: opens libraries, and makes their functions the bodies of Erlang functions.
//! - `environment`: environments, messages; `read`, `build`, `binary`, `map`: terms; `resource`: objects of a library.
//! - `thread`, `time`, `queue`, `print`: what has to do with no term.
//!
//! Source: `erl_nif.c`, OTP 29. Invariants N1 and N2 of `exec/nif.rs`, C3 of `code/mod.rs`, and:
//! - NF1: a pointer that a library gives points to what `erl_nif.h` says, for as long as the call.
#![expect(unsafe_code, reason = "C calls these functions, and gives pointers")]

mod binary;
mod build;
mod environment;
pub(crate) mod library;
mod map;
mod monitor;
mod print;
mod queue;
mod read;
mod resource;
mod select;
pub(crate) mod thread;
pub(crate) mod time;

pub(crate) use crate::exec::nif::Env;
use crate::term::{RawTerm, Term};

/// The address of a function of the interface.
pub(crate) struct Symbol(pub(crate) &'static str, pub(crate) *const ());

// SAFETY: the address of a function does not change.
unsafe impl Sync for Symbol {}

/// Declares functions of the interface, which C calls, and their table, `TABLE`.
macro_rules! api {
    ($(
        $(#[doc = $doc:literal])*
        fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    )*) => {
        $(
            $(#[doc = $doc])*
            ///
            /// # Safety
            /// N1, NF1.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($arg: $type),*) $(-> $result)? {
                // SAFETY: by contract.
                #[allow(unused_unsafe, reason = "not each body needs it")]
                unsafe { $body }
            }
        )*
        /// This family's functions.
        #[used]
        pub(crate) static TABLE: &[super::Symbol] =
            &[$(super::Symbol(stringify!($name), $name as *const ())),*];
    };
}
pub(crate) use api;

/// The tables of all families.
static TABLES: [&[Symbol]; 14] = [
    binary::TABLE,
    build::TABLE,
    environment::TABLE,
    map::TABLE,
    monitor::TABLE,
    print::IN_C,
    print::TABLE,
    queue::TABLE,
    read::TABLE,
    resource::TABLE,
    select::TABLE,
    thread::TABLE,
    time::TABLE,
    library::TABLE,
];

/// The names of the functions of `erl_nif.h` that there are.
pub fn names() -> impl Iterator<Item = &'static str> {
    let symbols = TABLES.iter().flat_map(|table| table.iter());
    symbols
        .filter(|symbol| !symbol.1.is_null())
        .map(|symbol| symbol.0)
        .filter(|name| name.starts_with("enif_"))
}

/// A term that a library has in hand.
///
/// # Safety
/// N1: it is one, and lives as long as the result is used.
unsafe fn term<'a>(raw: RawTerm) -> Term<'a> {
    // SAFETY: by contract.
    unsafe { Term::new(raw) }
}

/// The environment that a library gives.
///
/// # Safety
/// N1: it is one, and lives as long as the result is used.
unsafe fn env<'a>(env: *mut Env) -> &'a Env {
    // SAFETY: by contract.
    unsafe { &*env }
}
