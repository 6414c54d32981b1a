//! Moments and values of a frontmatter as messages.
//!
//! A value keeps its shape, and is data whatever it says. A moment that a request names is checked before it is used:
//! not every pair of numbers is one.

use super::invalid_argument;
use chrono::{DateTime, Utc};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Timestamp, Value};
use tonic::Status;

/// A moment; before 1970 too.
pub(super) fn encode_moment(at: DateTime<Utc>) -> Timestamp {
    Timestamp { seconds: at.timestamp(), nanos: at.timestamp_subsec_nanos().cast_signed() }
}

/// A moment that somebody names.
pub(super) fn decode_moment(field: &str, at: Timestamp) -> Result<DateTime<Utc>, Status> {
    let nanos = u32::try_from(at.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    let at = nanos.and_then(|nanos| DateTime::from_timestamp(at.seconds, nanos));
    at.ok_or_else(|| invalid_argument(&format!("`{field}` is no moment")))
}

/// What a field of a record holds.
pub(super) fn encode_value(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match json {
        Json::Null => Kind::NullValue(0),
        Json::Bool(it) => Kind::BoolValue(*it),
        Json::Number(it) => Kind::NumberValue(it.as_f64().unwrap_or(f64::NAN)),
        Json::String(it) => Kind::StringValue(it.clone()),
        Json::Array(all) => Kind::ListValue(ListValue { values: all.iter().map(encode_value).collect() }),
        Json::Object(all) => {
            Kind::StructValue(Struct { fields: all.iter().map(|(key, it)| (key.clone(), encode_value(it))).collect() })
        }
    };
    Value { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_moment_comes_back_and_what_is_none_is_refused() {
        let at = DateTime::from_timestamp(-1, 250_000_000).unwrap();
        assert_eq!(decode_moment("since", encode_moment(at)).unwrap(), at);
        for (seconds, nanos) in [(i64::MAX, 0), (0, -1), (0, 1_000_000_000)] {
            assert!(decode_moment("since", Timestamp { seconds, nanos }).is_err());
        }
    }

    #[test]
    fn a_value_keeps_its_shape() {
        let Some(Kind::StructValue(all)) = encode_value(&json!({"a": [1, "x", null, true]})).kind else { panic!() };
        let Some(Kind::ListValue(list)) = &all.fields["a"].kind else { panic!() };
        let kinds: Vec<Kind> = list.values.iter().filter_map(|it| it.kind.clone()).collect();
        let said = [Kind::NumberValue(1.0), Kind::StringValue("x".into()), Kind::NullValue(0), Kind::BoolValue(true)];
        assert_eq!(kinds, said);
    }
}
