%% Processes that max_heap_size kills while handlers stand around: none of their instructions runs afterwards.
-module(killed).

-export([catches/0, catches_and_looks/0, runs_after/0, catches_in_a_list/0, goes_on/0, many/0]).

-define(LIMIT, #{size => 300_000, kill => true, error_logger => false}).

catches() ->
    doomed(fun(Parent) ->
                   try endless(15)
                   catch Class:_ -> Parent ! {caught, Class}
                   end
           end).

%% The caught values are looked into, and sent.
catches_and_looks() ->
    [doomed(fun(Parent) ->
                    try endless(Number)
                    catch Class:Reason:Stack -> Parent ! {caught, Class, Reason, hd(Stack)}
                    end
            end) || Number <- lists:seq(1, 6)].

runs_after() ->
    doomed(fun(Parent) ->
                   try Parent ! {returned, length(endless(15))}
                   after Parent ! in_after
                   end
           end).

catches_in_a_list() ->
    doomed(fun(Parent) -> Parent ! [catch length(endless(Number)) || Number <- [1, 2, 3]] end).

goes_on() ->
    doomed(fun(Parent) ->
                   try length(endless(15)) of
                       Length -> Parent ! {returned, Length}
                   catch
                       error:_ -> Parent ! error;
                       exit:_ -> Parent ! exit;
                       throw:_ -> Parent ! thrown
                   end,
                   Parent ! went_on
           end).

%% The values that its process would catch become the reason of an exit, and a text.
many() ->
    [doomed(fun(_) ->
                    Given = try {ok, endless(Number)}
                            catch Class:Reason:Stack -> {Class, Reason, Stack}
                            end,
                    exit({given, iolist_to_binary(io_lib:format("~0tp", [Given]))})
            end) || Number <- lists:seq(1, 6)].

%% Why a process of so small a heap goes down, and what it has sent.
doomed(Fun) ->
    Parent = self(),
    {Pid, Monitor} = spawn_opt(fun() -> Fun(Parent) end, [monitor, {max_heap_size, ?LIMIT}]),
    Why = receive {'DOWN', Monitor, process, Pid, Reason} -> Reason end,
    {Why, sent()}.

sent() ->
    receive Message -> [Message | sent()]
    after 50 -> []
    end.

%% No bits are taken from the bits that are there, so the list never ends.
endless(Number) ->
    [Mask bor Number || <<_:0/bits>> <= <<"bits">>, Mask <- [1, 2, 3]].
