%% Three sorts of the same list: a quicksort and an insertion sort of our own, and lists:sort/1.
%%
%% Shows: where the calls and the words go when the same work is done in different ways.
-module(sort).
-export([main/0, main/1]).

main() -> main(100000).

%% From the command line the argument is a list of strings.
main([Length]) -> main(list_to_integer(Length));
main([]) -> main();
main(Length) when is_integer(Length) ->
    List = numbers(Length, 42, []),
    Sorted = lists:sort(List),
    Sorted = quick(List),
    Few = lists:sublist(List, 2000),
    Smallest = hd(insertion(Few)),
    io:format("~b numbers from ~b to ~b; smallest of ~b: ~b~n",
              [Length, hd(Sorted), lists:last(Sorted), length(Few), Smallest]).

%% Numbers in no order, the same ones each time.
numbers(0, _Seed, List) -> List;
numbers(Left, Seed, List) ->
    Next = (Seed * 1103515245 + 12345) rem 2147483648,
    numbers(Left - 1, Next, [Next bsr 8 | List]).

quick([]) -> [];
quick([Pivot | Rest]) ->
    {Less, More} = lists:partition(fun(X) -> X < Pivot end, Rest),
    quick(Less) ++ [Pivot | quick(More)].

insertion(List) -> lists:foldl(fun insert/2, [], List).

insert(X, [Y | Rest]) when X > Y -> [Y | insert(X, Rest)];
insert(X, Rest) -> [X | Rest].
