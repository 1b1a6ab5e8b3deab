//! Hooks, by which a lower floor calls a higher one that it cannot import.
//!
//! The lower floor declares a [`Hook`]. `hooks.rs`, at the top, installs what each stands for, in one place.

use std::sync::OnceLock;

/// Something that a higher floor brings. `T` is plain data, a function or a table of functions.
pub(crate) struct Hook<T: 'static> {
    name: &'static str,
    installed: OnceLock<T>,
}

impl<T> Hook<T> {
    /// A hook that nothing is installed in yet; `name` is for the message of a bug.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            installed: OnceLock::new(),
        }
    }

    /// Installs `what`. The first call counts.
    pub(crate) fn install(&self, what: T) {
        let _ = self.installed.set(what);
    }

    /// What is installed.
    ///
    /// # Panics
    /// When nothing is: `hooks::install` comes before everything else.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        #[cfg(test)]
        crate::hooks::install();
        match self.installed.get() {
            Some(what) => what,
            None => panic!("{}: no hook is installed", self.name),
        }
    }
}
