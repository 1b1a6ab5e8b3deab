//! Requests from the command to the emulators that it starts, in environment variables.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request that an environment variable holds: one line of JSON.
pub trait Variable: Serialize + DeserializeOwned {
    /// The variable's name.
    const VARIABLE: &'static str;

    /// The variable's value.
    ///
    /// # Errors
    /// One line when a file's name in it is not UTF-8.
    fn to_variable(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|e| format!("{}: {e}", Self::VARIABLE))
    }

    /// Reads the variable's value.
    ///
    /// # Errors
    /// One line that says what is wrong.
    fn from_variable(value: &str) -> Result<Self, String> {
        serde_json::from_str(value).map_err(|e| format!("{}: {e}", Self::VARIABLE))
    }

    /// The request of this process's environment, if there is one.
    ///
    /// # Errors
    /// One line when it cannot be understood.
    fn from_environment() -> Result<Option<Self>, String> {
        let Some(value) = std::env::var_os(Self::VARIABLE) else {
            return Ok(None);
        };
        let value = value.into_string();
        let value = value.map_err(|_| format!("{} is not UTF-8", Self::VARIABLE))?;
        Self::from_variable(&value).map(Some)
    }
}
