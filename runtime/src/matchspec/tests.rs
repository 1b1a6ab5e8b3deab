//! What is refused, and what programs give: specifications as Erlang writes them.

use beamline_orders::Value;

use super::compile::compile;
use super::{Action, Actions, Dialect, NoActions, Object, is_fully_bound, is_wild, variable};
use crate::external::{DecodeOptions, decode_bare};
use crate::heap::Heap;
use crate::process::Process;
use crate::term::{Atom, Term, am};

/// The term that a text is.
fn term<'h>(heap: &'h Heap, text: &str) -> Term<'h> {
    match text.parse().expect(text) {
        Value::Integer(integer) => heap.integer(integer),
        Value::Term(bytes) => {
            let read = decode_bare(heap, &bytes, DecodeOptions::default());
            read.unwrap_or_else(|_| panic!("{text} can be read")).0
        }
    }
}

/// The first complaint about a specification; `None` if there is none.
fn complaint(dialect: Dialect, spec: &str) -> Option<String> {
    let heap = Heap::detached();
    let failure = compile(term(&heap, spec), dialect).err()?;
    assert!(!failure.system_limit, "{spec}");
    let first = failure.diagnostics.into_iter().next();
    Some(first.unwrap_or_else(|| panic!("{spec} is refused without a reason")))
}

/// What is no program, and why.
const REFUSED: [(Dialect, &str, &str); 23] = [
    (Dialect::TABLE, "a", "Match programs are not in a list."),
    (
        Dialect::TABLE,
        "[{a, []}]",
        "Match program part is not a tuple of arity 3.",
    ),
    (
        Dialect::TABLE,
        "[{'_', [], []}]",
        "Body clause does not return anything.",
    ),
    (
        Dialect::TABLE,
        "[{'$1', [], ['$2']}]",
        "Variable $2 is unbound.",
    ),
    (
        Dialect::TABLE,
        "[{'_', a, [true]}]",
        "Match expression is not a list.",
    ),
    (
        Dialect::TABLE,
        "[{'_', [], [{1, 2}]}]",
        "{1,2} is neither a function call, nor a tuple (tuples are written {{ ... }}).",
    ),
    (
        Dialect::TABLE,
        "[{'_', [{nosuch, 1}], [true]}]",
        "Function nosuch/1 does_not_exist.",
    ),
    (
        Dialect::TABLE,
        "[{'_', [], [{const, 1, 2}]}]",
        "Special form 'const' called with more than one argument in {const,1,2}.",
    ),
    (
        Dialect::TABLE,
        "[{'_', [{self, 1}], [true]}]",
        "Special form 'self' called with arguments in {self,1}.",
    ),
    (
        Dialect::TABLE,
        "[{'_', [{'orelse'}], [true]}]",
        "Special form 'orelse' called without arguments in {orelse}.",
    ),
    (
        Dialect::TABLE,
        "[{'_', [], [{message, a}]}]",
        "Special form 'message' used in wrong dialect.",
    ),
    (
        Dialect::TABLE,
        "[{'_', [{get_tcw}], [true]}]",
        "Function get_tcw/0 cannot be called in this context.",
    ),
    (
        Dialect::TABLE,
        "[{#{'$1' => a}, [], [true]}]",
        "Variable found in map key.",
    ),
    (
        Dialect::TABLE,
        "[{#{'_' => a}, [], [true]}]",
        "Underscore found in map key.",
    ),
    (
        Dialect::CALL,
        "[{a, [], []}]",
        "Match head is invalid in this context.",
    ),
    (
        Dialect::CALL,
        "[{'_', [{set_tcw, 1}], []}]",
        "Function set_tcw/1 cannot be called in this context.",
    ),
    (
        Dialect::CALL,
        "[{'_', [{message, a}], []}]",
        "Special form 'message' called in guard context.",
    ),
    (
        Dialect::CALL,
        "[{'_', [], [{return_trace, 1}]}]",
        "Special form 'return_trace' called with arguments in {return_trace,1}.",
    ),
    (
        Dialect::CALL,
        "[{'_', [], [{silent}]}]",
        "Special form 'silent' called with wrong number of arguments in {silent}.",
    ),
    (
        Dialect::CALL,
        "[{'_', [], [{current_stacktrace, a}]}]",
        "Special form 'current_stacktrace' called with non small argument.",
    ),
    (
        Dialect::CALL,
        "[{'_', [], [{current_stacktrace, -1}]}]",
        "Special form 'current_stacktrace' called with negative integer argument.",
    ),
    (
        Dialect::SEND,
        "[{'_', [], [{caller}]}]",
        "Special form 'caller' not allow for this trace event.",
    ),
    (
        Dialect::RECEIVE,
        "[{'_', [], [{silent, true}]}]",
        "Special form 'silent' not allow for this trace event.",
    ),
];

