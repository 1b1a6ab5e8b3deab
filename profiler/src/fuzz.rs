//! The readers of foreign bytes as functions for fuzzers: see `ci/fuzz`.

use std::path::Path;

use crate::ci::config::Config;

/// `beamline.toml`: it is refused in one line, or has workloads with names of their own.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Config::parse(text, Path::new("folder")) {
        Ok(config) => {
            let names = config.workloads.iter().map(|workload| &workload.name);
            let names: std::collections::HashSet<_> = names.collect();
            assert!(!names.is_empty() && names.len() == config.workloads.len());
            assert!(config.workloads.iter().all(|w| !w.command.is_empty()));
        }
        Err(error) => assert_eq!(error.lines().count(), 1, "{error}"),
    }
}
