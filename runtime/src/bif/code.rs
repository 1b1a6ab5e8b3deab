//! The BIFs that load code, purge it and tell about it, and those that make funs and tell about them.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{BifResult, Control, Raise, badarg, bifs, notsup};
use crate::beam;
use crate::code::entry::{export, find_export};
use crate::heap::MagicBinary;
use crate::loader::debug;
use crate::loader::load::{chunk_term, prepare};
use crate::loader::module::{self, Module};
use crate::loader::permission;
use crate::loader::purge::{self, Which};
use crate::process::logger::log_error;
use crate::process::{Process, order, refs, work};
use crate::sys::chance;
use crate::term::{Atom, Pid, Term, am};

bifs! {
    bif erts_internal:"prepare_loading"/2 => prepare_loading_2, own;
    bif erlang:"finish_loading"/1 => finish_loading_1, ordered;
    bif erlang:"has_prepared_code_on_load"/1 => has_prepared_code_on_load_1, own;
    bif erlang:"call_on_load_function"/1 => call_on_load_function_1, ordered;
    bif erlang:"finish_after_on_load"/2 => finish_after_on_load_2, ordered;
    bif erlang:"check_old_code"/1 => check_old_code_1, answer;
    bif erlang:"delete_module"/1 => delete_module_1, outside;
    bif erts_internal:"purge_module"/2 => purge_module_2, outside;
    bif erlang:"module_loaded"/1 => module_loaded_1, answer;
    bif erlang:"loaded"/0 => loaded_0, answer;
    bif erlang:"pre_loaded"/0 => pre_loaded_0, own;
    bif erlang:"function_exported"/3 => function_exported_3, answer;
    bif erlang:"is_builtin"/3 => is_builtin_3, own;
    bif erlang:"get_module_info"/1 => get_module_info_1, own;
    bif erlang:"get_module_info"/2 => get_module_info_2, own;
    bif erts_internal:"beamfile_chunk"/2 => beamfile_chunk_2, own;
    bif erts_internal:"beamfile_module_md5"/1 => beamfile_module_md5_1, own;
    bif code:"coverage_support"/0 => coverage_support_0, own;
    bif code:"get_coverage_mode"/0 => get_coverage_mode_0, own;
    bif code:"get_debug_info"/1 => get_debug_info_1, own;
    bif erlang:"nif_error"/1 => nif_error_1, own;
    bif erlang:"nif_error"/2 => nif_error_2, own;
    bif erlang:"make_fun"/3 => make_fun_3, own;
    bif erlang:"fun_info"/2 => fun_info_2, own;
    bif erlang:"fun_info_mfa"/1 => fun_info_mfa_1, own;
}

/// Modules that are there from the start, not loaded by the code server.
static PRELOADED: Mutex<Vec<Atom>> = Mutex::new(Vec::new());

/// Says that `module` is there from the start.
pub(crate) fn add_preloaded(module: Atom) {
    PRELOADED.lock().push(module);
}

/// Code made ready by `prepare_loading`; taken by `finish_loading`.
struct Prepared(Mutex<Option<Arc<Module>>>);

fn prepare_loading_2<'p>(p: &'p Process, [name, code]: [Term<'p>; 2]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    let bytes = code.as_binary().ok_or_else(badarg)?.bytes();
    p.bump_reds(bytes.len() as i64 / 10);
    let why = match prepare(&bytes) {
        Ok(module) if module.name == name => {
            let prepared = Prepared(Mutex::new(Some(module)));
            let magic = MagicBinary::new(refs::make_ref(), Box::new(prepared));
            return Ok(p.magic_reference(magic));
        }
        Ok(module) => format!("module name in object code is {}", module.name),
        Err(error) => error.to_string(),
    };
    let text = format!("Error loading module {name}:\n  {why}\n");
    log_error(p, "~ts~n", p.list(&[p.string(&text)]));
    Ok(p.tuple(&[am::error.term(), am::badfile.term()]))
}

fn prepared<'p>(term: Term<'p>) -> Result<&'p Prepared, Raise<'p>> {
    let magic = term.as_ref().and_then(|r| r.magic());
    magic
        .and_then(|magic| magic.get::<Prepared>())
        .ok_or_else(badarg)
}

/// Held from the look at what is prepared until it is taken: a second caller finds nothing to finish.
static FINISHING: Mutex<()> = Mutex::new(());

/// A change of code is about to be seen.
struct Staged;

