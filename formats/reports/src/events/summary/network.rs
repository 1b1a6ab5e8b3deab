//! Sockets and their peers, as text.

use std::fmt;

use beamline_formats::name::{size, thousands, time};
use beamline_formats::profile::View;

use super::Summary;
use super::shown::{write_columns, write_more};
use crate::events::connections::{Connection, Times};

/// Rows of a table where no other number is asked for.
const ROWS: usize = 15;

/// Processes that wait for a socket that are named.
const WAITS: usize = 3;

/// The column at which they are.
const WAITS_AT: usize = 14;

/// The rows that a view shows.
fn shown<'r, Row>(rows: &'r [Row], view: &View) -> &'r [Row] {
    let top = view.top.map_or(ROWS, |top| top.min(ROWS));
    &rows[..rows.len().min(top)]
}

/// How many answers there were, how long they took on average and at most; dashes where there were none.
fn answers(of: &Times) -> [String; 3] {
    match of.count {
        0 => ["-", "-", "-"].map(str::to_owned),
        count => [thousands(count), time(of.mean_ns()), time(of.longest_ns)],
    }
}

impl Summary {
    /// Whom the program was connected to, and how soon they answered.
    pub(super) fn write_peers(&self, f: &mut fmt::Formatter<'_>, view: &View) -> fmt::Result {
        if self.peers.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\nPeers: answers take from the last bytes sent to the first that came then; to clients, the other way round"
        )?;
        write_columns(
            f,
            &[
                "WAITED", "ANSWERS", "MEAN", "LONGEST", "IN", "OUT", "SOCKETS",
            ],
        )?;
        writeln!(f, " PEER")?;
        let rows = shown(&self.peers, view);
        for row in rows {
            write_columns(f, &[time(row.waited_ns)])?;
            write_columns(f, &answers(&row.answers))?;
            write_columns(f, &[size(row.in_bytes), size(row.out_bytes)])?;
            write_columns(f, &[thousands(row.connections)])?;
            let failures = match row.failures {
                0 => String::new(),
                failures => format!(" ({} failed)", thousands(failures)),
            };
            let peer = format!("{}{failures}", row.peer);
            writeln!(f, " {}", view.cut(&peer, 7 * 13 + 1))?;
        }
        write_more(f, self.peers.len() - rows.len(), "peers: see --json", 7)
    }

    /// The sockets, with the processes that waited for them.
    pub(super) fn write_connections(&self, f: &mut fmt::Formatter<'_>, view: &View) -> fmt::Result {
        if self.connections.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nSockets")?;
        write_columns(f, &["WAITED", "IN", "OUT", "RECEIVED", "SENT", "OPEN FOR"])?;
        writeln!(f, " SOCKET, OWNER")?;
        let rows = shown(&self.connections, view);
        for row in rows {
            self.write_connection(f, row, view)?;
        }
        write_more(
            f,
            self.connections.len() - rows.len(),
            "sockets: see --json",
            6,
        )
    }

    fn write_connection(
        &self,
        f: &mut fmt::Formatter<'_>,
        row: &Connection,
        view: &View,
    ) -> fmt::Result {
        let until = row.closed_ns.unwrap_or(self.end_ns);
        let open = row.opened_ns.map(|from| time(until.saturating_sub(from)));
        write_columns(f, &[time(row.waited_ns)])?;
        write_columns(f, &[size(row.in_bytes), size(row.out_bytes)])?;
        write_columns(f, &[thousands(row.ins), thousands(row.outs)])?;
        write_columns(f, &[open.unwrap_or_else(|| "-".to_owned())])?;
        let owner = format!("{} {}", row.owner, row.owner_name);
        let mut text = format!("{}, {}", row.text, owner.trim_end());
        if row.accepted > 0 {
            text.push_str(&format!("; {} accepted", thousands(row.accepted)));
        }
        if row.is_closed_by_peer {
            text.push_str("; closed by its peer");
        }
        if !row.failure.is_empty() {
            text.push_str(&format!("; {}", row.failure));
        }
        writeln!(f, " {}", view.cut(&text, 6 * 13 + 1))?;
        for waited in row.waits.iter().take(WAITS) {
            let who = format!("{} {}", waited.process, waited.name);
            let often = match waited.times {
                1 => "once".to_owned(),
                times => format!(
                    "{} times, at most {}",
                    thousands(times),
                    time(waited.longest_ns)
                ),
            };
            let line = format!(
                "{} waited {} {}, {often}",
                who.trim_end(),
                time(waited.total_ns),
                waited.what,
            );
            writeln!(f, "{:WAITS_AT$}{}", "", view.cut(&line, WAITS_AT))?;
        }
        match row.waits.len().saturating_sub(WAITS) {
            0 => Ok(()),
            more => writeln!(f, "{:WAITS_AT$}and {more} more", ""),
        }
    }
}
