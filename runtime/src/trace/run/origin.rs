//! Whose modules are: the program's own, or of a library of OTP, Elixir or the build tools.
//!
//! A module is of a library when its code is that of the library's file of this name, by the checksum that
//! `module_info(md5)` gives. So copies in releases and escripts are known, and a program's own module of the same name is
//! not taken for one of a library.

use beamline_formats::profile::{Libraries, Modules, Origin};
use parking_lot::RwLock;

use crate::beam::chunks::{Chunks, unpack};
use crate::hash::HashMap;
use crate::loader::module::{Module, versions};
use crate::term::Atom;

/// Whose the modules are that were asked for.
pub(in crate::trace) struct Origins {
    modules: Modules,
    known: RwLock<HashMap<Atom, Origin>>,
}

impl Origins {
    pub(in crate::trace) fn new(libraries: &Libraries) -> Origins {
        Origins {
            modules: libraries.modules(),
            known: RwLock::default(),
        }
    }

    /// Whose a module is.
    pub(in crate::trace) fn of(&self, module: Atom) -> Origin {
        if let Some(origin) = self.known.read().get(&module) {
            return *origin;
        }
        let origin = self.decide(module);
        *self.known.write().entry(module).or_insert(origin)
    }

    fn decide(&self, module: Atom) -> Origin {
        if let Some(origin) = Origin::of_name(module.name()) {
            return origin;
        }
        let files = self.modules.files(module.name());
        let Some((first, _)) = files.first() else {
            return Origin::App;
        };
        let Some(code) = versions(module).current else {
            // Its code is gone, or its functions are all native.
            return *first;
        };
        if is_protocol(&code) {
            // Mix makes such a module anew for each program.
            return *first;
        }
        let mut files = files.iter();
        let same = files.find(|(_, file)| file.read().is_ok_and(|file| is_of(&code, &file)));
        same.map_or(Origin::App, |(origin, _)| *origin)
    }
}

/// Is this code that of a `.beam` file?
fn is_of(code: &Module, file: &[u8]) -> bool {
    let file = unpack(file);
    let md5 = file.and_then(|file| Chunks::parse(&file).and_then(|chunks| chunks.md5()));
    md5.is_ok_and(|md5| md5 == code.md5)
}

/// Is it a protocol of Elixir?
fn is_protocol(code: &Module) -> bool {
    code.find(Atom::new("__protocol__"), 1).is_some()
}
