//! A socket in the replay of a recorded run: a port that opens nothing and sends nothing. Its answers and messages are the
//! recorded ones. For a process that follows no recorded run it is closed.

use crate::port::driver::{Context, Driver, End};

pub(in crate::port) struct Replayed;

impl Driver for Replayed {
    fn output(&mut self, _port: &mut Context<'_>, _data: Vec<u8>) -> Result<(), End> {
        Ok(())
    }

    fn is_socket(&self) -> bool {
        true
    }

    fn is_replayed(&self) -> bool {
        true
    }
}
