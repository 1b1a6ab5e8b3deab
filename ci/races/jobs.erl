%% Workers ask for jobs: who gets which is chance.
-module(jobs).
-export([main/0]).

main() ->
    Me = self(),
    [spawn_link(fun() -> worker(N, Me) end) || N <- lists:seq(1, 6)],
    io:format("~w~n", [share(lists:seq(1, 60), [])]).

share([], Done) -> erlang:phash2(Done);
share([Job | Jobs], Done) ->
    receive {ready, N, Pid} -> Pid ! {job, Job}, share(Jobs, [{Job, N} | Done]) end.

worker(N, Pool) ->
    Pool ! {ready, N, self()},
    receive {job, Job} -> lists:sum(lists:seq(1, Job * 100)), worker(N, Pool) end.
