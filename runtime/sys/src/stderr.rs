//! Writes the runtime's own messages to standard error.

/// Writes a line as `eprintln!` does, and goes on where nobody reads standard error any more: that is no error of the
/// machine's.
#[macro_export]
macro_rules! complain {
    ($($line:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($line)*);
    }};
}
pub use crate::complain;
