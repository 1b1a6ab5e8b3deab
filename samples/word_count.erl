%% A word count: splits a text into words and counts each one.
%%
%% Shows: binary matching, maps that grow, and two ways to split of which one costs more.
-module(word_count).
-export([main/0, main/1]).

main() -> main(60000).

%% From the command line the argument is a list of strings.
main([Words]) -> main(list_to_integer(Words));
main([]) -> main();
main(Words) when is_integer(Words) ->
    Text = text(Words, 7, []),
    Counts = count(words(Text, <<>>, []), #{}),
    Counts = count(split(Text), #{}),
    [{Most, Times} | _] = lists:sort(fun more/2, maps:to_list(Counts)),
    io:format("~b bytes, ~b different words, most often ~s (~b)~n",
              [byte_size(Text), map_size(Counts), Most, Times]).

more({Word1, N}, {Word2, N}) -> Word1 =< Word2;
more({_, N1}, {_, N2}) -> N1 > N2.

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

%% Byte by byte, in lower case.
words(<<$\s, Rest/binary>>, Word, Words) -> words(Rest, <<>>, [Word | Words]);
words(<<C, Rest/binary>>, Word, Words) when C >= $A, C =< $Z ->
    words(Rest, <<Word/binary, (C + 32)>>, Words);
words(<<C, Rest/binary>>, Word, Words) -> words(Rest, <<Word/binary, C>>, Words);
words(<<>>, Word, Words) -> [Word | Words].

%% By the library.
split(Text) ->
    [string:lowercase(Word) || Word <- binary:split(Text, <<" ">>, [global])].

count([Word | Words], Counts) ->
    count(Words, maps:update_with(Word, fun(N) -> N + 1 end, 1, Counts));
count([], Counts) ->
    Counts.
