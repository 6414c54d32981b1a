//! What a server says, as the command takes it.

use super::*;

fn near() -> Server {
    let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
    Server::new(channel, "x", ("Jörg", false)).unwrap()
}

#[tokio::test]
async fn a_refusal_comes_back_as_it_was_and_trouble_is_none() {
    let refusal =
        ResolutionRefusal::AlreadyAnswered { id: "0123456789abcdef".into(), how: "undone".into(), by: "Jörg".into() };
    let mut status = Status::already_exists(refusal.to_string());
    let whole = serde_json::to_vec(&refusal).unwrap();
    status.metadata_mut().insert_bin(REFUSAL_TRAILER, MetadataValue::from_bytes(&whole));
    assert_eq!(near().refused(&status).unwrap(), refusal);
    let away = near().refused(&Status::unavailable("the Temporal server gave no answer")).unwrap_err();
    assert_eq!(away.to_string(), "the Temporal server gave no answer");
}

#[test]
fn what_is_wrong_is_told_with_the_mend() {
    assert!(trouble(false, &Status::unauthenticated("no")).contains("start it again"));
    assert!(trouble(true, &Status::unauthenticated("no")).contains("steward token list"));
    let narrow = Status::permission_denied("this needs the scope `act`, and you have `read`");
    assert!(trouble(true, &narrow).contains("needs the scope `act`"));
    assert!(trouble(true, &narrow).contains("steward token create --scope act"));
    assert!(trouble(true, &Status::unimplemented("")).contains("no Steward of this version"));
}
