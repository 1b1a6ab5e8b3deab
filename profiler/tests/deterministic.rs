//! `--deterministic`: what a run does depends on nothing that the emulator has seen before.

mod place;

use place::Place;

/// Atoms have numbers in the order in which they were made, and the keys of large maps and tables are found by hashes.
#[test]
fn large_maps_have_an_order_that_older_atoms_do_not_change() {
    let source = r#"
-module(work).
-export([main/1]).
main([Older]) ->
    [list_to_atom("older_" ++ integer_to_list(N)) || N <- lists:seq(1, list_to_integer(Older))],
    Names = [list_to_atom("name_" ++ integer_to_list(N)) || N <- lists:seq(1, 100)],
    Of = fun(Make) -> maps:keys(maps:from_keys([Make(Name) || Name <- Names], [])) end,
    Table = ets:new(table, []),
    ets:insert(Table, [{Name} || Name <- Names]),
    io:format("~p~n", [{Of(fun(N) -> N end), Of(fun(N) -> {N, [N | N]} end), ets:tab2list(Table)}]).
"#;
    let Some(place) = Place::new(source) else {
        return;
    };
    let order = |older| place.printed(&["run", "--deterministic", "--", "work.erl", older]);
    let first = order("0");
    assert!(first.contains("name_17"), "{first}");
    assert_eq!(first, order("7"));
    assert_eq!(first, order("100"));
}
