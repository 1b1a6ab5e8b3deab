%% The NIFs of Debian's `jiffy.so`, and the calls that its own module makes to decode. Debian's module is compiled by an
%% OTP so old that OTP 29 does not load it; the library is the same file.
-module(jiffy).
-export([decode/1, nif_decode_init/2, nif_decode_iter/5, nif_encode_init/2, nif_encode_iter/3]).
-nifs([nif_decode_init/2, nif_decode_iter/5, nif_encode_init/2, nif_encode_iter/3]).
-on_load(load/0).

load() ->
    erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).

%% Objects are maps.
decode(Json) ->
    decoded(Json, nif_decode_init(Json, [return_maps])).

decoded(Json, {iter, {_, Decoder, Value, Objects, Current}}) ->
    decoded(Json, nif_decode_iter(Json, Decoder, Value, Objects, Current));
decoded(_, Term) when is_map(Term); is_list(Term) ->
    Term.

nif_decode_init(_, _) -> erlang:nif_error(not_loaded).
nif_decode_iter(_, _, _, _, _) -> erlang:nif_error(not_loaded).
nif_encode_init(_, _) -> erlang:nif_error(not_loaded).
nif_encode_iter(_, _, _) -> erlang:nif_error(not_loaded).
