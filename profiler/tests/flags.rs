//! Flags of the emulator: what a program sees of them is what it sees on OTP 29.

mod place;

use place::Place;

const PROGRAM: &str = r#"
-module(work).
-export([defaults/0, offset/0, ignored/0]).

%% What new processes begin with.
defaults() ->
    Waits = spawn(fun() -> receive never -> ok end end),
    Info = fun(What) -> element(2, process_info(Waits, What)) end,
    Heap = proplists:get_value(min_heap_size, Info(garbage_collection)),
    {_, #{size := Max, kill := Kills, error_logger := Logs, include_shared_binaries := Binaries}} =
        process_info(Waits, max_heap_size),
    System = [erlang:system_info(What) || What <- [message_queue_data, async_dist, dist_buf_busy_limit]],
    io:format("~w~n", [{Heap, element(2, erlang:system_info(min_bin_vheap_size)), Info(message_queue_data),
                        Info(async_dist), {Max, Kills, Logs, Binaries}, System}]).

ignored() ->
    io:format("~w~n", [erlang:system_info(break_ignored)]).

%% A monitor of the time offset gives a message for each change, and stays: its messages are flushed all the same.
offset() ->
    Monitors = [One, _, _] = [monitor(time_offset, clock_service) || _ <- [1, 2, 3]],
    preliminary = erlang:system_flag(time_offset, finalize),
    Wait = fun F() -> element(2, process_info(self(), message_queue_len)) =:= 3 orelse F() end,
    true = Wait(),
    true = demonitor(One, [flush]),
    Left = [receive {'CHANGE', Monitor, time_offset, clock_service, _} -> heard after 0 -> nothing end
            || Monitor <- Monitors],
    io:format("~w~n", [{Left, demonitor(One, [flush, info])}]).
"#;

/// A folder with the program compiled.
fn compiled() -> Option<Place> {
    let place = Place::new(PROGRAM)?;
    place.printed(&["run", "--", "erlc", "work.erl"]);
    Some(place)
}

fn printed(place: &Place, flags: &[&str], function: &str) -> String {
    let call = format!("work:{function}(), halt().");
    let command = ["run", "--", "erl", "-noshell", "-pa", "."];
    let arguments = [&command[..], flags, &["-eval", &call]].concat();
    place.printed(&arguments)
}

#[test]
fn processes_begin_with_what_flags_say() {
    let Some(place) = compiled() else { return };
    for (flags, expected) in [
        (
            &[][..],
            "{233,46422,on_heap,false,{0,true,true,false},[on_heap,false,1048576]}\n",
        ),
        (
            &["+hms", "1000", "+hmbs", "100000", "+zdbbl", "5"],
            "{1598,121536,on_heap,false,{0,true,true,false},[on_heap,false,5120]}\n",
        ),
        (
            &[
                "+hmax", "100000", "+hmaxk", "false", "+hmaxel", "false", "+hmaxib", "true",
            ],
            "{233,46422,on_heap,false,{100000,false,false,true},[on_heap,false,1048576]}\n",
        ),
        (
            &["+hmqd", "off_heap", "+pad", "true", "+zdbbl2048"],
            "{233,46422,off_heap,true,{0,true,true,false},[off_heap,true,2097152]}\n",
        ),
    ] {
        assert_eq!(printed(&place, flags, "defaults"), expected, "{flags:?}");
    }
}

#[test]
fn messages_of_a_monitor_of_the_time_offset_are_flushed() {
    let Some(place) = compiled() else { return };
    let flags = ["+C", "single_time_warp"];
    let told = printed(&place, &flags, "offset");
    assert_eq!(told, "{[nothing,heard,heard],false}\n");
}

#[test]
fn values_stand_behind_their_flags_or_are_attached() {
    let Some(place) = compiled() else { return };
    for (flags, is_ignored) in [
        (&[][..], false),
        (&["+B", "i"], true),
        (&["+Bi", "+B", "d", "+Bi"], true),
        (&["+B", "+c", "false", "+c", "+c", "true"], false),
        // What RabbitMQ begins with.
        (
            &[
                "+W",
                "w",
                "+MBas",
                "ageffcbf",
                "+MHas",
                "ageffcbf",
                "+MBlmbcs",
                "512",
                "+MMmcs",
                "30",
                "+P",
                "1048576",
                "+t",
                "5000000",
                "+stbt",
                "db",
                "+zdbbl",
                "128000",
                "+sbwt",
                "none",
                "+sbwtdcpu",
                "none",
                "+sbwtdio",
                "none",
                "+B",
                "i",
            ],
            true,
        ),
    ] {
        assert_eq!(
            printed(&place, flags, "ignored"),
            format!("{is_ignored}\n"),
            "{flags:?}"
        );
    }
}
