//! Samples as a trace of Perfetto, read with its description.

use prost::Message as _;

use super::*;
use crate::events::sample::{process, seen};

mod proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Trace {
        #[prost(message, repeated, tag = "1")]
        pub(super) packet: Vec<TracePacket>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TracePacket {
        #[prost(uint64, optional, tag = "8")]
        pub(super) timestamp: Option<u64>,
        #[prost(message, optional, tag = "12")]
        pub(super) interned_data: Option<InternedData>,
        #[prost(uint32, optional, tag = "13")]
        pub(super) sequence_flags: Option<u32>,
        #[prost(message, optional, tag = "60")]
        pub(super) track_descriptor: Option<TrackDescriptor>,
        #[prost(message, optional, tag = "66")]
        pub(super) perf_sample: Option<PerfSample>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct InternedData {
        #[prost(message, repeated, tag = "5")]
        pub(super) function_names: Vec<InternedString>,
        #[prost(message, repeated, tag = "6")]
        pub(super) frames: Vec<Frame>,
        #[prost(message, repeated, tag = "7")]
        pub(super) callstacks: Vec<Callstack>,
        #[prost(message, repeated, tag = "19")]
        pub(super) mappings: Vec<Mapping>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct InternedString {
        #[prost(uint64, tag = "1")]
        pub(super) iid: u64,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) str: Vec<u8>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Frame {
        #[prost(uint64, tag = "1")]
        pub(super) iid: u64,
        #[prost(uint64, tag = "2")]
        pub(super) function_name_id: u64,
        #[prost(uint64, tag = "3")]
        pub(super) mapping_id: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Callstack {
        #[prost(uint64, tag = "1")]
        pub(super) iid: u64,
        #[prost(uint64, repeated, packed = "false", tag = "2")]
        pub(super) frame_ids: Vec<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Mapping {
        #[prost(uint64, tag = "1")]
        pub(super) iid: u64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct TrackDescriptor {
        #[prost(message, optional, tag = "4")]
        pub(super) thread: Option<Thread>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Thread {
        #[prost(int32, tag = "1")]
        pub(super) pid: i32,
        #[prost(int64, tag = "2")]
        pub(super) tid: i64,
        #[prost(string, tag = "5")]
        pub(super) thread_name: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct PerfSample {
        #[prost(uint32, tag = "2")]
        pub(super) pid: u32,
        #[prost(uint32, tag = "3")]
        pub(super) tid: u32,
        #[prost(uint64, tag = "4")]
        pub(super) callstack_iid: u64,
    }
}

#[test]
fn samples_are_stacks_of_threads_in_perfetto() {
    let bytes = export(&seen(2, 1).open(), Target::Perfetto);
    let trace = proto::Trace::decode(bytes.as_slice()).expect("its protocol buffer");
    let flags = trace.packet.iter().map(|packet| packet.sequence_flags);
    let flags: Vec<Option<u32>> = flags.collect();
    assert!(flags[0] == Some(3) && flags[1..].iter().all(|flags| *flags == Some(2)));
    let (mut names, mut stacks, mut threads) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut shown = Vec::new();
    for packet in &trace.packet {
        let data = packet.interned_data.clone().unwrap_or_default();
        names.extend(data.function_names.into_iter().map(|of| (of.iid, of.str)));
        for frame in &data.frames {
            // A frame without a mapping is not read.
            assert_eq!((frame.mapping_id, frame.function_name_id), (1, frame.iid));
        }
        stacks.extend(data.callstacks.into_iter().map(|of| (of.iid, of.frame_ids)));
        let track = packet.track_descriptor.clone();
        if let Some(thread) = track.and_then(|track| track.thread) {
            threads.insert((thread.pid, thread.tid), thread.thread_name);
        }
        if let Some(sample) = &packet.perf_sample {
            let thread = &threads[&(sample.pid.cast_signed(), i64::from(sample.tid))];
            let stack = stacks[&sample.callstack_iid]
                .iter()
                .map(|frame| String::from_utf8(names[frame].clone()).expect("names are text"));
            shown.push((
                packet.timestamp.expect("it has a time"),
                thread.clone(),
                stack.collect::<Vec<_>>().join(";"),
            ));
        }
    }
    let mapping = trace.packet[0]
        .interned_data
        .clone()
        .expect("it begins with it");
    assert_eq!(mapping.mappings[0].iid, 1);
    let who = process(9);
    let expect = [
        (0, format!("{who};m:f/1")),
        (1, format!("{who};m:f/1")),
        (2, format!("{who};m:f/1;m:g/1")),
    ];
    let expect = expect.map(|(at, stack)| (at, "scheduler 2".to_owned(), stack));
    assert_eq!(shown, expect);
    // Every name and stack is there once.
    assert_eq!((names.len(), stacks.len()), (3, 2));
}
