//! Encodes moments and frontmatter values as messages.
//!
//! A value keeps its structure and is never interpreted. A moment in a request is checked, because not every pair of
//! numbers is a valid moment.

use super::invalid_argument;
use chrono::{DateTime, Utc};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Timestamp, Value};
use tonic::Status;

/// Encodes a moment, which may be before 1970.
pub(super) fn encode_moment(at: DateTime<Utc>) -> Timestamp {
    Timestamp { seconds: at.timestamp(), nanos: at.timestamp_subsec_nanos().cast_signed() }
}

/// Decodes the moment in a field of a request.
///
/// # Errors
/// When it is not a valid moment.
pub(super) fn decode_moment(field: &str, at: Timestamp) -> Result<DateTime<Utc>, Status> {
    let nanos = u32::try_from(at.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let at = nanos.and_then(|nanos| DateTime::from_timestamp(at.seconds, nanos));
    at.ok_or_else(|| invalid_argument(&format!("`{field}` is not a valid moment")))
}

/// Encodes the value of a record's field.
pub(super) fn encode_value(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(value) => Kind::BoolValue(*value),
        Json::Number(value) => Kind::NumberValue(value.as_f64().unwrap_or(f64::NAN)),
        Json::String(value) => Kind::StringValue(value.clone()),
        Json::Array(values) => Kind::ListValue(ListValue { values: values.iter().map(encode_value).collect() }),
        Json::Object(values) => Kind::StructValue(Struct {
            fields: values.iter().map(|(key, value)| (key.clone(), encode_value(value))).collect(),
        }),
    };
    Value { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_moment_is_decoded_as_it_was_encoded_and_an_invalid_one_is_refused() {
        let at = DateTime::from_timestamp(-1, 250_000_000).unwrap();
        assert_eq!(decode_moment("since", encode_moment(at)).unwrap(), at);
        for (seconds, nanos) in [(i64::MAX, 0), (0, -1), (0, 1_000_000_000)] {
            assert!(decode_moment("since", Timestamp { seconds, nanos }).is_err());
        }
    }

    #[test]
    fn a_value_keeps_its_structure() {
        let Some(Kind::StructValue(all)) = encode_value(&json!({"a": [1, "x", null, true]})).kind else { panic!() };
        let Some(Kind::ListValue(list)) = &all.fields["a"].kind else { panic!() };
        let kinds: Vec<Kind> = list.values.iter().filter_map(|it| it.kind.clone()).collect();
        let expected =
            [Kind::NumberValue(1.0), Kind::StringValue("x".into()), Kind::NullValue(0), Kind::BoolValue(true)];
        assert_eq!(kinds, expected);
    }
}
