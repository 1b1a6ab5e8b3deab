%% Native functions that OTP's libraries call: drivers and NIFs that ERTS links in.
-module(natives).
-export([ram_files/0, ram_file_errors/0, ram_file_ports/0, linked_in_driver/0, tar_of_a_binary/0, table_in_ram/0,
         zstd_one_time/0, zstd_streams/0, zstd_parameters/0, zstd_dictionaries/0, zstd_headers/0, zstd_errors/0,
         zstd_owners/0, des_cbc/0, encrypted_debug_info/0, written_references/0, table_items/0, emulator_items/0]).

class(F) -> try F() catch C:R -> {C, R} end.

%% A file that is written, read and cut at many places.
ram_files() ->
    [begin
         {ok, F} = file:open(Data, [ram | Modes]),
         Calls = [class(fun() -> Call(F) end) || Call <- ram_calls()],
         [file:close(F) | Calls]
     end || Data <- ["", [<<"he">>, $l | <<"lo">>]],
            Modes <- [[], [read], [write], [read, write], [binary], [binary, read, write]]].

ram_calls() ->
    [fun(F) -> file:read(F, 2) end, fun(F) -> file:read(F, 0) end, fun(F) -> file:pread(F, 1, 100) end,
     fun(F) -> file:pread(F, [{0, 1}, {9, 1}, {2, 0}]) end, fun(F) -> file:write(F, "xyz") end,
     fun(F) -> file:pwrite(F, 7, <<"end">>) end, fun(F) -> file:pwrite(F, [{0, "a"}, {20, "b"}]) end,
     fun(F) -> file:position(F, {cur, -2}) end, fun(F) -> file:position(F, {eof, 3}) end, fun ram_file:get_size/1,
     fun(F) -> file:position(F, bof) end, fun(F) -> file:position(F, {bof, 12}) end, fun file:truncate/1,
     fun ram_file:get_file/1, fun(F) -> file:position(F, {eof, 2}) end, fun file:truncate/1, fun ram_file:get_file/1,
     fun file:sync/1, fun file:datasync/1, fun(F) -> file:advise(F, 0, 0, random) end,
     fun(F) -> file:allocate(F, 0, 10) end, fun(F) -> file:read(F, 1) end,
     fun(F) -> ram_file:ipread_s32bu_p32bu(F, 0, 10) end].

ram_file_errors() ->
    {ok, F} = file:open("abc", [ram, read, write]),
    [file:open(none, [ram]), file:open([256], [ram]), file:open("a", [ram, append]),
     [class(fun() -> Call(F) end)
      || Call <- [fun(G) -> file:position(G, {cur, -1}) end, fun(G) -> file:position(G, 1 bsl 31) end,
                  fun(G) -> file:position(G, {eof, -4}) end, fun(G) -> file:pread(G, -1, 1) end,
                  fun(G) -> file:pwrite(G, -1, "x") end, fun(G) -> file:pwrite(G, [{0, "x"}, {-1, "y"}]) end,
                  fun(G) -> file:read(G, 1 bsl 31) end, fun(G) -> file:write(G, [256]) end,
                  fun(G) -> file:write(G, none) end, fun(G) -> file:advise(G, 0, 0, none) end, fun file:close/1,
                  fun(G) -> file:read(G, 1) end, fun file:close/1]]].

%% What the port itself says.
ram_file_ports() ->
    [begin
         Port = open_port(Name, Options),
         true = port_command(Port, <<1, 0:32/signed, "abc">>),
         true = port_command(Port, <<1, 3:32, "abc">>),
         [true = port_command(Port, Command)
          || Command <- [<<30>>, <<2, 0:32>>, <<2, 2:32>>, <<2, -1:32>>, <<3, 0:32, 7:32>>, <<17, 0:32, 9:32>>, <<9>>, <<37>>]],
         Info = [erlang:port_info(Port, Item) || Item <- [name, input, output, os_pid, queue_size]],
         {[receive {Port, {data, Data}} -> Data end || _ <- lists:seq(1, 10)], Info, port_close(Port),
          receive {Port, Other} -> Other after 0 -> none end}
     end || Name <- [{spawn, "ram_file_drv"}, {spawn, "ram_file_drv more"}, {spawn_driver, "ram_file_drv"}],
            Options <- [[], [binary]]].

