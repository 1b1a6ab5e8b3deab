//! The nodes of this machine that are alive.

use beamline_settings::chance;

/// A node, as it has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) name: Vec<u8>,
    pub(super) port: u16,
    /// Type, protocol, highest and lowest version of the distribution, as they were sent.
    pub(super) kind: u8,
    pub(super) protocol: u8,
    pub(super) highest: u16,
    pub(super) lowest: u16,
    pub(super) extra: Vec<u8>,
}

/// All nodes that hold their connections.
#[derive(Debug, Default)]
pub(super) struct Register {
    nodes: Vec<Node>,
    creation: u32,
}

/// The longest name.
const NAME_MAX: usize = 255 * 4;

impl Register {
    /// An empty one. Creations begin with the time, so that a node does not get the one that it had before a restart.
    pub(super) fn new() -> Register {
        Register {
            nodes: Vec::new(),
            creation: (chance::system_ns() / 1_000_000_000) as u32,
        }
    }

    /// Registers a node: its creation. `None` where its name is taken, or none.
    pub(super) fn add(&mut self, node: Node) -> Option<u32> {
        let is_name = !node.name.is_empty() && node.name.len() <= NAME_MAX;
        if !is_name || node.name.contains(&0) || self.find(&node.name).is_some() {
            return None;
        }
        self.nodes.push(node);
        // Those below 4 have another meaning in old pids.
        self.creation = self.creation.checked_add(1).unwrap_or(0).max(4);
        Some(self.creation)
    }

    /// The node of this name.
    pub(super) fn find(&self, name: &[u8]) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Forgets a node; whether it was there.
    pub(super) fn remove(&mut self, name: &[u8]) -> bool {
        let before = self.nodes.len();
        self.nodes.retain(|node| node.name != name);
        self.nodes.len() != before
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A line for each node.
    pub(super) fn lines(&self, line: impl Fn(&str, u16) -> String) -> String {
        let nodes = self.nodes.iter();
        nodes
            .map(|node| line(&String::from_utf8_lossy(&node.name), node.port))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Node {
        Node {
            name: name.into(),
            port: 7,
            kind: 77,
            protocol: 0,
            highest: 6,
            lowest: 6,
            extra: Vec::new(),
        }
    }

    #[test]
    fn a_name_is_given_once_and_each_time_with_another_creation() {
        let mut register = Register::new();
        let first = register.add(node("a")).unwrap();
        assert_eq!(register.add(node("a")), None);
        assert_eq!(register.add(node("")), None);
        assert!(register.remove(b"a") && !register.remove(b"a"));
        let second = register.add(node("a")).unwrap();
        assert!(first >= 4 && second > first);
        assert_eq!(register.lines(|name, port| format!("{name}{port} ")), "a7 ");
    }
}
