//! `erlang:load_nif/2`. The modules of OTP that ERTS links in have their native functions here. Libraries in C are
//! refused.

use super::{NIFS, atom, error};
use crate::bif::{BifResult, badarg, bifs};
use crate::process::Process;
use crate::term::{Term, View, am};

bifs! {
    bif erlang:"load_nif"/2 => load_nif_2;
}

/// Libraries that are loaded from a file are known by its name: what ERTS links in has no directory.
fn is_native(library: &[u8]) -> bool {
    let library = library
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or(library);
    NIFS.iter()
        .flat_map(|family| family.iter())
        .map(|bif| bif.module)
        .filter(|&module| module != "erlang")
        .any(|module| module.as_bytes() == library)
}

fn load_nif_2<'p>(p: &'p Process, [library, _info]: [Term<'p>; 2]) -> BifResult<'p> {
    let name = match library.view() {
        View::Cons(_) => crate::value::file_name::native_or_raw_name(library),
        _ => None,
    };
    let name = name.ok_or_else(badarg)?;
    if is_native(&name) {
        return Ok(am::ok.term());
    }
    let text = format!(
        "Failed to load NIF library {}: libraries in C are not supported",
        String::from_utf8_lossy(&name)
    );
    Ok(error(p, p.tuple(&[atom("notsup"), p.string(&text)])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_built_in_loads() {
        let p = &Process::new(233);
        let load = |name: &str| {
            load_nif_2(p, [p.string(name), Term::small(0)])
                .ok()
                .unwrap()
        };
        for name in ["prim_file", "prim_tty", "erl_tracer", "/lib/crypto"] {
            assert!(load(name) == am::ok, "{name}");
        }
        for name in ["/lib/asn1rt_nif", "erlang", "prim_socket"] {
            let refused = load(name).as_tuple().unwrap();
            assert!(
                refused
                    .get(1)
                    .as_tuple()
                    .unwrap()
                    .get(0)
                    .same(atom("notsup"))
            );
        }
        assert!(load_nif_2(p, [am::ok.term(), Term::NIL]).is_err());
    }
}
