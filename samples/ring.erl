%% A process ring: a token goes round a ring of processes.
%%
%% Shows: calls per process, and what sending and receiving costs when nothing else is done.
-module(ring).
-export([main/0, main/1]).

main() -> main(200, 3000).

%% From the command line the arguments are a list of strings: processes, rounds.
main([Processes, Rounds]) -> main(list_to_integer(Processes), list_to_integer(Rounds));
main([]) -> main().

main(Processes, Rounds) when Processes >= 2, Rounds >= 1 ->
    First = self(),
    Next = build(Processes - 1, First),
    Hops = rounds(Next, Rounds, 0),
    io:format("~b processes, ~b hops~n", [Processes, Hops]).

%% Each process knows the one after it; the last one knows the first.
build(0, First) -> First;
build(Left, First) ->
    Next = build(Left - 1, First),
    spawn_link(fun() -> member(Next) end).

member(Next) ->
    receive
        {token, Hops} ->
            Next ! {token, Hops + 1},
            member(Next);
        stop ->
            Next ! stop
    end.

rounds(Next, 0, Hops) ->
    Next ! stop,
    receive stop -> Hops end;
rounds(Next, Left, Hops) ->
    Next ! {token, Hops + 1},
    receive {token, Hops1} -> rounds(Next, Left - 1, Hops1) end.
