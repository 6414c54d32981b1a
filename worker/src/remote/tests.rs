//! What a server says, as the command takes it.

use super::*;

fn near() -> RemoteStewardClient {
    let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
    RemoteStewardClient::new(channel, "x", ("Jörg", false)).unwrap()
}

#[tokio::test]
async fn a_refusal_comes_back_as_it_was_and_trouble_is_none() {
    let refusal =
        ResolutionRefusal::AlreadyAnswered { id: "0123456789abcdef".into(), how: "undone".into(), by: "Jörg".into() };
    let mut status = Status::already_exists(refusal.to_string());
    let whole = serde_json::to_vec(&refusal).unwrap();
    status.metadata_mut().insert_bin(REFUSAL_TRAILER, MetadataValue::from_bytes(&whole));
    assert_eq!(near().read_refusal(&status).unwrap(), refusal);
    let away = near().read_refusal(&Status::unavailable("the Temporal server gave no answer")).unwrap_err();
    assert_eq!(away.to_string(), "the Temporal server gave no answer");
}

#[test]
fn what_is_wrong_is_told_with_the_mend() {
    assert!(explain_status(false, &Status::unauthenticated("no")).contains("start it again"));
    assert!(explain_status(true, &Status::unauthenticated("no")).contains("steward token list"));
    let narrow = Status::permission_denied("this needs the scope `act`; you have `read`");
    assert!(explain_status(true, &narrow).contains("needs the scope `act`"));
    assert!(explain_status(true, &narrow).contains("steward token create --scope act"));
    assert!(explain_status(true, &Status::unimplemented("")).contains("no Steward of this version"));
}
