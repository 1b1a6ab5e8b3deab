%% What it costs to record every call and return of fib(30), for `cargo xtask compare --record`. A line
%% "RESULT Value Digest", as those of compare_work: nanoseconds of the call, from the first event to the last.
%%
%%   erl -noshell -run record_work main NAME FILE
-module(record_work).
-export([main/1, fib/1]).

main([Name, File]) ->
    {Value, Outcome} = measure(Name, File),
    io:format("RESULT ~b ~b~n", [Value, erlang:phash2(Outcome)]),
    erlang:halt(0).

%% Nothing here: recorded from outside, or not at all.
measure("plain", _) ->
    timed(fun() -> fib(30) end);
%% fprof, with its trace in a file: until that is complete, and not read again.
measure("fprof", File) ->
    timed(fun() ->
                  ok = fprof:trace([start, {file, File}, {procs, [self()]}]),
                  Value = fib(30),
                  ok = fprof:trace(stop),
                  Value
          end);
%% dbg to a file port: calls and returns of the function.
measure("dbg", File) ->
    {ok, _} = dbg:tracer(port, dbg:trace_port(file, File)),
    {ok, _} = dbg:p(self(), [call, timestamp]),
    {ok, _} = dbg:tpl(?MODULE, fib, 1, [{'_', [], [{return_trace}]}]),
    timed(fun() ->
                  Value = fib(30),
                  ok = dbg:flush_trace_port(),
                  Value
          end).

timed(Fun) ->
    Begin = erlang:monotonic_time(nanosecond),
    Value = Fun(),
    {erlang:monotonic_time(nanosecond) - Begin, Value}.

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
