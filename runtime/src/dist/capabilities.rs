//! What nodes tell each other, when they connect, that they are able to do. Source: `DFLAG_*` in `dist.h`, OTP 29.

/// A set of capabilities.
pub(crate) type Capabilities = u64;

/// The other node is to be seen by `nodes/0`.
pub(crate) const PUBLISHED: Capabilities = 0x1;
const EXTENDED_REFERENCES: Capabilities = 0x4;
const DIST_MONITOR: Capabilities = 0x8;
const FUN_TAGS: Capabilities = 0x10;
const DIST_MONITOR_NAME: Capabilities = 0x20;
const NEW_FUN_TAGS: Capabilities = 0x80;
const EXTENDED_PIDS_PORTS: Capabilities = 0x100;
const EXPORT_PTR_TAG: Capabilities = 0x200;
const BIT_BINARIES: Capabilities = 0x400;
const NEW_FLOATS: Capabilities = 0x800;
pub(crate) const UNICODE_IO: Capabilities = 0x1000;
/// Messages have headers with atoms.
pub(crate) const DIST_HDR_ATOM_CACHE: Capabilities = 0x2000;
const SMALL_ATOM_TAGS: Capabilities = 0x4000;
const HIDDEN_ATOM_CACHE: Capabilities = 0x40;
const ATOM_CACHE: Capabilities = 0x2;
const UTF8_ATOMS: Capabilities = 0x1_0000;
const MAP_TAG: Capabilities = 0x2_0000;
const BIG_CREATION: Capabilities = 0x4_0000;
/// A message names its sender.
pub(crate) const SEND_SENDER: Capabilities = 0x8_0000;
/// The label of a sequential trace token may be any term.
pub(crate) const BIG_SEQTRACE_LABELS: Capabilities = 0x10_0000;
/// Reasons stand behind control messages, not in them.
pub(crate) const EXIT_PAYLOAD: Capabilities = 0x40_0000;
const FRAGMENTS: Capabilities = 0x80_0000;
const HANDSHAKE_23: Capabilities = 0x100_0000;
const UNLINK_ID: Capabilities = 0x200_0000;
const MANDATORY_25_DIGEST: Capabilities = 0x400_0000;
/// Spawn requests.
pub(crate) const SPAWN: Capabilities = 1 << 32;
const V4_NC: Capabilities = 1 << 34;
const ALIAS: Capabilities = 1 << 35;
/// Messages and exit signals with priority.
pub(crate) const ALTACT_SIG: Capabilities = 1 << 37;
const NATIVE_RECORDS: Capabilities = 1 << 38;

/// What a node must be able to do to be talked to.
pub(crate) const MANDATORY: Capabilities = EXTENDED_REFERENCES
    | FUN_TAGS
    | EXTENDED_PIDS_PORTS
    | UTF8_ATOMS
    | NEW_FUN_TAGS
    | BIG_CREATION
    | NEW_FLOATS
    | MAP_TAG
    | EXPORT_PTR_TAG
    | BIT_BINARIES
    | HANDSHAKE_23
    | V4_NC
    | UNLINK_ID;

/// What this node is able to do.
pub(crate) const DEFAULT: Capabilities = MANDATORY
    | DIST_MONITOR
    | DIST_MONITOR_NAME
    | SPAWN
    | ALTACT_SIG
    | ALIAS
    | NATIVE_RECORDS
    | UNICODE_IO
    | DIST_HDR_ATOM_CACHE
    | SMALL_ATOM_TAGS
    | SEND_SENDER
    | BIG_SEQTRACE_LABELS
    | EXIT_PAYLOAD
    | FRAGMENTS
    | MANDATORY_25_DIGEST;

/// What a carrier may refuse.
pub(crate) const REJECTABLE: Capabilities =
    DIST_HDR_ATOM_CACHE | HIDDEN_ATOM_CACHE | FRAGMENTS | ATOM_CACHE;

/// What asks a carrier to keep the order of messages.
pub(crate) const STRICT_ORDER: Capabilities = DIST_HDR_ATOM_CACHE;
