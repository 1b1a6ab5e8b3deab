%% Libraries of others, in C, C++ and Rust: what each does is printed, and is the same on every emulator.
-module(natives).
-export([main/1]).

main([Rust]) ->
    {ok, _} = application:ensure_all_started(stringprep),
    [begin
         io:format("~n~s~n", [Name]),
         [show(Result) || Result <- at_once(Work)]
     end || {Name, Work} <- libraries(Rust)],
    unload().

libraries(Rust) ->
    [{jiffy, fun jiffy/0}, {fast_xml, fun fast_xml/0}, {fast_yaml, fun fast_yaml/0}, {stringprep, fun stringprep/0},
     {mqtree, fun mqtree/0}, {p1_sha, fun p1_sha/0}, {sqlite3, fun sqlite3/0},
     {word_count_rust, fun() -> rust(Rust) end}].

%% The work by four processes at the same time, which all have the same results.
at_once(Work) ->
    First = Work(),
    Workers = [spawn_monitor(fun() -> First = Work(), exit(done) end) || _ <- lists:seq(1, 4)],
    [receive {'DOWN', Ref, process, Pid, Reason} -> done = Reason end || {Pid, Ref} <- Workers],
    First.

show({large, Term}) ->
    Bytes = term_to_binary(Term, [deterministic]),
    io:format("  ~b bytes, md5 ~s~n", [byte_size(Bytes), binary:encode_hex(erlang:md5(Bytes))]);
show(Term) ->
    io:format("  ~0Ktp~n", [ordered, Term]).

outcome(Fun) ->
    try Fun()
    catch Class:Reason -> {Class, Reason}
    end.

document(Rows) ->
    [#{<<"id">> => Row, <<"name">> => <<"n", (integer_to_binary(Row * 7919))/binary, 196, 159>>,
       <<"score">> => Row / 8, <<"tags">> => [<<"a\"b">>, null, true, -Row], <<"in">> => #{<<"x">> => []}}
     || Row <- lists:seq(1, Rows)].

jiffy() ->
    Large = iolist_to_binary(jiffy:encode(document(9000))),
    Back = jiffy:decode(Large, [return_maps]),
    Back = document(9000),
    [{large, Back},
     byte_size(Large),
     jiffy:decode(<<"{\"a\":[1,2.5e3,\"\\u00e9\\n\",123456789012345678901234567890,null]}">>),
     jiffy:decode(<<"[null, {}] rest">>, [return_trailer, use_nil]),
     iolist_to_binary(jiffy:encode({[{a, 1}, {<<"b">>, [1.0, -0.5, 1.0e300]}]}, [pretty])),
     outcome(fun() -> jiffy:decode(<<"[1, 2">>) end),
     outcome(fun() -> jiffy:decode(<<"[1, x]">>) end),
     outcome(fun() -> jiffy:encode({[{1, self}, {2, make_fun}]}) end),
     outcome(fun() -> jiffy:encode({no, json}) end)].

fast_xml() ->
    Text = <<"<message to='joe@example.org'><body>caf\303\251 &amp; &lt;tea&gt;</body><x xmlns='y:z'/></message>">>,
    Element = fxml_stream:parse_element(Text),
    Stream = fxml_stream:new(self(), infinity),
    Rest = lists:foldl(fun(Piece, S) -> fxml_stream:parse(S, Piece) end, Stream,
                       [<<"<stream id='1'>">>, Text, Text, <<"</b>">>]),
    true = fxml_stream:close(Rest),
    [Element, fxml:element_to_binary(Element), fxml:crypt(<<"<'&\">">>), fxml_stream:parse_element(<<"<a><b></a>">>),
     told()].

%% What streams have sent.
told() ->
    receive
        {'$gen_event', Event} -> [Event | told()]
    after 0 -> []
    end.

fast_yaml() ->
    [fast_yaml:decode(<<"a: 1\nb: [x, 2.5, ~, 'q']\nc:\n  - &id d\n  - *id\n">>),
     fast_yaml:decode(<<"a: 1\nb: [x, yes]\n">>, [plain_as_atom, maps]),
     fast_yaml:decode(<<"a: [1, 2\nb: }">>),
     iolist_to_binary(fast_yaml:encode([[{a, 1}, {<<"b">>, [<<"x y">>, 2.5, atom]}]]))].

stringprep() ->
    Names = [<<"JOE">>, <<"Stra\303\237e">>, <<"\303\204\303\226">>, <<"a b">>, <<"\342\204\253">>, <<0>>],
    [[stringprep:Prepare(Name) || Name <- Names]
     || Prepare <- [tolower, nameprep, nodeprep, resourceprep]].

mqtree() ->
    Tree = mqtree:new(),
    [ok = mqtree:insert(Tree, Topic)
     || Topic <- [<<"a/b">>, <<"a/+">>, <<"a/#">>, <<"b/+/c">>, <<"$SYS/#">>]],
    Found = [lists:sort(mqtree:match(Tree, Topic)) || Topic <- [<<"a/b">>, <<"a/x/y">>, <<"b/1/c">>, <<"c">>]],
    ok = mqtree:delete(Tree, <<"a/+">>),
    [Found, mqtree:size(Tree), mqtree:is_empty(Tree), lists:sort(mqtree:match(Tree, <<"a/b">>))].

p1_sha() ->
    [p1_sha:sha(<<"abc">>), binary:encode_hex(p1_sha:sha512(<<"abc">>)), p1_sha:to_hexlist(<<1, 255>>)].

%% A driver. Each process has a database of its own.
sqlite3() ->
    Name = list_to_atom("db" ++ pid_to_list(self())),
    {ok, _} = sqlite3:open(Name, [in_memory]),
    ok = sqlite3:create_table(Name, people, [{id, integer, [{primary_key, [asc, autoincrement]}]}, {name, text}, {score, double}]),
    Ids = [element(2, sqlite3:write(Name, people, [{name, <<"n", (integer_to_binary(N))/binary>>}, {score, N / 4}]))
           || N <- lists:seq(1, 20)],
    Rows = sqlite3:sql_exec(Name, "select name, score from people where id > ? order by id limit 3", [{1, 9}]),
    Blob = sqlite3:sql_exec(Name, "select x'00ff', null, 1 << 40, 'q'"),
    Wrong = sqlite3:sql_exec(Name, "select nothing from nowhere"),
    ok = sqlite3:close(Name),
    [Ids, Rows, Blob, Wrong].

rust(Library) ->
    case erlang:function_exported(word_count_rust, count, 1) of
        true -> ok;
        false ->
            {module, word_count_rust} = code:ensure_loaded(word_count_rust),
            io:put_chars("  "),
            word_count_rust:main([Library])
    end,
    [word_count_rust:count(<<"b a b  c a b">>), word_count_rust:count_dirty(<<>>),
     outcome(fun() -> word_count_rust:count(no_text) end)].

%% Their code goes, and so do the libraries.
unload() ->
    io:format("~nunload~n"),
    [show({Module, code:delete(Module), code:purge(Module), erlang:module_loaded(Module)})
     || Module <- [jiffy, fxml, fxml_stream, fast_yaml, stringprep, mqtree, p1_sha, word_count_rust]].
