//! The call paths of all nodes, each below a frame for its node.

use beamline_formats::profile::{Cost, Function, Node, Profile};

use super::Cluster;

impl Cluster {
    /// The profiles of the nodes, in their order, as one whose call paths begin with their nodes. The sums of functions stay as they
    /// are.
    ///
    /// # Errors
    /// One line when the profiles did not measure the same, or are too large together.
    pub fn apart(&self, profiles: Vec<Profile>) -> Result<Profile, String> {
        let names = self.members().iter().map(|member| member.name.as_str());
        let apart = names
            .zip(profiles)
            .map(|(name, profile)| below(name, profile));
        Profile::merge(apart)
    }
}

/// A profile whose paths are below a frame of this name, which no function has: it has no module.
fn below(name: &str, mut profile: Profile) -> Profile {
    let Ok(frame) = u32::try_from(profile.functions.len()) else {
        return profile;
    };
    let root = |process| Node {
        process,
        parent: None,
        function: frame,
        cost: Cost::default(),
        reductions: 0,
        wait_ns: 0,
    };
    // Each process has one, in front of all others.
    let Ok(roots) = u32::try_from(profile.processes.len()) else {
        return profile;
    };
    let others = profile.nodes.iter().map(|node| Node {
        parent: Some(node.parent.map_or(node.process, |parent| parent + roots)),
        ..*node
    });
    profile.nodes = (0..roots).map(root).chain(others).collect();
    profile.functions.push(Function {
        module: String::new(),
        name: name.to_owned(),
        arity: 0,
    });
    profile
}
