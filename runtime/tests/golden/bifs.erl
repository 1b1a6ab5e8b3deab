%% Writes the tables that runtime/src/bif/golden.rs checks: run under OTP 29 with
%%   escript bifs.erl DIRECTORY
-module(bifs).
-mode(compile).
-export([main/1]).

main([Dir]) ->
    Families = [{arith, arith()}, {binary, binary()}, {binary_search, binary_search()}, {calendar, calendar()}, {compare, compare()}, {convert, convert()},
                {decode_packet, decode_packet()}, {external, external()}, {lists, lists()}, {maps, maps()}, {matchspec, matchspec()}, {re, re()}, {tuples, tuples()},
                {unicode, unicode()}],
    [file:write_file(filename:join(Dir, atom_to_list(F) ++ ".txt"), [line(C) || C <- Calls])
     || {F, Calls} <- Families],
    ok.

line({M, F, Args}) ->
    Outcome = try {ok, apply(M, F, Args)} catch C:R -> {C, R} end,
    [atom_to_list(M), $\s, atom_to_list(F), $\s, hex(Args), $\s, hex(Outcome), $\n].

hex(Term) -> string:lowercase(binary:encode_hex(term_to_binary(Term))).

calls(M, F, ArgLists) -> [{M, F, Args} || Args <- ArgLists].