work! { Staged without terms }

/// Has whoever changes code wait for the permission, and then until every scheduler has passed a quiescent point: what
/// it did before is so seen everywhere before the change is. The BIF is called again then. A virtual run has an order
/// of its own. Source: `staging_epilogue()` in `beam_bif_load.c`, OTP 29.
fn stage(p: &Process) -> Result<(), Control<'static>> {
    if permission::waits(p) {
        return Err(Control::Wait);
    }
    if p.take_work_if::<Staged>().is_some() || chance::form().is_virtual() {
        return Ok(());
    }
    p.give_up_slice();
    p.suspend_until_progress();
    Err(p.put_off(Staged))
}

fn finish_loading_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    stage(p)?;
    let _turn = FINISHING.lock();
    let mut all: Vec<Arc<Module>> = Vec::new();
    let mut duplicated: Vec<Atom> = Vec::new();
    for element in list.list_iter() {
        let prepared = prepared(element.map_err(|_| badarg())?)?;
        let module = prepared.0.lock().clone().ok_or_else(badarg)?;
        if all.iter().any(|other| other.name == module.name) {
            duplicated.push(module.name);
        }
        all.push(module);
    }
    let on_load = all.iter().any(|module| module.on_load.is_some());
    if on_load && all.len() > 1 {
        return Err(super::system_limit().into());
    }
    if !duplicated.is_empty() {
        return Ok(refused(p, am::duplicated, &duplicated));
    }
    let names: Vec<Atom> = all.iter().map(|module| module.name).collect();
    let Some(made) = order::load_in_turn(p, &names, || module::make_current(all)) else {
        // Calls are to miss them first.
        return Err(p.put_off(Staged).into());
    };
    if let Err(not_purged) = made {
        return Ok(refused(p, am::not_purged, &not_purged));
    }
    for element in list.list_iter().flatten() {
        prepared(element)?.0.lock().take();
    }
    if on_load {
        return Ok(refused(p, am::on_load, &names));
    }
    Ok(am::ok.term())
}

/// `{Why, Modules}`: the last module comes first, as in ERTS.
fn refused<'p>(p: &'p Process, why: Atom, modules: &[Atom]) -> Term<'p> {
    let modules: Vec<Term<'_>> = modules.iter().rev().map(|name| name.term()).collect();
    p.tuple(&[why.term(), p.list(&modules)])
}

fn has_prepared_code_on_load_1<'p>(_: &'p Process, [code]: [Term<'p>; 1]) -> BifResult<'p> {
    let prepared = prepared(code)?.0.lock();
    let module = prepared.as_ref().ok_or_else(badarg)?;
    Ok(Term::bool(module.on_load.is_some()))
}

fn call_on_load_function_1<'p>(_: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    let pending = module::versions(name).pending.ok_or_else(badarg)?;
    let entry = pending.on_load.ok_or_else(badarg)?;
    Err(Control::TrapTo(pending.address(entry)).into())
}

fn finish_after_on_load_2<'p>(p: &'p Process, [name, keep]: [Term<'p>; 2]) -> BifResult<'p> {
    if permission::waits(p) {
        return Err(Control::Wait.into());
    }
    let name = name.as_atom().ok_or_else(badarg)?;
    let keep = keep.as_bool().ok_or_else(badarg)?;
    module::finish_on_load(name, keep).map_err(|_| badarg())?;
    Ok(Term::bool(true))
}

fn check_old_code_1<'p>(_: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    Ok(Term::bool(module::versions(name).old.is_some()))
}

fn delete_module_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    stage(p)?;
    match module::delete(name) {
        Ok(true) => Ok(Term::bool(true)),
        Ok(false) => Ok(am::undefined.term()),
        Err(_) => {
            let text = format!("Module {name} must be purged before deleting\n");
            log_error(p, "~s~n", p.list(&[p.string(&text)]));
            Err(badarg().into())
        }
    }
}

static PURGER: OnceLock<Pid> = OnceLock::new();

/// Says which process purges: no other may, as it has looked for those that use the code.
pub(crate) fn set_purger(pid: Pid) {
    // The first one stays.
    let _ = PURGER.set(pid);
}

