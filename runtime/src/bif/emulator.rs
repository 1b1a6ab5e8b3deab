//! The BIFs of features that this emulator does not have: DTrace tags, code coverage.
//! Each answers as an OTP that was built or started without the feature. The settings of `+pc` and `+W` are here, too.
//! Source: `bif.c`, `erl_bif_coverage.c`, OTP 29.

use std::sync::OnceLock;

use super::{BifResult, badarg, bifs};
use crate::loader::module;
use crate::process::Process;
use crate::term::{Atom, Term, am};

bifs! {
    bif io:"printable_range"/0 => printable_range_0, own;
    bif error_logger:"warning_map"/0 => warning_map_0, own;
    bif erts_internal:"no_aux_work_threads"/0 => no_aux_work_threads_0, own;
    bif erts_internal:"gather_alloc_histograms"/1 => badarg_1, unrecorded;
    bif erts_internal:"gather_carrier_info"/1 => badarg_1, unrecorded;
    bif erlang:"dt_put_tag"/1 => undefined_1, own;
    bif erlang:"dt_get_tag"/0 => undefined_0, own;
    bif erlang:"dt_get_tag_data"/0 => undefined_0, own;
    bif erlang:"dt_spread_tag"/1 => dt_tag_1, own;
    bif erlang:"dt_restore_tag"/1 => dt_restore_tag_1, own;
    bif erlang:"dt_prepend_vm_tag_data"/1 => same_1, own;
    bif erlang:"dt_append_vm_tag_data"/1 => same_1, own;
    bif code:"get_coverage_mode"/1 => of_module_1, own;
    bif code:"set_coverage_mode"/1 => set_coverage_mode_1, again;
    bif code:"get_coverage"/2 => badarg_2, unrecorded;
    bif code:"reset_coverage"/1 => badarg_1, again;
}

/// The settings of the emulator's flags: the range of `+pc`, the level of `+W`.
struct Settings {
    printable: Atom,
    warnings: Atom,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Reads `-pc RANGE` and `-W LEVEL` of the emulator's arguments, once, before the first process.
///
/// # Errors
/// The value, where it is none of the flag's.
pub(crate) fn set_flags(printable: Option<&str>, warnings: Option<&str>) -> Result<(), String> {
    let printable = match printable {
        None | Some("latin1") => am::latin1,
        Some("unicode") => am::unicode,
        Some(other) => return Err(other.to_owned()),
    };
    let warnings = match warnings {
        None | Some("w") => am::warning,
        Some("i") => am::info,
        Some("e") => am::error,
        Some(other) => return Err(other.to_owned()),
    };
    SETTINGS.get_or_init(|| Settings {
        printable,
        warnings,
    });
    Ok(())
}

/// A handler of each arity that gives `$result`.
macro_rules! constant {
    ($($name:ident $arity:literal => $result:expr;)*) => {
        $(fn $name<'p>(_p: &'p Process, _: [Term<'p>; $arity]) -> BifResult<'p> {
            $result
        })*
    };
}

constant! {
    undefined_0 0 => Ok(am::undefined.term());
    undefined_1 1 => Ok(am::undefined.term());
    badarg_1 1 => Err(badarg().into());
    badarg_2 2 => Err(badarg().into());
}

fn printable_range_0<'p>(_p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(SETTINGS.get().map_or(am::latin1, |s| s.printable).term())
}

fn warning_map_0<'p>(_p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(SETTINGS.get().map_or(am::warning, |s| s.warnings).term())
}

/// The schedulers and, as in ERTS, one more, which answers nothing.
fn no_aux_work_threads_0<'p>(_p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(Term::small(crate::sched::schedulers() as i64 + 1))
}

/// What [`dt_tag_1`] gives.
fn dt_restore_tag_1<'p>(_p: &'p Process, [tag]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok((tag == am::true_).then_some(tag).ok_or_else(badarg)?)
}

fn dt_tag_1<'p>(_p: &'p Process, [spread]: [Term<'p>; 1]) -> BifResult<'p> {
    spread.as_bool().ok_or_else(badarg)?;
    Ok(Term::bool(true))
}

fn same_1<'p>(_p: &'p Process, [data]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(data)
}

/// `none` of a module that is loaded.
fn of_module_1<'p>(_p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    module::versions(name).current.ok_or_else(badarg)?;
    Ok(am::none.term())
}

fn set_coverage_mode_1<'p>(_p: &'p Process, _: [Term<'p>; 1]) -> BifResult<'p> {
    Err(badarg().into())
}