linked_in_driver() ->
    Driver = "ram_file_drv",
    {ok, Loaded} = erl_ddll:loaded_drivers(),
    [lists:member(Driver, Loaded), erl_ddll:load_driver("/tmp", Driver), erl_ddll:unload_driver(Driver),
     erl_ddll:try_load("/tmp", Driver, []), erl_ddll:try_unload(Driver, [{monitor, pending}]), erl_ddll:info(Driver),
     class(fun() -> erl_ddll:info(Driver, no_item) end), class(fun() -> open_port({spawn_driver, "ram_file_drv_"}, []) end)].

tar_of_a_binary() ->
    Files = [{"a", <<"first">>}, {"d/b", binary:copy(<<"second">>, 1000)}],
    Name = "natives_" ++ os:getpid() ++ ".tar",
    Modes = [[], [compressed]],
    Tars = [begin ok = erl_tar:create(Name, Files, Options), {ok, Tar} = file:read_file(Name), Tar end || Options <- Modes],
    ok = file:delete(Name),
    {ok, Plain} = erl_tar:extract({binary, hd(Tars)}, [memory]),
    {ok, Packed} = erl_tar:extract({binary, lists:last(Tars)}, [memory, compressed]),
    [Plain =:= Files, Packed =:= Files, erl_tar:table({binary, hd(Tars)}), erl_tar:extract({binary, <<"no tar">>}, [memory]),
     erl_tar:extract({binary, binary:part(hd(Tars), 0, 700)}, [memory])].

table_in_ram() ->
    Name = "natives_" ++ os:getpid() ++ ".dets",
    {ok, T} = dets:open_file(make_ref(), [{file, Name}, {ram_file, true}]),
    ok = dets:insert(T, [{N, N * N} || N <- lists:seq(1, 1000)]),
    Inside = [dets:info(T, ram_file), dets:info(T, size), dets:lookup(T, 31), filelib:is_regular(Name)],
    ok = dets:close(T),
    {ok, Again} = dets:open_file(Name),
    Outside = [dets:info(Again, size), dets:lookup(Again, 1000), dets:info(Again, ram_file)],
    ok = dets:close(Again),
    ok = file:delete(Name),
    {Inside, Outside}.

text() -> << <<(N * N rem 251)>> || N <- lists:seq(1, 400_000) >>.

