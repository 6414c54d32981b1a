//! The process that listens for this vault, asked by gRPC.
//!
//! Only one on this machine that holds the vault and says so in its note is asked, with the key that lies in the state
//! folder. Where there is none, or nobody answers at its address, the command goes its other way: `None` says that
//! nothing was asked.

use crate::config::Config;
use crate::temporal::note::Holder;
use anyhow::{Context, anyhow, bail};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use steward_domain::path::RecordPath;
use steward_domain::undo::{AnswerKind, Refusal};
use steward_proto::{REFUSAL_TRAILER, STATUS_TRAILER};
use steward_proto::v1::actions_service_client::ActionsServiceClient;
use steward_proto::v1::{
    self, ConfirmActionRequest, DismissActionRequest, EditAndConfirmActionRequest, UndoActionRequest,
};
use steward_server::access::{Store, local};
use steward_server::grpc::change;
use steward_vault::root::Root;
use steward_workflows::activities::{AnswerAsk, Answered};
use tonic::metadata::{Ascii, Binary, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// How long the connection may take: 2 s; it is this machine.
const CONNECT: Duration = Duration::from_secs(2);
/// Longer than the server waits for an answer itself, which then says so: 75 s.
const PATIENCE: Duration = Duration::from_secs(75);

/// A server that answers.
pub(crate) struct Server {
    channel: Channel,
    token: MetadataValue<Ascii>,
    by: MetadataValue<Binary>,
}

impl Server {
    /// The server of this vault, asked in this name; `None` where none listens.
    ///
    /// # Errors
    /// When the vault or the key cannot be read.
    pub(crate) async fn find(config: &Config, by: &str) -> anyhow::Result<Option<Self>> {
        let (root, state) = (Root::open(config.vault()?)?, config.state_dir()?);
        let listen = match Holder::of(&root, &state) {
            // What a certificate is good for is a name out there, and seldom this machine's own address.
            Holder::Runs(note) => note.listen.filter(|_| !note.encrypted),
            Holder::Died(_) | Holder::Silent(_) | Holder::Nobody => None,
        };
        let (Some(listen), Some(token)) = (listen, local::token(&Store::of(&state))?) else { return Ok(None) };
        let endpoint = Endpoint::from_shared(format!("http://{}", reachable(listen)))?;
        let Ok(channel) = endpoint.connect_timeout(CONNECT).timeout(PATIENCE).connect().await else { return Ok(None) };
        let token = format!("Bearer {token}").parse()?;
        Ok(Some(Self { channel, token, by: MetadataValue::from_bytes(by.as_bytes()) }))
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.token.clone());
        request.metadata_mut().insert_bin(local::BY, self.by.clone());
        request
    }

    /// A human's answer; a refusal is one too. `None` when the server says that nothing was asked: it starts, or Temporal
    /// is away.
    ///
    /// # Errors
    /// When the server cannot take it, with its own words.
    pub(crate) async fn answer(&self, ask: AnswerAsk) -> anyhow::Result<Option<Answered>> {
        let mut client = ActionsServiceClient::new(self.channel.clone());
        let (id, reason) = (ask.action, ask.reason.unwrap_or_default());
        let answered = match ask.kind {
            AnswerKind::Undo => {
                let asked = client.undo_action(self.request(UndoActionRequest { id, reason })).await;
                asked.map(|answer| answer.into_inner().answered)
            }
            AnswerKind::Confirm if ask.edited.is_some() => {
                let change = ask.edited.as_ref().map(change);
                let asked = EditAndConfirmActionRequest { id, change, reason };
                let asked = client.edit_and_confirm_action(self.request(asked)).await;
                asked.map(|answer| answer.into_inner().answered)
            }
            AnswerKind::Confirm => {
                let asked = client.confirm_action(self.request(ConfirmActionRequest { id, reason })).await;
                asked.map(|answer| answer.into_inner().answered)
            }
            AnswerKind::Dismiss => {
                let asked = client.dismiss_action(self.request(DismissActionRequest { id, reason })).await;
                asked.map(|answer| answer.into_inner().answered)
            }
            AnswerKind::Raise => bail!("a raise is asked by way of Temporal"),
        };
        match answered {
            Ok(answered) => done(answered.context("the server said nothing of the answer")?).map(Some),
            Err(status) if is_for_later(&status) => Ok(None),
            Err(status) => refused(&status).map(Answered::refused).map(Some),
        }
    }
}

/// What the server itself says with this status is that nothing was asked; a line that broke says nothing of the kind.
fn is_for_later(status: &Status) -> bool {
    status.code() == Code::Unavailable && status.metadata().get(STATUS_TRAILER).is_some_and(|http| http == "503")
}

/// An address that a process which listens everywhere is reached by.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

fn done(answered: v1::Answered) -> anyhow::Result<Answered> {
    let id = serde_json::Value::from(answered.answer_id);
    Ok(Answered::Done {
        action_id: serde_json::from_value(id).context("the server named no action")?,
        record: RecordPath::parse(&answered.record)?,
        target: RecordPath::parse(&answered.target)?,
        owes: None,
        tracker: (!answered.tracker.is_empty()).then_some(answered.tracker),
        lowered: answered.lowered,
    })
}

/// The refusal that a status carries.
fn refused(status: &Status) -> anyhow::Result<Refusal> {
    let whole = status.metadata().get_bin(REFUSAL_TRAILER).and_then(|whole| whole.to_bytes().ok());
    let refusal = whole.and_then(|whole| serde_json::from_slice(&whole).ok());
    refusal.ok_or_else(|| match status.code() {
        Code::Unauthenticated => {
            anyhow!(
                "the server does not know the key of this vault's state folder: start it again ({})",
                status.message()
            )
        }
        _ => anyhow!("{}", status.message()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_comes_back_as_it_was_and_trouble_is_none() {
        let refusal =
            Refusal::AlreadyAnswered { id: "0123456789abcdef".into(), how: "undone".into(), by: "Jörg".into() };
        let mut status = Status::already_exists(refusal.to_string());
        let whole = serde_json::to_vec(&refusal).unwrap();
        status.metadata_mut().insert_bin(REFUSAL_TRAILER, MetadataValue::from_bytes(&whole));
        assert_eq!(refused(&status).unwrap(), refusal);
        let away = refused(&Status::unavailable("the Temporal server gave no answer")).unwrap_err();
        assert_eq!(away.to_string(), "the Temporal server gave no answer");
        assert!(refused(&Status::unauthenticated("no")).unwrap_err().to_string().contains("start it again"));
    }

    #[test]
    fn only_what_the_server_itself_puts_off_was_not_asked() {
        let mut status = Status::unavailable("Steward is starting");
        assert!(!is_for_later(&status), "the line may have broken after the question");
        status.metadata_mut().insert(STATUS_TRAILER, "503".parse().unwrap());
        assert!(is_for_later(&status));
    }

    #[test]
    fn a_server_that_listens_everywhere_is_asked_on_this_machine() {
        for (listen, asked) in [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:2", "[::1]:2"), ("10.0.0.1:3", "10.0.0.1:3")] {
            assert_eq!(reachable(listen.parse().unwrap()), asked.parse().unwrap());
        }
    }
}
