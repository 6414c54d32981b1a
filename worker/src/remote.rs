//! The server that `STEWARD_SERVER` names, asked by gRPC with a token.
//!
//! No vault is needed here, and there is no other way: a command that quietly asked this machine's Temporal instead would
//! be worse than an error. By TLS the server must show a certificate that this machine trusts, as in a browser.

use crate::config::StewardConfig;
use anyhow::{Context, anyhow, bail};
use std::time::Duration;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::path::RecordPath;
use steward_proto::REFUSAL_TRAILER;
use steward_proto::v1::actions_service_client::ActionsServiceClient;
use steward_proto::v1::streams_service_client::StreamsServiceClient;
use steward_proto::v1::{self, answer_result};
use steward_server::grpc::{decode_change, encode_change};
use steward_workflows::ResolveBatchInput;
use steward_workflows::ResolveBatchItem;
use steward_workflows::ResolveBatchOutput;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

/// The token for the server.
const TOKEN: &str = "STEWARD_TOKEN";
/// How long a connection may take: 10 s.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Longer than the server waits for an answer itself, which then says so: 75 s.
const ANSWER_PATIENCE: Duration = Duration::from_secs(75);

/// A server that answers.
pub(crate) struct RemoteStewardClient {
    channel: Channel,
    token: MetadataValue<Ascii>,
}

impl RemoteStewardClient {
    /// The server that is named; `None` where none is.
    ///
    /// # Errors
    /// When there is no token, nobody answers, or the certificate is not one that this machine trusts.
    pub(crate) async fn connect_if_named(config: &StewardConfig) -> anyhow::Result<Option<Self>> {
        let Some(server) = &config.server else { return Ok(None) };
        let token = std::env::var(TOKEN).ok().filter(|token| !token.trim().is_empty()).with_context(|| {
            format!("STEWARD_SERVER is set and {TOKEN} is not: make one there with `steward token create --scope act`")
        })?;
        let channel = open_channel(server).await.with_context(|| {
            format!("no server answers at {server}: is `steward up` or `steward serve` running there, and is that its address?")
        })?;
        Self::new(channel, token.trim()).map(Some)
    }

    fn new(channel: Channel, token: &str) -> anyhow::Result<Self> {
        let token = format!("Bearer {token}").parse().map_err(|_| anyhow!("{TOKEN} holds what no token has"))?;
        Ok(Self { channel, token })
    }

