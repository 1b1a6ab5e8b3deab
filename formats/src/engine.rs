//! Chooses what runs code.

use serde::{Deserialize, Serialize};

use crate::variable::Variable;

/// What an emulator runs code with. Whoever starts an emulator tells it, except where it is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Specific instructions are interpreted.
    #[default]
    Interpreter,
    /// Each function is compiled to machine code when it is first called.
    Jit,
}

impl Variable for Engine {
    const VARIABLE: &'static str = "BEAMLINE_ENGINE";
}
