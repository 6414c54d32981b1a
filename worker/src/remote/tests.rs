//! Tests how the command reads the responses of a server.

use super::*;

#[test]
fn a_refusal_is_decoded_unchanged_and_a_failure_is_an_error() {
    let refusal = ResolutionRefusal::AlreadyResolved {
        id: "0123456789abcdef".into(),
        how: "undone".into(),
        by: "Jörg".into(),
        undo: None,
    };
    let mut status = Status::already_exists(refusal.to_string());
    let bytes = serde_json::to_vec(&refusal).unwrap();
    status.metadata_mut().insert_bin(REFUSAL_TRAILER, MetadataValue::from_bytes(&bytes));
    assert_eq!(read_refusal(&status).unwrap(), refusal);
    let away = read_refusal(&Status::unavailable("the Temporal server gave no answer")).unwrap_err();
    assert_eq!(away.to_string(), "the Temporal server gave no answer");
}

#[test]
fn a_failure_is_explained_with_the_fix() {
    assert!(explain_status(&Status::unauthenticated("no")).contains("steward token list"));
    let narrow = Status::permission_denied("this needs the scope `act`; you have `read`");
    assert!(explain_status(&narrow).contains("needs the scope `act`"));
    assert!(explain_status(&narrow).contains("steward token create --scope act"));
    assert!(explain_status(&Status::unimplemented("")).contains("not a Steward of this version"));
}
