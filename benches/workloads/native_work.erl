%% The workloads of `cargo xtask compare --native`. Each one prints a line "RESULT Value Digest": nanoseconds for a call,
%% without the loop around it, and what came out, which must not depend on the runtime.
%%
%%   erl -noshell -run native_work main NAME
-module(native_work).
-export([main/1, local/1, enabled/3, trace/5]).
-nifs([nothing/1, list/1, map/1, inspect/1, dirty/1, send_from_thread/1, enabled/3, trace/5]).
-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).

main([Name]) ->
    {Value, Outcome} = measure(Name),
    io:format("RESULT ~b ~b~n", [Value, erlang:phash2(Outcome)]),
    erlang:halt(0).

%% Nanoseconds for a call.
measure("nothing") -> loop(1000000, fun nothing_loop/2, 1);
measure("list") -> loop(200000, fun list_loop/2, 1);
measure("map") -> loop(200000, fun map_loop/2, 1);
measure("inspect") -> loop(1000000, fun inspect_loop/2, binary:copy(<<"x">>, 100));
measure("dirty") -> loop(20000, fun dirty_loop/2, 1);
measure("sends") -> sends(200000);
measure("discard") -> discard(300000);
measure("jiffy_1M") -> loop(20, fun jiffy_loop/2, json(1048576));
measure("hash_64") -> loop(100000, fun hash_loop/2, binary:copy(<<"x">>, 64));
measure("hash_1M") -> loop(100, fun hash_loop/2, binary:copy(<<"x">>, 1048576)).

%% The time of Count calls, less that of as many calls of an empty local function.
loop(Count, Loop, Argument) ->
    Last = Loop(2, Argument),
    Empty = time(fun() -> local_loop(Count, Argument) end),
    Full = time(fun() -> Loop(Count, Argument) end),
    {max(0, Full - Empty) div Count, Last}.

time(Fun) ->
    Begin = erlang:monotonic_time(nanosecond),
    Fun(),
    erlang:monotonic_time(nanosecond) - Begin.

local_loop(1, Argument) -> local(Argument);
local_loop(Left, Argument) -> local(Argument), local_loop(Left - 1, Argument).

local(Argument) -> Argument.

nothing_loop(1, Argument) -> nothing(Argument);
nothing_loop(Left, Argument) -> nothing(Argument), nothing_loop(Left - 1, Argument).

list_loop(1, Argument) -> list(Argument);
list_loop(Left, Argument) -> list(Argument), list_loop(Left - 1, Argument).

map_loop(1, Argument) -> map(Argument);
map_loop(Left, Argument) -> map(Argument), map_loop(Left - 1, Argument).

inspect_loop(1, Argument) -> inspect(Argument);
inspect_loop(Left, Argument) -> inspect(Argument), inspect_loop(Left - 1, Argument).

dirty_loop(1, Argument) -> dirty(Argument);
dirty_loop(Left, Argument) -> dirty(Argument), dirty_loop(Left - 1, Argument).

hash_loop(1, Argument) -> crypto:hash(sha256, Argument);
hash_loop(Left, Argument) -> crypto:hash(sha256, Argument), hash_loop(Left - 1, Argument).

jiffy_loop(1, Argument) -> jiffy:decode(Argument);
jiffy_loop(Left, Argument) -> jiffy:decode(Argument), jiffy_loop(Left - 1, Argument).

%% A list of objects, at least so many bytes long.
json(Size) -> json(1, Size, []).

json(Number, Left, Objects) when Left > 0 ->
    Object = json:encode(#{
        <<"id">> => Number,
        <<"name">> => <<"name ", (integer_to_binary(Number))/binary>>,
        <<"price">> => Number / 4,
        <<"tags">> => [<<"one">>, <<"two \n">>, null, true],
        <<"text">> => binary:copy(<<"text ">>, Number rem 20)
    }),
    json(Number + 1, Left - iolist_size(Object) - 1, [Object | Objects]);
json(_, _, Objects) ->
    iolist_to_binary([$[, lists:join($,, Objects), $]]).

%% From the first message that the thread makes to the last one received.
sends(Count) ->
    ok = send_from_thread(10),
    10 = received(0),
    Time = time(fun() -> ok = send_from_thread(Count), Count = received(0) end),
    {Time div Count, Count}.

received(Count) ->
    receive {n, Count} -> received(Count + 1)
    after 0 -> Count
    end.

%% Traced calls of a local function, less the same calls untraced.
discard(Count) ->
    Plain = time(fun() -> local_loop(Count, 1) end),
    Session = trace:session_create(native, {?MODULE, none}, []),
    1 = trace:function(Session, {?MODULE, local, 1}, true, [local]),
    1 = trace:process(Session, self(), true, [call]),
    Traced = time(fun() -> local_loop(Count, 1) end),
    true = trace:session_destroy(Session),
    {max(0, Traced - Plain) div Count, ok}.

nothing(_) -> erlang:nif_error(not_loaded).
list(_) -> erlang:nif_error(not_loaded).
map(_) -> erlang:nif_error(not_loaded).
inspect(_) -> erlang:nif_error(not_loaded).
dirty(_) -> erlang:nif_error(not_loaded).
send_from_thread(_) -> erlang:nif_error(not_loaded).
enabled(_, _, _) -> erlang:nif_error(not_loaded).
trace(_, _, _, _, _) -> erlang:nif_error(not_loaded).
