//! Prepares calls by name and through funs: it finds the entry and lays out the arguments.
#![expect(unsafe_code, reason = "a function's head is words of code")]

use crate::code::Export;
use crate::code::entry::export;
use crate::loader::module::Mfa;
use crate::loader::{module, purge};
use crate::process::{Exception, Process, X_REGISTERS, order};
use crate::process::{Raise, badarg, system_limit};
use crate::term::{Atom, CodeAddress, RawTerm, Term, am};

/// A call ready to be made: its arguments are in the registers.
pub(crate) struct Ready {
    pub(crate) entry: CodeAddress,
    /// What it goes through; none for a local fun.
    pub(crate) export: Option<&'static Export>,
}

impl Ready {
    fn of(export: &'static Export) -> Ready {
        Ready {
            entry: export.address(),
            export: Some(export),
        }
    }
}

/// The exception of a call that cannot be made: it names `erlang:apply/2` or `apply/3`, with its arguments.
fn bad_apply<'p>(p: &'p Process, args: &[Term<'p>], raise: &Raise<'p>) -> Exception {
    let exception = Exception::from_raise(p, raise);
    Exception {
        args: p.list(args).raw(),
        from_bif: true,
        ..exception
    }
}

/// Lays out `apply(module, function, args)`. `apply` of `apply/3` itself is unfolded.
pub(crate) fn apply<'p>(
    p: &'p Process,
    mut module: Term<'p>,
    mut function: Term<'p>,
    mut args: Term<'p>,
) -> Result<Ready, Exception> {
    loop {
        let failed = |raise: &Raise<'p>| bad_apply(p, &[module, function, args], raise);
        let (Some(m), Some(f)) = (module.as_atom(), function.as_atom()) else {
            return Err(failed(&badarg()));
        };
        if m != am::erlang || f != am::apply {
            return by_name(p, m, f, args).map_err(|raise| failed(&raise));
        }
        let elements: Option<Vec<Term<'p>>> = args.list_iter().take(4).map(Result::ok).collect();
        match elements.as_deref() {
            Some(&[inner_module, inner_function, inner_args]) => {
                (module, function, args) = (inner_module, inner_function, inner_args);
            }
            _ => return by_name(p, m, f, args).map_err(|raise| failed(&raise)),
        }
    }
}

/// Lays out a call of `module:function`. No function has more arguments than fit a byte: a call with more finds none.
fn by_name<'p>(
    p: &'p Process,
    module: Atom,
    function: Atom,
    args: Term<'p>,
) -> Result<Ready, Raise<'p>> {
    let one = |part: Result<_, _>| part.map(|_| 1).map_err(|_| badarg());
    match args.list_iter().take(X_REGISTERS).map(one).sum() {
        Ok(0..=0xff) => Ok(Ready::of(export(module, function, spread(p, args)?))),
        Ok(X_REGISTERS..) => Err(system_limit()),
        Ok(_) => undefined_function(p, module, function, || args),
        Err(raise) => Err(raise),
    }
}

/// Copies a list of arguments to `x(0)..`; returns how many there are.
fn spread<'p>(p: &'p Process, args: Term<'p>) -> Result<u8, Raise<'p>> {
    let elements: Vec<Term<'p>> = args
        .list_iter()
        .collect::<Result<_, _>>()
        .map_err(|_| badarg())?;
    let arity = u8::try_from(elements.len()).map_err(|_| system_limit())?;
    elements
        .iter()
        .enumerate()
        .for_each(|(i, element)| p.set_x(i, *element));
    Ok(arity)
}

/// `Module:Function` with `arity` arguments in the registers, module and function behind them.
pub(crate) fn fixed_apply(p: &Process, arity: usize) -> Result<Ready, Exception> {
    let (m, f) = (p.x(arity), p.x(arity + 1));
    let (Some(module), Some(function)) = (m.as_atom(), f.as_atom()) else {
        return Err(bad_apply(p, &[m, f, arguments(p, arity)], &badarg()));
    };
    if module == am::erlang && function == am::apply && arity == 3 {
        return apply(p, p.x(0), p.x(1), p.x(2));
    }
    Ok(Ready::of(export(module, function, arity as u8)))
}

