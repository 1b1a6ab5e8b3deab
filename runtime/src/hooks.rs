//! Installs every hook, in one place. ARCHITECTURE.md says why each exists.

use crate::code::bif::{self, Families};
use crate::heap::release::NOTICE;
use crate::loader::module::{WATCH, Watch};
use crate::loader::purge;
use crate::process::nodes::NODES;
use crate::process::order::answer::WRITTEN;
use crate::process::ports::PORTS;
use crate::process::probe::PROBES;
use crate::process::tables::TABLES;
use crate::process::{GIVES_UP, REFERS_TO_OLD_CODE};
use crate::{bif as bifs, dist, driver, ets, external, otp_nifs, port, trace};

/// Installs every hook. Before anything else is called; again it does nothing.
pub fn install() {
    bif::FAMILIES.install(Families {
        bifs: &[bifs::table::FAMILIES, driver::BIFS, otp_nifs::BIFS],
        overrides: bifs::table::OVERRIDES,
        nifs: otp_nifs::NIFS,
    });
    WATCH.install(Watch {
        loaded: trace::loaded,
        exports_staged: trace::exports_staged,
        unloaded: trace::unloaded,
        freed: trace::freed,
    });
    PORTS.install(port::signals::hooks());
    NODES.install(dist::hooks());
    PROBES.install(&trace::Tracing);
    REFERS_TO_OLD_CODE.install(purge::refers_to_old_code);
    GIVES_UP.install(ets::registry::exited);
    TABLES.install(ets::registry::sizes_at_end);
    WRITTEN.install(external::answer_terms::WRITTEN);
    NOTICE.install(bifs::literal_area::notice);
}
