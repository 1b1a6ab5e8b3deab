//! What stands below a table of times: how long calls waited for dirty schedulers, which is no part of these times.

use std::cmp::Reverse;
use std::fmt;

use beamline_formats::name::{self, time};
use beamline_formats::profile::{Native, Profile, Type, View};

/// The waiting of each function, ready to print with `{}`. It is empty where nothing that is shown waited.
#[derive(Clone, Debug)]
pub struct DirtyWaits<'a> {
    /// What is shown.
    pub profile: &'a Profile,
    /// Which functions there are.
    pub view: View,
}

impl fmt::Display for DirtyWaits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DirtyWaits { profile, view } = self;
        if profile.kind() != Some(Type::CallTime) {
            return Ok(());
        }
        let mut waits = vec![0_u64; profile.functions.len()];
        for count in &profile.counts {
            let wait = &mut waits[count.function as usize];
            *wait = wait.saturating_add(count.cost.dirty_wait_ns);
        }
        let mut rows: Vec<_> = profile.functions.iter().zip(waits).collect();
        rows.retain(|(of, wait)| {
            let origin = profile.origin(&of.module);
            *wait > 0 && view.scope.has(origin, &of.module, &of.name, of.arity)
        });
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_by_key(|(of, wait)| (Reverse(*wait), *of));
        writeln!(f, "\nWaited for dirty schedulers, beside these times:")?;
        for (of, wait) in rows.iter().take(view.top.unwrap_or(usize::MAX)) {
            let kind = profile.native(of).map_or("", Native::name);
            let name = name::mfa(&of.module, &of.name, of.arity);
            writeln!(f, "{:>12}  {kind:<9}  {}", time(*wait), view.cut(&name, 25))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use beamline_formats::profile::{Cost, Count, Function};
    use beamline_formats::ring::{Event, Group};

    use super::*;
    use crate::events::sample::{Sample, process};

    fn text(profile: &Profile) -> String {
        let view = View::default();
        DirtyWaits { profile, view }.to_string()
    }

    #[test]
    fn functions_that_waited_are_told() {
        let mut profile = Sample::new(&[Group::Calls, Group::Returns]);
        profile.call(100, process(1), "f");
        profile.write(200, process(1), Event::Unwind { calls: 1 });
        let mut profile = crate::events::profile(&profile.open()).expect("readable");
        assert_eq!(text(&profile), "");
        let of = Function {
            module: "m".into(),
            name: "g".into(),
            arity: 1,
        };
        profile.add_native(&of, Native::DirtyCpu);
        profile.functions.push(of);
        let cost = Cost {
            dirty_wait_ns: 1_500_000,
            ..Cost::default()
        };
        for _ in 0..2 {
            profile.counts.push(Count {
                function: 1,
                run: 0,
                process: Some(0),
                cost,
            });
        }
        let expect =
            "\nWaited for dirty schedulers, beside these times:\n     3.00 ms  dirty CPU  m:g/1\n";
        assert_eq!(text(&profile), expect);
    }
}
