%% A JSON service loop: requests come in as JSON text, are decoded, answered from a small
%% store, and encoded again.
%%
%% Shows: which part of a service takes the time (decoding, the answer, encoding), and binaries that
%% are made and dropped for each request.
-module(json_service).
-export([main/0, main/1]).

main() -> main(8000).

%% From the command line the argument is a list of strings.
main([Count]) -> main(list_to_integer(Count));
main([]) -> main();
main(Count) when is_integer(Count) ->
    Server = spawn_link(fun() -> serve(#{}) end),
    Bytes = requests(Server, 1, Count, 0),
    stop(Server),
    io:format("~b requests, ~b bytes of answers~n", [Count, Bytes]).

requests(_Server, N, Count, Bytes) when N > Count ->
    Bytes;
requests(Server, N, Count, Bytes) ->
    Server ! {request, self(), iolist_to_binary(json:encode(request(N)))},
    receive
        {answer, Answer} -> requests(Server, N + 1, Count, Bytes + byte_size(Answer))
    end.

request(N) ->
    #{<<"id">> => N,
      <<"user">> => <<"user", (integer_to_binary(N rem 50))/binary>>,
      <<"items">> => [#{<<"name">> => <<"item">>, <<"price">> => I * 1.25, <<"count">> => I}
                      || I <- lists:seq(1, 1 + N rem 12)]}.

serve(Store) ->
    receive
        {request, From, Text} ->
            {Answer, Store1} = handle(json:decode(Text), Store),
            From ! {answer, iolist_to_binary(json:encode(Answer))},
            serve(Store1);
        stop ->
            ok
    end.

handle(#{<<"id">> := Id, <<"user">> := User, <<"items">> := Items}, Store) ->
    Total = total(Items),
    {Orders, Sum} = maps:get(User, Store, {0, 0.0}),
    Answer = #{<<"id">> => Id, <<"total">> => Total, <<"orders">> => Orders + 1,
               <<"names">> => [Name || #{<<"name">> := Name} <- Items]},
    {Answer, Store#{User => {Orders + 1, Sum + Total}}}.

total(Items) ->
    lists:sum([Price * Count || #{<<"price">> := Price, <<"count">> := Count} <- Items]).

stop(Server) ->
    Ref = monitor(process, Server),
    Server ! stop,
    receive {'DOWN', Ref, process, Server, _} -> ok end.
