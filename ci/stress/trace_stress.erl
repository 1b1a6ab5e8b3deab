%% Processes call functions while trace sessions are made, changed, read and destroyed at random. The program
%% counts its calls by itself, and each count that a session gives is checked against that.
%%
%%     trace_stress:main([Seconds, Seed])
%%
%% Time goes in rounds. Between them nobody calls, so that what a session has counted is known exactly; in
%% them, sessions that are left alone count, and the others churn: a process of their own changes them as fast as
%% it can, and checks what it reads by what was called at least and at most.
%%
%% Meanwhile one process loads and purges a module again and again, and another sets and clears breakpoints everywhere,
%% old code and new code included.
-module(trace_stress).

-export([main/1]).
-export([f01/1, f02/1, f03/1, f04/1, f05/1, f06/1, f07/1, f08/1, f09/1, f10/1, f11/1, f12/1,
         f13/1, f14/1, f15/1, f16/1, f17/1, f18/1, f19/1, f20/1, f21/1, f22/1, f23/1, f24/1,
         f25/1, f26/1, f27/1, f28/1, f29/1, f30/1, f31/1, f32/1]).

-define(WORKERS, 64).
-define(SESSIONS, 8).
-define(FUNCTIONS,
        {f01, f02, f03, f04, f05, f06, f07, f08, f09, f10, f11, f12, f13, f14, f15, f16,
         f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32}).
%% Calls of a worker in a round.
-define(CALLS, 400).

-define(F(Name), Name(X) -> [X]).

?F(f01). ?F(f02). ?F(f03). ?F(f04). ?F(f05). ?F(f06). ?F(f07). ?F(f08).
?F(f09). ?F(f10). ?F(f11). ?F(f12). ?F(f13). ?F(f14). ?F(f15). ?F(f16).
?F(f17). ?F(f18). ?F(f19). ?F(f20). ?F(f21). ?F(f22). ?F(f23). ?F(f24).
?F(f25). ?F(f26). ?F(f27). ?F(f28). ?F(f29). ?F(f30). ?F(f31). ?F(f32).

