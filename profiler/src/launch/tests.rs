//! Tests of the translation of command lines, and of files that are given as commands.

use std::collections::HashMap;
use std::path::Path;

use super::source_file::{Plan, plan};
use super::*;

#[derive(Default)]
struct Given {
    variables: HashMap<&'static str, &'static str>,
    files: HashMap<&'static str, &'static str>,
}

impl Environment for Given {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|&v| v.to_owned())
    }

    fn file(&self, name: &str) -> io::Result<String> {
        let file = self.files.get(name);
        file.map(|&f| f.to_owned())
            .ok_or_else(|| io::Error::other("No such file or directory"))
    }

    fn head(&self, name: &str) -> io::Result<String> {
        self.file(name)
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn otp() -> Otp {
    Otp {
        root: "/R".into(),
        bindir: "/R/erts-17.1/bin".into(),
    }
}

fn started(line: &str, environment: &Given) -> Result<String, Failure> {
    match erl::translate(&words(line), &otp(), environment)? {
        erl::Action::Start { arguments, .. } => Ok(arguments.join(" ")),
        erl::Action::Print(text) => Ok(text),
    }
}

fn translated(line: &str) -> erl::Action {
    erl::translate(&words(line), &otp(), &Given::default()).expect("it is understood")
}

#[test]
fn a_node_with_a_name_needs_the_daemon_of_names() {
    let names = |line: &str| match translated(line) {
        erl::Action::Start { names, .. } => names,
        erl::Action::Print(_) => None,
    };
    assert_eq!(names("-sname a"), Some(erl::Names::Usual));
    assert_eq!(
        names("-name a@b -epmd x"),
        Some(erl::Names::Command("x".to_owned()))
    );
    assert_eq!(names("-noshell"), None);
    assert_eq!(names("-sname a -start_epmd false"), None);
    assert_eq!(names("-sname a -no_epmd -proto_dist x"), None);
}

#[test]
fn a_node_in_the_background_has_no_shell() {
    let erl::Action::Start {
        arguments,
        is_detached,
        ..
    } = translated("-detached")
    else {
        panic!("it starts");
    };
    let flags = ["-noshell", "-noinput"];
    assert!(is_detached && arguments.windows(2).any(|pair| pair == flags));
}

/// The expected words are what OTP 29's own `erlexec` gives for the same command lines.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn erl_translates_as_erlexec() {
    let environment = Given {
        variables: HashMap::from([
            ("HOME", "/h"),
            ("ERL_AFLAGS", "-a 1"),
            ("ERL_FLAGS", "+T 1 -f"),
            ("ERL_ZFLAGS", "-z 2 -extra e"),
        ]),
        files: HashMap::from([("af", "+A 5 # c\n-foo \"a b\" -extra z\n")]),
    };
    let own = "-- -root /R -bindir /R/erts-17.1/bin -progname erl -- -home /h -- -a 1 --";
    let end = "-- -f -- -z 2 -- -extra";
    for (line, emulator, init) in [
        (
            "-noshell -eval x -s a b",
            "-T 1",
            format!("-noshell -eval x -s a b {end} e"),
        ),
        (
            "+S 2 -pa x +P 1000 +sbwt none +zdbbl 3 +hms 5 foo",
            "-S 2 -P 1000 -sbwt none -zdbbl 3 -hms 5 -T 1",
            format!("-pa x foo {end} e"),
        ),
        (
            "-noinput -extra a -- b",
            "-T 1",
            format!("-noshell -noinput -- {end} a -- b e"),
        ),
        (
            "-make x y",
            "-B",
            "-noshell -noinput -s make all_or_nothing -s erlang halt".to_owned(),
        ),
        (
            "-compile a b",
            "-B -T 1",
            format!("-noshell -noinput -s c lc_batch a b {end} e"),
        ),
        ("-version", "-V -T 1", format!("{end} e")),
        (
            "+Bc +B i +c false +MBas aobf +IOt 2",
            "-Bc -B i -c false -MBas aobf -IOt 2 -T 1",
            format!("{end} e"),
        ),
        (
            "-env A B -sname foo -start_epmd false",
            "-T 1",
            format!("-sname foo -start_epmd false {end} e"),
        ),
        (
            "-S mod f a -- b",
            "-T 1",
            format!("-- {end} e ++S mod f a \\-- b"),
        ),
        (
            "-args_file af -x",
            "-A 5 -T 1",
            format!("-foo a b -x {end} z e"),
        ),
        (
            "-nohup +K true +SDcpu 2 +Rx",
            "-K true -SDcpu 2 -Rx -T 1",
            format!("-nohup {end} e"),
        ),
        ("-- -smp auto a", "-T 1", format!("-- -smp auto a {end} e")),
        (
            "-configfd 0",
            "-T 1",
            format!("-noshell -noinput -configfd 0 {end} e"),
        ),
        (
            "-no_epmd -proto_dist x",
            "-T 1",
            format!("-no_epmd -proto_dist x {end} e"),
        ),
    ] {
        assert_eq!(
            started(line, &environment),
            Ok(format!("{emulator} {own} {init}")),
            "{line}"
        );
    }
}

