//! A key that cannot be printed by accident.
//!
//! It comes from the configuration, goes into one request header and nowhere else: `Debug` hides it,
//! nothing serialises it, and an answer that repeats it is shown without it.

use std::fmt;

/// Shorter keys are placeholders such as `none`, and taking them out would only garble texts.
const MIN_REDACTED_BYTES: usize = 8;

/// A text that only its user reads; `Debug` shows that it is there and nothing else.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Takes a key as it was configured; `None` when nothing but blanks is left of it.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The text without the key, in case a server sends it back to us.
    pub(crate) fn redact_from(&self, text: &str) -> String {
        if self.0.len() < MIN_REDACTED_BYTES { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
