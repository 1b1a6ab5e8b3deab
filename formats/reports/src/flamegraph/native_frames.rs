//! How frames of native code look: each kind has a colour that no module has, and an edge, so that readers tell them
//! from the others and from each other without colours, too.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use beamline_formats::profile::Native;
use inferno::flamegraph::color::{Color, PaletteMap};

use super::rgb;

/// The look of a kind of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Look {
    fill: (u8, u8, u8),
    edge: &'static str,
    dashes: &'static str,
    /// What it means.
    pub(super) text: &'static str,
}

const LOOKS: [Look; 4] = [
    Look {
        fill: (255, 210, 31),
        edge: "#5c4300",
        dashes: "none",
        text: Native::Ordinary.about(),
    },
    Look {
        fill: (255, 140, 40),
        edge: "#6b2500",
        dashes: "6 3",
        text: Native::DirtyCpu.about(),
    },
    Look {
        fill: (64, 205, 235),
        edge: "#003f52",
        dashes: "6 3",
        text: Native::DirtyIo.about(),
    },
    DIRTY_WAIT,
];

/// Of the frame of waiting for a dirty scheduler.
pub(super) const DIRTY_WAIT: Look = Look {
    fill: (236, 236, 244),
    edge: "#50505c",
    dashes: "1 3",
    text: "Waits for a dirty scheduler",
};

impl Look {
    pub(super) fn of(native: Native) -> Look {
        LOOKS[match native {
            Native::Ordinary => 0,
            Native::DirtyCpu => 1,
            Native::DirtyIo => 2,
        }]
    }

    pub(super) fn color(self) -> Color {
        let (r, g, b) = self.fill;
        rgb(r, g, b)
    }

    /// Its colour as the drawing writes it.
    pub(super) fn fill(self) -> String {
        let (r, g, b) = self.fill;
        format!("rgb({r},{g},{b})")
    }

    fn of_color(color: Color) -> Option<Look> {
        LOOKS.into_iter().find(|look| look.color() == color)
    }
}

/// The colour of a native function's frames.
pub(super) fn color(native: Native) -> Color {
    Look::of(native).color()
}

/// The style of the edges of these frames, and of those in the legend.
pub(super) fn style() -> String {
    let mut style = String::new();
    for look in LOOKS {
        let (fill, edge, dashes) = (look.fill(), look.edge, look.dashes);
        let _ = writeln!(
            style,
            "#frames rect[fill='{fill}'], #legend rect[fill='{fill}'] {{ stroke:{edge}; stroke-width:1px; stroke-dasharray:{dashes}; }}"
        );
    }
    style
}

/// The looks that are among the frames of these stacks, in their order.
pub(super) fn legend<'a>(
    lines: impl Iterator<Item = &'a str>,
    palette: Option<&PaletteMap>,
) -> Vec<Look> {
    let Some(palette) = palette else {
        return Vec::new();
    };
    let mut known: std::collections::HashMap<&str, Option<Look>> = std::collections::HashMap::new();
    let mut found = BTreeSet::new();
    for line in lines {
        let stack = line.rsplit_once(' ').map_or(line, |(stack, _)| stack);
        for frame in stack.split(';') {
            let look = *known.entry(frame).or_insert_with(|| {
                let color = palette.get(frame);
                color.and_then(Look::of_color)
            });
            found.extend(look);
        }
    }
    LOOKS
        .into_iter()
        .filter(|look| found.contains(look))
        .collect()
}
