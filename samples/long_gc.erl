%% A long garbage collection: one process keeps a large live heap while it makes garbage.
%%
%% Shows: collections whose cost is in the data that is kept, not in the garbage that is made.
-module(long_gc).
-export([main/0, main/1]).

main() -> main(300000).

%% From the command line the argument is a list of strings.
main([Records]) -> main(list_to_integer(Records));
main([]) -> main();
main(Records) when is_integer(Records) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> Self ! {sum, self(), work(Records)} end),
    Sum = receive {sum, Pid, S} -> S end,
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    io:format("~b live records, sum ~b~n", [Records, Sum]).

work(Records) ->
    Live = [{record, N, [N, N + 1, N + 2]} || N <- lists:seq(1, Records)],
    churn(20, Records div 4, 0),
    garbage_collect(),
    sum(Live, 0).

%% Makes lists and drops them.
churn(0, _Length, Sum) -> Sum;
churn(Left, Length, Sum) ->
    Garbage = [{N, Left} || N <- lists:seq(1, Length)],
    churn(Left - 1, Length, Sum + length(Garbage)).

sum([{record, N, Values} | Rest], Sum) -> sum(Rest, Sum + N + length(Values));
sum([], Sum) -> Sum.
