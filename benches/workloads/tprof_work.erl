%% A workload of plain_work under OTP's tprof, for `cargo xtask fidelity`: a line for each function, with its own time in
%% microseconds.
%%
%%   erl -noshell -run tprof_work main NAME FACTOR
-module(tprof_work).
-export([main/1]).

main([Name, Factor]) ->
    Options = #{type => call_time, report => return, timeout => infinity},
    {_, {call_time, Rows}} = tprof:profile(plain_work, run, [Name, list_to_integer(Factor)], Options),
    [io:format("~b ~ts:~ts/~b~n", [Time, Module, Function, Arity])
     || {Module, Function, Arity, Processes} <- Rows, {_, _, Time} <- Processes],
    erlang:halt(0).
