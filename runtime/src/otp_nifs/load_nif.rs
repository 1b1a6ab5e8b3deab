//! `erlang:load_nif/2`. The modules of OTP that ERTS links in have their native functions here. Other libraries are
//! opened.

use super::{NIFS, atom, error, prim_socket};
use crate::bif::{badarg, bifs};
use crate::code::stubs::for_each_return;
use crate::loader::module::{Module, module_at};
use crate::loader::permission;
use crate::nif::library;
use crate::process::{Exception, Next, Process};
use crate::sys::chance;
use crate::term::{CodeAddress, Term, View, am};
use crate::value::file_name::native_or_raw_name;
use std::sync::Arc;

bifs! {
    all again;
    xbif erlang:"load_nif"/2 => load_nif_2;
}

/// Has the module native functions here?
fn is_native(module: &str) -> bool {
    let mut modules = NIFS
        .iter()
        .flat_map(|family| family.iter())
        .map(|bif| bif.module);
    module != "erlang" && modules.any(|other| other == module)
}

/// `crypto` has some of its functions here, for machines without its library or what that needs. A virtual run always
/// uses these, because nothing controls what the library draws by chance.
fn is_spare(module: &str) -> bool {
    module == "crypto" && !chance::form().is_virtual()
}

/// Loads the library `name` for `code`, whose function has called.
fn load<'p>(p: &'p Process, code: &Arc<Module>, name: &[u8], info: Term<'p>) -> Term<'p> {
    let module = code.name.name();
    if is_native(module) && !is_spare(module) {
        if module == "prim_socket" {
            prim_socket::configure(info);
        }
        return am::ok.term();
    }
    match library::load(p, code, name, info) {
        Ok(()) => am::ok.term(),
        Err(_) if is_spare(module) => am::ok.term(),
        Err((reason, text)) => error(p, p.tuple(&[atom(reason), p.string(&text)])),
    }
}

/// Where the call was made: the instruction, or under a breakpoint what the function returns to.
fn caller(p: &Process) -> CodeAddress {
    let mut caller = p.pc.get();
    if caller.is_null() {
        for_each_return(p, |address| {
            caller = address.call();
            false
        });
    }
    caller
}

fn load_nif_2(p: &mut Process) -> Next {
    if permission::waits(p) {
        return Next::Wait;
    }
    let (code, process) = (module_at(caller(p)), &*p);
    let (library, info) = (process.x(0), process.x(1));
    let name = match library.view() {
        View::Cons(_) => native_or_raw_name(library),
        _ => None,
    };
    let Some(name) = name else {
        let exception = Exception::from_raise(process, &badarg());
        p.exception = exception;
        return Next::Raise;
    };
    let result = match &code {
        Some((code, _)) => load(process, code, &name, info),
        None => {
            let text = "load_nif/2 must be explicitly called from the NIF module. It cannot be called through apply/3.";
            error(
                process,
                process.tuple(&[atom("bad_lib"), process.string(text)]),
            )
        }
    };
    process.set_x(0, result);
    Next::Return
}
