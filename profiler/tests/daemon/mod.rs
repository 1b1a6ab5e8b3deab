//! A folder with a program, and a daemon of names that only its test uses.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use crate::library;
use crate::place::Place;

/// See the module. The daemon ends with it.
pub(crate) struct Nodes {
    pub(crate) place: Place,
    port: String,
}

impl Nodes {
    /// With this module, compiled, as a file of `folder` below the tests; none where there is no OTP.
    pub(crate) fn new(folder: &str, module: &str) -> Option<Nodes> {
        let place = library::place_of(folder, module)?;
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = free.local_addr().expect("it has one").port().to_string();
        drop(free);
        let nodes = Nodes { place, port };
        let daemon = nodes.beamline(&["epmd", "-daemon"]).status();
        assert!(daemon.expect("it runs").success());
        Some(nodes)
    }

    pub(crate) fn beamline(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.beamline(arguments);
        // Where the test runs nobody else is to find the nodes.
        command
            .env("ERL_EPMD_PORT", &self.port)
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            // Nodes that are going may be registered when it is to end.
            .env("ERL_EPMD_RELAXED_COMMAND_CHECK", "true");
        command
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let _ = self.beamline(&["epmd", "-kill"]).output();
    }
}
