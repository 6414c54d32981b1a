//! What a server says, as the command takes it.

use super::*;

#[test]
fn a_refusal_comes_back_as_it_was_and_trouble_is_none() {
    let refusal =
        ResolutionRefusal::AlreadyAnswered { id: "0123456789abcdef".into(), how: "undone".into(), by: "Jörg".into() };
    let mut status = Status::already_exists(refusal.to_string());
    let whole = serde_json::to_vec(&refusal).unwrap();
    status.metadata_mut().insert_bin(REFUSAL_TRAILER, MetadataValue::from_bytes(&whole));
    assert_eq!(read_refusal(&status).unwrap(), refusal);
    let away = read_refusal(&Status::unavailable("the Temporal server gave no answer")).unwrap_err();
    assert_eq!(away.to_string(), "the Temporal server gave no answer");
}

#[test]
fn what_is_wrong_is_told_with_the_fix() {
    assert!(explain_status(&Status::unauthenticated("no")).contains("steward token list"));
    let narrow = Status::permission_denied("this needs the scope `act`; you have `read`");
    assert!(explain_status(&narrow).contains("needs the scope `act`"));
    assert!(explain_status(&narrow).contains("steward token create --scope act"));
    assert!(explain_status(&Status::unimplemented("")).contains("no Steward of this version"));
}