zstd_one_time() ->
    [begin
         Packed = iolist_to_binary(zstd:compress(Data, Options)),
         {byte_size(Packed), erlang:md5(Packed), iolist_to_binary(zstd:decompress(Packed)) =:= iolist_to_binary(Data)}
     end || Data <- ["", "abc", [[], <<>>], text(), [text(), <<>>, "x", text()], binary:copy(<<"a">>, 1_000_000)],
            Options <- [#{}, #{compressionLevel => 19}, #{compressionLevel => -5}, #{checksumFlag => true},
                        #{contentSizeFlag => false}, #{strategy => btultra2, windowLog => 20},
                        #{enableLongDistanceMatching => true, ldmHashLog => 12}]].

zstd_streams() ->
    {ok, C} = zstd:context(compress),
    {ok, D} = zstd:context(decompress),
    Steps = [zstd:stream(C, "hello"), zstd:flush(C), zstd:stream(C, []), zstd:stream(C, [<<"a">>, "b", <<"c">>]),
             zstd:finish(C, "end"), zstd:finish(C, []), zstd:stream(C, "lost"), zstd:reset(C), zstd:finish(C, "kept")],
    {done, Frame} = lists:last(Steps),
    {continue, First} = zstd:stream(C, text()),
    {done, Last} = zstd:finish(C, text()),
    Whole = iolist_to_binary([First, Last]),
    Expand = [zstd:finish(D, Frame), expand(D, Whole, 1000, []), expand(D, Whole, 100_000, []), zstd:finish(D, []),
              zstd:stream(D, binary:part(Whole, 0, 3)), zstd:reset(D), zstd:finish(D, Frame)],
    [Steps, byte_size(Whole), erlang:md5(Whole), Expand, zstd:close(C), zstd:close(D)].

%% Expands in pieces: how often output came, and what it is.
expand(D, Packed, Bytes, Out) when byte_size(Packed) =< Bytes ->
    {done, Last} = zstd:finish(D, Packed),
    All = lists:reverse(Out, Last),
    {length(All), erlang:md5(All)};
expand(D, Packed, Bytes, Out) ->
    <<Piece:Bytes/binary, Rest/binary>> = Packed,
    case zstd:stream(D, Piece) of
        {continue, Left, Made} -> expand(D, <<Left/binary, Rest/binary>>, Bytes, [Made | Out]);
        {continue, Made} -> expand(D, Rest, Bytes, [Made | Out])
    end.

zstd_parameters() ->
    {ok, C} = zstd:context(compress),
    {ok, D} = zstd:context(decompress),
    Keys = [compressionLevel, windowLog, hashLog, chainLog, searchLog, minMatch, targetLength, strategy, targetCBlockSize,
            enableLongDistanceMatching, ldmHashLog, ldmMinMatch, ldmBucketSizeLog, ldmHashRateLog, contentSizeFlag,
            checksumFlag, dictIDFlag, windowLogMax, pledgedSrcSize, none, "text"],
    Values = [0, 5, 99, -3, 1 bsl 40, true, default, btultra2, 1.0],
    [[{Key, class(fun() -> zstd:get_parameter(Context, Key) end),
       [{class(fun() -> zstd:set_parameter(Context, Key, Value) end),
         class(fun() -> zstd:get_parameter(Context, Key) end)} || Value <- Values]} || Key <- Keys]
     || Context <- [C, D]].

zstd_dictionaries() ->
    Text = <<"what is said again and again, and then once more">>,
    Dictionary = binary:copy(<<"again and then once more what is said ">>, 20),
    Proper = <<16#EC30A437:32/little, 77:32/little, (binary:copy(<<"not the tables of a dictionary">>, 20))/binary>>,
    {ok, C} = zstd:dict(compress, Dictionary),
    {ok, Level} = zstd:dict(compress, Dictionary, #{compressionLevel => 10}),
    {ok, D} = zstd:dict(decompress, Dictionary),
    Frames = [iolist_to_binary(zstd:compress(Text, #{dictionary => With})) || With <- [C, Level, Dictionary]],
    [[{byte_size(Frame), [class(fun() -> iolist_to_binary(zstd:decompress(Frame, #{dictionary => With})) end)
                          || With <- [D, Dictionary]], class(fun() -> zstd:decompress(Frame) end)}
      || Frame <- Frames],
     [zstd:get_dict_id(Of) || Of <- [C, Level, D, Dictionary, Proper, hd(Frames), <<>>]],
     class(fun() -> zstd:dict(compress, Proper) end), class(fun() -> zstd:dict(decompress, Proper) end),
     class(fun() -> zstd:dict(compress, "list") end), class(fun() -> zstd:dict(decompress, none) end),
     class(fun() -> zstd:compress(Text, #{dictionary => Proper}) end),
     class(fun() -> zstd:decompress(hd(Frames), #{dictionary => Proper}) end)].

zstd_headers() ->
    {ok, C} = zstd:context(compress, #{checksumFlag => true, windowLog => 15}),
    {continue, First} = zstd:stream(C, text()),
    Frames = [zstd:compress("abc"), zstd:compress([]), zstd:compress(text()), First,
              <<16#184D2A53:32/little, 7:32/little, "skipped">>, <<"no frame">>, "no", [300]],
    [class(fun() -> zstd:get_frame_header(Frame) end) || Frame <- Frames].

zstd_errors() ->
    Packed = iolist_to_binary(zstd:compress(text(), #{checksumFlag => true})),
    Half = byte_size(Packed) div 2,
    Damaged = <<(binary:part(Packed, 0, byte_size(Packed) - 1))/binary, (binary:last(Packed) bxor 1)>>,
    {ok, C} = zstd:context(compress),
    {ok, D} = zstd:context(decompress),
    {continue, _} = zstd:stream(C, "begun"),
    Calls = [fun() -> zstd:decompress("no frame") end, fun() -> zstd:decompress(Damaged) end,
             fun() -> zstd:compress(none) end, fun() -> zstd:compress("a", #{none => 1}) end,
             fun() -> zstd:compress("a", #{compressionLevel => none}) end, fun() -> zstd:stream(C, [300]) end,
             fun() -> zstd:stream(C, none) end, fun() -> zstd:stream(C, <<1:1>>) end, fun() -> element(1, class(fun() -> zstd:flush(D) end)) end,
             fun() -> zstd:set_parameter(C, windowLog, 12) end, fun() -> zstd:compress("a", C) end,
             fun() -> zstd:close(C) end, fun() -> zstd:close(C) end, fun() -> zstd:stream(C, "a") end,
             fun() -> zstd:reset(C) end, fun() -> zstd:stream({compress, make_ref()}, "a") end,
             fun() -> zstd:stream({compress, element(2, D)}, "a") end, fun() -> zstd:context(none) end],
    [byte_size(iolist_to_binary(zstd:decompress(binary:part(Packed, 0, Half)))) < 400_000 | [class(Call) || Call <- Calls]].

zstd_owners() ->
    {ok, C} = zstd:context(compress),
    Me = self(),
    Calls = [fun() -> zstd:stream(C, "a") end, fun() -> zstd:reset(C) end, fun() -> zstd:close(C) end],
    spawn_link(fun() -> Me ! {there, [class(Call) || Call <- Calls]} end),
    receive {there, Answers} -> {Answers, zstd:finish(C, "a")} end.

des_cbc() ->
    Key = <<16#0123456789abcdef23456789abcdef01456789abcdef0123:192>>,
    IV = <<16#f69f2445df4f9b17:64>>,
    Text = <<"The qufck brown fox jump">>,
    Secret = crypto:crypto_one_time(des_ede3_cbc, Key, IV, Text, true),
    State = crypto:crypto_init(des_ede3_cbc, Key, IV, [{encrypt, true}, {padding, pkcs_padding}]),
    [Secret, crypto:crypto_one_time(des_ede3_cbc, Key, IV, Secret, false), crypto:cipher_info(des_ede3_cbc),
     crypto:crypto_update(State, <<"abc">>), crypto:crypto_update(State, <<"defgh">>), crypto:crypto_update(State, <<"i">>),
     crypto:crypto_final(State), crypto:crypto_get_data(State), lists:member(des_ede3_cbc, crypto:supports(ciphers)),
     [class(fun() -> crypto:crypto_one_time(des_ede3_cbc, K, I, Text, true) end) =:= ok || {K, I} <- [{<<1:128>>, IV}, {Key, <<1:128>>}]]].

%% A module whose abstract code is encrypted, and who can read it.
encrypted_debug_info() ->
    Key = "a key that nobody guesses",
    Forms = [{attribute, 1, module, secret}, {attribute, 2, export, [{f, 0}]}, {function, 3, f, 0, [{clause, 3, [], [], [{atom, 3, ok}]}]}],
    {ok, secret, Beam} = compile:forms(Forms, [debug_info, {debug_info_key, Key}]),
    Read = fun() -> beam_lib:chunks(Beam, [abstract_code]) end,
    {error, beam_lib, Without} = Read(),
    With = [begin
                ok = beam_lib:crypto_key_fun(fun(init) -> ok; ({debug_info, des3_cbc, secret, _}) -> K; (clear) -> ok end),
                Answer = Read(),
                {ok, _} = beam_lib:clear_crypto_key_fun(),
                case Answer of
                    {ok, {secret, [{abstract_code, {raw_abstract_v1, Fs}}]}} -> Fs;
                    {error, beam_lib, Reason} -> element(1, Reason)
                end
            end || K <- [Key, "another key"]],
    {module, secret} = code:load_binary(secret, "secret", Beam),
    Called = secret:f(),
    code:delete(secret),
    code:purge(secret),
    [element(1, Without), With, Called].

%% A reference that comes back of its text is the one that it was.
written_references() ->
    T = ets:new(t, []),
    A = atomics:new(2, []),
    Back = fun(Ref) -> list_to_ref(lists:flatten(io_lib:write(Ref))) end,
    ok = atomics:put(Back(A), 2, 7),
    ets:insert(Back(T), {a}),
    [Back(T) =:= T, ets:tab2list(T), atomics:get(A, 2), ets:info(Back(T), size), ets:delete(Back(T)), ets:info(T)].

table_items() ->
    Items = [binary, compressed, decentralized_counters, fixed, heir, keypos, memory, name, named_table, node, protection,
             safe_fixed, size, stats, type, write_concurrency, read_concurrency, none, "x", 1, {size}],
    Tables = [ets:new(a, [set]), ets:new(b, [ordered_set, named_table]), ets:new(c, [bag, compressed, {write_concurrency, auto}]),
              ets:new(d, [ordered_set, public, {write_concurrency, true}]), gone, make_ref(), 1, "t"],
    [ets:insert(T, [{1, 2}, {2, a}, {3, "text"}]) || T <- lists:sublist(Tables, 4)],
    [{Item, [class(fun() -> ets:info(T, Item) end) || T <- Tables]} || Item <- Items].

emulator_items() ->
    Names = fun(Item) -> [element(1, Row) || Row <- erlang:system_info(Item)] end,
    Arguments = erlang:system_info(emu_args),
    [lists:all(fun io_lib:printable_list/1, Arguments), lists:member("-noshell", Arguments), filename:basename(hd(Arguments)),
     [lists:member(Area, Names(allocated_areas)) || Area <- [atom_space, loaded_code, process_table, port_table]],
     proplists:get_keys(lists:last(erlang:system_info(check_io)))].