fn purge_module_2<'p>(p: &'p Process, [name, step]: [Term<'p>; 2]) -> BifResult<'p> {
    if PURGER.get() != Some(&p.pid()) {
        return Err(notsup().into());
    }
    if permission::waits(p) {
        return Err(Control::Wait.into());
    }
    let name = name.as_atom().ok_or_else(badarg)?;
    let prepare = |which| purge::prepare(name, which).map_err(|()| badarg());
    let done = match step.as_atom().ok_or_else(badarg)? {
        am::prepare => prepare(Which::Old)?,
        am::prepare_on_load => prepare(Which::OnLoad)?,
        am::abort => {
            purge::abort(name).map_err(|()| badarg())?;
            // Nothing has been purged.
            false
        }
        am::complete => purge::complete(name),
        _ => return Err(badarg().into()),
    };
    Ok(Term::bool(done))
}

fn module_loaded_1<'p>(_: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    Ok(Term::bool(module::versions(name).current.is_some()))
}

fn loaded_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    // The newest comes first, as in ERTS.
    let names: Vec<Term<'_>> = module::loaded()
        .iter()
        .rev()
        .map(|module| module.name.term())
        .collect();
    Ok(p.list(&names))
}

fn pre_loaded_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let names: Vec<Term<'_>> = PRELOADED.lock().iter().map(|name| name.term()).collect();
    Ok(p.list(&names))
}

fn mfa<'p>(m: Term<'p>, f: Term<'p>, a: Term<'p>) -> Result<(Atom, Atom, Option<u8>), Raise<'p>> {
    let arity = a.as_small().ok_or_else(badarg)?;
    let (m, f) = (
        m.as_atom().ok_or_else(badarg)?,
        f.as_atom().ok_or_else(badarg)?,
    );
    Ok((m, f, u8::try_from(arity).ok()))
}

fn function_exported_3<'p>(_: &'p Process, [m, f, a]: [Term<'p>; 3]) -> BifResult<'p> {
    let (m, f, a) = mfa(m, f, a)?;
    let defined = a
        .and_then(|a| find_export(m, f, a))
        .is_some_and(|export| export.is_defined());
    let is_bif = a.is_some_and(|a| super::find(m, f, a).is_some());
    Ok(Term::bool(defined || is_bif))
}

fn is_builtin_3<'p>(_: &'p Process, [m, f, a]: [Term<'p>; 3]) -> BifResult<'p> {
    let (m, f, a) = mfa(m, f, a)?;
    let Some(a) = a else {
        return Ok(Term::bool(false));
    };
    // Instructions here, as in ERTS.
    let instruction = matches!((f, a), (am::apply, 2 | 3) | (am::yield_, 0));
    let is_bif = super::find(m, f, a).is_some_and(crate::code::bif::is_own);
    Ok(Term::bool(m == am::erlang && instruction || is_bif))
}

fn get_module_info_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let items = [
        am::module,
        am::exports,
        am::attributes,
        am::compile,
        am::md5,
    ];
    let mut info = Vec::with_capacity(items.len());
    for item in items {
        let value = get_module_info_2(p, [name, item.term()])?;
        info.push(p.tuple(&[item.term(), value]));
    }
    Ok(p.list(&info))
}

fn get_module_info_2<'p>(p: &'p Process, [name, what]: [Term<'p>; 2]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    let module = module::versions(name).current.ok_or_else(badarg)?;
    Ok(match what.as_atom().ok_or_else(badarg)? {
        am::module => name.term(),
        am::md5 => p.binary(&module.md5),
        am::exports => {
            // Those that were named last come first.
            let mut rows = module.exports.clone();
            rows.sort_by_key(|&(f, a, _)| std::cmp::Reverse(export(name, f, a).number));
            functions(p, rows.iter().map(|&(f, a, _)| (f, a)))
        }
        am::functions => {
            let code = module.functions.iter().map(|&entry| module.mfa(entry));
            functions(p, code.map(|mfa| (mfa.function, mfa.arity)))
        }
        am::nifs => {
            let nifs = crate::code::bif::nifs_of(name.name());
            functions(p, nifs.map(|nif| (Atom::new(nif.function), nif.arity)))
        }
        am::native_addresses => Term::NIL,
        am::attributes => p.attach(chunk_term(&module.attributes)),
        am::compile => p.attach(chunk_term(&module.compile_info)),
        am::native => Term::bool(false),
        _ => return Err(badarg().into()),
    })
}

/// `[{Function, Arity}]`.
fn functions(p: &Process, rows: impl Iterator<Item = (Atom, u8)>) -> Term<'_> {
    let rows = rows.map(|(f, a)| p.tuple(&[f.term(), Term::small(a.into())]));
    p.list(&rows.collect::<Vec<_>>())
}

