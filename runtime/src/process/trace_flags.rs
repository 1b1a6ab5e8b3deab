//! The trace flags, with a bit and an atom each.

use crate::term::{Atom, am};

macro_rules! flags {
    ($($name:ident = $bit:literal => $atom:ident;)*) => {
        $(pub(crate) const $name: u32 = 1 << $bit;)*
        /// Flags and their atoms, in the order in which a list of them is built.
        pub(crate) const NAMES: &[(u32, Atom)] = &[$(($name, am::$atom),)*];
    };
}

flags! {
    TIMESTAMP = 0 => timestamp;
    STRICT_MONOTONIC_TIMESTAMP = 1 => strict_monotonic_timestamp;
    MONOTONIC_TIMESTAMP = 2 => monotonic_timestamp;
    SEND = 3 => send;
    RECEIVE = 4 => receive;
    SET_ON_SPAWN = 5 => set_on_spawn;
    CALL = 6 => call;
    PROCS = 7 => procs;
    SET_ON_FIRST_SPAWN = 8 => set_on_first_spawn;
    SET_ON_LINK = 9 => set_on_link;
    SET_ON_FIRST_LINK = 10 => set_on_first_link;
    RUNNING = 11 => running;
    EXITING = 12 => exiting;
    GARBAGE_COLLECTION = 13 => garbage_collection;
    ARITY = 14 => arity;
    RETURN_TO = 15 => return_to;
    SILENT = 16 => silent;
    SCHEDULER_ID = 17 => scheduler_id;
    PORTS = 18 => ports;
    RUNNING_PORTS = 19 => running_ports;
    RUNNING_PROCS = 20 => running_procs;
}

/// All of them (`all`).
pub(crate) const ALL: u32 = (1 << 21) - 1;
/// Flags that processes and ports share. Source: `ERTS_TRACEE_MODIFIER_FLAGS`.
pub(crate) const MODIFIERS: u32 = SILENT
    | TIMESTAMP
    | STRICT_MONOTONIC_TIMESTAMP
    | MONOTONIC_TIMESTAMP
    | SCHEDULER_ID
    | RECEIVE
    | SEND;
/// Those of ports. Source: `ERTS_PORT_TRACEE_FLAGS`.
pub(crate) const OF_PORTS: u32 = MODIFIERS | PORTS | RUNNING_PORTS;
/// Those of processes. Source: `ERTS_PROC_TRACEE_FLAGS`.
pub(crate) const OF_PROCESSES: u32 = ALL & !OF_PORTS | MODIFIERS;