matchspec() ->
    Objects = [{a, 1, 2.0}, {a, 1}, {b, 2, "xyz"}, {{k, 1}, [1, 2, 3], <<"bin">>}, {1, #{1 => 1, 2 => {x, y}}},
               {1.0, 1 bsl 70}, {}, a, [1, 2], {x, x}, {[1 | 2], {[], {}}}],
    Heads = ['_', '$1', {'_', '$1'}, {'$1', '$1'}, {'$2', '$1'}, {'$1', '_', '$3'}, {'$1', ['$2' | '$3'], '_'}, {'$1', [1, 2, '$2'], '$3'},
             {'_', #{1 => '$1'}}, {'_', #{3 => '$1'}}, {1, '$1'}, {1.0, '$1'}, {{k, '$1'}, '$2', '$3'}, {['$1' | '$2'], '_'}, {'$100', '$30'},
             {a, 1}, {'$01', '$1'}, {'$', '$a'}],
    Plain = [{H, [], [B]} || H <- Heads, B <- ['$_', '$$', '$1', {{'$1', x}}, ok]],
    Guards = [{'>', '$1', 1}, {'<', '$1', 1}, {'=:=', '$1', 1}, {'==', '$1', 1}, {'=/=', '$1', a}, {is_atom, '$1'}, {is_integer, '$1'},
              {is_list, '$_'}, {is_tuple, '$_'}, {'and', true, {is_atom, '$1'}}, {'or', {is_atom, '$1'}, {is_float, '$1'}},
              {'andalso', {is_integer, '$1'}, {'>', '$1', 0}}, {'orelse', {is_atom, '$1'}, {'>', {'+', '$1', 1}, 1}}, {'not', {is_atom, '$1'}},
              {'xor', true, {is_atom, '$1'}}, {'andalso', true}, {'orelse', false}, {'and', a}, {'or', true, a}, {'andalso', a, true}, {'>', {length, '$1'}, 1},
              {'==', {hd, '$1'}, 1}, {'==', {element, 1, '$_'}, a}, {'==', {element, 9, '$_'}, a}, {'==', {size, '$_'}, 2}, {is_map_key, 1, '$1'},
              {'==', {map_get, 1, '$1'}, 1}, {'==', {map_size, '$1'}, 2}, {'==', '$1', {const, '$1'}}, {'==', '$1', {{k, 1}}}, {is_record, '$_', a, 2},
              {'==', {abs, '$1'}, 1}, {'==', {'rem', '$1', 2}, 0}, {is_function, '$1'}, {is_binary, '$1'}, {is_boolean, true}, true, false, a, '$1'],
    Guarded = [{'$1', [], ['$1']} | [{{'$1', '_'}, [G], ['$_']} || G <- Guards] ++ [{{'_', '$1'}, [G], ['$1']} || G <- Guards]
        ++ [{'$1', [G], [{{yes, '$1'}}]} || G <- Guards]],
    Bodies = [[{'+', '$1', 1}], [{hd, '$1'}], [{element, 1, '$_'}], [['$1', '$1' | '$_']], [{{'$1', {const, {a, '$1'}}, [x, {{}}]}}], [#{'$1' => '$_', 1.5 => {const, c}}],
              [#{a => {{b}}}], [{const, '$1'}], [a, b, c], [{'andalso', '$1', true}], [{'and', true, '$1'}], [{'orelse', false, '$1'}], [{{{hd, '$1'}, 2}}],
              [maps:from_list([{I, '$1'} || I <- lists:seq(1, 40)])], [maps:from_list([{I, {{x}}} || I <- lists:seq(1, 40)])], ["string"], [{{}}], [<<"b">>], [1 bsl 70]],
    Built = [{H, [], B} || H <- ['$1', {'$1', '_'}], B <- Bodies],
    Several = [[{{a, '_'}, [], [one]}, {{'_', '_'}, [], [two]}, {'_', [], [three]}], [{{a, '$1', '_'}, [], ['$$']}, {{'$1', '$2'}, [], ['$$']}]],
    Bad = [[], a, [a], [{a, b}], [{'_', [], []}], [{'_', [], a}], [{'_', a, [a]}], [{'_', [a | b], [a]}], [{'_', [], ['$1']}], [{'_', [{foo, 1}], [{bar}, {'$1'}]}], [{'_', [], [{}]}],
           [{'_', [], [{a, {b, c}}]}], [{'_', [{self, 1}], [a]}], [{'_', [], [{const}]}], [{'_', [], [{const, 1, 2}]}], [{'_', [{'and'}], [{'orelse'}]}], [{#{'$1' => 1}, [], [a]}],
           [{#{'_' => 1}, [], [a]}], [{'_', [], [{message, a}]}], [{'_', [], [{return_trace}]}], [{'_', [], [{caller}]}], [{'_', [{set_tcw, 1}], [a]}], [{'_', [], [a]} | b],
           [{'_', [{is_atom, '$1', "a long argument list that is cut somewhere", {more, [1, 2, 3, 4, 5, 6, 7, 8, 9]}, {even, more}}], [a]}],
           [{'_', [], [{const, a, <<"bin">>, 1.5, #{a => b}, [x | y], 'Quoted Atom', 1 bsl 80}]}], [{{'$1'}, [{'>', '$2', '$3'}], ['$4']}]],
    Args = [[a], [a, 1], [1, 2, 3], [[1], {2}]],
    TraceHeads = ['_', '$1', [], ['$1'], ['$1', '_'], [a | '_'], ['$1', '$2' | '_'], ['_' | '_'], {'$1'}, a, ['$1' | '$2'], ['$1', '$1']],
    TraceBodies = [[], [{message, '$1'}], [{message, '$_'}], [{message, '$$'}], [{return_trace}, {exception_trace}], [{message, false}], [{message, {caller}}],
                   [{message, {is_seq_trace}}], [{silent, true}], [{message, {get_seq_token}}], [{message, {{a, '$_'}}}], [{message, {get_tcw}}]],
    BadTrace = [[{'_', [{message, a}], []}], [{'_', [{caller}], []}], [{'_', [], [{message}]}], [{'_', [], [{return_trace, 1}]}], [{'_', [], [{caller, 1}]}], [{'_', [], [{silent}]}],
                [{'_', [], [{enable_trace}]}], [{'_', [], [{set_seq_token, a}]}], [{'_', [{set_seq_token, a, b}], []}], [{'_', [], [{current_stacktrace, a}]}],
                [{'_', [], [{current_stacktrace, -1}]}], [{'_', [], [{current_stacktrace, 1, 2}]}], [{'_', [], [{trace, 1}]}], [{'_', [], [{process_dump, 1}]}], [{'_', [], [{display}]}]],
    calls(erlang, match_spec_test, [[O, [M], table] || O <- Objects, M <- Plain ++ Guarded ++ Built] ++ [[O, Ms, table] || O <- Objects, Ms <- Several]
        ++ [[{a}, Ms, table] || Ms <- Bad] ++ [[As, [{H, [], B}], trace] || As <- Args, H <- TraceHeads, B <- TraceBodies] ++ [[[a], Ms, trace] || Ms <- BadTrace]
        ++ [[a, [{'_', [], []}], trace], [[a], [{'_', [], []}], foo]]).

decode_packet() ->
    Data = [<<>>, <<0>>, <<1>>, <<3, "abcd">>, <<0, 3, "abcd">>, <<0, 0, 0, 3, "abcd">>, <<16#80, 0, 0, 2, "abc">>, <<255, 255, 255, 255>>,
            <<0, 0, 1, 0, "xyz">>, binary:copy(<<"long">>, 40), <<2, 100, (binary:copy(<<"z">>, 120))/binary>>],
    Sized = [[T, D, O] || T <- [0, raw, 1, 2, 4, sunrm], D <- Data, O <- [[], [{packet_size, 2}], [{packet_size, 0}]]],
    Asn1 = [[asn1, D, O] || D <- [<<>>, <<48>>, <<48, 3, 1, 2, 3, 4>>, <<48, 3, 1>>, <<16#1f, 16#81, 16#81, 1, 2, 7, 8, 9>>, <<16#1f, 16#81>>, <<16#1f, 16#81, 16#81>>,
                <<48, 16#80, 1>>, <<48, 16#81, 2, 5, 6, 7>>, <<48, 16#82, 0, 1, 5, 6>>, <<48, 16#83, 0, 0, 1, 5, 6>>, <<48, 16#84, 0, 0, 0, 1, 5>>, <<48, 16#85, 0, 0, 0, 0, 1, 5>>,
                <<48, 16#82, 0>>, <<48, 16#84, 16#ff, 0, 0, 0>>, <<16#1f, 1, 2, 3, 4>>], O <- [[], [{packet_size, 2}]]],
    Cdr = [[cdr, D, O] || D <- [<<"GIOP">>, <<"GIOP", 1, 0, 0, 0, 0, 0, 0, 2, "abc">>, <<"GIOP", 1, 0, 1, 0, 2, 0, 0, 0, "abc">>, <<"GIOX", 1, 0, 0, 0, 0, 0, 0, 2, "abc">>,
               <<"GIOP", 1, 0, 0, 0, 255, 0, 0, 2, "abc">>], O <- [[], [{packet_size, 1}]]],
    Fcgi = [[fcgi, D, O] || D <- [<<1, 2>>, <<1, 2, 0, 1, 0, 3, 2, 0, "abcpp", "rest">>, <<2, 2, 0, 1, 0, 3, 2, 0, "abcpp">>, <<1, 2, 0, 1, 1, 3, 2, 0, "abcpp">>], O <- [[], [{packet_size, 4}]]],
    Tpkt = [[tpkt, D, O] || D <- [<<3, 0>>, <<3, 0, 0, 6, "abc">>, <<3, 0, 0, 3, "abc">>, <<2, 0, 0, 6, "abc">>, <<3, 0, 1, 6, "abc">>], O <- [[], [{packet_size, 1}]]],
    Ssl = [[ssl_tls, D, O] || D <- [<<22, 3, 1>>, <<22, 3, 1, 0, 4, "abcde">>, <<22, 3, 1, 4, 4, "abcde">>, <<16#80, 6, 1, 3, 0, "abcde">>, <<16#80, 1, 1, 3, 0, "abcde">>], O <- [[], [{packet_size, 3}]]],
    Line = [[line, D, O] || D <- [<<>>, <<"\n">>, <<"abc">>, <<"abc\n">>, <<"abc\r\ndef\n">>, <<"abcdefgh\nij">>, binary:copy(<<"line ">>, 20), <<(binary:copy(<<"line ">>, 20))/binary, "\nx">>],
                O <- [[], [{line_length, 3}], [{line_length, 4}], [{packet_size, 3}], [{packet_size, 4}], [{packet_size, 6}, {line_length, 3}], [{line_delimiter, $c}], [{line_delimiter, 0}],
                      [{line_delimiter, 256}], [{line_length, -1}], [{line_length, 1 bsl 32}], [{line_length, a}], [foo], [{foo, 1}], [{packet_size, 1} | x], a]],
    Http = [[T, D, O] || T <- [http, http_bin, httph, httph_bin], D <- http_lines(), O <- [[]]]
        ++ [[T, D, O] || T <- [http, httph], D <- [<<"GET / HTTP/1.0\r\n">>, <<"GET / HTTP/1.0">>, <<"Host: a\r\n\r\n">>, <<"Host: a\r\n">>], O <- [[{packet_size, 10}], [{line_length, 9}], [{packet_size, 16}], [{line_length, 15}]]],
    Bad = [[foo, <<>>, []], [3, <<1>>, []], [raw, a, []], [raw, <<1:3>>, []], [1, <<1, 2, 3:3>>, []], [raw, <<1>>, [{line_delimiter, 1}]], ["raw", <<>>, []]],
    Subs = [begin <<_:S, B/bitstring>> = <<0:S, 0, 2, "abcd">>, [2, B, []] end || S <- [1, 3, 8]],
    calls(erlang, decode_packet, Sized ++ Asn1 ++ Cdr ++ Fcgi ++ Tpkt ++ Ssl ++ Line ++ Http ++ Bad ++ Subs).

http_lines() ->
    Uris = ["*", "/", "/a/b?c=d", "http://host", "http://host/path", "http://host:80/path", "HTTP://host:8x/", "https://host:0/p", "https://[::1]:4000/x", "http://[::1]/x", "http://[::1", "http://[::1]x:80/",
            "foo:bar", "foo", "x", "h:", "http:", "HTTPS://h"],
    [list_to_binary(["GET ", U, " HTTP/1.1\r\nrest"]) || U <- Uris]
        ++ [<<>>, <<"\n">>, <<"\r\n">>, <<"\r\nx">>, <<"GET">>, <<"GET \r\n">>, <<"GET /\r\n">>, <<"GET / \r\n">>, <<"get / HTTP/1.0\n">>, <<"FOO  /a\tHTTP/12.34 trail\r\n">>, <<"GET / HTTP/1\r\n">>,
            <<"GET / HTTP/x.1\r\n">>, <<"GET / http/1.1\r\n">>, <<"G(T / HTTP/1.1\r\n">>, <<"GET / HTTP/99999999999.1\r\n">>, <<"OPTIONS * HTTP/1.1\r\n">>,
            <<"HTTP/1.1 200 OK\r\nx">>, <<"HTTP/1.1 200\r\n">>, <<"HTTP/1.1 200 \r\n">>, <<"HTTP/1.1 OK\r\n">>, <<"HTTP/1.1  404  Not Found\n">>, <<"HTTP/1 200 OK\r\n">>, <<"HTTP/.1 200 OK\r\n">>,
            <<"HTTP/1.1200 OK\r\n">>, <<"HTTP/1.1 20x\r\n">>, <<"HTTP/\r\n">>, <<"HTTP\r\n">>,
            <<"Host: a\r\nx">>, <<"Host: a\r\n">>, <<"Host: a\r\n b\r\n\tc\r\nx">>, <<"hOST:a\nx">>, <<"content-TYPE:  text/html \r\nx">>, <<"x-own-HEADER: 1\r\nx">>, <<"te--st: 1\r\nx">>, <<": 1\r\nx">>, <<"Host 1\r\nx">>,
            <<"Host\r\nx">>, <<"Host:\r\nx">>, <<"H(st: 1\r\nx">>, <<"Cookie: a=b; c=d\r\n\r\n">>, <<"\r\n x">>, <<"Proxy-Connection: k\r\nx">>, <<"Cache-Control: k\r\nx">>, <<"Et\x7fg: k\r\nx">>, <<"Et\x80g: k\r\nx">>,
            <<(binary:copy(<<"aB">>, 25))/binary, ": v\r\nx">>, <<(binary:copy(<<"aB">>, 26))/binary, ": v\r\nx">>, <<"Host: ", (binary:copy(<<"v">>, 100))/binary, "\r\nx">>].

re() ->
    Subjects = [<<>>, <<"abcabc">>, "hello world", [<<"ab">>, $c, "def"], <<"aXbXc\r\nd">>, binary:copy(<<"0123456789">>, 20), a, [a], <<1:1>>],
    Patterns = [<<"b">>, "(a)(x)?(b)", <<"(?<first>[a-z]+)(?<rest>.*)">>, <<"^$">>, "o w", <<"(">>, <<"[">>, <<"\\d{150}">>, <<"(?:a|(b))c">>, a],
    Options = [[], [{capture, all}], [{capture, none}], [{capture, first}], [{capture, first, list}], [{capture, all, binary}], [{capture, all_but_first, list}], [{capture, all_names, binary}],
               [{capture, [1, 0, 9], index}], [{capture, [1, 9], binary}], [{capture, [first, "rest", <<"none">>], list}], [{capture, []}], [{offset, 1}], [{offset, 100}], [{offset, -1}],
               [caseless], [anchored], [notempty], [notbol, noteol], [report_errors], [{match_limit, 1}, report_errors], [{match_limit, 1}], [foo], [{newline, crlf}], [{newline, x}], [multiline, dotall],
               [{capture, all, foo}], [{capture, foo}], [{capture, [{}]}], a, [dupnames, ucp, ungreedy, extended]],
    calls(re, run, [[S, P] || S <- Subjects, P <- Patterns] ++ [[S, P, O] || S <- Subjects, P <- Patterns, O <- Options])
        ++ calls(re, compile, [[P] || P <- [<<"(">>, <<"(?<n>a)(?<n>b)">>, <<"\\">>, a, {}]] ++ [[<<"a">>, O] || O <- [[global], [foo], a, [{offset, 1}], [{newline, x}]]])
        ++ calls(re, inspect, [[a, namelist], [{re_pattern, 1, 2, 3, 4}, namelist]]) ++ calls(re, import, [[a], [{re_exported_pattern, <<>>, <<>>, [], <<>>}]]).

arith() ->
    Big = 1 bsl 64, Max = (1 bsl 59) - 1, Min = -(1 bsl 59),
    Ns = [0, 1, -7, Max, Min, Max + 1, Big, -Big, (1 bsl 100) + 12345,
          0.0, -2.5, 1.0e308],
    Odd = [a, [], <<"1">>, {1}],
    Two = ['+', '-', '*', '/', 'div', 'rem', 'band', 'bor', 'bxor'],
    Pairs = [[A, B] || A <- Ns, B <- Ns] ++ [[A, 1] || A <- Odd] ++ [[1, A] || A <- Odd],
    Shifts = [[A, B] || A <- [0, 1, -1, 7, -7, Max, Min, Big, -Big, -Big - 1, (1 bsl 200) + 1],
                        B <- [0, 1, 3, 58, 59, 64, 65, -1, -58, -64, -65, 130, -1000, Min]]
        ++ [[0, Big], [1, -Big], [-1, -Big], [a, 1], [1, a], [1.0, 1], [1, 1.0]],
    Left = [[1, Big], [1, Max], [-1, 1 bsl 40]],
    Ones = ['+', '-', 'bnot', abs, float, round, trunc, floor, ceil],
    Floats = [-0.0, 5.0e-324, 0.5, -0.5, 1.4, 1.5, 2.5, -1.5, 0.49999999999999994, 1.0e15, 1.0e18, -1.0e19, 1.0e300,
              4503599627370497.5, 9007199254740993.0],
    Singles = [[N] || N <- Ns ++ Odd ++ Floats ++ [1 bsl 1024]],
    M1 = [cos, sin, tan, acos, asin, atan, exp, log,
          log2, log10, sqrt, floor, ceil],
    %% The last digits of others differ between versions of the C library: edges alone.
    Edges = [cosh, sinh, tanh, acosh, asinh, atanh, erf, erfc],
    M1Args = [[N] || N <- [0, 1, -1, 2, 10, 100, 1000, 0.5, -0.5, 0.1, 1.0e-10, 1.0e300, -3.7, 1 bsl 70,
                           1 bsl 1024, a]],
    M2Args = [[A, B] || A <- [0, 1, -1, 2.5, -3.7, 1.0e300, 1 bsl 70], B <- [0, 1, -1, 2, 0.5, -1.5, 1.0e10]]
        ++ [[a, 1], [1, a], [1, 1 bsl 1024], [1 bsl 1024, 1]],
    lists:append([calls(erlang, F, Pairs) || F <- Two])
        ++ calls(erlang, 'bsl', Shifts ++ Left) ++ calls(erlang, 'bsr', Shifts)
        ++ lists:append([calls(erlang, F, Singles) || F <- Ones])
        ++ lists:append([calls(math, F, M1Args) || F <- M1])
        ++ lists:append([calls(math, F, [[0], [1 bsl 1024], [a]]) || F <- Edges])
        ++ lists:append([calls(math, F, M2Args) || F <- [atan2, pow, fmod]]).

calendar() ->
    Seconds = [0, -1, 951825600, 1 bsl 31, -11676096000, -11676096001, 1 bsl 50, (1 bsl 63) - 1, -(1 bsl 63), 1 bsl 63,
               -(1 bsl 63) - 1, 1.0, a],
    Dates = [{{Y, Mo, D}, {H, Mi, S}} || {Y, Mo, D} <- [{1970, 1, 1}, {1600, 1, 1}, {1599, 12, 31}, {2024, 2, 29},
                                         {2023, 2, 29}, {2023, 13, 1}, {2023, 0, 1}, {1 bsl 70, 1, 1}, {a, 1, 1}, {-1, 1, 1}],
                                         {H, Mi, S} <- [{0, 0, 0}, {23, 59, 59}, {24, 0, 0}, {-1, 0, 0}, {0, 60, 0}]],
    Odd = [a, {}, {1, 2}, {{1, 2, 3}, {1, 2}}, {{1970, 1, 1}, {0, 0, 0}, 0}, []],
    calls(erlang, posixtime_to_universaltime, [[S] || S <- Seconds])
        ++ calls(erlang, universaltime_to_posixtime, [[D] || D <- Dates ++ Odd])
        ++ calls(erlang, universaltime_to_localtime, [[D] || D <- Odd])
        ++ calls(erlang, localtime_to_universaltime, [[D, U] || D <- Odd, U <- [true, undefined]]).

binary_search() ->
    B = <<"abracadabra, abra">>, Long = binary:copy(<<"abcdefgh">>, 20), <<_:3, Un/bitstring>> = <<B/binary, 1:3>>,
    Subjects = [<<>>, <<"a">>, B, Un, <<",,abra,,cad,,">>, <<0, 255, 0>>],
    Patterns = [<<"a">>, <<"abra">>, <<",">>, [<<",">>], [<<"abra">>, <<"a">>, <<"ab">>], [<<"bra">>, <<"abrac">>, <<"ra">>],
                [<<0>>, <<255>>], [<<"x">>, <<"y">>], <<"abracadabra, abra">>],
    BadPatterns = [<<>>, [], [<<>>], [<<"a">>, <<>>], [<<"a">> | <<"b">>], <<1:1>>, [<<"a">>, <<1:3>>], a, {bm, a}, {bm, make_ref()},
                   {bm}, [[<<"a">>]]],
    Scopes = [{0, 0}, {0, 5}, {3, 10}, {17, -17}, {17, 0}, {18, 0}, {5, -6}, {-1, 1}, {0, 1 bsl 70}, {1 bsl 63, 1},
              {0, -(1 bsl 63)}, {a, 1}],
    Options = [[{scope, S}] || S <- Scopes] ++ [[], a, [a], [{scope, a}], [{scope, {1, 2, 3}}], [{scope, {0, 5}} | a],
                [{scope, {0, 99}}, {scope, {0, 5}}], [{scope, {0, 5}}, {scope, {1, 2}}], [global]],
    Splits = [[], [global], [trim], [trim_all], [global, trim], [global, trim_all], [global, trim, trim_all], [trim | a]]
        ++ [[global, {scope, {2, 9}}], [{scope, {4, 3}}, trim_all], [{scope, {99, 1}}]],
    Pairs = [[S, P] || S <- Subjects, P <- Patterns] ++ [[B, P] || P <- BadPatterns]
        ++ [[S, <<"a">>] || S <- [a, <<1:1>>, <<B/binary, 1:2>>, "abra"]] ++ [[Long, <<"h">>], [Long, [<<"gh">>, <<"ab">>]]],
    Threes = [[B, P, O] || P <- [<<"a">>, <<"abra">>, [<<"bra">>, <<"ra">>]], O <- Options],
    lists:append([calls(binary, F, Pairs) || F <- [match, matches, split]])
        ++ lists:append([calls(binary, F, Threes) || F <- [match, matches]])
        ++ calls(binary, split, [P ++ [O] || P <- Pairs, O <- Splits] ++ Threes)
        ++ calls(binary, compile_pattern, [[P] || P <- BadPatterns]).

binary() ->
    B = <<"hello world">>, Long = binary:copy(<<"abcdefgh">>, 20), <<_:3, Un/bitstring>> = <<B/binary, 1:3>>,
    Io = [[], B, "abc", [1, [2 | <<3>>], [[], [[255]]], <<"xy">>], [Long, 1, [Long | Long]], [B | B], [Un]],
    BadIo = [a, [256], [-1], [1 | 2], [a], [[1 | b]], 1, {}, [1.0]],
    Bits = [<<>>, <<1:1>>, <<5:3>>, <<1, 2, 3:7>>, <<Long/binary, 1:5>>],
    Bins = [<<>>, <<0>>, B, Long, Un],
    Odd = [a, 1, [], {}, <<1:1>>],
    One = fun(L) -> [[X] || X <- L] end,
    Parts = [{0, 0}, {0, 5}, {11, 0}, {11, 1}, {11, -1}, {11, -11}, {11, -12}, {0, -1}, {3, 4}, {-1, 1}, {a, 1}, {1, a},
             {1 bsl 70, 1}, {1, 1 bsl 70}, {12, -1}],
    calls(erlang, binary_to_list, One(Bins ++ Odd) ++ [[B, S, E] || S <- [0, 1, 5, 11, 12, a], E <- [0, 1, 5, 11, 12, a]])
        ++ calls(erlang, bitstring_to_list, One(Bins ++ Bits ++ Odd))
        ++ lists:append([calls(M, F, One(Io ++ BadIo ++ Bits ++ [[X] || X <- Bits] ++ [[1 | <<1:1>>]])) ||
                            {M, F} <- [{erlang, list_to_binary}, {erlang, iolist_to_binary}, {erlang, iolist_size},
                                       {erlang, iolist_to_iovec}, {binary, list_to_bin}, {erlang, crc32}, {erlang, adler32},
                                       {erlang, md5}]])
        ++ calls(erlang, list_to_bitstring, One(Io ++ BadIo ++ [Bits, Bits ++ Bits, [1 | <<5:3>>], [<<5:3>>, 255, B, [Bits | <<1:2>>]]]))
        ++ calls(erlang, split_binary, [[X, N] || X <- [B, Un, <<1, 2:3>>, a], N <- [0, 1, 5, 11, 12, -1, a]])
        ++ calls(erlang, byte_size, One(Bins ++ Bits ++ Odd)) ++ calls(erlang, bit_size, One(Bins ++ Bits ++ Odd))
        ++ lists:append([calls(M, F, [[X, S, L] || X <- [B, Un, <<1:1>>, a], {S, L} <- Parts] ++
                                   [[B, P] || P <- Parts ++ [a, {1}, {1, 2, 3}]]) ||
                            {M, F} <- [{erlang, binary_part}, {binary, part}]])
        ++ calls(binary, first, One(Bins ++ Odd)) ++ calls(binary, last, One(Bins ++ Odd))
        ++ calls(binary, at, [[B, N] || N <- [0, 10, 11, -1, a]] ++ [[Un, 3], [<<1:1>>, 0], [a, 0]])
        ++ calls(binary, copy, One(Bins ++ Odd) ++ [[X, N] || X <- [<<>>, B, <<1:1>>], N <- [0, 1, 3, -1, a, 1 bsl 70]] ++ [[B, 1 bsl 58]])
        ++ calls(binary, encode_unsigned, [[N | E] || N <- [0, 1, 255, 256, 1 bsl 64, (1 bsl 100) + 7, -1, a, -(1 bsl 70)], E <- [[], [big], [little], [x]]])
        ++ calls(binary, decode_unsigned, [[X | E] || X <- [<<>>, <<0, 1>>, B, Un, <<1:1>>, a], E <- [[], [big], [little], [x]]])
        ++ lists:append([calls(binary, F, One([[], [B], [B, B], [<<"abc">>, <<"abd">>, <<"ab">>], [<<"xab">>, <<"yab">>],
                                               [<<>>, B], [a], [B | a], a, [Un, B], [<<1:1>>]])) ||
                            F <- [longest_common_prefix, longest_common_suffix]])
        ++ lists:append([calls(erlang, F, [[N, X] || N <- [0, 1, 4294967295, 4294967296, -1, a], X <- [B, [a]]]) ||
                            F <- [crc32, adler32]])
        ++ lists:append([calls(erlang, F, [[1, 2, N] || N <- [0, 1, 100, 65521, 1 bsl 62, (1 bsl 63) - 1, 1 bsl 63, (1 bsl 64) - 1, 1 bsl 64, -1, a]] ++ [[16#12345678, 16#9abcdef0, N] || N <- [0, 1, 1 bsl 40]] ++ [[-1, 1, 1], [1, a, 1]]) ||
                            F <- [crc32_combine, adler32_combine]])
        ++ calls(erlang, md5_update, [[erlang:md5_init(), B], [a, B], [<<1>>, B], [erlang:md5_init(), a]])
        ++ calls(erlang, md5_final, [[erlang:md5_init()], [erlang:md5_update(erlang:md5_init(), Long)], [a], [<<>>]]).

convert() ->
    One = fun(L) -> [[X] || X <- L] end,
    Atoms = [ok, '', 'åäö', list_to_atom([16#1f600, $a]), 'hello world'],
    Odd = [1, a, [], {}, <<1:1>>, "x", 1.0],
    Enc = [latin1, utf8, unicode, x, 1],
    Names = ["", "ok", "åäö", [16#1f600], [16#d800], [16#110000], [-1], [a], "ok" ++ x, lists:duplicate(255, $a),
             lists:duplicate(256, $a), lists:duplicate(256, $a) ++ x, lists:duplicate(255, $a) ++ x, x, <<"a">>],
    BinNames = [<<>>, <<"ok">>, <<"åäö"/utf8>>, <<255>>, <<16#f0, 16#9f>>, <<0>>, binary:copy(<<"a">>, 256), binary:copy(<<"å"/utf8>>, 255),
                binary:copy(<<"å"/utf8>>, 256), <<1:1>>, a, "ok"],
    Ints = [0, 1, -1, 12345678901234567890, -(1 bsl 200), (1 bsl 59), -(1 bsl 59), 35, 36],
    Bases = [2, 8, 10, 16, 36, 1, 37, a, -2],
    Texts = ["", "0", "-0", "+0", "00", "000012", "-000012x", "12", "+12", "-12", "--1", "+-1", "-", "+", "1_0", "ff", "FF", "zz", "1 ", " 1",
             "123456789012345678", "12345678901234567", "99999999999999999", "999999999999999999", "0000000000000000000000001",
             "-123456789012345678901234567890", "1234567890123456789x", "12x45", "z"],
    Tails = ["12" ++ x, [$1, a], [$1, 16#130], [$-, a], [$- | x], [$0 | x]],
    FB = [[lists:duplicate(N, $1), B] || B <- lists:seq(2, 36), N <- [59, 60, 37, 29, 18, 17, 12, 11]],
    Floats = [0.0, -0.0, 1.5, -12.345, 1.0e22, 1.0e-7, 123456789.123, 5.0e-324, 1.0e300],
    Opts = [[], [short], [compact], [{decimals, 4}], [{decimals, 4}, compact], [compact, {decimals, 10}], [{scientific, 3}],
            [{decimals, 0}], [{decimals, -1}], [{decimals, 300}], [{scientific, -1}], [{scientific, 260}], [short, {decimals, 2}],
            [{decimals, 2}, short], [x], x, [{decimals, a}], [{decimals, 1} | x], [{x, 1}], [{decimals, 253}]],
    FT = ["1.0", "1.5e3", "-1.5E-3", "+2.25", "1", "1.", ".5", "1e5", "", "1.0 ", "1.0e400", "1,5", "2.3eh?", "2.3e+", "2.3e+5x", "--1.0", "1.2.3",
          "1.0" ++ x, "1.0" ++ [a], x, [0 | "1.0"], "1.0" ++ [0 | "zz"], "+", "e", "-1.5,2", [300], "1.5" ++ [300]],
    Pids = [list_to_pid("<0.0.0>"), list_to_pid("<0.1234.5>"), binary_to_term(<<131, $X, $w, 1, $n, 1:32, 2:32, 3:32>>)],
    PidTexts = ["<0.0.0>", "<0.268435455.4294967295>", "<0.268435456.0>", "<0.0.4294967296>", "<1.0.0>", "<0.0>", "<0.0.0", "0.0.0>", "<0..0>", "<0.a.0>",
                "<0.1.2>x", "", x, [$<, a]],
    PortTexts = ["#Port<0.0>", "#Port<0.7>", "#Port<0.1152921504606846975>", "#Port<0.1152921504606846976>", "#Port<1.0>", "#Port<0>", "#Port<0.1.2>", "x"],
    RefTexts = ["#Ref<0.1.2.3>", "#Ref<0.1.2.262144>", "#Ref<0.4294967296.2.3>", "#Ref<0.1>", "#Ref<0.1.2>", "#Ref<1.1.2.3>", "#Ref<0.1.2.3.4>", "x", "#Ref<>"],
    calls(erlang, atom_to_list, One(Atoms ++ Odd)) ++ calls(erlang, atom_to_binary, [[A, E] || A <- Atoms ++ [1], E <- Enc])
        ++ calls(erlang, list_to_atom, One(Names))
        ++ calls(erlang, list_to_existing_atom, One(Names -- [lists:duplicate(255, $a)]) ++ [["surely" ++ " not there"]])
        ++ calls(erlang, binary_to_atom, [[B, E] || B <- BinNames, E <- Enc])
        ++ calls(erlang, binary_to_existing_atom, [[B, E] || B <- [<<"ok">>, <<"surely", " not there">>, binary:copy(<<"a">>, 256), a], E <- Enc])
        ++ lists:append([calls(erlang, F, One(Ints ++ Odd) ++ [[I, B] || I <- Ints ++ [a], B <- Bases]) || F <- [integer_to_list, integer_to_binary]])
        ++ calls(erts_internal, list_to_integer, [[T, B] || T <- Texts ++ Tails ++ [x], B <- [10, 16, 36, 2, 37, a]] ++ FB)
        ++ calls(erts_internal, binary_to_integer, [[list_to_binary(T), B] || T <- Texts, B <- [10, 16, 36, 2, 37, a]] ++ [["12", 10], [<<1:1>>, 10]]
                     ++ [[list_to_binary(T), B] || [T, B] <- FB])
        ++ lists:append([calls(erlang, F, One(Floats ++ Odd -- [1.0]) ++ [[X, O] || X <- Floats ++ [1], O <- Opts]) || F <- [float_to_list, float_to_binary]])
        ++ calls(erlang, list_to_float, One(FT)) ++ calls(string, list_to_float, One(FT))
        ++ calls(erlang, binary_to_float, [[list_to_binary(T)] || T <- ["1.0", "1.5e3", "1", "", "1.0 ", "1.0e400", [$1, $., $0, 0, $x]]] ++ [[a], [<<1:1>>], ["1.0"]])
        ++ lists:append([calls(erlang, F, One(lists:droplast(Pids) ++ Odd)) || F <- [pid_to_list, port_to_list, ref_to_list]])
        ++ calls(erlang, port_to_list, [[binary_to_term(<<131, $x, $w, 13, "nonode@nohost", 7:64, 0:32>>)]])
        ++ calls(erlang, ref_to_list, [[list_to_ref("#Ref<0.1.2.3>")]]) ++ calls(erlang, fun_to_list, One(Odd))
        ++ calls(erlang, list_to_pid, One(PidTexts)) ++ calls(erlang, list_to_port, One(PortTexts)) ++ calls(erlang, list_to_ref, One(RefTexts)).

external() ->
    Terms = [1, a, 'å', 1.5, [1, 2, 3], {a, [b]}, <<"bin">>, binary:copy(<<0>>, 70), lists:duplicate(5, lists:duplicate(5, a)), "abc"],
    Opts = [[], [{minor_version, 0}], [{minor_version, 1}], [{minor_version, 2}], [{minor_version, 3}], [deterministic], [{compressed, 0}],
            [{compressed, 10}], [{compressed, -1}], [x], x, [deterministic | x], [deterministic, local], [{minor_version, a}], [{x, 1}], [iovec]],
    B = [<<131, 106>>, <<131, 97, 7, 1, 2>>, <<131>>, <<>>, <<106>>, a, <<131:16>>, <<131, 106, 1:1>>, term_to_binary(lists:duplicate(50, 0), [compressed]),
         <<(term_to_binary(lists:duplicate(50, 0), [compressed]))/binary, 1, 2>>, <<131, $w, 14, "surely not yet">>],
    Long = [{N, integer_to_list(N * N), N rem 7} || N <- lists:seq(1, 60)],
    Plain = [<<131, T, 0, 0, 0, 1, 2, 3>> || T <- lists:seq(0, 255), not lists:member(T, "yIK")],
    lists:append([calls(erlang, F, [[T] || T <- Terms] ++ [[T, O] || T <- Terms, O <- Opts]) || F <- [term_to_binary, term_to_iovec, external_size]])
        ++ calls(erlang, term_to_binary, [[Long, [O]] || O <- [compressed, {compressed, 1}, {compressed, 4}, {compressed, 6}, {compressed, 9}]])
        ++ calls(erlang, binary_to_term, [[X, O] || X <- B, O <- [[], [safe], [used], [safe, used], [x], x, [safe | x]]])
        ++ calls(erlang, binary_to_term, [[X] || X <- B ++ Plain]).

lists() ->
    L = [1, 1.0, a, "str", {t, 1}, <<"b">>, #{a => 1}, 1 bsl 70, [], {}],
    Seq = lists:seq(1, 40), Mixed = [I rem 7 || I <- Seq] ++ [1.0, 2.0, a, {1}, {1.0}, "x"],
    Keys = [{1, a}, {1.0, b}, {k, c}, {"s", d}, x, {}, {1 bsl 70, e}, {2}, {2, f}, {2.0, g}],
    Bad = [a, [1 | 2], 1, {}],
    calls(lists, member, [[X, L] || X <- L ++ [2, b, 2.0]] ++ [[1, B] || B <- Bad] ++ [[2, B] || B <- Bad] ++ [[1, []]])
        ++ calls(lists, reverse, [[A, B] || A <- [[], [1], L | Bad], B <- [[], [x], y]])
        ++ lists:append([calls(lists, F, [[K, N, Keys] || K <- [1, 1.0, k, "s", 1 bsl 70, 2, 2.0, zz, a, f], N <- [1, 2, 3]]
                                 ++ [[1, N, Keys] || N <- [0, -1, a, 1 bsl 70, 1.0]] ++ [[K, 1, B] || K <- [1, q], B <- Bad ++ [[{1} | x]]]) ||
                            F <- [keyfind, keymember, keysearch]])
        ++ lists:append([calls(erlang, F, [[A, B] || A <- [[], [1], L, "abc" | Bad], B <- [[], [x], y, "z" | Bad]]) || F <- ['++', append]])
        ++ lists:append([calls(erlang, F, [[A, B] || A <- [[], [1], L, Seq, Mixed, [1, 2, 1, 2, 1] | Bad], B <- [[], [1], L, Seq, Mixed, [1, 1] | Bad]]) ||
                            F <- ['--', subtract]])
        ++ lists:append([calls(erlang, F, [[X] || X <- [[], [1], L, Seq | Bad]]) || F <- [length, hd, tl]]).

unicode() ->
    U = <<"aåö€😀"/utf8>>, <<A:2/binary, B/binary>> = <<"€x"/utf8>>, <<_:3, Un/bitstring>> = <<U/binary, 0:3>>,
    Data = [[], "abc", "aåö", [16#20ac, 16#1f600], U, [U], [U, U], [A, B], [A | B], [[A], [[B]]], [A], A, [A, $x], [A, []], Un,
            <<255>>, <<"ab", 255, "cd">>, ["ab", [<<"c", 255, "d">>, "e"], "f"], [<<"ab">> | <<"c", 200>>], <<16#e0, 16#80>>, <<16#e0, 16#80, 16#80>>,
            <<16#c0, 16#80>>, <<16#c0>>, <<16#f5>>, <<16#f8>>, <<16#ed, 16#a0, 16#80>>, <<16#ed, 16#a0>>, <<16#f4, 16#90, 16#80, 16#80>>, <<16#f0, 16#9f>>,
            <<16#f0, 16#9f, 16#98>>, <<16#f0, $a>>, <<16#e2, $a>>, [<<16#f0>>, <<16#9f>>, <<16#98>>, <<16#80>>, "x"], [<<16#f0>>, <<$a>>, <<$b>>, <<$c>>, "x"],
            [16#d800], [$a, 16#110000, $b], [$a, -1], [$a, 256, $b], [$a, [$b, [$c, 16#d800, $d], $e], $f], [1 bsl 70], [$a, 1 bsl 70, x],
            a, [a], [$a | b], 1, {}, <<1:1>>, [<<1:3>>], [1.0], [[] | []], [<<>>, []], [$a | <<"b">>], [<<"a">>, $b | U]],
    lists:append([calls(unicode, F, [[D, E] || D <- Data, E <- [latin1, utf8, unicode]]) || F <- [characters_to_binary, characters_to_list]])
        ++ calls(unicode, bin_is_7bit, [[D] || D <- Data]).

compare() ->
    Ts = [0, -1, 1, 1.0, 1 bsl 64, -(1 bsl 70), 1.5, true, false, a, b, '', {}, {1}, {a, 1}, {1.0}, [], [1], [1.0], [a | b],
          "abc", <<>>, <<1>>, <<1:3>>, <<"abc">>, #{}, #{a => 1}, #{b => 1}, #{1 => 2}, #{1.0 => 2},
          binary_to_term(<<131, $X, $w, 3, "a@b", 1:32, 2:32, 3:32>>)],
    Large = [maps:from_keys(lists:seq(1, 40), x), maps:from_keys(lists:seq(2, 41), x), maps:from_keys(lists:seq(1, 40), y)],
    Pairs = [[A, B] || A <- Ts, B <- Ts] ++ [[A, B] || A <- Large, B <- Large],
    Some = [[A, B] || A <- [1, 1.0, true, false, {1}], B <- [1, 1.0, true, false, {1}, a]],
    Tests = [is_atom, is_boolean, is_number, is_integer, is_float, is_list, is_tuple, is_map, is_pid, is_port,
             is_reference, is_binary, is_bitstring, is_function],
    Ranges = [1, 2, 1000, 1 bsl 27, 1 bsl 32, 0, -1, (1 bsl 32) + 1, 1.0, a],
    calls(erts_internal, cmp_term, Pairs)
        ++ lists:append([calls(erlang, F, Some) || F <- ['==', '/=', '=:=', '=/=', '<', '=<', '>', '>=', min, max]])
        ++ lists:append([calls(erlang, F, Some) || F <- ['and', 'or', 'xor']])
        ++ calls(erlang, 'not', [[true], [false], [1]])
        ++ lists:append([calls(erlang, F, [[T] || T <- Ts]) || F <- Tests])
        ++ calls(erlang, is_function, [[F, A] || F <- [a, 1], A <- [0, 1, 2, -1, a, 1 bsl 70, -(1 bsl 70)]])
        ++ calls(erlang, is_integer, [[A, B, C] || A <- [1, 5, 1 bsl 64, 2.0, a], B <- [0, 2, a], C <- [4, 1 bsl 65, 1.0]])
        ++ calls(erlang, phash2, [[T] || T <- Ts]) ++ calls(erlang, phash2, [[T, R] || T <- [a, 1], R <- Ranges])
        ++ calls(erlang, phash, [[T, R] || T <- [a, 1], R <- Ranges]).

tuples() ->
    Ts = [{}, {a}, {a, b, c}, [], <<>>, a],
    Is = [-1, 0, 1, 2, 3, 4, 1 bsl 64, 1.0, a],
    Two = [[I, T] || I <- Is, T <- Ts],
    Three = [[I, T, x] || I <- Is, T <- Ts],
    calls(erlang, element, Two) ++ calls(erlang, setelement, Three)
        ++ calls(erlang, make_tuple, [[I, x] || I <- Is] ++ [[(1 bsl 24), x]])
        ++ calls(erlang, make_tuple, [[2, x, L] || L <- [[], [{1, a}], [{1, a}, {1, b}], [{3, a}], [{0, a}], [a], [{1, a} | b], a]])
        ++ calls(erlang, make_tuple, [[I, x, [{1, y}]] || I <- Is])
        ++ calls(erlang, append_element, [[T, x] || T <- Ts])
        ++ calls(erlang, insert_element, Three) ++ calls(erlang, delete_element, Two)
        ++ lists:append([calls(erlang, F, [[T] || T <- Ts]) || F <- [tuple_to_list, tuple_size]])
        ++ calls(erlang, list_to_tuple, [[L] || L <- [[], [a], [a, b], [a | b], a, {}]])
        ++ calls(erlang, size, [[T] || T <- Ts ++ [<<1, 2>>, <<1, 2:3>>, #{}]]).

maps() ->
    Flat = #{1 => a, 2.0 => b, "k" => c, {7} => d},
    Keys = [1, 2, 2.0, "k", {7}, 39, <<"n">>],
    Big = maps:from_list([{I, I * I} || I <- lists:seq(1, 40)]),
    Edge = maps:from_keys(lists:seq(1, 33), v),
    Huge = maps:from_list([{{I}, <<I:16>>} || I <- lists:seq(1, 100)]),
    Full = maps:from_keys(lists:seq(1, 32), v),
    Maps = [#{}, Flat, Big, not_a_map],
    Edges = [Full, Edge],
    Lists = [[], [{1, a}], [{1, a}, {1, b}, {1.0, c}], [{I rem 37, I} || I <- lists:seq(1, 100)],
             [{I rem 20, I} || I <- lists:seq(1, 100)], [{I, I} || I <- lists:seq(33, 1, -1)],
             [{1, a} | b], [a], [{1, 2, 3}], a],
    lists:append([calls(M, F, [[K, T] || T <- Maps, K <- Keys] ++ [[K, T] || T <- Edges, K <- [1, 40]])
                  || {M, F} <- [{erlang, map_get}, {erlang, is_map_key}, {maps, get}, {maps, find}, {maps, is_key}, {maps, remove},
                                {maps, take}]])
        ++ lists:append([calls(maps, F, [[K, v, T] || T <- Maps, K <- Keys] ++ [[K, V, T] || T <- Edges, K <- [1, 40], V <- [v, w]]) || F <- [put, update]])
        ++ lists:append([calls(M, F, [[T] || T <- Maps]) || {M, F} <- [{erlang, map_size}, {maps, keys}, {maps, values}]])
        ++ calls(maps, from_list, [[L] || L <- Lists])
        ++ calls(maps, from_keys, [[L, v] || L <- [[], [1, 2, 1], lists:seq(1, 40), [1 | 2], a]])
        ++ calls(maps, merge, [[A, B] || A <- Maps, B <- Maps] ++ [[A, B] || {A, B} <- [{Full, Edge}, {Edge, Full}, {Full, Flat}, {Huge, Big}, {Flat, Huge}]])
        ++ calls(erts_internal, map_next, [[0, T, K] || T <- [#{}, Flat, Full], K <- [iterator, [], [x]]]
                 ++ [[P, T, K] || P <- [0, -1, 10, 15, 16#fffff, 1 bsl 65, a], T <- [Edge, Big], K <- [iterator, [], foo]]
                 ++ [[[1, 3], Big, iterator], [[], Big, iterator], [[1, 99], Big, iterator], [[1 | 2], Big, iterator],
                     [0, a, iterator], [5, Flat, []]])
        ++ calls(erts_internal, map_to_tuple_keys, [[T] || T <- Maps])
        ++ calls(erts_internal, map_hashmap_children, [[Flat], [a]])
        ++ calls(erts_debug, map_info, [[T] || T <- Maps ++ [Huge]]).
