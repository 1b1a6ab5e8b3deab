//! The rows of native functions that code calls by name: BIFs, and functions that are NIFs or Erlang code in OTP and
//! Rust code in Beamline.

use std::sync::OnceLock;

use crate::hash::{HashMap, HashSet};
use crate::hook::Hook;
use crate::process::{BifResult, Dirty, GuardResult, Holds, Leave, Next, Process};
use crate::term::{Atom, Term};

/// The kind of a BIF, which says what it may do, as in `bif.tab`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ordinary.
    Bif,
    /// Allowed in guards, or an operator.
    Ubif,
    /// Heavy: a call of it costs no reduction beside those of its work.
    Hbif,
}

/// The handler of a BIF.
#[derive(Clone, Copy)]
pub enum Call {
    /// Is called by the instructions for guard BIFs, as `erlang:get/1` is, too: cannot collect, and neither traps nor
    /// waits.
    Guard(for<'p> fn(&'p Process, &[Term<'p>]) -> GuardResult<'p>),
    /// Cannot collect.
    Plain(for<'p> fn(&'p Process, &[Term<'p>]) -> BifResult<'p>),
    /// As the one before, on a dirty scheduler; usually shorter than it takes to wake a thread.
    Dirty(Dirty, for<'p> fn(&'p Process, &[Term<'p>]) -> BifResult<'p>),
    /// Has the process to itself.
    Exclusive(fn(&mut Process) -> Next),
}

impl Call {
    /// Calls what cannot collect; `None` for what has the process to itself, or runs elsewhere.
    #[inline]
    pub fn plain<'p>(self, p: &'p Process, args: &[Term<'p>]) -> Option<BifResult<'p>> {
        match self {
            Call::Guard(call) => Some(call(p, args).map_err(Leave::Raise)),
            Call::Plain(call) => Some(call(p, args)),
            Call::Exclusive(_) | Call::Dirty(..) => None,
        }
    }
}

/// One row of the table.
pub struct Bif {
    /// Module.
    pub module: &'static str,
    /// Function.
    pub function: &'static str,
    /// Arity.
    pub arity: u8,
    /// What it may do.
    pub kind: Kind,
    /// Its handler.
    pub call: Call,
    /// What its answer is in a replay.
    pub chance: Chance,
    /// What records its answers, where it runs on a dirty scheduler: around the call, in the process itself.
    pub(crate) around: Option<Around>,
}

/// Calls a function, which holds something until it has ended, or gives its recorded answer.
pub(crate) type Around =
    for<'p> fn(&'p Process, &[Term<'p>], &mut dyn FnMut(Holds) -> BifResult<'p>) -> BifResult<'p>;

/// What the answer of a native function is in a replay (`docs/replay.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chance {
    /// A function of its arguments, of the process and of the code: the same without a record.
    Own,
    /// It is a step of the order, or what it does shows in messages, whose order is recorded.
    Ordered,
    /// It depends on objects that processes share, whose accesses are recorded in their order.
    Shared,
    /// It is recorded, and given again; the function is not called.
    Answer,
    /// It is recorded, and given again; what the function does outside, it does again.
    Outside,
    /// What it reads is read again, and has to be the same: size and checksum are recorded.
    Read,
    /// What the function does, it does again, with an answer of its own: an object, or always the same.
    Again,
    /// It opens or closes a door for what comes. Its answer is recorded, and a replay calls it when what came before has come.
    Turn,
    /// It is not recorded.
    Unrecorded,
}

/// Declares a family's table, `TABLE`. What answers are in a replay is said of each row, or of `all` of them.
macro_rules! bifs {
    (all $chance:ident; $($kind:ident $module:ident : $function:literal / $arity:literal => $handler:path;)*) => {
        $crate::code::bif::bifs! {
            $($kind $module : $function / $arity => $handler, $chance;)*
        }
    };
    ($($kind:ident $module:ident : $function:literal / $arity:literal => $handler:path, $chance:ident;)*) => {
        /// The family's rows.
        pub(crate) const TABLE: &[$crate::code::bif::Bif] = &[$(
            $crate::code::bif::Bif {
                module: stringify!($module),
                function: $function,
                arity: $arity,
                kind: $crate::code::bif::bifs!(@kind $kind),
                call: $crate::code::bif::bifs!(@call $kind ($chance $module $function) $arity $handler),
                chance: $crate::code::bif::bifs!(@chance $chance),
                around: $crate::code::bif::bifs!(@around $kind ($chance $module $function $arity)),
            },
        )*];
    };
    (@kind bif) => { $crate::code::bif::Kind::Bif };
    (@kind ubif) => { $crate::code::bif::Kind::Ubif };
    (@kind guard) => { $crate::code::bif::Kind::Bif };
    (@kind xbif) => { $crate::code::bif::Kind::Bif };
    (@kind hbif) => { $crate::code::bif::Kind::Hbif };
    (@kind hbif_plain) => { $crate::code::bif::Kind::Hbif };
    (@kind dirty_io) => { $crate::code::bif::Kind::Bif };
    (@kind dirty_file) => { $crate::code::bif::Kind::Bif };
    (@chance own) => { $crate::code::bif::Chance::Own };
    (@chance ordered) => { $crate::code::bif::Chance::Ordered };
    (@chance shared) => { $crate::code::bif::Chance::Shared };
    (@chance answer) => { $crate::code::bif::Chance::Answer };
    (@chance outside) => { $crate::code::bif::Chance::Outside };
    (@chance outside_or_socket) => { $crate::code::bif::Chance::Outside };
    (@chance read) => { $crate::code::bif::Chance::Read };
    (@chance again) => { $crate::code::bif::Chance::Again };
    (@chance turn) => { $crate::code::bif::Chance::Turn };
    (@chance unrecorded) => { $crate::code::bif::Chance::Unrecorded };
    (@call xbif $row:tt $arity:literal $handler:path) => {
        $crate::code::bif::Call::Exclusive($crate::code::bif::bifs!(@exclusive $row $arity $handler))
    };
    (@call hbif $row:tt $arity:literal $handler:path) => {
        $crate::code::bif::Call::Exclusive($crate::code::bif::bifs!(@exclusive $row $arity $handler))
    };
    (@call ubif $row:tt $arity:literal $handler:path) => {
        $crate::code::bif::bifs!(@plain Guard GuardResult $row $arity $handler)
    };
    (@call guard $row:tt $arity:literal $handler:path) => {
        $crate::code::bif::bifs!(@plain Guard GuardResult $row $arity $handler)
    };
    (@call dirty_io ($chance:ident $module:ident $function:literal) $arity:literal $handler:path) => {
        $crate::code::bif::Call::Dirty(
            $crate::process::Dirty::Io,
            $crate::code::bif::bifs!(@shared BifResult (own $module $function) $arity $handler),
        )
    };
    (@call dirty_file $row:tt $arity:literal $handler:path) => {
        $crate::code::bif::bifs!(@call dirty_io $row $arity $handler)
    };
    (@call $kind:ident $row:tt $arity:literal $handler:path) => {
        $crate::code::bif::bifs!(@plain Plain BifResult $row $arity $handler)
    };
    (@exclusive (answer $module:ident $function:literal) $arity:literal $handler:path) => {{
        fn call(p: &mut $crate::process::Process) -> $crate::process::Next {
            let native = $crate::code::bif::bifs!(@native ($module $function $arity));
            $crate::process::order::answer::given_alone(p, native, $handler)
        }
        call
    }};
    (@exclusive ($chance:ident $module:ident $function:literal) $arity:literal $handler:path) => { $handler };
    (@plain $call:ident $result:ident $row:tt $arity:literal $handler:path) => {
        $crate::code::bif::Call::$call($crate::code::bif::bifs!(@shared $result $row $arity $handler))
    };
    (@around dirty_io $row:tt) => { $crate::code::bif::bifs!(@away $row p args None) };
    // It takes its turn before it leaves, by the `turns` of the module that has the table.
    (@around dirty_file ($chance:ident $module:ident $function:literal $arity:literal)) => {
        $crate::code::bif::bifs!(
            @away ($chance $module $function $arity) p args
            turns::take(p, $function, args)?
        )
    };
    (@away ($chance:ident $module:ident $function:literal $arity:literal) $p:ident $args:ident $holds:expr) => {{
        fn around<'p>(
            $p: &'p $crate::process::Process,
            $args: &[$crate::term::Term<'p>],
            call: &mut dyn FnMut($crate::process::Holds) -> $crate::process::BifResult<'p>,
        ) -> $crate::process::BifResult<'p> {
            let _ = (&$p, &$args);
            let holds = $holds;
            $crate::code::bif::bifs!(@answered_away $chance ($module $function $arity) $p $args call(holds))
        }
        Some(around)
    }};
    (@around $kind:ident $row:tt) => { None };
    (@native ($module:ident $function:literal $arity:literal)) => {{
        static NATIVE: $crate::process::order::answer::Native =
            $crate::process::order::answer::Native::new(stringify!($module), $function, $arity);
        &NATIVE
    }};
    (@recorded $how:ident $row:tt $p:ident $call:expr) => {
        $crate::process::order::answer::$how($p, $crate::code::bif::bifs!(@native $row), || $call)
    };
    (@answered_away answer $row:tt $p:ident $args:ident $call:expr) => {
        $crate::code::bif::bifs!(@recorded given_away $row $p $call)
    };
    (@answered_away $chance:ident $row:tt $p:ident $args:ident $call:expr) => {
        $crate::code::bif::bifs!(@answered $chance $row $p $args $call)
    };
    (@answered answer $row:tt $p:ident $args:ident $call:expr) => {
        $crate::code::bif::bifs!(@recorded replay_or_call $row $p $call)
    };
    (@answered outside $row:tt $p:ident $args:ident $call:expr) => {
        $crate::code::bif::bifs!(@recorded call_and_replay $row $p $call)
    };
    // By `is_of_socket` of the module that has the table: a replay has no sockets, and makes no call.
    (@answered outside_or_socket $row:tt $p:ident $args:ident $call:expr) => {{
        let native = $crate::code::bif::bifs!(@native $row);
        $crate::process::order::answer::of_port($p, native, || is_of_socket($args[0]), || $call)
    }};
    (@answered turn $row:tt $p:ident $args:ident $call:expr) => {
        $crate::code::bif::bifs!(@recorded in_turn $row $p $call)
    };
    (@answered read $row:tt $p:ident $args:ident $call:expr) => {{
        let native = $crate::code::bif::bifs!(@native $row);
        $crate::process::order::answer::checked($p, native, $args[0], || $call)
    }};
    (@answered $chance:ident $row:tt $p:ident $args:ident $call:expr) => { $call };
    (@shared $result:ident ($chance:ident $module:ident $function:literal) $arity:literal $handler:path) => {{
        fn call<'p>(
            p: &'p $crate::process::Process,
            args: &[$crate::term::Term<'p>],
        ) -> $crate::process::$result<'p> {
            let args: &[$crate::term::Term<'p>; $arity] =
                args.try_into().expect("a BIF is called with its arity");
            $crate::code::bif::bifs!(
                @answered $chance ($module $function $arity) p args $handler(p, *args).map_err(Into::into)
            )
        }
        call
    }};
}
pub(crate) use bifs;

/// The tables of all families, in the order of their indices.
pub(crate) struct Families {
    /// What is a BIF in OTP, too.
    pub(crate) bifs: &'static [&'static [&'static [Bif]]],
    /// What is in Erlang in OTP.
    pub(crate) overrides: &'static [&'static [Bif]],
    /// What is a NIF in OTP.
    pub(crate) nifs: &'static [&'static [Bif]],
}

/// Hook: the floors above bring their native functions.
pub(crate) static FAMILIES: Hook<Families> = Hook::new("the families of native functions");

/// What a BIF goes on with is called as a BIF is, and is none.
fn is_trap(bif: &Bif) -> bool {
    bif.function.ends_with("_trap")
}

/// The rows that are BIFs in OTP, too: not those of its NIFs.
pub(crate) fn own() -> impl Iterator<Item = &'static Bif> {
    bif_rows().filter(|bif| !is_trap(bif))
}

