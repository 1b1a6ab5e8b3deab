//! Benchmarks of the runtime's parts.