/// A call of `fun` with `arity` arguments in the registers.
pub(crate) fn call_fun<'p>(
    p: &'p Process,
    fun: Term<'p>,
    arity: usize,
) -> Result<Ready, Raise<'p>> {
    let Some(f) = fun.as_fun() else {
        return Err(uncallable(p, fun, Term::NIL));
    };
    if usize::from(f.arity()) != arity {
        return Err(uncallable(p, fun, arguments(p, arity)));
    }
    if let Some(export) = f.export() {
        return Ok(Ready::of(export));
    }
    let entry = f.entry().expect("a fun is local or external");
    let mut address = entry.address();
    if address.is_null() {
        if purge::waits_for(p, entry) {
            return Ok(pending_purge(p, entry.module, fun, arity));
        }
        let is_loaded = module::versions(entry.module).current.is_some();
        // It may have been loaded just now, its funs with it.
        address = entry.address();
        if address.is_null() {
            if is_loaded {
                // Loading it would not help: what is loaded has no such fun.
                return Err(crate::process::tagged(am::badfun, fun));
            }
            return undefined_lambda(p, entry.module, fun, arity);
        }
    }
    f.env()
        .iter()
        .enumerate()
        .for_each(|(i, term)| p.set_x(arity + i, *term));
    Ok(Ready {
        entry: address,
        export: None,
    })
}

/// `apply(Fun, Args)`. Arguments that are no list are wrong ones of `apply/2`; a fun that cannot be called with them
/// raises what a call of it raises, even where no function has as many.
pub(crate) fn apply_fun<'p>(
    p: &'p Process,
    fun: Term<'p>,
    args: Term<'p>,
) -> Result<Ready, Exception> {
    let raised = |raise: &Raise<'p>| {
        let exception = Exception::from_raise(p, raise);
        Exception {
            from_bif: false,
            ..exception
        }
    };
    let called = match args.list_iter().try_fold(0, |n, arg| arg.map(|_| n + 1)) {
        Err(_) => return Err(bad_apply(p, &[fun, args], &badarg())),
        Ok(X_REGISTERS..) => return Err(bad_apply(p, &[fun, args], &system_limit())),
        Ok(count) if count > usize::from(u8::MAX) => Err(uncallable(p, fun, args)),
        Ok(_) => spread(p, args).and_then(|arity| call_fun(p, fun, usize::from(arity))),
    };
    called.map_err(|raise| raised(&raise))
}

/// `fun` cannot be called with these arguments, whatever it is.
fn uncallable<'p>(p: &'p Process, fun: Term<'p>, args: Term<'p>) -> Raise<'p> {
    if fun.as_fun().is_none() {
        return crate::process::tagged(am::badfun, fun);
    }
    crate::process::tagged(am::badarity, p.tuple(&[fun, args]))
}

fn arguments<'p>(p: &'p Process, arity: usize) -> Term<'p> {
    let args: Vec<Term<'p>> = (0..arity).map(|i| p.x(i)).collect();
    p.list(&args)
}

/// The call of what tries the call of `fun` again, in the process's next time slice.
fn pending_purge(p: &Process, module: Atom, fun: Term<'_>, arity: usize) -> Ready {
    let args = arguments(p, arity);
    p.set_x(0, module.term());
    p.set_x(1, fun);
    p.set_x(2, args);
    p.fcalls.set(0);
    Ready::of(export(am::erts_code_purger, am::pending_purge_lambda, 3))
}