/// The rows of a module that are NIFs in OTP.
pub(crate) fn nifs_of(module: &str) -> impl Iterator<Item = &'static Bif> {
    let families = FAMILIES.get().nifs.iter();
    families
        .flat_map(|family| family.iter())
        .filter(move |bif| bif.module == module)
}

/// The row of `module:function/arity` that is a NIF in OTP.
pub(crate) fn nif(module: Atom, function: Atom, arity: u8) -> Option<&'static Bif> {
    nifs_of(module.name()).find(|bif| bif.function == function.name() && bif.arity == arity)
}

fn bif_rows() -> impl Iterator<Item = &'static Bif> {
    let families = FAMILIES
        .get()
        .bifs
        .iter()
        .flat_map(|families| families.iter());
    families.flat_map(|family| family.iter())
}

/// Is the row with this index one of [`own`]?
pub(crate) fn is_own(index: usize) -> bool {
    index < bif_rows().count() && !is_trap(table().rows[index])
}

type Key = (Atom, Atom, u8);

struct Table {
    rows: Vec<&'static Bif>,
    by_name: HashMap<Key, usize>,
    modules: HashSet<Atom>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let all = FAMILIES.get();
        let families = all.bifs.iter().chain([&all.overrides, &all.nifs]);
        let families = families.flat_map(|families| families.iter());
        let rows: Vec<&'static Bif> = families.flat_map(|family| family.iter()).collect();
        let by_name = rows
            .iter()
            .enumerate()
            .map(|(i, bif)| {
                (
                    (Atom::new(bif.module), Atom::new(bif.function), bif.arity),
                    i,
                )
            })
            .collect();
        let modules = rows.iter().map(|bif| Atom::new(bif.module)).collect();
        Table {
            rows,
            by_name,
            modules,
        }
    })
}