    fn build_request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.token.clone());
        request
    }

    fn create_actions_client(&self) -> ActionsServiceClient<Channel> {
        ActionsServiceClient::new(self.channel.clone())
    }

    /// A human's answer; a refusal is one too.
    ///
    /// # Errors
    /// When the server cannot take it, with its own words.
    pub(crate) async fn resolve_action(&self, ask: ResolveInput) -> anyhow::Result<ResolveOutput> {
        let mut client = self.create_actions_client();
        let (id, reason) = (ask.action, ask.reason.unwrap_or_default());
        let answered = match ask.kind {
            ResolutionKind::Undo => {
                let asked = client.undo_action(self.build_request(v1::UndoActionRequest { id, reason })).await;
                asked.map(|answer| answer.into_inner().answered)
            }
            ResolutionKind::Confirm if ask.edited.is_some() => {
                let change = ask.edited.as_ref().map(encode_change);
                let asked = v1::EditAndConfirmActionRequest { id, change, reason };
                let asked = client.edit_and_confirm_action(self.build_request(asked)).await;
                asked.map(|answer| answer.into_inner().answered)
            }
            ResolutionKind::Confirm => {
                let asked = client.confirm_action(self.build_request(v1::ConfirmActionRequest { id, reason })).await;
                asked.map(|answer| answer.into_inner().answered)
            }
            ResolutionKind::Dismiss => {
                let asked = client.dismiss_action(self.build_request(v1::DismissActionRequest { id, reason })).await;
                asked.map(|answer| answer.into_inner().answered)
            }
            ResolutionKind::Raise => bail!("a raise is asked by way of Temporal"),
        };
        match answered {
            Ok(answered) => decode_answered(answered.context("the server said nothing of the answer")?),
            Err(status) => read_refusal(&status).map(ResolveOutput::from_refusal),
        }
    }

    /// One answer to several actions.
    ///
    /// # Errors
    /// When the server cannot take it, with its own words.
    pub(crate) async fn resolve_batch(&self, ask: ResolveBatchInput) -> anyhow::Result<ResolveBatchOutput> {
        let kind = match ask.kind {
            ResolutionKind::Undo => v1::AnswerKind::Undo,
            ResolutionKind::Confirm => v1::AnswerKind::Confirm,
            ResolutionKind::Dismiss => v1::AnswerKind::Dismiss,
            ResolutionKind::Raise => bail!("a raise is asked by way of Temporal"),
        };
        let (ids, reason) = (ask.actions, ask.reason.unwrap_or_default());
        let asked = v1::AnswerTogetherRequest { ids, kind: kind.into(), reason };
        let answer = self.create_actions_client().answer_together(self.build_request(asked)).await;
        let answer = answer.map_err(|status| explain_failure(&status))?.into_inner();
        let of = |one: v1::AnswerResult| -> anyhow::Result<ResolveBatchItem> {
            let answered = match one.result.context("the server said nothing of one of them")? {
                answer_result::Result::Answered(answered) => decode_answered(answered)?,
                answer_result::Result::Refused(refused) => ResolveOutput::from_refusal(
                    serde_json::from_str(&refused.json)
                        .context("the server is of another version than this command")?,
                ),
            };
            Ok(ResolveBatchItem { action: one.id, answered })
        };
        let together = serde_json::from_value(answer.together_id.into()).context("the server named no id")?;
        let answers = answer.results.into_iter().map(of).collect::<anyhow::Result<_>>()?;
        Ok(ResolveBatchOutput { together, answers })
    }

    /// The change that an action proposes; `None` where it proposes none.
    ///
    /// # Errors
    /// When the server cannot tell.
    pub(crate) async fn fetch_proposed_change(&self, id: &str) -> anyhow::Result<Option<Mutation>> {
        let asked = self.build_request(v1::GetActionRequest { id: id.to_owned() });
        let answer = self
            .create_actions_client()
            .get_action(asked)
            .await
            .map_err(|status| explain_failure(&status))?
            .into_inner();
        Ok(answer.action.and_then(|action| action.summary).and_then(|summary| summary.proposed).and_then(decode_change))
    }

    /// Pauses a stream or lets it go on.
    ///
    /// # Errors
    /// When the server knows none of that name, or cannot.
    pub(crate) async fn request_stream_pause(&self, name: &str, paused: bool) -> anyhow::Result<()> {
        let (mut client, name) = (StreamsServiceClient::new(self.channel.clone()), name.to_owned());
        let done = match paused {
            true => client.pause_stream(self.build_request(v1::PauseStreamRequest { name })).await.map(drop),
            false => client.resume_stream(self.build_request(v1::ResumeStreamRequest { name })).await.map(drop),
        };
        done.map_err(|status| explain_failure(&status))
    }
}

/// The refusal that a status carries.
fn read_refusal(status: &Status) -> anyhow::Result<ResolutionRefusal> {
    let whole = status.metadata().get_bin(REFUSAL_TRAILER).and_then(|whole| whole.to_bytes().ok());
    let refusal = whole.and_then(|whole| serde_json::from_slice(&whole).ok());
    refusal.ok_or_else(|| explain_failure(status))
}

fn explain_failure(status: &Status) -> anyhow::Error {
    anyhow!("{}", explain_status(status))
}

async fn open_channel(server: &str) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(server.to_owned())?.connect_timeout(CONNECT_PATIENCE).timeout(ANSWER_PATIENCE);
    let endpoint = match server.starts_with("https://") {
        true => endpoint.tls_config(ClientTlsConfig::new().with_native_roots())?,
        false => endpoint,
    };
    Ok(endpoint.connect().await?)
}

/// What is wrong, with the fix.
fn explain_status(status: &Status) -> String {
    let said = status.message();
    match status.code() {
        Code::Unauthenticated => {
            format!(
                "the server does not know this {TOKEN}: it is another vault's, or was revoked; `steward token list` there says which are left"
            )
        }
        Code::PermissionDenied => {
            format!(
                "{said}: `steward token create --scope act` there makes one that answers, `operate` one that pauses streams"
            )
        }
        Code::Unimplemented => format!("what answers there is no Steward of this version ({said})"),
        _ => said.to_owned(),
    }
}

fn decode_answered(answered: v1::Answered) -> anyhow::Result<ResolveOutput> {
    let id = serde_json::Value::from(answered.answer_id);
    Ok(ResolveOutput::Done {
        action_id: serde_json::from_value(id).context("the server named no action")?,
        record: RecordPath::parse(&answered.record)?,
        target: RecordPath::parse(&answered.target)?,
        owes: None,
        tracker: (!answered.tracker.is_empty()).then_some(answered.tracker),
        lowered: answered.lowered,
    })
}

#[cfg(test)]
mod tests;