#[test]
fn what_is_no_program_is_refused_with_a_reason() {
    for (dialect, spec, expected) in REFUSED {
        assert_eq!(
            complaint(dialect, spec).as_deref(),
            Some(expected),
            "{spec}"
        );
    }
}

#[test]
fn a_dialect_takes_what_another_one_refuses() {
    for (spec, takes) in [
        ("[{'_', [], [{message, a}]}]", [false, true, true, true]),
        ("[{'_', [], [{silent, true}]}]", [false, false, true, true]),
        ("[{'_', [], [{caller}]}]", [false, false, false, true]),
        ("[{'_', [], []}]", [false, true, true, true]),
        ("[{{a}, [], [true]}]", [true; 4]),
        ("[{a, [], [true]}]", [true, false, false, false]),
    ] {
        let dialects = [
            Dialect::TABLE,
            Dialect::RECEIVE,
            Dialect::SEND,
            Dialect::CALL,
        ];
        let taken = dialects.map(|dialect| complaint(dialect, spec).is_none());
        assert_eq!(taken, takes, "{spec}");
    }
}

#[test]
fn a_complaint_is_cut() {
    let spec = format!("[{{'_', [], [{{1, '{}'}}]}}]", "a".repeat(200));
    let text = complaint(Dialect::TABLE, &spec).expect("it is refused");
    assert_eq!((text.len(), &text[..6]), (99, "{1,aaa"));
}

