//! Benchmarks of the runtime's parts: `benches/parts.rs`. What was measured is in `RESULTS.md`.
