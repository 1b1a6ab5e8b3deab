-module(text).
-export([names_of_funs/0, match_spec_errors/0, slots/0, digests/0, macs/0, digest_errors/0, patterns_exported/0, pattern_errors/0]).
-compile(nowarn_deprecated_catch).
id(X) -> X.
class(F) -> try F() catch C:R -> {C, R} end.

names_of_funs() ->
    Funs = [erlang:make_fun(id(M), id(F), 1) || M <- ['å', '日本', 'a b', m], F <- [f, 'é日', '']],
    [[erlang:fun_to_list(F) || F <- Funs],
     [[class(fun() -> lists:flatten(io_lib:format(Format, [T])) end) || Format <- ["~p", "~tp", "~w", "~tw", "~0p", "~0kp", "~0ktp", "~kw"]]
      || F <- lists:sublist(Funs, 5), T <- [F, {ok, F}, [F]]]].

match_spec_errors() ->
    Bodies = [{{'$1', '$2'}}, {'andalso', '$1', '$2'}, {'orelse', '$1', '$2', '$3'}, {'and', '$1', '$2'}, {'or', '$1', '$2', '$3'},
              {element, '$1', '$2'}, ['$1', '$2'], ['$1' | '$2'], #{a => '$1', b => '$2'}, #{'$1' => '$2', '$3' => '$4'},
              {{#{'$1' => '$2'}, '$3'}}, {foo, '$1'}, {'日本', 1}, {{'$1', {foo, 1}, '$2'}}, {'日本', {'å', '$1'}},
              {list_to_atom(lists:duplicate(60, $日)), 1}, {hd, "\x{e5}\x{f6}"}, {const, 1, "\x{e5}"}, {self, '日本'},
              {'and'}, {'$1', "日"}, {1, list_to_atom(lists:duplicate(40, $日))}],
    [begin
         {error, Errors} = erlang:match_spec_test({1}, [{{'_'}, [], [B]}], table),
         [T || {error, T} <- Errors]
     end || B <- Bodies] ++
    [erlang:match_spec_test([1], [{['_'], [], [B]}], trace) || B <- [{enable_trace, '$1', '$2'}, {trace, '$1', '$2', '$3'}, {set_seq_token, '$1', '$2'}, {display, '$1'}]].

slots() ->
    [begin
         T = ets:new(t, [Kind | Options]),
         [ets:insert(T, {I}) || I <- lists:seq(1, N)],
         {Kind, Options, N, [class(fun() -> ets:slot(T, S) end) || S <- [0, 1, 2, 3, 4, 5, 100, -1, 1 bsl 70, a]]}
     end || Kind <- [ordered_set],
            Options <- [[], [{write_concurrency, true}], [{write_concurrency, auto}], [{write_concurrency, true}, {decentralized_counters, false}]],
            N <- [0, 1, 3]].

names() ->
    [md4, md5, ripemd160, sha, sha224, sha256, sha384, sha512, sha512_224, sha512_256, sha3_224, sha3_256, sha3_384, sha3_512,
     shake128, shake256, blake2b, blake2s, sm3].

%% What a digest of any length has as its size is a matter of OpenSSL's version.
hash_info(N) when N =:= shake128; N =:= shake256 -> maps:remove(size, crypto:hash_info(N));
hash_info(N) -> crypto:hash_info(N).

digests() ->
    {crypto:supports(hashs) -- names(), names() -- crypto:supports(hashs),
     [{N, hash_info(N), [crypto:hash(N, D) || D <- [<<>>, <<"abc">>, [<<"a">>, "bc"], binary:copy(<<"abc">>, 1000)]],
       begin
           S0 = crypto:hash_init(N), S1 = crypto:hash_update(S0, <<"ab">>), S2 = crypto:hash_update(S1, "c"),
           {crypto:hash_final(S2), crypto:hash_final(S1) =:= crypto:hash(N, "ab"), crypto:hash_final(S2) =:= crypto:hash(N, "abc")}
       end} || N <- names()],
     [crypto:hash_xof(N, "abc", L) || N <- [shake128, shake256], L <- [128, 256, 1000, 0, 8, 12]],
     [crypto:hash_equals(crypto:hash(N, "a"), crypto:hash(N, B)) || N <- [sha3_256, blake2b], B <- ["a", "b"]]}.

macs() ->
    [{N, [crypto:mac(hmac, N, K, "what do ya want for nothing?") || K <- [<<>>, "Jefe", binary:copy(<<16#aa>>, 300)]],
      crypto:macN(hmac, N, "key", "data", 10),
      begin
          S = crypto:mac_init(hmac, N, "key"), S1 = crypto:mac_update(S, "da"), S2 = crypto:mac_update(S1, "ta"),
          crypto:mac_final(S2) =:= crypto:mac(hmac, N, "key", "data")
      end} || N <- names() -- [shake128, shake256]].

error_of(F) -> try F() of _ -> none catch error:{Id, {_, _}, Text} -> {Id, Text}; error:{Id, _, Text} -> {Id, Text}; C:R -> {C, R} end.

digest_errors() ->
    [[error_of(fun() -> F(N) end) || N <- [foo, 1, [], "sha"]] ||
        F <- [fun(N) -> crypto:hash(N, "a") end, fun(N) -> crypto:hash_info(N) end, fun crypto:hash_init/1, fun(N) -> crypto:hash_xof(N, "a", 8) end,
              fun(N) -> crypto:mac(hmac, N, "k", "d") end, fun(N) -> crypto:mac(N, sha, "k", "d") end, fun(N) -> crypto:mac_init(hmac, N, "k") end]] ++
    [error_of(F) || F <- [fun() -> crypto:hash_xof(shake128, "a", -1) end, fun() -> crypto:hash_xof(shake128, "a", a) end, fun() -> crypto:hash_xof(sha256, "a", 128) end,
                          fun() -> crypto:mac(hmac, sha, 1, "d") end, fun() -> crypto:mac(hmac, sha, "k", 1) end, fun() -> crypto:mac(hmac, shake128, "k", "d") end,
                          fun() -> crypto:hash_final(make_ref()) end, fun() -> crypto:mac_update(make_ref(), "a") end, fun() -> crypto:mac_final(1) end]].

patterns_exported() ->
    [begin
         {ok, E = {re_exported_pattern, Header, Source, Options, Code}} = re:compile(P, [export | O]),
         I = re:import(E),
         {byte_size(Header), Source, Options, byte_size(Code) > 0, erlang:crc32(Code) =:= binary:decode_unsigned(binary:part(Header, 8, 4)),
          setelement(5, I, ref), [re:run(S, I, [{capture, all, binary}]) || S <- ["xaby", "日本", "åab"]], re:inspect(I, namelist),
          [class(fun() -> setelement(5, re:import(X), ref) end) ||
              X <- [setelement(5, E, <<>>), setelement(5, E, <<Code/binary, 0>>), setelement(2, E, <<(binary:part(Header, 0, 12))/binary, 0, 0>>),
                    setelement(2, E, <<>>), setelement(3, setelement(2, E, <<(binary:part(Header, 0, 12))/binary, 9, 0>>), <<"ab">>), setelement(1, E, x), {}, foo]]}
     end || {P, O} <- [{"a(b)", []}, {"(?<n>a)|(?<m>日)", [unicode]}, {"A", [caseless]}, {"", []}, {"a\\R", [bsr_anycrlf, {newline, anycrlf}]}]].

%% Texts and places of errors in patterns.
pattern_errors() ->
    [{P, O, case re:compile(P, O) of {error, E} -> E; {ok, _} -> ok end} || {P, O} <- [case X of {_, _} -> X; _ -> {X, []} end || X <- malformed()]].

malformed() ->
    [
     "ab$*", "(a", "a)", "(?z)", "\\N{U+41}", "*a", "(?<n>a)\\2", "a\\", "\\c", "[b-a]", "[a", "[[:foo:]]", "[a-\\d]", "a**b", "a{2,1}",
     "a{99999}", "x{1,2}{3}*",  "(?<a>x)(?<a>y)", "(?P<a", "(?P=b)", "(?P>b)", "(?&b)", "\\g{b}", "\\k<b>", "\\k{b", "\\k'b", "\\k", "\\g",
     "(?#abc", "(?", "(?<", "(?<=a+)b", "(?<=(a|bb)c*)", "(?<!a*)", "(?(1)a|b|c)", "(?(x", "(?(1a", "(?(DEFINE)a|b)", "(?(?a)b)",
     "(?(R1)a|b",  "(?1)", "(?+1)", "(?-1)", "(?R", "(?+0)", "(?0", "\\p{Foo}", "\\p{Lu", "\\pZz", "\\p", "\\P{^L", "\\x{110000}",
     "\\x{zz}", "\\x{", "\\x{}", "\\o{9}", "\\o{", "\\o{}", "\\o9", "\\777", "\\x{d800}",  {"\\x{d800}",[unicode]},
     {"\\x{110000}",[unicode]}, "\\u", "\\L", "\\l", "\\N{name}", "\\N{", "\\Nx{3}", "[\\N]", "[\\R]", "[\\X]", "[\\B]", "[a-\\R]",
     "\\Ea\\", "\\Qab", "(*FOO)a", "(*ACCEPT:x)", "(*MARK)", "(*MARK:", "(*F", "(*UTF8", "a(*UTF)b", "(*LIMIT_MATCH=x)a",
     "(*LIMIT_MATCH=99999999999)a", "(?C256)", "(?C", "(?C1", "(?Cx)", "(?C'ab", "(?i", "(?i-", "(?-i-s)", "(?^-i)", "(?^",
     "(?|(a)|(?<n>b))(?<n>", "(?<1a>x)",
     "(?<abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz>x)",
     "(?<>x)", "(?''x)", "(?P", "(?Px", "(?P<>", "(?P=", "(?P>", "(?P=a", "(?P>a", "[:alpha:]", "[[.x.]]", "[[=x=]]", "[:a", "[[:alpha:",
     "\\8", "\\81", "(a)\\9x", "\\g{-2}", "\\g{0}", "\\g-1", "\\g{+1}", "\\g{a", "\\g<", "\\g<a", "\\g'", "\\g<a>", "\\g<1>", "\\g<-1>",
     "a\\g{99999999999}", "(?99999999999)", "(?(99999999)a)", "(?(<n)a)", "(?('n)a)", "(?(n)a)", "(?(<n>)a)", "(?(R&n)a)", "(?(R99)a|b)",
     "(?(0)a)", "(?(VERSION>=10)a", "(?(VERSION>=x)a)", "(?(VERSION", "(?(+1)a)", "(?(-1)a)", "\\c\x{7f}x", "\\c\x{e9}", "\\cé", ")", "x)y",
     "a|)", "((a)", "(a))", "[]", "[^]", "[", "[^", "[\\", "[a\\", "[\\d-z]", "[a-[:digit:]]", "[[:^foo:]]", "+", "?", "{1}x", "x{1}{2}{3}",
     "a???", "a+++", "(?:*a)", "(|*a)", "(*a", "(*positive_lookahead:a", "(*pla:a", "(*foo:a)", "(*asr:a", "(*napla", "a\\Kb(?=\\K)",
     "(?<=\\K)", "(?=a\\Kb)", "\\C", "(?<=\\C)", "(?<=(?1))(a+)", "(?<=a{70000})", "(?<=(a)\\1)", "(?<=\\X)", "(?<=\\R)", "(?[a])", "(?[",
     "(?[[a]", "(?[a+])", "\\Aa\\z\\", "(?x # abc", "(?xx)(", "(?x)a #b)", "(?x: a #", "((((((((((", "(?>a", "(?:a", "(?=a", "(?!a",
     "(?<=a", "(?<!a", "(?'a", "(?<a", "(?<a>", "(?<a b>x)", "(?1x)", "(?-x1)", "(?P=1a)", "\\k<1>", "\\k<>", "\\k{}", "(?&)", "(?&1)",
     "(?P>)", "(?P>1)", "(?@)", "(?;a)", "(?aX)", "(?aD)", "(?r)", "(?J", "(?n)(a)\\1", "(?n", "(?U", "(?_)", "a{1,99999}", "a{65536}",
     "a{,65536}", "(?:a{60000}){60000}", "\\Q\\E*", "^*", "\\b+", "\\B{2}", "(?=a)*", "(?<=a)+", "(?i)*", "(?C1)*", "(*ACCEPT)+",
     "(*COMMIT)*", "$+", "\\A?", "\\z*", "\\Z*", "\\G+", "\\K*", {"(?<=a+)",[unicode]}, {"\xff",[]}, {<<255>>,[unicode]}, {<<"ab",192,
     "c">>,[unicode]}, {<<"a",226,130>>,[unicode]}, {"(*UTF)a",[never_utf]}, {"é(",[unicode]}, {"éé[b-a]",[unicode]}, {"日本)",[unicode]},
     {"日本\\x{d800}",[unicode]}, {"日*+*",[unicode]}, {"(?<日",[unicode]}, {"(?P=日)",[unicode]}, {"# a\n( # b",[extended]},
     {"a # )\n)",[extended]}, {"* # x",[extended]}, "\\y", "a\\yb", {"\\日",[unicode]}, "\\g{1", "\\g<1", "\\g'1", "\\g{+1", "\\g{ 1 ",
     "\\g{1 2}", "(\\g1", "\\g{x1", "\\g<-1x>", "\\g{-}", "(?(2)a)", "(?(12)a)", "(?+", "(?+x)", "(?-", "(?-+1)", "(?R1)", "(?Ra)", "(*foo",
     "(*foo a)", "(*foo-b)", "(*:", "(*sr:a", "(*atomic", "(?(VERSION=1", "(?(VERSION>=1.", "(?(VERSION>=10.4x)a)", "(?(VERSIONx)a)",
     "(?(?C1)x)", "(?(?C1", "(?(\\Qa\\E)b)", "(?(x)\\Q", "[[:alpha:]-z]", "[z-\\d]", "[\\w-a]", "[:alpha:", "[.a.]", "[=a=]b", "[[:foo:]a",
     "a[[:foo:]]", "a[[.b.]]", "\\N{U+", "\\N{U+ 41}", "\\N{U+4", "\\N{U+zz}", "[\\N{U+41}]", "[\\N{2}]", "\\N{2}", "\\N{2", "\\N{foo}",
     "\\x{41", "\\x{4z}", "\\x{ 41 z", "\\o{7", "\\o{78}", {"\\o{7日}",[unicode]}, {"\\x{4日}",[unicode]}, {"\\c日",[unicode]},
     {"(?日)",[unicode]}, {"[b-日-a]",[unicode]}, {"[日-b]",[unicode]}, {"\\x{dfff}z",[unicode]}, {"\\o{154000}",[unicode]}, "(?&a", "(?P>",
     "(?P>1a", "(?&a b)", "(?P>ab", "((?&a", "(?P=ab", "\\k{ab", "(?<ab", "(?'ab", "(?(<ab", "(?('ab'", "(?(ab", "(?1", "(?12", "(?+1",
     "(?-1", "(?Cx", "(?C'a", "(?C1x)", "(?C99999)", "(?i-i-i)", "(?x-", "(?J-J", "(?^^)", "(?^x", "\\Q", "\\E", "\\1", "\\11", "\\01",
     "\\99", "(a)\\3(b)", "\\g3", "\\g-3", "\\g{3}", "\\g{name}", "\\g<3>", "\\g'3'", "\\g<+3>", "\\g<-3>", "\\g<n>", "(?3)", "(?(3)a)",
     "(?(+3)a)", "(?(-3)a)", "(?(<n>)a)", "(?(R3)a)", "(?P=n)", "\\k<n>", "(*scs:(1)a)", "(*scan_substring:(1", "(*MARK:a", "(*THEN",
     "(*COMMIT:", "(*PRUNE:a)(", "(*SKIP:x)*", "(*ACCEPT)*", "(*NO_JIT)(", "(*CRLF)a)", "(*UTF)(", "(*UCP)\\", "(*LIMIT_DEPTH=1)(",
     "(*LIMIT_DEPTH=", "(*LIMIT_HEAP=a)"].
