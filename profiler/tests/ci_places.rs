//! `beamline ci` where the project lies elsewhere and belongs to another user: each count is the same.

mod place;

use std::fs;
use std::path::Path;

use place::Place;

const WORK: &str = "\
-module(demo).
-export([main/0]).
main() -> [demo_small:f(X) || X <- lists:seq(1, 100)].
";

const SMALL: &str = "-module(demo_small).\n-export([f/1]).\nf(X) -> X + 1.\n";

const ERLC: &str = "\
setup = [[\"mkdir\", \"-p\", \"ebin\"], [\"erlc\", \"+debug_info\", \"-o\", \"ebin\", \"src/demo.erl\", \"src/demo_small.erl\"]]
command = [\"erl\", \"-noshell\", \"-pa\", \"ebin\", \"-eval\", \"demo:main(), halt().\"]
patterns = [\"demo\", \"demo_small\"]
";

const REBAR3: &str = "\
setup = [\"rebar3\", \"compile\"]
command = [\"erl\", \"-noshell\", \"-pa\", \"_build/default/lib/demo/ebin\", \"-eval\", \"demo:main(), halt().\"]
patterns = [\"demo\", \"demo_small\"]
";

const MIX: &str = "\
setup = [\"mix\", \"compile\"]
command = [\"mix\", \"run\", \"--no-compile\", \"-e\", \"Demo.main()\"]
env = { MIX_ENV = \"prod\" }
patterns = [\"Demo.*\"]
";

const ERLANG_FILES: [(&str, &str); 4] = [
    ("src/demo.erl", WORK),
    ("src/demo_small.erl", SMALL),
    (
        "src/demo.app.src",
        "{application, demo, [{vsn, \"1\"}, {modules, []}, {registered, []}, {applications, [kernel, stdlib]}]}.\n",
    ),
    ("rebar.config", "{erl_opts, [debug_info]}.\n"),
];

const ELIXIR_FILES: [(&str, &str); 2] = [
    (
        "mix.exs",
        "defmodule Demo.MixProject do\n  use Mix.Project\n  def project, do: [app: :demo, version: \"1.0.0\"]\n  \
         def application, do: [mod: {Demo.App, []}]\nend\n",
    ),
    (
        "lib/demo.ex",
        "defmodule Demo.App do\n  use Application\n  def start(_, _) do\n    \
         Supervisor.start_link([{Agent, fn -> Demo.Small.f(1) end}], strategy: :one_for_one)\n  end\nend\n\
         defmodule Demo.Small do\n  def f(x), do: x + 1\nend\n\
         defmodule Demo do\n  def main, do: Enum.sum(Enum.map(1..100, &Demo.Small.f/1))\nend\n",
    ),
];

/// Folders of projects and of users, each longer than the one before.
const PLACES: [(&str, &str); 3] = [
    ("p", "u"),
    ("projects/a_customer/demo", "home/somebody"),
    (
        "builds/of_a_machine/that_has/long_names/for_its_folders/demo",
        "home/another_user/whose_name_is_longer",
    ),
];

/// Accepts a baseline in the first place, and checks it in the others.
fn is_the_same_everywhere(files: &[(&str, &str)], workload: &str) {
    let Some(root) = Place::new("") else { return };
    let config = format!(
        "[limits]\nreductions = \"0%\"\nwords = \"0%\"\nfunctions = {{ calls = \"0%\", words = \"0%\", reductions = \"0%\" }}\n\
         [[workload]]\nname = \"demo\"\n{workload}"
    );
    let ci = |(project, user): (&str, &str), verb: &str| {
        let mut command = root.beamline(&["ci", verb]);
        command.current_dir(root.file(project));
        let output = command
            .env("HOME", root.file(user))
            .env("USER", user)
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{verb} in {project}: {output:?}");
    };
    let write = |path: &Path, text: &str| {
        let folder = path.parent().expect("in a folder");
        fs::create_dir_all(folder).expect("made");
        fs::write(path, text).expect("written");
    };
    let mut baseline = None;
    for (project, user) in PLACES {
        fs::create_dir_all(root.file(user)).expect("made");
        for (name, text) in files
            .iter()
            .copied()
            .chain([("beamline.toml", config.as_str())])
        {
            write(&root.file(project).join(name), text);
        }
        let file = root.file(project).join("beamline-baseline.json");
        match &baseline {
            None => {
                ci((project, user), "accept");
                baseline = Some(fs::read_to_string(&file).expect("a baseline"));
            }
            Some(text) => {
                write(&file, text);
                ci((project, user), "check");
            }
        }
    }
    // What loads modules is in no account, also where it is called as the functions are.
    let baseline = baseline.expect("accepted");
    assert!(!baseline.contains("ensure_loaded"), "{baseline}");
}

/// Is there a rebar3 on PATH that runs on this OTP? One that was compiled for an older one does not.
fn has_rebar3() -> bool {
    let Some(place) = Place::new("") else {
        return false;
    };
    let runs = place.run(&["run", "--", "rebar3", "version"]);
    if !runs.status.success() {
        println!("skipped: there is no rebar3 on PATH that runs on this OTP");
    }
    runs.status.success()
}

#[test]
fn a_project_of_erlc_costs_the_same_everywhere() {
    is_the_same_everywhere(&ERLANG_FILES, ERLC);
}

#[test]
fn a_project_of_mix_costs_the_same_everywhere() {
    if place::has_elixir() {
        is_the_same_everywhere(&ELIXIR_FILES, MIX);
    }
}

#[test]
fn a_project_of_rebar3_costs_the_same_everywhere() {
    if has_rebar3() {
        is_the_same_everywhere(&ERLANG_FILES, REBAR3);
    }
}
