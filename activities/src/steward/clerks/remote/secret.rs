//! A key that cannot be printed by accident.
//!
//! It comes from the configuration and must go nowhere but into one request header. `Debug` hides it, nothing
//! serialises it, and an answer that repeats it is shown without it.

use std::fmt;

/// The shortest key that is redacted, in bytes: 8. Shorter keys are placeholders such as `none`.
const MIN_REDACTED_BYTES: usize = 8;

/// A secret text. `Debug` shows only that it exists.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes a key as it was configured; `None` if it is blank.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The text itself, for the one place that uses it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces the key in a text, in case a server sends it back.
    pub(crate) fn redact_from(&self, text: &str) -> String {
        if self.0.len() < MIN_REDACTED_BYTES { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
