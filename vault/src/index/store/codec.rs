//! The encoding of values in the tables: instants as microseconds since 1970, enums by their serde spelling.
//!
//! Stored and returned instants both have microseconds and no nanoseconds, so that they compare equal.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) fn to_micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

/// `None` beyond the range of years that chrono supports.
pub(crate) fn from_micros(micros: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
}

/// The serde spelling of a plain enum.
pub(crate) fn encode_enum<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

pub(crate) fn decode_enum<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(Value::String(word.to_owned())).ok()
}
