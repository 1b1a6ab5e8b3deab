//! What is measured: the rows of the table.

/// What a row measures.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    /// From the start of the runtime to its end, a line printed between.
    Start,
    /// The memory of the runtime's process when it has started.
    Resident,
    /// What the workload says of itself.
    Inside,
    /// The workload under the profiler: OTP's tprof, and `beamline profile`.
    Profiled(&'static str),
    /// What a workload of `plain_work` says of itself; on Beamline under the profiler, if that is asked for.
    Plain,
    /// What a workload of `trace_work` says of itself.
    Trace,
    /// What a workload of `native_work` says of itself.
    Native,
    /// What a workload of `net_work` says of itself.
    Net,
    /// What `wrk` says of a server of `net_work`.
    Load(Load),
    /// What a workload of `trace_work` says of itself where every call of `trace_work:pair/2` is recorded, which is
    /// nothing that OTP has: there nothing is traced.
    Recorded,
    /// What a workload of this module says of itself, the order of the run recorded or not.
    Order(&'static str),
    /// fib(30), each call and return of it in a file: by this tool on OTP, by `beamline record` on Beamline.
    File(&'static str),
}

/// What a load generator says.
#[derive(Clone, Copy)]
pub(super) enum Load {
    /// The time that it takes for a request, of all connections together.
    Request,
    /// How long a request takes, the slowest of a hundred.
    Percentile99,
}

/// A row of the table.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) workload: &'static str,
    pub(super) measure: Measure,
    pub(super) most: Most,
    pub(super) unit: Unit,
}

/// What we want to stay below.
#[derive(Clone, Copy)]
pub(super) enum Most {
    /// The ratio to OTP.
    Ratio(f64),
    /// Our own number, whatever OTP's is.
    Ours(f64),
    /// Nothing: the mean of all rows counts.
    Any,
}

#[derive(Clone, Copy)]
pub(super) enum Unit {
    Nanoseconds,
    Bytes,
    /// Of something else, in millionths.
    Share,
}

pub(super) const fn row(
    name: &'static str,
    workload: &'static str,
    measure: Measure,
    most: f64,
) -> Row {
    let unit = Unit::Nanoseconds;
    Row {
        name,
        workload,
        measure,
        most: Most::Ratio(most),
        unit,
    }
}

pub(super) const fn trace(name: &'static str, workload: &'static str, most: Most) -> Row {
    Row {
        most,
        ..row(name, workload, Measure::Trace, 0.0)
    }
}

const fn native(name: &'static str, workload: &'static str, most: f64) -> Row {
    row(name, workload, Measure::Native, most)
}

const fn net(name: &'static str, workload: &'static str) -> Row {
    row(name, workload, Measure::Net, 1.0)
}

/// The rows of sockets.
const NET: &[Row] = &[
    net("net_echo", "echo"),
    net("net_echo_p99", "echo_p99"),
    net("net_echo_socket", "echo_socket"),
    net("net_echo_many", "echo_many"),
    net("net_echo_many_p99", "echo_many_p99"),
    net("net_tls", "tls"),
    net("net_blocks", "blocks"),
    net("net_accept", "accept"),
    net("net_datagrams", "datagrams"),
    net("net_http", "http"),
    net("net_node_call", "node_call"),
    net("net_node_large", "node_large"),
    net("net_node_terms", "node_terms"),
    net("net_node_spawn", "node_spawn"),
    net("net_node_groups", "node_groups"),
    Row {
        measure: Measure::Load(Load::Request),
        ..net("net_wrk", "serve")
    },
    Row {
        measure: Measure::Load(Load::Percentile99),
        ..net("net_wrk_p99", "serve")
    },
    Row {
        unit: Unit::Bytes,
        ..net("net_idle", "idle")
    },
];

/// The row of a workload of plain code.
macro_rules! plain {
    ($($workload:literal)*) => {
        [$(row(concat!("plain_", $workload), $workload, Measure::Plain, PLAIN_MOST)),*]
    };
}

/// The worst of the ratios of plain code, and their geometric mean.
const PLAIN_MOST: f64 = 1.15;
pub(super) const PLAIN_MEAN: f64 = 0.80;

/// The workload whose library is Debian's.
pub(super) const JIFFY: &str = "jiffy_1M";

/// Calls and returns of fib(30).
const FIB_EVENTS: f64 = 5_385_074.0;

const fn file(name: &'static str, tool: &'static str) -> Row {
    Row {
        most: Most::Ours(25.0 * FIB_EVENTS),
        ..row(name, "plain", Measure::File(tool), 0.0)
    }
}

/// The rows of plain code.
const PLAIN: &[Row] = &plain! {
    "fib" "tak" "nrev" "queens" "lists" "sort" "parse" "bits" "append" "build" "base64" "strings" "utf8" "split"
    "maps_small" "maps_large" "records" "floats" "mandelbrot" "big" "json" "re" "messages" "ring" "gen_server" "spawn"
    "ets" "exceptions" "funs" "gb_trees" "dict" "array" "format" "terms" "scan"
};

/// The other rows.
const OTHERS: &[Row] = &[
    row("start", "", Measure::Start, 0.4),
    row("fib", "fib", Measure::Inside, 0.75),
    row("map_sum", "map_sum", Measure::Inside, 3.0),
    row("tuples", "tuples", Measure::Inside, 3.0),
    row("messages", "messages", Measure::Inside, 1.2),
    row("gen_server", "gen_server", Measure::Inside, 1.2),
    row("splitmix64", "splitmix64", Measure::Inside, 1.0),
    row("congruence", "congruence", Measure::Inside, 1.0),
    row("fnv1a", "fnv1a", Measure::Inside, 1.0),
    row("prime_field", "prime_field", Measure::Inside, 1.0),
    row("mwc59", "mwc59", Measure::Inside, 1.0),
    row("hashes", "hashes", Measure::Inside, 1.0),
    row("update_with", "update_with", Measure::Inside, 1.0),
    row("lookup", "lookup", Measure::Inside, 1.0),
    row("lexemes", "lexemes", Measure::Inside, 1.0),
    row("passing_over", "passing_over", Measure::Inside, 1.0),
    row("behind_queue", "behind_queue", Measure::Inside, 1.0),
    row("queue_info", "queue_info", Measure::Inside, 1.0),
    row("compile", "compile", Measure::Inside, 0.9),
    row("compile_elixir", "compile_elixir", Measure::Inside, 0.9),
    Row {
        unit: Unit::Bytes,
        ..row("resident", "", Measure::Resident, 0.75)
    },
    Row {
        unit: Unit::Bytes,
        ..row("idle_bytes", "idle_bytes", Measure::Inside, 1.0)
    },
    row("idle_spawn", "idle_spawn", Measure::Inside, 1.0),
    row(
        "fib_call_count",
        "fib",
        Measure::Profiled("call_count"),
        1.2,
    ),
    row("fib_call_time", "fib", Measure::Profiled("call_time"), 0.15),
    row(
        "fib_call_memory",
        "fib",
        Measure::Profiled("call_memory"),
        0.5,
    ),
    Row {
        unit: Unit::Share,
        ..trace("trace_idle", "idle", Most::Ours(1_010_000.0))
    },
    trace("trace_call", "call", Most::Ratio(0.7)),
    Row {
        measure: Measure::Recorded,
        ..trace("trace_call_recorded", "calls", Most::Ours(60.0))
    },
    trace("trace_messages", "messages", Most::Ratio(0.8)),
    trace("trace_set", "set", Most::Ratio(1.0)),
    trace("trace_set_each", "set_each", Most::Ratio(1.0)),
    trace("trace_read", "read", Most::Ratio(1.0)),
    trace("trace_gap", "gap", Most::Ours(1e6)),
    native("native_call", "nothing", 1.0),
    native("native_list", "list", 1.0),
    native("native_map", "map", 1.0),
    native("native_inspect_binary", "inspect", 1.0),
    native("native_dirty", "dirty", 1.0),
    native("native_sends", "sends", 1.0),
    native("native_discard", "discard", 0.6),
    native("native_hash_64", "hash_64", 1.0),
    native("native_hash_1M", "hash_1M", 1.0),
    native("native_jiffy", JIFFY, 1.0),
    file("record_fprof", "fprof"),
    file("record_dbg", "dbg"),
];

/// The worst of the ratios of sockets while the workload's functions are measured.
pub(super) const NET_UNDER: f64 = 1.25;

/// The geometric mean of the rows of the order.
pub(super) const ORDER_MEAN: f64 = 1.10;

const fn order(name: &'static str, workload: &'static str) -> Row {
    Row {
        most: Most::Any,
        ..row(name, workload, Measure::Order("plain_work"), 0.0)
    }
}

/// The rows of what it costs to record the order.
const ORDER: &[Row] = &[
    order("order_messages", "messages"),
    order("order_gen_server", "gen_server"),
    order("order_ring", "ring"),
    order("order_shared_table", "shared_table"),
    Row {
        measure: Measure::Order("compare_work"),
        ..order("order_compile", "compile")
    },
];

/// All rows.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    PLAIN.iter().chain(OTHERS).chain(NET).chain(ORDER)
}
