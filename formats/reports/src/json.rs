//! Writes a profile for other programs, as one JSON object with a stable schema.
//!
//! `docs/internals/ProfileJson.md` describes the schema. Within a version, fields are only added.

use std::io::Write;

use beamline_formats::profile::{
    Cost, Header, Native, Origin, Pattern, Profile, TracingCost, Type,
};
use serde::Serialize;

/// The schema's version, in the field `version`.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct Root<'a> {
    schema: &'static str,
    version: u32,
    #[serde(rename = "type")]
    kind: Option<Type>,
    runs: Vec<Run<'a>>,
    functions: Vec<Function<'a>>,
    processes: Vec<Process<'a>>,
    counts: Vec<Count>,
    call_tree: Vec<Node>,
}

#[derive(Serialize)]
struct Run<'a> {
    os_pid: u32,
    /// None without a name.
    #[serde(skip_serializing_if = "str::is_empty")]
    node: &'a str,
    command: &'a [String],
    host: &'a str,
    otp: &'a str,
    run_ns: u64,
    processes: u64,
    patterns: &'a [Pattern],
    tracing: TracingCost,
}

#[derive(Serialize)]
struct Function<'a> {
    module: &'a str,
    function: &'a str,
    arity: u32,
    origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<Native>,
    #[serde(flatten)]
    total: Cost,
}

#[derive(Serialize)]
struct Process<'a> {
    run: u32,
    pid: &'a str,
    name: &'a str,
    reductions: u64,
    #[serde(flatten)]
    total: Cost,
}

#[derive(Serialize)]
struct Count {
    function: u32,
    run: u32,
    process: Option<u32>,
    #[serde(flatten)]
    cost: Cost,
}

#[derive(Serialize)]
struct Node {
    process: u32,
    parent: Option<u32>,
    function: u32,
    #[serde(flatten)]
    cost: Cost,
    reductions: u64,
}

fn of_run(run: &Header) -> Run<'_> {
    Run {
        os_pid: run.os_pid,
        node: &run.node,
        command: &run.command,
        host: &run.host,
        otp: &run.otp,
        run_ns: run.run_ns,
        processes: run.processes,
        patterns: &run.patterns,
        tracing: run.tracing,
    }
}

/// Writes a profile as JSON, on one line.
///
/// # Errors
/// What `out` returns.
pub fn write<W: Write>(profile: &Profile, mut out: W) -> std::io::Result<()> {
    let mut by_function = vec![Cost::default(); profile.functions.len()];
    let mut by_process = vec![Cost::default(); profile.processes.len()];
    for count in &profile.counts {
        by_function[count.function as usize].add(count.cost);
        if let Some(process) = count.process {
            by_process[process as usize].add(count.cost);
        }
    }
    let root = Root {
        schema: "beamline-profile",
        version: VERSION,
        kind: profile.kind(),
        runs: profile.runs.iter().map(of_run).collect(),
        functions: profile
            .functions
            .iter()
            .zip(by_function)
            .map(|(f, total)| Function {
                module: &f.module,
                function: &f.name,
                arity: f.arity,
                origin: profile.origin(&f.module),
                native: profile.native(f),
                total,
            })
            .collect(),
        processes: profile
            .processes
            .iter()
            .zip(by_process)
            .map(|(p, total)| Process {
                run: p.run,
                pid: &p.pid,
                name: &p.name,
                reductions: p.reductions,
                total,
            })
            .collect(),
        counts: profile
            .counts
            .iter()
            .map(|c| Count {
                function: c.function,
                run: c.run,
                process: c.process,
                cost: c.cost,
            })
            .collect(),
        call_tree: profile
            .nodes
            .iter()
            .map(|n| Node {
                process: n.process,
                parent: n.parent,
                function: n.function,
                cost: n.cost,
                reductions: n.reductions,
            })
            .collect(),
    };
    serde_json::to_writer(&mut out, &root)?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use beamline_formats::profile as p;

    #[test]
    fn the_schema_is_as_documented() {
        let cost = p::Cost {
            calls: 3,
            time_ns: 5,
            words: 7,
            dirty_wait_ns: 9,
            tracing_ns: 4,
        };
        let profile = p::Profile {
            runs: vec![p::Header {
                kind: p::Type::CallMemory,
                command: vec!["erl".into()],
                host: "h".into(),
                otp: "29.1".into(),
                run_ns: 9,
                os_pid: 11,
                node: "one@h".into(),
                processes: 13,
                patterns: vec!["m:f/1".parse().expect("a pattern")],
                tracing: p::TracingCost {
                    inside_ps: 6,
                    outside_ps: 8,
                    again_ps: 10,
                },
            }],
            functions: vec![p::Function {
                module: "m".into(),
                name: "f".into(),
                arity: 1,
            }],
            processes: vec![p::Process {
                run: 0,
                pid: "<0.1.0>".into(),
                name: "init".into(),
                reductions: 15,
            }],
            counts: vec![p::Count {
                function: 0,
                run: 0,
                process: Some(0),
                cost,
            }],
            nodes: vec![p::Node {
                process: 0,
                parent: None,
                function: 0,
                cost,
                reductions: 17,
                wait_ns: 0,
            }],
            origins: [("m".to_owned(), p::Origin::Otp)].into(),
            natives: Default::default(),
        };
        let mut out = Vec::new();
        super::write(&profile, &mut out).expect("a Vec takes all");
        let expect = concat!(
            r#"{"schema":"beamline-profile","version":1,"type":"call_memory","#,
            r#""runs":[{"os_pid":11,"node":"one@h","command":["erl"],"host":"h","otp":"29.1","run_ns":9,"#,
            r#""processes":13,"patterns":["m:f/1"],"#,
            r#""tracing":{"inside_ps":6,"outside_ps":8,"again_ps":10}}],"#,
            r#""functions":[{"module":"m","function":"f","arity":1,"origin":"otp","calls":3,"time_ns":5,"#,
            r#""words":7,"dirty_wait_ns":9,"tracing_ns":4}],"#,
            r#""processes":[{"run":0,"pid":"<0.1.0>","name":"init","reductions":15,"calls":3,"#,
            r#""time_ns":5,"words":7,"dirty_wait_ns":9,"tracing_ns":4}],"#,
            r#""counts":[{"function":0,"run":0,"process":0,"calls":3,"time_ns":5,"words":7,"dirty_wait_ns":9,"tracing_ns":4}],"#,
            r#""call_tree":[{"process":0,"parent":null,"function":0,"calls":3,"time_ns":5,"#,
            r#""words":7,"dirty_wait_ns":9,"tracing_ns":4,"reductions":17}]}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expect);
    }
}
