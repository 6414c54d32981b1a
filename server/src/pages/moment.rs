//! Moments as pages show them: in UTC with the zone, which the script of the page turns into the reader's own time.
//!
//! The text in UTC stays in the title, so that it is shown on hover. Without script it stays the text.

use askama::filters::HtmlSafe;
use chrono::{DateTime, Utc};
use std::fmt;
use steward_domain::time::format_age;

/// A moment. It displays as an HTML element of digits, letters and its own markup alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) DateTime<Utc>);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (machine, shown) = (steward_domain::time::format_millis(self.0), format_moment(self.0));
        write!(f, "<time class=\"moment\" datetime=\"{machine}\" title=\"{shown}\">{shown}</time>")
    }
}

impl HtmlSafe for Moment {}

/// A moment from a file. Text that is not a valid moment, such as a person's own words, is shown unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenMoment {
    pub(crate) text: String,
    pub(crate) at: Option<Moment>,
}

impl WrittenMoment {
    pub(crate) fn read(text: &str) -> Self {
        let at = steward_domain::time::parse(text).map(Moment);
        Self { text: if at.is_some() { String::new() } else { text.to_owned() }, at }
    }
}

/// The value of a fact: text, and a moment after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FactValue {
    pub(crate) text: String,
    pub(crate) at: Option<Moment>,
}

impl FactValue {
    /// How long ago a moment was, and the moment.
    pub(crate) fn from_moment(at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        Self { text: format!("{},", format_age(at, now)), at: Some(Moment(at)) }
    }
}

impl<T: Into<String>> From<T> for FactValue {
    fn from(text: T) -> Self {
        Self { text: text.into(), at: None }
    }
}

/// Formats a moment for a person, in UTC, to the minute.
fn format_moment(at: DateTime<Utc>) -> String {
    at.format("%-d %b %Y, %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_element_with_utc_in_its_title_and_other_text_stays_text() {
        let shown = "3 Nov 2026, 09:05 UTC";
        let read = WrittenMoment::read("2026-11-03T09:05:59.123Z");
        let element =
            format!("<time class=\"moment\" datetime=\"2026-11-03T09:05:59.123Z\" title=\"{shown}\">{shown}</time>");
        assert_eq!((read.at.unwrap().to_string(), read.text), (element, String::new()));
        let other = WrittenMoment::read("<b>this morning");
        assert_eq!((other.at, other.text.as_str()), (None, "<b>this morning"));
    }
}
