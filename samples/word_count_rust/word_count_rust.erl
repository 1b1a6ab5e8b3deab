%% A word count by native functions in Rust (src/lib.rs).
%%
%% Shows: NIFs in a profile, on an ordinary scheduler and on dirty ones. From this folder:
%%
%%     cargo build --release
%%     beamline profile -- ./word_count_rust.erl ../../target/release/libword_count_rust
-module(word_count_rust).
-export([main/1, count/1, count_dirty/1, lowercase/1]).
-nifs([count/1, count_dirty/1, lowercase/1]).

%% The argument names the library, without .so.
main([Library]) ->
    ok = erlang:load_nif(Library, 0),
    Text = lowercase(text(20000, 7, [])),
    Counts = count_dirty(Text),
    Counts = merge([count(Piece) || Piece <- pieces(Text)]),
    [{Most, Times} | _] = lists:sort(fun more/2, maps:to_list(Counts)),
    io:format("~b bytes, ~b different words, most often ~s (~b)~n",
              [byte_size(Text), map_size(Counts), Most, Times]).

count(_Text) -> erlang:nif_error(not_loaded).
count_dirty(_Text) -> erlang:nif_error(not_loaded).
lowercase(_Text) -> erlang:nif_error(not_loaded).

more({Word1, N}, {Word2, N}) -> Word1 =< Word2;
more({_, N1}, {_, N2}) -> N1 > N2.

merge(Parts) ->
    lists:foldl(fun(Part, All) -> maps:merge_with(fun(_, N1, N2) -> N1 + N2 end, Part, All) end, #{}, Parts).

%% Pieces of some hundred bytes, cut between words.
pieces(Text) -> pieces(Text, 512).

pieces(Text, From) when byte_size(Text) =< From -> [Text];
pieces(Text, From) ->
    case binary:match(Text, <<" ">>, [{scope, {From, byte_size(Text) - From}}]) of
        {At, 1} ->
            <<Piece:At/binary, " ", Rest/binary>> = Text,
            [Piece | pieces(Rest)];
        nomatch ->
            [Text]
    end.

%% Words made of syllables, the same ones each time; short ones are more frequent.
text(0, _Seed, Words) ->
    iolist_to_binary(lists:join($\s, Words));
text(Left, Seed, Words) ->
    Next = (Seed * 1103515245 + 12345) rem 2147483648,
    text(Left - 1, Next, [word(1 + (Next bsr 16) rem 3, Next bsr 8) | Words]).

word(0, _) -> [];
word(Syllables, N) ->
    Syllable = element(1 + N rem 7, {"ba", "ke", "li", "mo", "nu", "ra", "Te"}),
    [Syllable | word(Syllables - 1, N div 7)].