fn beamfile_chunk_2<'p>(p: &'p Process, [code, id]: [Term<'p>; 2]) -> BifResult<'p> {
    let bytes = code.as_binary().ok_or_else(badarg)?.bytes();
    let id: Option<Vec<u8>> = id
        .list_iter()
        .map(|c| {
            c.ok()
                .and_then(Term::as_small)
                .and_then(|c| u8::try_from(c).ok())
        })
        .collect();
    let id: [u8; 4] = id.and_then(|id| id.try_into().ok()).ok_or_else(badarg)?;
    let found = beam::chunks::find_chunk(&bytes, id).ok().flatten();
    Ok(found.map_or(am::undefined.term(), |chunk| p.binary(chunk)))
}

fn beamfile_module_md5_1<'p>(p: &'p Process, [code]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = code.as_binary().ok_or_else(badarg)?.bytes();
    let md5 = beam::chunks::unpack(&bytes)
        .and_then(|file| beam::chunks::Chunks::parse(&file).and_then(|chunks| chunks.md5()));
    Ok(md5.map_or(am::undefined.term(), |md5| p.binary(&md5)))
}

fn coverage_support_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(Term::bool(false))
}

fn get_coverage_mode_0<'p>(_: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(am::none.term())
}

/// `none` of a module whose file has no such information.
fn get_debug_info_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = name.as_atom().ok_or_else(badarg)?;
    let module = module::versions(name).current.ok_or_else(badarg)?;
    Ok(debug::info(&module, p).unwrap_or(am::none.term()))
}

/// The trace shows the call of it, unlike that of `error/1`.
fn nif_error_1<'p>(_: &'p Process, [reason]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(Raise::Error(reason).into())
}

fn nif_error_2<'p>(_: &'p Process, [reason, _]: [Term<'p>; 2]) -> BifResult<'p> {
    Err(Raise::Error(reason).into())
}

fn make_fun_3<'p>(_p: &'p Process, [m, f, a]: [Term<'p>; 3]) -> BifResult<'p> {
    let (m, f, a) = mfa(m, f, a)?;
    Ok(export(m, f, a.ok_or_else(badarg)?).lambda())
}

fn fun_info_2<'p>(p: &'p Process, [fun, what]: [Term<'p>; 2]) -> BifResult<'p> {
    let f = fun.as_fun().ok_or_else(badarg)?;
    let local = f.entry();
    let name = local.map(|entry| module::function_at(entry.address()).map(|mfa| mfa.function));
    let or_undefined = |value: Option<Term<'p>>| value.unwrap_or(am::undefined.term());
    let value = match what.as_atom().ok_or_else(badarg)? {
        am::type_ => if local.is_some() {
            am::local
        } else {
            am::external
        }
        .term(),
        am::pid => or_undefined(local.map(|_| crate::process::init_pid().term())),
        am::module => match f.export() {
            Some(export) => export.module.term(),
            None => local.ok_or_else(badarg)?.module.term(),
        },
        am::new_index | am::index => or_undefined(local.map(|e| p.unsigned(u64::from(e.index)))),
        am::new_uniq => or_undefined(local.map(|entry| p.binary(&entry.uniq))),
        am::uniq => or_undefined(local.map(|entry| p.unsigned(u64::from(entry.old_uniq)))),
        am::env => p.list(f.env()),
        am::refc => or_undefined(local.map(|_| Term::small(1))),
        am::arity => Term::small(i64::from(f.arity())),
        am::name => match (f.export(), name.flatten()) {
            (Some(export), _) => export.function.term(),
            (None, Some(name)) => name.term(),
            (None, None) => Term::NIL,
        },
        _ => return Err(badarg().into()),
    };
    Ok(p.tuple(&[what, value]))
}

fn fun_info_mfa_1<'p>(p: &'p Process, [fun]: [Term<'p>; 1]) -> BifResult<'p> {
    let f = fun.as_fun().ok_or_else(badarg)?;
    let arity = Term::small(i64::from(f.arity()));
    if let Some(export) = f.export() {
        return Ok(p.tuple(&[export.module.term(), export.function.term(), arity]));
    }
    let entry = f.entry().ok_or_else(badarg)?;
    let name = module::function_at(entry.address()).map_or(Term::NIL, |mfa| mfa.function.term());
    Ok(p.tuple(&[entry.module.term(), name, arity]))
}
