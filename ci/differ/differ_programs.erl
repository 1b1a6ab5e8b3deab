%% Concurrent programs whose outcome is fixed. A parent has its children do one thing after the other, and waits each time
%% until every signal has arrived.
-module(differ_programs).

-export([make/0]).

-import(differ_random, [pick/1, weighted/1, below/1, commas/1]).

make() ->
    Count = 2 + below(3),
    put(children, Count),
    Children = [["start(", integer_to_list(Number), ", [", commas(options()), "])"] || Number <- lists:seq(1, Count)],
    Steps = [step() || _ <- lists:seq(0, 3 + below(14))],
    Source = ["test() ->\n    Ps = {", commas(Children), "},\n    Steps = [",
              lists:join(",\n             ", Steps), "],\n    {Steps, [state(P, Ps) || P <- tuple_to_list(Ps)], mailbox(Ps)}.\n"],
    differ_form:compiled("program", Source, helpers()).

options() -> [Option || Option <- ["link", "monitor", "{message_queue_data, off_heap}", "{priority, high}",
                                   "{monitor, [{tag, tagged}]}", "{async_dist, true}"], below(5) =:= 0].

%% What a child does: P is itself.
step() ->
    ["at(Ps, ", child(), ", fun() -> ", action(), " end)"].

child() -> integer_to_list(1 + below(get(children))).

other() ->
    weighted([{8, fun() -> ["element(", child(), ", Ps)"] end}, {1, fun() -> "self()" end},
              {1, fun() -> "whereis(parent)" end}]).

action() ->
    weighted([{4, fun() -> ["link(", other(), ")"] end},
              {1, fun() -> ["unlink(", other(), ")"] end},
              {5, fun() -> ["keep(monitor(process, ", other(), pick(["))", "))", ", [{tag, gone}]))", ", [{alias, demonitor}]))",
                                                                      ", [{alias, reply_demonitor}]))", ", [{alias, explicit_unalias}]))"])] end},
              {2, fun() -> ["demonitor(kept()", pick([")", ", [flush])", ", [info])", ", [flush, info])"])] end},
              {2, fun() -> ["kept() ! {by_alias, ", message(), "}"] end},
              {2, fun() -> ["keep(alias(", pick(["", "[reply]", "[explicit_unalias]", "[priority]"]), "))"] end},
              {1, fun() -> "unalias(kept())" end},
              {4, fun() -> ["exit(", other(), ", ", reason(), ")"] end},
              {2, fun() -> ["exit(", reason(), ")"] end},
              {1, fun() -> ["error(", reason(), ")"] end},
              {1, fun() -> ["throw(", reason(), ")"] end},
              {4, fun() -> ["process_flag(trap_exit, ", pick(["true", "true", "false"]), ")"] end},
              {5, fun() -> [other(), " ! ", message()] end},
              {4, fun received/0},
              {2, fun() -> ["register(", name(), ", ", other(), ")"] end},
              {1, fun() -> ["unregister(", name(), ")"] end},
              {2, fun() -> ["is_pid(whereis(", name(), "))"] end},
              {2, fun() -> [name(), " ! ", message()] end},
              {1, fun() -> ["monitor(process, ", name(), "), ok"] end},
              {1, fun() -> ["element(2, process_info(self(), ", pick(["registered_name", "trap_exit", "message_queue_len", "priority",
                                                         "message_queue_data", "error_handler"]), "))"] end},
              {2, fun() -> ["child(Ps, ", pick(["linked(", "spawn_monitor(", "spawn("]), "fun() -> ", ending(), " end))"] end},
              {1, fun() -> ["spawn_opt(fun() -> ", ending(), " end, [monitor", pick(["", ", link", ", {tag, x}"]), "]), ok"] end},
              {1, fun() -> ["erlang:send_after(0, ", other(), ", ", message(), "), timer:sleep(3)"] end},
              {1, fun() -> ["erlang:start_timer(0, self(), ", message(), "), receive {timeout, _, M} -> M end"] end},
              {1, fun() -> ["group_leader(", other(), ", ", other(), ")"] end},
              {1, fun() -> ["process_flag(", pick(["priority, high", "message_queue_data, off_heap", "priority, bad", "save_calls, 0",
                                                   "sensitive, true"]), ")"] end},
              {1, fun() -> ["put(a, ", message(), "), lists:sort(get())"] end},
              {1, fun() -> ["exit(", name(), ", ", reason(), ")"] end},
              {1, fun() -> ["is_process_alive(", other(), ")"] end}]).