fn clause<'h>(heap: &'h Heap, parts: [Term<'h>; 3]) -> Term<'h> {
    heap.list(&[heap.tuple(&parts)])
}

#[test]
fn improper_lists_are_refused() {
    let heap = Heap::detached();
    let with_tail = |element| heap.list_with_tail(&[element], am::ok.term());
    let (any, body) = (am::underscore.term(), term(&heap, "[true]"));
    for (spec, dialect, expected) in [
        (
            with_tail(any),
            Dialect::TABLE,
            "Match programs are not in a proper list.",
        ),
        (
            clause(&heap, [any, with_tail(am::true_.term()), body]),
            Dialect::TABLE,
            "Match expression is not a proper list.",
        ),
        (
            clause(&heap, [with_tail(any), Term::NIL, body]),
            Dialect::CALL,
            "Match expression part ['_'|ok] is not a proper list.",
        ),
    ] {
        let failure = compile(spec, dialect).err().expect(expected);
        assert_eq!(failure.diagnostics, [expected]);
    }
}

#[test]
fn what_is_nested_too_deep_is_beyond_the_limit() {
    let nested = |depth| {
        let heap = Heap::detached();
        let head = (0..depth).fold(am::underscore.term(), |inner, _| heap.tuple(&[inner]));
        let body = heap.list(&[am::true_.term()]);
        let spec = clause(&heap, [head, Term::NIL, body]);
        compile(spec, Dialect::TABLE).map_or_else(|failure| failure.system_limit, |_| false)
    };
    let deep = std::thread::Builder::new().stack_size(64 << 20);
    let deep = deep.spawn(move || [4096, 4097].map(nested));
    let deep = deep.expect("a thread").join().expect("no panic");
    assert_eq!(deep, [false, true]);
}

#[test]
fn programs_for_tables_give_a_term() {
    let p = Process::new(233);
    for (spec, object, expected) in [
        ("[{'$1', [], ['$1']}]", "{a, 1}", "{a,1}"),
        ("[{{'$1', '$1'}, [], ['$1']}]", "{a, a}", "a"),
        ("[{{'$1', '$1'}, [], ['$1']}]", "{1, 1.0}", ""),
        ("[{{'$2', '$1'}, [], ['$$']}]", "{a, b}", "[b,a]"),
        ("[{{a, '_'}, [], ['$_']}]", "{a, [b]}", "{a,[b]}"),
        ("[{{a, '_'}, [], ['$_']}]", "{a, b, c}", ""),
        (
            "[{{'$1'}, [{'>', '$1', 2}], [{{'$1', x}}]}]",
            "{3}",
            "{3,x}",
        ),
        ("[{{'$1'}, [{'>', '$1', 2}], [{{'$1', x}}]}]", "{2}", ""),
        ("[{{'$1'}, [{hd, '$1'}], [true]}]", "{a}", ""),
        ("[{{'$1'}, [], [{hd, '$1'}]}]", "{a}", "'EXIT'"),
        ("[{'_', [a], [true]}]", "b", ""),
        ("[{b, [], [one]}, {'_', [], [two]}]", "b", "one"),
        ("[{b, [], [one]}, {'_', [], [two]}]", "c", "two"),
        ("[{'_', [], [{const, '$1'}]}]", "b", "'$1'"),
        ("[{'_', [], [one, two]}]", "b", "two"),
        ("[{#{a => '$1'}, [], ['$1']}]", "#{a => 1, b => 2}", "1"),
        ("[{#{a => '$1'}, [], ['$1']}]", "#{b => 2}", ""),
        ("[{['$1', b], [], [#{k => '$1'}]}]", "[a, b]", "#{k=>a}"),
        (
            "[{'$1', [{'orelse', {'==', '$1', a}, {hd, '$1'}}], [yes]}]",
            "a",
            "yes",
        ),
        (
            "[{'$1', [{'or', {'==', '$1', a}, {hd, '$1'}}], [yes]}]",
            "a",
            "",
        ),
        (
            "[{'$1', [{'andalso', {'==', '$1', b}, {hd, '$1'}}], [yes]}]",
            "a",
            "",
        ),
    ] {
        let heap = Heap::detached();
        let program = compile(term(&heap, spec), Dialect::TABLE);
        let program = program.unwrap_or_else(|failure| panic!("{spec}: {failure:?}"));
        let given = program.run(&p, Object::Term(term(&heap, object)));
        let given = given.map_or_else(String::new, |term| term.display().to_string());
        assert_eq!(given, expected, "{spec} on {object}");
    }
}

/// Notes what it is asked for.
struct Noted(Vec<String>);

impl<'a> Actions<'a> for Noted {
    fn act(&mut self, action: Action, args: &[Term<'a>]) -> Option<Term<'a>> {
        let args = args.iter().map(|arg| arg.display().to_string());
        self.0
            .push(format!("{action:?}{:?}", args.collect::<Vec<_>>()));
        Some(am::true_.term())
    }
}

#[test]
fn programs_for_calls_act() {
    let p = Process::new(233);
    let heap = Heap::detached();
    let args = [am::ok.term(), Term::small(2)];
    for (spec, message, flags, acts) in [
        ("[{'_', [], []}]", "true", (false, false), ""),
        ("[{['_'], [], []}]", "none", (false, false), ""),
        (
            "[{[ok, '$1'], [], [{message, '$1'}]}]",
            "2",
            (false, false),
            "",
        ),
        (
            "[{'$1', [], [{message, '$1'}]}]",
            "[ok,2]",
            (false, false),
            "",
        ),
        (
            "[{'_', [], [{message, '$_'}]}]",
            "[ok,2]",
            (false, false),
            "",
        ),
        ("[{'_', [], [{return_trace}]}]", "true", (true, false), ""),
        (
            "[{'_', [], [{exception_trace}]}]",
            "true",
            (false, true),
            "",
        ),
        (
            "[{'_', [{'==', 1, 2}], [{return_trace}]}]",
            "none",
            (false, false),
            "",
        ),
        (
            "[{'_', [], [{silent, true}, {caller}]}]",
            "true",
            (false, false),
            r#"Silent["true"] Caller[]"#,
        ),
    ] {
        let program = compile(term(&heap, spec), Dialect::CALL).expect(spec);
        let mut noted = Noted(Vec::new());
        let outcome = program.run_trace(&p, &args, &mut noted);
        let (said, asked) = outcome.map_or(("none".to_owned(), Default::default()), |outcome| {
            (outcome.message.display().to_string(), outcome.flags)
        });
        let asked = (asked.return_trace, asked.exception_trace);
        assert_eq!((&*said, asked), (message, flags), "{spec}");
        assert_eq!(noted.0.join(" "), acts, "{spec}");
    }
    let program = compile(term(&heap, "[{'_', [], [{silent, 1}]}]"), Dialect::CALL);
    let program = program.expect("a program");
    assert!(program.run_trace(&p, &args, &mut NoActions).is_some());
}

#[test]
fn variables_have_numbers_without_leading_zeros() {
    for (name, number) in [
        ("$0", Some(0)),
        ("$12", Some(12)),
        ("$99999999999999999999", Some(u64::MAX)),
        ("$01", None),
        ("$00", None),
        ("$", None),
        ("$a", None),
        ("$1a", None),
        ("$_", None),
        ("1", None),
        ("_", None),
    ] {
        let atom = Atom::new(name);
        assert_eq!(variable(atom), number, "{name}");
        assert_eq!(is_wild(atom), number.is_some() || name == "_", "{name}");
    }
}

#[test]
fn only_what_has_no_variables_and_no_maps_is_one_term() {
    let heap = Heap::detached();
    for (text, is_bound) in [
        ("a", true),
        ("1", true),
        ("[]", true),
        ("{a, [b, {c}], \"text\", <<\"bytes\">>}", true),
        ("'_'", false),
        ("'$1'", false),
        ("{a, [b, {'$1'}]}", false),
        ("[a, b, '_']", false),
        ("#{}", false),
        ("{a, #{b => c}}", false),
    ] {
        assert_eq!(is_fully_bound(term(&heap, text)), is_bound, "{text}");
    }
    let improper = heap.list_with_tail(&[am::ok.term()], am::underscore.term());
    assert!(!is_fully_bound(improper));
}
