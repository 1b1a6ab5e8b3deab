%% A leak of binaries: a process keeps a small part of every large message, and so keeps all of it.
%%
%% Shows: memory that no heap size tells of. The keys are parts of the messages; one call of
%% binary:copy/1 would let the messages go. (A part of up to 64 bytes is copied anyway.) Both ways are run and their memory is printed.
-module(binary_leak).
-export([main/0, main/1]).

-define(MESSAGE_BYTES, 20000).
-define(KEY_BYTES, 80).

main() -> main(2000).

%% From the command line the argument is a list of strings.
main([Messages]) -> main(list_to_integer(Messages));
main([]) -> main();
main(Messages) when is_integer(Messages) ->
    Leaky = keep(Messages, fun(Key) -> Key end),
    Copied = keep(Messages, fun binary:copy/1),
    io:format("kept by ~b keys: ~b bytes; by copies of them: ~b bytes~n",
              [Messages, Leaky, Copied]).

%% The bytes of binaries that a collector of keys refers to after it has seen all messages.
keep(Messages, Keep) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> collector(Keep, []) end),
    [Pid ! {message, message(N)} || N <- lists:seq(1, Messages)],
    Pid ! {report, Self},
    Bytes = receive {referred, Pid, N} -> N end,
    receive {'DOWN', Ref, process, Pid, normal} -> Bytes end.

message(N) ->
    Key = <<N:(?KEY_BYTES * 8)>>,
    Body = binary:copy(<<N:32>>, (?MESSAGE_BYTES - ?KEY_BYTES) div 4),
    <<Key/binary, Body/binary>>.

collector(Keep, Keys) ->
    receive
        {message, <<Key:?KEY_BYTES/binary, Body/binary>>} ->
            true = byte_size(Body) > checksum(Body) rem 2,
            collector(Keep, [Keep(Key) | Keys]);
        {report, To} ->
            garbage_collect(),
            {binary, Binaries} = process_info(self(), binary),
            Referred = lists:usort([{Id, Size} || {Id, Size, _Count} <- Binaries]),
            To ! {referred, self(), lists:sum([Size || {_Id, Size} <- Referred])},
            length(Keys)
    end.

checksum(Body) -> erlang:adler32(Body).
