//! The environment. It is read when somebody first asks for it, and is the machine's own from then on.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

use parking_lot::RwLock;

use super::chance::paths;

/// Variables by name, in the encoding of the file system.
pub type Environment = BTreeMap<Vec<u8>, Vec<u8>>;

/// The environment, as programs have changed it.
pub fn environment() -> &'static RwLock<Environment> {
    static ENVIRONMENT: OnceLock<RwLock<Environment>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let variables =
            std::env::vars_os().map(|(key, value)| (key.into_vec(), paths::told(value.into_vec())));
        RwLock::new(variables.collect())
    })
}

/// A copy of the environment, for programs that ports start.
#[must_use]
pub fn environment_copy() -> BTreeMap<Vec<u8>, Vec<u8>> {
    environment().read().clone()
}

/// Sets a variable, as `os:putenv/2` does.
pub fn set_variable(key: &[u8], value: &[u8]) {
    environment().write().insert(key.to_vec(), value.to_vec());
}