#[test]
fn start_of_a_module_is_without_extra_where_none_is_given() {
    assert_eq!(
        started("-S mod f -- b", &Given::default()).expect("started"),
        "-- -root /R -bindir /R/erts-17.1/bin -progname erl -- -- -- -- -noshell -S mod f \\-- b"
    );
}

#[test]
fn erl_sets_variables_and_prints_arguments() {
    let line = words("-env A B -env C D x");
    let action = erl::translate(&line, &otp(), &Given::default()).expect("started");
    let erl::Action::Start { variables, .. } = action else {
        panic!("{action:?}");
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(variables, [pair("A", "B"), pair("C", "D")]);
    assert_eq!(
        started("-emu_args_exit +S 1", &Given::default()).expect("printed"),
        "-S\n1\n--\n-root\n/R\n-bindir\n/R/erts-17.1/bin\n-progname\nerl\n--\n--\n--\n"
    );
}

#[test]
fn erl_refuses_what_erlexec_refuses() {
    for flag in [
        "+S",
        "-sname",
        "+IOx",
        "+Bq",
        "+SDx",
        "-env",
        "-env A",
        "-args_file",
    ] {
        let name = if flag == "-env A" { "-env" } else { flag };
        assert_eq!(
            started(flag, &Given::default()),
            Err(Failure::missing(name)),
            "{flag}"
        );
    }
    let refused = |line: &str| started(line, &Given::default()).expect_err(line);
    assert_eq!(
        refused("-smp disable"),
        Failure::Usage("Argument '-smp disable' not supported. Use \"+S 1\" instead.".into())
    );
    assert_eq!(
        refused("-man"),
        Failure::Error("'-man' is not supported".into())
    );
    assert!(matches!(refused("-no_epmd"), Failure::Error(_)));
    let Failure::Error(line) = refused("-args_file none") else {
        panic!("a usage");
    };
    assert!(line.contains("\"none\""), "{line}");
}

#[test]
fn quotes_and_comments_split() {
    let split = |text| arguments::split(text, true).join("|");
    assert_eq!(split("a 'b c' d\\ e # x\n \"f\"g"), "a|b c|d e|fg|--");
    assert_eq!(split("-extra x"), "-extra|x");
    assert_eq!(split("  # only a comment"), "");
    assert_eq!(arguments::split("a#b", false), ["a#b", "--"]);
}

#[test]
fn erlc_translates() {
    let base = "+sbtu +A0 +P 65536 +Q 1024 -noinput -mode minimal -boot no_dot_erlang \
                -s erl_compile compile_cmdline -extra";
    for (line, front, back) in [
        ("-W a.erl", "+S1", " -W a.erl"),
        (
            "-pa x -pzy -o out a.erl",
            "+S1 -pz y -pa x",
            " -o out a.erl",
        ),
        ("-server -d +debug_info a.erl", "+S1", " +debug_info a.erl"),
    ] {
        let got = erlc::translate(&words(line)).expect(line).join(" ");
        assert_eq!(got, format!("{front} {base}{back}"));
    }
    erlc::translate(&words("-pa")).expect_err("no value");
}

#[test]
fn escript_translates() {
    let environment = Given {
        files: HashMap::from([
            (
                "s",
                "#!/usr/bin/env escript\n%%! -smp  +S 1\nmain(_) -> ok.\n",
            ),
            ("t", "#!/usr/bin/env escript\n%% -*- erlang -*-\n%%! -x\n"),
            ("u", "#!/usr/bin/env escript\n\n\n%%! -too_late\n"),
        ]),
        ..Given::default()
    };
    for (line, expect) in [
        ("s 1 -2", "-smp +S 1 -run escript start -extra s 1 -2"),
        ("-c -n t", "-x -run escript start c n -extra t"),
        ("u", "-run escript start -extra u"),
    ] {
        let script = escript::translate(&words(line), &environment).expect(line);
        let expect = format!("+B -noshell -boot $ROOT/no_dot_erlang {expect}");
        assert_eq!(script.arguments.join(" "), expect);
    }
    let refused = |line| escript::translate(&words(line), &environment).expect_err(line);
    assert_eq!(refused("-c"), Failure::Error("Missing filename".into()));
    assert_eq!(
        refused("v"),
        Failure::Error("Failed to open file: v".into())
    );
}

#[test]
fn files_as_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| {
        let path = folder.path().join(name);
        fs::write(&path, "").expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let ebin = Path::new("/ebin");
    let (source, beam, script) = (file("a-b.erl"), file("m.beam"), file("x.exs"));
    let Ok(Plan::Compile { compile, run }) =
        plan(&[source.clone(), "1".into()], None, ebin, "/bin")
    else {
        panic!("not compiled");
    };
    assert_eq!(
        compile,
        [
            "erlc",
            "+debug_info",
            "+deterministic",
            "-o",
            "/ebin",
            &source
        ]
    );
    assert_eq!(run[..4], ["erl", "-noshell", "-pa", "/ebin"]);
    assert!(
        run[5].contains("'a-b':main(init:get_plain_arguments())"),
        "{}",
        run[5]
    );
    assert_eq!(run[6..], ["-extra", "1"]);
    let Ok(Plan::Command(run)) = plan(&[beam], None, ebin, "/bin") else {
        panic!("not run");
    };
    assert_eq!(run[3], folder.path().to_str().expect("UTF-8"));
    let Ok(Plan::Command(run)) = plan(&[script.clone(), "y".into()], None, ebin, "/bin") else {
        panic!("not run");
    };
    assert_eq!(run, ["elixir", &script, "y"]);
    assert_eq!(
        plan(&["none.erl".into()], None, ebin, "/bin"),
        Err("none.erl: no such file".into())
    );
    assert_eq!(
        plan(&words("erl -x"), None, ebin, "/bin"),
        Ok(Plan::Command(words("erl -x")))
    );
    let made = file("load.escript");
    let run = |command: &str, search| plan(&words(command), Some(folder.path()), ebin, search);
    for (command, expect) in [
        ("load.escript 5", "escript load.escript 5"),
        ("no.escript", "no.escript"),
        ("tool x", "./tool x"),
        ("erl x", "erl x"),
    ] {
        file("tool");
        let expect = Ok(Plan::Command(words(expect)));
        assert_eq!(run(command, "/bin"), expect, "{command}");
    }
    let search = folder.path().to_str().expect("UTF-8");
    let found = run("tool x", search);
    assert_eq!(found, Ok(Plan::Command(words("tool x"))), "beside {made}");
}

#[test]
fn the_folder_of_links_stays_first_on_path() {
    let path = |path, links| {
        let mut variables = HashMap::from([("PATH", path)]);
        variables.extend(links);
        let environment = Given {
            variables,
            ..Given::default()
        };
        path_with(&otp(), &environment).expect("a path")
    };
    assert_eq!(
        path("/l:/usr/bin", Some((FOLDER, "/l"))),
        "/l:/R/erts-17.1/bin:/R/bin:/usr/bin"
    );
    assert_eq!(
        path("/l:/R/erts-17.1/bin:/usr/bin", Some((FOLDER, "/l"))),
        "/l:/R/erts-17.1/bin:/usr/bin"
    );
    assert_eq!(path("/a", None), "/R/erts-17.1/bin:/R/bin:/a");
}
