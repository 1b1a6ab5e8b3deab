//! Merges the profiles of several emulators.

use std::collections::HashMap;

use super::{Count, Function, Node, Process, Profile, Type};

impl Profile {
    /// What was measured; `None` for a profile without a run.
    #[must_use]
    pub fn kind(&self) -> Option<Type> {
        self.runs.first().map(|run| run.kind)
    }

    /// Puts profiles together: functions of the same name become one, processes stay apart.
    ///
    /// # Errors
    /// One line when the profiles did not measure the same, or there are too many entries.
    pub fn merge(profiles: impl IntoIterator<Item = Profile>) -> Result<Profile, String> {
        let mut merged = Profile::default();
        let mut functions = HashMap::new();
        for profile in profiles {
            if let (Some(a), Some(b)) = (merged.kind(), profile.kind())
                && a != b
            {
                return Err(format!(
                    "a profile of type {} cannot be merged with one of type {}",
                    b.name(),
                    a.name()
                ));
            }
            merged.append(profile, &mut functions)?;
        }
        Ok(merged)
    }

    fn append(
        &mut self,
        other: Profile,
        functions: &mut HashMap<Function, u32>,
    ) -> Result<(), String> {
        let run = index(self.runs.len())?;
        let process = index(self.processes.len())?;
        let node = index(self.nodes.len())?;
        // The sums below stay in range when the last index of each table does.
        for (mine, added) in [
            (self.runs.len(), other.runs.len()),
            (self.processes.len(), other.processes.len()),
            (self.nodes.len(), other.nodes.len()),
        ] {
            index(mine + added)?;
        }
        let mut renamed = Vec::with_capacity(other.functions.len());
        for function in other.functions {
            let next = index(functions.len())?;
            let at = *functions.entry(function).or_insert_with_key(|function| {
                self.functions.push(function.clone());
                next
            });
            renamed.push(at);
        }
        self.origins.extend(other.origins);
        for (function, native) in &other.natives {
            self.add_native(function, *native);
        }
        self.runs.extend(other.runs);
        self.processes
            .extend(other.processes.into_iter().map(|p| Process {
                run: p.run + run,
                ..p
            }));
        self.counts.extend(other.counts.into_iter().map(|c| Count {
            function: renamed[c.function as usize],
            run: c.run + run,
            process: c.process.map(|p| p + process),
            ..c
        }));
        self.nodes.extend(other.nodes.into_iter().map(|n| Node {
            process: n.process + process,
            parent: n.parent.map(|p| p + node),
            function: renamed[n.function as usize],
            ..n
        }));
        Ok(())
    }
}

fn index(length: usize) -> Result<u32, String> {
    u32::try_from(length).map_err(|_| "the profiles together are too large".to_owned())
}