/// Are any functions of a module of this name BIFs?
pub(crate) fn has_some_of(module: Atom) -> bool {
    table().modules.contains(&module)
}

/// The index of the BIF `module:function/arity`.
#[must_use]
pub(crate) fn find(module: Atom, function: Atom, arity: u8) -> Option<usize> {
    table().by_name.get(&(module, function, arity)).copied()
}

/// All BIFs, in the order of their indices.
#[must_use]
pub fn all() -> &'static [&'static Bif] {
    &table().rows
}

/// A row for a guard BIF that code calls and the table lacks: raises `undef`.
#[must_use]
pub(crate) fn missing(arity: u8) -> &'static Bif {
    fn undef<'p>(_: &'p Process, _: &[Term<'p>]) -> GuardResult<'p> {
        Err(crate::term::am::undef.into())
    }
    const fn row(arity: u8) -> Bif {
        Bif {
            module: "erlang",
            function: "undefined_bif",
            arity,
            kind: Kind::Ubif,
            call: Call::Guard(undef),
            chance: Chance::Own,
            around: None,
        }
    }
    static ROWS: [Bif; 4] = [row(0), row(1), row(2), row(3)];
    &ROWS[usize::from(arity.min(3))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bif_is_declared_twice() {
        assert_eq!(table().by_name.len(), table().rows.len());
    }

    /// The kinds of answers that the documentation lists; all other functions are `Own`.
    const LISTED: [(Chance, &str); 8] = [
        (
            Chance::Answer,
            "The answer is recorded, and a replay gives it again without a call.",
        ),
        (
            Chance::Outside,
            "A replay does it again, and gives the recorded answer.",
        ),
        (
            Chance::Read,
            "A replay reads again; size and checksum are recorded, and have to be the same.",
        ),
        (
            Chance::Again,
            "A replay does it again; nothing is recorded.",
        ),
        (
            Chance::Turn,
            "A replay does it again when what came before has come, and gives the recorded answer.",
        ),
        (
            Chance::Ordered,
            "A step of the order, or its effects are messages and signals, whose order is recorded.",
        ),
        (
            Chance::Shared,
            "Depends on an object that processes share (a table, a name, an array), whose accesses are recorded in their order.",
        ),
        (Chance::Unrecorded, "Not recorded."),
    ];

    /// The lists of the documentation.
    fn lists() -> String {
        let mut out = String::new();
        for (chance, meaning) in LISTED {
            let rows = all().iter().filter(|row| row.chance == chance);
            let mut names: Vec<String> = rows
                .map(|row| format!("`{}:{}/{}`", row.module, row.function, row.arity))
                .collect();
            names.sort();
            out.push_str(&format!("\n## {chance:?}\n\n{meaning}\n\n"));
            out.extend(names.iter().map(|name| format!("- {name}\n")));
        }
        out
    }

    #[test]
    fn the_documentation_lists_what_answers_are_in_a_replay() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/internals/Natives.md");
        let text = std::fs::read_to_string(path).expect("it is in the repository");
        let start = "<!-- natives -->\n";
        let from = text.find(start).expect("the lists begin") + start.len();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, format!("{}{}", &text[..from], lists())).expect("writable");
            return;
        }
        assert_eq!(&text[from..], lists(), "run the test with BLESS=1");
    }

    #[test]
    fn own_bifs_are_known_from_others() {
        let is = |m, f, a| find(Atom::new(m), Atom::new(f), a).is_some_and(is_own);
        assert!(is("erlang", "self", 0) && is("file", "native_name_encoding", 0));
        assert!(!is("erlang", "memory", 0) && !is("prim_file", "get_handle_nif", 1));
        let count = (0..all().len()).filter(|index| is_own(*index)).count();
        assert_eq!(count, own().count());
    }
}
