//! Explorations of what programs do every day: tasks that are awaited, and loops that look again and again.

mod exploration;
mod place;

use std::path::PathBuf;

use beamline_runtime_otp_home::{self as otp_home, Lookup};
use exploration::{explore, explored, programs, told};
use place::{Place, errors, has_elixir};

/// Each turn of such a loop is an order: the limit ends it, and nobody says that these are all.
#[test]
fn a_loop_that_waits_ends_at_the_limit_of_runs() {
    let Some(place) = programs() else { return };
    for call in ["yields", "sleeps", "receives", "looks_up"] {
        let (output, json) = explore(&place, &format!("polls:{call}"), &["--runs", "60"]);
        let (orders, is_all, found) = told(&json);
        assert_eq!((is_all, found), (false, vec![]), "{call}: {json}");
        assert_eq!(json["runs"], 60, "{call}");
        assert!(orders > 50, "{call}: {orders}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("not all there are"), "{call}: {said}");
        assert!(
            said.contains("orders are left (estimate)"),
            "{call}: {said}"
        );
        assert!(errors(&output).is_empty(), "{call}: {output:?}");
    }
}

const TASKS: &str = "\
defmodule Tasks do
  def await_many do
    for(n <- 1..2, do: Task.async(fn -> n end)) |> Task.await_many()
  end
end
";

/// The folder of Elixir's own modules.
fn elixir() -> PathBuf {
    let home = otp_home::find(&Lookup::of_process(None)).expect("OTP");
    home.root.join("../elixir/lib/elixir/ebin")
}

/// `Task.await_many` gets each answer, or its time passes before: all orders are known, and runs by chance have no other.
#[test]
fn tasks_that_are_awaited_are_explored_in_all_orders() {
    let Some(place) = Place::new(place::WORK).filter(|_| has_elixir()) else {
        return;
    };
    place.write("tasks.ex", TASKS);
    let compiled = place.run(&["run", "--", "elixirc", "tasks.ex"]);
    assert!(compiled.status.success(), "{}", errors(&compiled));
    let elixir = elixir().display().to_string();
    for workers in ["1", "4"] {
        let options = ["--call", "Tasks.await_many", "--workers", workers];
        let verified = ["--verify", "300", "-o", "found"];
        let command = ["--", "erl", "-noshell", "-pa", ".", "-pa", &elixir];
        let (output, json) = explored(&place, &[&options[..], &verified, &command].concat());
        let (orders, is_all, found) = told(&json);
        assert_eq!((orders, is_all), (36, true), "{}", errors(&output));
        let is_late =
            |(kind, reason): &(String, String)| kind == "exit" && reason.starts_with("{timeout,");
        assert!(!found.is_empty() && found.iter().all(is_late), "{found:?}");
    }
}