fn undefined_lambda<'p>(
    p: &'p Process,
    module: Atom,
    fun: Term<'p>,
    arity: usize,
) -> Result<Ready, Raise<'p>> {
    let handler = export(handler_module(p), am::undefined_lambda, 3);
    if !handler.is_defined() {
        return Err(crate::process::tagged(am::badfun, fun));
    }
    let args = arguments(p, arity);
    p.set_x(0, module.term());
    p.set_x(1, fun);
    p.set_x(2, args);
    Ok(Ready::of(handler))
}

/// The module whose functions handle calls of undefined functions and funs.
fn handler_module(p: &Process) -> Atom {
    p.with_psd(|psd| psd.error_handler)
        .flatten()
        .unwrap_or(am::error_handler)
}

/// The call of the process's error handler for the undefined function whose entry is `entry`. `None`: the process is to
/// look again later, as in the run that it follows the function was there.
pub(crate) fn error_handler<'p>(
    p: &'p Process,
    called: Called,
) -> Result<Option<Ready>, Raise<'p>> {
    let function = export(called.module, called.function, called.arity);
    if !order::note_miss(p, called.module, || function.has_code()) {
        return Ok(function.has_code().then(|| {
            // The call has been charged for. Where the function is there in time, it does not come here.
            p.fcalls.set(p.fcalls.get() + 1);
            Ready::of(function)
        }));
    }
    let args = || arguments(p, usize::from(called.arity));
    undefined_function(p, called.module, called.function, args).map(Some)
}

fn undefined_function<'p>(
    p: &'p Process,
    module: Atom,
    function: Atom,
    args: impl FnOnce() -> Term<'p>,
) -> Result<Ready, Raise<'p>> {
    let handler = export(handler_module(p), am::undefined_function, 3);
    if !handler.is_defined() {
        return Err(am::undef.into());
    }
    let args = args();
    p.set_x(0, module.term());
    p.set_x(1, function.term());
    p.set_x(2, args);
    Ok(Ready::of(handler))
}

/// What stack traces call a failed `apply` with `arity` arguments.
pub(crate) fn apply_mfa(arity: u8) -> Mfa {
    Mfa {
        module: am::erlang,
        function: am::apply,
        arity,
    }
}

/// A function as the words before its entry name it.
#[derive(Clone, Copy)]
pub(crate) struct Called {
    pub(crate) module: Atom,
    pub(crate) function: Atom,
    pub(crate) arity: u8,
}

impl Called {
    /// As stack traces have it.
    pub(crate) fn mfa(self) -> Mfa {
        Mfa {
            module: self.module,
            function: self.function,
            arity: self.arity,
        }
    }

    /// One of the BIFs that do nothing but raise an exception. Source: `apply_bif_error_adjustment()`.
    pub(crate) fn only_raises(self) -> bool {
        self.module == am::erlang
            && match self.function {
                am::error => (1..=3).contains(&self.arity),
                am::exit | am::throw => self.arity == 1,
                _ => false,
            }
    }

    /// # Safety
    /// I1: `entry` is a function's entry.
    pub(crate) unsafe fn at(entry: CodeAddress) -> Called {
        use crate::code::op::entry as head;
        // SAFETY: I1: the head stands before the entry.
        let (module, function, arity) = unsafe {
            (
                *entry.code().offset(head::MODULE),
                *entry.code().offset(head::FUNCTION),
                *entry.code().offset(head::ARITY),
            )
        };
        let atom = |word| {
            Term::immed(RawTerm(word))
                .as_atom()
                .expect("a head names its function")
        };
        Called {
            module: atom(module),
            function: atom(function),
            arity: head::arity(arity),
        }
    }
}

/// Lays out a call that a BIF traps to.
pub(crate) fn trap(p: &Process, to: &'static Export, args: &[Term<'_>]) -> Ready {
    debug_assert!(args.len() < X_REGISTERS, "a function's arity");
    args.iter()
        .enumerate()
        .for_each(|(i, arg)| p.set_x(i, *arg));
    Ready::of(to)
}
