//! Chooses what runs code.

use serde::{Deserialize, Serialize};

use crate::variable::Variable;

/// What an emulator runs code with. Whoever starts an emulator tells it, except where it is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Instructions are interpreted.
    Interpreter,
    /// Each function is compiled to machine code when it is first called.
    Jit,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 2] = [Engine::Interpreter, Engine::Jit];

    /// Its name, as users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Engine::Interpreter => "interpreter",
            Engine::Jit => "jit",
        }
    }
}

/// The fastest that there is on this processor.
impl Default for Engine {
    fn default() -> Engine {
        match cfg!(target_arch = "x86_64") {
            true => Engine::Jit,
            false => Engine::Interpreter,
        }
    }
}

/// The variable's value is the name alone: users set it, too.
impl Variable for Engine {
    const VARIABLE: &'static str = "BEAMLINE_ENGINE";

    fn to_variable(&self) -> Result<String, String> {
        Ok(self.name().to_owned())
    }

    fn from_variable(value: &str) -> Result<Engine, String> {
        let found = Engine::ALL
            .into_iter()
            .find(|engine| engine.name() == value);
        found.ok_or_else(|| format!("{}: {value} is neither interpreter nor jit", Self::VARIABLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_holds_a_name() {
        for engine in Engine::ALL {
            let value = engine.to_variable().unwrap();
            assert_eq!(Engine::from_variable(&value), Ok(engine));
        }
        let error = Engine::from_variable("JIT").unwrap_err();
        assert_eq!(error, "BEAMLINE_ENGINE: JIT is neither interpreter nor jit");
    }
}