main([Seconds, Seed]) ->
    process_flag(trap_exit, false),
    rand:seed(exsss, list_to_integer(Seed)),
    Workers = [spawn_worker() || _ <- lists:seq(1, ?WORKERS)],
    Seeds = [rand:uniform(1 bsl 40) || _ <- lists:seq(1, 2)],
    [spawn_link(fun() -> rand:seed(exsss, S), Fun() end) || {S, Fun} <- lists:zip(Seeds, [fun reload/0, fun sweep/0])],
    End = erlang:monotonic_time(millisecond) + 1000 * list_to_integer(Seconds),
    Slots = maps:from_list([{Slot, none} || Slot <- lists:seq(1, ?SESSIONS)]),
    Checks = rounds(Workers, Slots, End, #{rounds => 0, exact => 0, bounded => 0, sessions => 0}),
    [begin unlink(Pid), exit(Pid, kill) end || {Pid, _} <- Workers],
    io:format("~p rounds, ~p sessions, ~p counts checked exactly, ~p by bounds~n",
              [maps:get(Key, Checks) || Key <- [rounds, sessions, exact, bounded]]),
    halt(0).

%% Changes all over.

reload() ->
    {array, Code, File} = code:get_object_code(array),
    ok = code:unstick_dir(filename:dirname(File)),
    reload(Code, File).

reload(Code, File) ->
    {module, array} = code:load_binary(array, File, Code),
    [a, b] = array:to_list(array:from_list([a, b])),
    case rand:uniform(3) of
        1 -> code:purge(array);
        2 -> code:purge(array), code:delete(array), code:purge(array);
        3 -> code:purge(array), erlang:yield()
    end,
    reload(Code, File).

sweep() ->
    Session = trace:session_create(sweep, self(), []),
    Kind = element(rand:uniform(5), {call_count, call_time, call_memory, local, global}),
    [0, _] = [trace:function(Session, Functions, true, [Kind]) || Functions <- [on_load, {'_', '_', '_'}]],
    case rand:uniform(3) of
        1 -> ok;
        2 -> trace:function(Session, {array, '_', '_'}, false, [Kind]);
        3 -> trace:function(Session, {'_', '_', '_'}, false, [Kind])
    end,
    true = trace:session_destroy(Session),
    timer:sleep(rand:uniform(300)),
    sweep().

%% Workers.

spawn_worker() ->
    Counters = counters:new(tuple_size(?FUNCTIONS), []),
    {spawn_link(fun() -> worker(Counters) end), Counters}.

worker(Counters) ->
    receive
        {go, From, Seed} ->
            calls(?CALLS, Seed, Counters),
            From ! {done, self()},
            worker(Counters)
    end.

calls(0, _, _) -> ok;
calls(N, Seed, Counters) ->
    Next = (Seed * 1103515245 + 12345) band 16#7fffffff,
    Index = (Next bsr 16) rem tuple_size(?FUNCTIONS) + 1,
    call(Index, N),
    counters:add(Counters, Index, 1),
    N rem 64 =:= 0 andalso erlang:yield(),
    calls(N - 1, Next, Counters).

call(1, X) -> f01(X);
call(2, X) -> f02(X);
call(3, X) -> f03(X);
call(4, X) -> f04(X);
call(5, X) -> f05(X);
call(6, X) -> f06(X);
call(7, X) -> f07(X);
call(8, X) -> f08(X);
call(Index, X) -> apply(?MODULE, element(Index, ?FUNCTIONS), [X]).

%% What all workers have called of a function.
called(Workers, Index) ->
    lists:sum([counters:get(Counters, Index) || {_, Counters} <- Workers]).

%% Rounds.

rounds(Workers, Slots, End, Checks) ->
    case erlang:monotonic_time(millisecond) < End of
        true ->
            {Next, New} = round(Workers, Slots, Checks),
            rounds(Workers, Next, End, New#{rounds := maps:get(rounds, New) + 1});
        false ->
            [destroy(Slot) || Slot <- maps:values(Slots), Slot =/= none],
            Checks
    end.

round(Workers, Slots, Checks) ->
    {Steady, Churning} = lists:partition(fun(_) -> rand:uniform(2) =:= 1 end,
                                         lists:seq(1, ?SESSIONS)),
    {Changed, Checks1} = lists:mapfoldl(fun(Slot, Acc) -> change(maps:get(Slot, Slots), Workers, Acc) end,
                                        Checks, Steady),
    Before = [{Pid, tally(Counters)} || {Pid, Counters} <- Workers],
    Main = self(),
    Churners = [begin
                    Old = maps:get(Slot, Slots),
                    Seed = rand:uniform(1 bsl 40),
                    spawn_link(fun() -> churn(Main, Old, Workers, Seed) end)
                end || Slot <- Churning],
    [Pid ! {go, Main, rand:uniform(1 bsl 30)} || {Pid, _} <- Workers],
    [receive {done, Pid} -> ok end || {Pid, _} <- Workers],
    [Pid ! stop || Pid <- Churners],
    Bounded = [receive {churned, Pid, Counts, Made} -> {Counts, Made} end || Pid <- Churners],
    Made = [{Pid, difference(tally(Counters), maps:get(Pid, maps:from_list(Before)))}
            || {Pid, Counters} <- Workers],
    {Checked, Exact} = lists:mapfoldl(fun(Slot, Acc) ->
                                              {New, N} = check(Slot, Made),
                                              {New, Acc + N}
                                      end, 0, Changed),
    Next = maps:merge(maps:from_list(lists:zip(Steady, Checked)),
                      maps:from_list([{Slot, none} || Slot <- Churning])),
    {Next, Checks1#{exact := maps:get(exact, Checks1) + Exact,
                    bounded := maps:get(bounded, Checks1) + lists:sum([N || {N, _} <- Bounded]),
                    sessions := maps:get(sessions, Checks1) + lists:sum([N || {_, N} <- Bounded])}}.

tally(Counters) ->
    [counters:get(Counters, Index) || Index <- lists:seq(1, tuple_size(?FUNCTIONS))].

difference(New, Old) ->
    lists:zipwith(fun(A, B) -> A - B end, New, Old).

%% Sessions that are left alone: {Session, #{{Index, Kind} => {State, #{Pid => Calls}}}}.

kinds() -> {call_count, call_time, call_memory}.

create() ->
    Session = trace:session_create(stress, self(), []),
    trace:process(Session, all, true, [call]),
    {Session, #{}}.

destroy({Session, _}) ->
    true = trace:session_destroy(Session).

%% Changes that are done while nobody calls.
change(none, Workers, Checks) ->
    change(create(), Workers, Checks#{sessions := maps:get(sessions, Checks) + 1});
change(Slot, Workers, Checks) ->
    case rand:uniform(8) of
        1 ->
            destroy(Slot),
            change(none, Workers, Checks);
        _ ->
            Changes = rand:uniform(6),
            {lists:foldl(fun(_, Acc) -> change_one(Acc) end, Slot, lists:seq(1, Changes)), Checks}
    end.

change_one({Session, Points}) ->
    Index = rand:uniform(tuple_size(?FUNCTIONS)),
    Kind = element(rand:uniform(3), kinds()),
    Key = {Index, Kind},
    Function = {?MODULE, element(Index, ?FUNCTIONS), 1},
    case Points of
        #{Key := {State, Calls}} ->
            case rand:uniform(4) of
                1 ->
                    1 = trace:function(Session, Function, false, [Kind]),
                    {Session, maps:remove(Key, Points)};
                2 when State =:= on ->
                    1 = trace:function(Session, Function, pause, [Kind]),
                    {Session, Points#{Key := {paused, Calls}}};
                _ ->
                    1 = trace:function(Session, Function, restart, [Kind]),
                    {Session, Points#{Key := {on, #{}}}}
            end;
        #{} ->
            1 = trace:function(Session, Function, true, [Kind]),
            {Session, Points#{Key => {on, #{}}}}
    end.

%% What was called in the round is counted where counting was on, and all of it is there.
check({Session, Points}, Made) ->
    New = maps:map(fun({Index, _}, {on, Calls}) ->
                           {on, lists:foldl(fun({Pid, Tally}, Acc) ->
                                                    add(Pid, lists:nth(Index, Tally), Acc)
                                            end, Calls, Made)};
                      (_, Paused) ->
                           Paused
                   end, Points),
    maps:foreach(fun(Key, {_, Calls}) -> check_point(Session, Key, Calls) end, New),
    {{Session, New}, maps:size(New)}.

add(_, 0, Acc) -> Acc;
add(Pid, Calls, Acc) -> maps:update_with(Pid, fun(Old) -> Old + Calls end, Calls, Acc).

check_point(Session, {Index, Kind}, Calls) ->
    Function = {?MODULE, element(Index, ?FUNCTIONS), 1},
    Counted = case trace:info(Session, Function, Kind) of
                  {call_count, N} -> N;
                  {_, Rows} -> maps:from_list([{element(1, Row), element(2, Row)} || Row <- Rows])
              end,
    Expected = case Kind of
                   call_count -> lists:sum(maps:values(Calls));
                   _ -> Calls
               end,
    Counted =:= Expected orelse wrong({exact, Function, Kind, Counted, Expected}).

%% Sessions that change while all are calling.

churn(Main, Old, Workers, Seed) ->
    rand:seed(exsss, Seed),
    Old =:= none orelse destroy(Old),
    {Counts, Made} = churn_on(Workers, 0, 0),
    Main ! {churned, self(), Counts, Made}.

churn_on(Workers, Counts, Made) ->
    receive
        stop -> {Counts, Made}
    after 0 ->
            Session = trace:session_create(churn, self(), []),
            rand:uniform(2) =:= 1 andalso trace:process(Session, all, true, [call]),
            New = lists:sum([count(Session, Workers) || _ <- lists:seq(1, rand:uniform(4))]),
            true = trace:session_destroy(Session),
            churn_on(Workers, Counts + New, Made + 1)
    end.

%% Counts one function for a while. Each worker may be between a call and its count of it.
count(Session, Workers) ->
    Index = rand:uniform(tuple_size(?FUNCTIONS)),
    Function = {?MODULE, element(Index, ?FUNCTIONS), 1},
    First = called(Workers, Index),
    1 = trace:function(Session, Function, true, [call_count]),
    Second = called(Workers, Index),
    erlang:yield(),
    bounds(Session, Function, Workers, Index, First, Second),
    1 = trace:function(Session, Function, pause, [call_count]),
    {call_count, Paused} = trace:info(Session, Function, call_count),
    erlang:yield(),
    {call_count, Paused} = trace:info(Session, Function, call_count),
    Third = called(Workers, Index),
    1 = trace:function(Session, Function, restart, [call_count]),
    Fourth = called(Workers, Index),
    erlang:yield(),
    bounds(Session, Function, Workers, Index, Third, Fourth),
    rand:uniform(2) =:= 1 andalso
        begin
            1 = trace:function(Session, Function, false, [call_count]),
            {call_count, false} = trace:info(Session, Function, call_count)
        end,
    3.

bounds(Session, Function, Workers, Index, First, Second) ->
    Third = called(Workers, Index),
    {call_count, Counted} = trace:info(Session, Function, call_count),
    Fourth = called(Workers, Index),
    Least = Third - Second - ?WORKERS,
    Most = Fourth - First + ?WORKERS,
    (Least =< Counted andalso Counted =< Most)
        orelse wrong({bounds, Function, Counted, Least, Most}).

wrong(What) ->
    io:format("wrong: ~p~n", [What]),
    halt(1).
