%% Answers to requests that a process makes of others, and does not wait for: their order is chance, and so is whether a
%% process still runs old code, or still lives.
-module(requests).
-export([main/0]).

main() ->
    load(1),
    Workers = [spawn(fun() -> work(N rem 3) end) || N <- lists:seq(1, 9)],
    timer:sleep(1),
    load(2),
    [ask(erlang:phash2(Worker) rem 2, Worker) || Worker <- Workers],
    io:format("~w~n", [[receive {_, {answer, Pid}, Answer} -> {Pid, Answer} end || _ <- Workers]]),
    io:format("~w~n", [[erlang:check_process_code(Worker, asked) || Worker <- Workers]]).

ask(0, Pid) -> async = erlang:garbage_collect(Pid, [{async, {answer, Pid}}]);
ask(1, Pid) -> async = erlang:check_process_code(Pid, asked, [{async, {answer, Pid}}]).

%% One ends at once, one goes on in new code some day, and one never does.
work(0) -> ok;
work(1) -> asked:once(2000);
work(2) -> asked:ever().

load(Version) ->
    Texts = [
        "-module(asked).",
        "-export([once/1, ever/0, version/0]).",
        "version() -> " ++ integer_to_list(Version) ++ ".",
        "once(0) -> asked:version(), receive after infinity -> ok end;",
        "once(N) -> once(N - 1).",
        "ever() -> receive after infinity -> asked:version() end."
    ],
    Lines = string:split(lists:flatten(lists:join(" ", Texts)), ". ", all),
    Forms = [form(string:trim(Line, trailing, ".") ++ ".") || Line <- Lines],
    {ok, asked, Code} = compile:forms(Forms),
    {module, asked} = code:load_binary(asked, "asked", Code).

form(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.