received() ->
    ["receive ", pick(["{'EXIT', _, Why} -> {exit, Why}", "{'DOWN', _, _, _, Why} -> {down, Why}", "a -> got_a", "M -> {got, M}",
                       "M when is_tuple(M) -> {tuple, M}", "{by_alias, M} -> M", "{M, 1} -> {one, M}; a -> got_a"]),
     " after 0 -> nothing end"].

ending() -> pick(["ok", ["exit(", reason(), ")"], "throw(x)", "1 = kept()", ["self() ! ", message()], "receive after 0 -> ok end"]).
message() -> pick(["a", "b", "{a, 1}", "{b, 2}", "[c]", "{'EXIT', self(), faked}", "<<\"m\">>"]).
reason() -> pick(["normal", "kill", "killed", "shutdown", "{shutdown, x}", "other", "{a, 1}", "noproc"]).
name() -> pick(["n1", "n2", "n1", "undefined", "nosuch"]).

%% What the programs are made of. A child does what it is told, keeps one reference, and says what came of it.
helpers() ->
    "start(_Number, Options) ->
         is_pid(whereis(parent)) orelse register(parent, self()),
         case spawn_opt(fun told/0, Options) of
             {Pid, _} -> Pid;
             Pid -> Pid
         end.
     told() ->
         receive
             {'$do', From, Fun} ->
                 From ! {'$did', self(), try Fun() catch Class:Reason -> {Class, Reason} end},
                 told()
         end.
     keep(Reference) -> put('$kept', Reference), kept.
     kept() -> get('$kept').
     child(_, {_, _}) -> monitored;
     child(_, _) -> spawned.
     linked(Fun) ->
         {Pid, Monitor} = spawn_opt(Fun, [link, monitor]),
         receive {'DOWN', Monitor, process, Pid, _} -> receive after 1 -> Pid end end.
     at(Ps, Number, Fun) ->
         process_flag(trap_exit, true),
         Pid = element(Number, Ps),
         Monitor = monitor(process, Pid),
         Pid ! {'$do', self(), Fun},
         Given = receive
                     {'$did', Pid, Value} -> Value;
                     {'DOWN', Monitor, process, Pid, Reason} -> {gone, Reason}
                 end,
         demonitor(Monitor, [flush]),
         settle(tuple_to_list(Ps), 2),
         plain(Given, Ps).
     settle(_, 0) -> ok;
     settle(Ps, Left) ->
         Before = seen(Ps),
         receive after 1 -> ok end,
         case seen(Ps) of
             Before -> settle(Ps, Left - 1);
             _ -> settle(Ps, 2)
         end.
     seen(Ps) ->
         [is_process_alive(P) andalso process_info(P, [message_queue_len, links, monitors, status]) || P <- [self() | Ps]].
     state(P, Ps) ->
         Keys = [messages, links, monitors, monitored_by, registered_name, trap_exit, priority],
         case process_info(P, Keys) of
             undefined -> gone;
             Infos -> [{Key, sorted(Key, plain(Value, Ps))} || {Key, Value} <- Infos]
         end.
     sorted(messages, Value) -> in_order(Value);
     sorted(_, Value) when is_list(Value) -> lists:sort(Value);
     sorted(_, Value) -> Value.
     mailbox(Ps) -> in_order(received(Ps)).
     received(Ps) ->
         receive Message -> [plain(Message, Ps) | received(Ps)]
         after 0 -> []
         end.
     in_order(Messages) ->
         {Ends, Others} = lists:partition(fun tells_of_an_end/1, Messages),
         Others ++ lists:sort(Ends).
     tells_of_an_end({_Tag, _, process, _, _}) -> true;
     tells_of_an_end({'EXIT', _, _}) -> true;
     tells_of_an_end(_) -> false.
     plain(Pid, Ps) when is_pid(Pid) ->
         case [Number || {Number, P} <- lists:enumerate(tuple_to_list(Ps)), P =:= Pid] of
             [Number] -> {child, Number};
             [] when Pid =:= self() -> parent;
             [] -> other
         end;
     plain(Reference, _) when is_reference(Reference) -> reference;
     plain([Head | Tail], Ps) -> [plain(Head, Ps) | plain(Tail, Ps)];
     plain({Reason, [{Module, _, _, _} | _]}, Ps) when is_atom(Module) -> {plain(Reason, Ps), stack};
     plain(Tuple, Ps) when is_tuple(Tuple) -> list_to_tuple(plain(tuple_to_list(Tuple), Ps));
     plain(Term, _) -> Term.
     ".
