%% A busy loop: fib/1 by calling itself, and a loop that counts down.
%%
%% Shows: the cost of a call. fib/1 is not tail recursive and loop/2 is.
-module(busy).
-export([main/0, main/1]).

main() -> main(32).

%% From the command line the argument is a list of strings.
main([N]) -> main(list_to_integer(N));
main([]) -> main();
main(N) when is_integer(N) ->
    io:format("fib(~b) = ~b, loop ~b~n", [N, fib(N), loop(20000000, 0)]).

fib(0) -> 0;
fib(1) -> 1;
fib(N) -> fib(N - 1) + fib(N - 2).

loop(0, Sum) -> Sum;
loop(N, Sum) -> loop(N - 1, Sum + N band 7).
