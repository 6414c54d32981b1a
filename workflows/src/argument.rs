//! The argument of a workflow, decoded so that an invalid one fails the run and not its workflow task.
//!
//! If the SDK cannot decode an argument, it fails the workflow task, and the server repeats that task until the run
//! times out. So decoding a [`WorkflowArgument`] must never fail. The workflow then takes the value, and fails once
//! with the reason.

use temporalio_common::data_converters::{
    GenericPayloadConverter, PayloadConversionError, SerializationContext, TemporalDeserializable, TemporalSerializable,
};
use temporalio_common::protos::temporal::api::common::v1::Payload;

/// Longest part of a decoder's message that is passed on, in characters: 200, because it may quote the argument.
const MAX_REASON_CHARS: usize = 200;

/// The argument of a workflow, or the reason why it is invalid.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowArgument<T>(Result<T, String>);

impl<T> From<T> for WorkflowArgument<T> {
    fn from(value: T) -> Self {
        Self(Ok(value))
    }
}

impl<T> WorkflowArgument<T> {
    /// Takes the value; `expected` is the text after "expected" in the error.
    ///
    /// # Errors
    /// The reason, for `permanent_failure`, when the argument is missing or of another type.
    pub(crate) fn into_value(self, expected: &str) -> Result<T, String> {
        self.0.map_err(|reason| format!("invalid argument ({reason}): expected {expected}"))
    }
}

impl<T: TemporalSerializable + 'static> TemporalSerializable for WorkflowArgument<T> {
    fn to_payload(&self, ctx: &SerializationContext<'_>) -> Result<Payload, PayloadConversionError> {
        match &self.0 {
            Ok(value) => ctx.converter.to_payload(ctx, value),
            Err(reason) => Err(PayloadConversionError::EncodingError(reason.clone().into())),
        }
    }

    fn to_payloads(&self, ctx: &SerializationContext<'_>) -> Result<Vec<Payload>, PayloadConversionError> {
        match &self.0 {
            Ok(value) => ctx.converter.to_payloads(ctx, value),
            Err(reason) => Err(PayloadConversionError::EncodingError(reason.clone().into())),
        }
    }
}

impl<T: TemporalDeserializable + 'static> TemporalDeserializable for WorkflowArgument<T> {
    fn from_payload(ctx: &SerializationContext<'_>, payload: Payload) -> Result<Self, PayloadConversionError> {
        Self::from_payloads(ctx, vec![payload])
    }

    fn from_payloads(ctx: &SerializationContext<'_>, payloads: Vec<Payload>) -> Result<Self, PayloadConversionError> {
        let given = payloads.len();
        let decoded = ctx.converter.from_payloads(ctx, payloads);
        Ok(Self(decoded.map_err(|error| describe_decode_error(given, &error))))
    }
}

fn describe_decode_error(given: usize, error: &PayloadConversionError) -> String {
    if given != 1 {
        return format!("{given} arguments");
    }
    let message = error.to_string();
    message.chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use temporalio_common::data_converters::{
        PayloadConverter, SerializationContextData, WorkflowSerializationContext,
    };

    fn decode(payloads: &[(&str, &str)]) -> WorkflowArgument<String> {
        let payload = |(encoding, data): &(&str, &str)| Payload {
            metadata: [("encoding".to_owned(), encoding.as_bytes().to_vec())].into(),
            data: data.as_bytes().to_vec(),
            ..Payload::default()
        };
        let (data, converter) =
            (SerializationContextData::Workflow(WorkflowSerializationContext::new()), PayloadConverter::default());
        let ctx = SerializationContext::new(&data, &converter);
        converter.from_payloads(&ctx, payloads.iter().map(payload).collect()).unwrap()
    }

    #[test]
    fn whatever_is_given_decodes_and_only_a_usable_value_is_handed_out() {
        assert_eq!(decode(&[("json/plain", "\"matter/a.md\"")]), WorkflowArgument::from("matter/a.md".to_owned()));
        let wrong: [&[(&str, &str)]; 6] = [
            &[],
            &[("json/plain", "{\"a\":1}")],
            &[("json/plain", "7")],
            &[("json/plain", "no json")],
            &[("binary/plain", "\u{1}")],
            &[("json/plain", "\"a\""), ("json/plain", "\"b\"")],
        ];
        for payloads in wrong {
            let failure = decode(payloads).into_value("a path").unwrap_err();
            assert!(failure.contains("invalid argument") && failure.contains("expected a path"), "{failure}");
        }
    }

    #[test]
    fn a_value_is_written_as_it_would_be_alone() {
        let (data, converter) =
            (SerializationContextData::Workflow(WorkflowSerializationContext::new()), PayloadConverter::default());
        let ctx = SerializationContext::new(&data, &converter);
        let alone = converter.to_payloads(&ctx, &"matter/a.md".to_owned()).unwrap();
        assert_eq!(converter.to_payloads(&ctx, &WorkflowArgument::from("matter/a.md".to_owned())).unwrap(), alone);
        assert_eq!(
            converter.to_payloads(&ctx, &WorkflowArgument::from(())).unwrap(),
            converter.to_payloads(&ctx, &()).unwrap()
        );
    }
}
