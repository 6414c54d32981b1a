//! Calls the server that `STEWARD_SERVER` names, over gRPC with a token.
//!
//! No vault is needed here. There must be no fallback: a command that silently used this machine's Temporal instead
//! would be worse than an error. Over TLS the server must present a certificate that this machine trusts, as in a
//! browser.

use crate::config::StewardConfig;
use anyhow::{Context, anyhow, bail};
use std::time::Duration;
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::path::RecordPath;
use steward_proto::REFUSAL_TRAILER;
use steward_proto::v1::actions_service_client::ActionsServiceClient;
use steward_proto::v1::streams_service_client::StreamsServiceClient;
use steward_proto::v1::{self, batch_result};
use steward_server::grpc::{decode_change, encode_change};
use steward_workflows::ResolveBatchInput;
use steward_workflows::ResolveBatchItem;
use steward_workflows::ResolveBatchOutput;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

/// The variable that holds the token for the server.
const TOKEN: &str = "STEWARD_TOKEN";
/// How long a connection may take: 10 s.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a call may take: 75 s, longer than the server itself waits. So its own error arrives first.
const CALL_PATIENCE: Duration = Duration::from_secs(75);

/// A connection to a remote server.
pub(crate) struct RemoteStewardClient {
    channel: Channel,
    token: MetadataValue<Ascii>,
}

impl RemoteStewardClient {
    /// Connects to the server that the configuration names; `None` if it names none.
    ///
    /// # Errors
    /// There is no token, no server answers, or this machine does not trust the certificate.
    pub(crate) async fn connect_if_named(config: &StewardConfig) -> anyhow::Result<Option<Self>> {
        let Some(server) = &config.server else { return Ok(None) };
        let token = std::env::var(TOKEN).ok().filter(|token| !token.trim().is_empty()).with_context(|| {
            format!(
                "STEWARD_SERVER is set but {TOKEN} is not: create a token on that machine with \
                 `steward token create --scope act`"
            )
        })?;
        let channel = open_channel(server).await.with_context(|| {
            format!("no server answers at {server}: start `steward up` or `steward serve` there, or fix STEWARD_SERVER")
        })?;
        Self::new(channel, token.trim()).map(Some)
    }

    fn new(channel: Channel, token: &str) -> anyhow::Result<Self> {
        let token = format!("Bearer {token}")
            .parse()
            .map_err(|_| anyhow!("{TOKEN} is not a valid token: it holds characters that no token has"))?;
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

    /// Sends a resolution; a refusal is a result, not an error.
    ///
    /// # Errors
    /// The server fails to handle it; the message is the server's.
    pub(crate) async fn resolve_action(&self, input: ResolveInput) -> anyhow::Result<ResolveOutput> {
        let mut client = self.create_actions_client();
        let (id, reason) = (input.action, input.reason.unwrap_or_default());
        let result = match input.kind {
            ResolutionKind::Undo => {
                let response = client.undo_action(self.build_request(v1::UndoActionRequest { id, reason })).await;
                response.map(|answer| answer.into_inner().resolution)
            }
            ResolutionKind::Confirm if input.edited.is_some() => {
                let change = input.edited.as_ref().map(encode_change);
                let request = v1::EditAndConfirmActionRequest { id, change, reason };
                let response = client.edit_and_confirm_action(self.build_request(request)).await;
                response.map(|answer| answer.into_inner().resolution)
            }
            ResolutionKind::Confirm => {
                let request = self.build_request(v1::ConfirmActionRequest { id, reason });
                let response = client.confirm_action(request).await;
                response.map(|answer| answer.into_inner().resolution)
            }
            ResolutionKind::Dismiss => {
                let request = self.build_request(v1::DismissActionRequest { id, reason });
                let response = client.dismiss_action(request).await;
                response.map(|answer| answer.into_inner().resolution)
            }
            kind @ (ResolutionKind::Raise
            | ResolutionKind::Right
            | ResolutionKind::RightDone
            | ResolutionKind::Wrong
            | ResolutionKind::Reopen) => {
                bail!("`{}` raises trust, so it needs the machine of the vault, not a remote server", kind.as_str())
            }
        };
        match result {
            Ok(resolution) => decode_resolution(resolution.context("the server's response holds no result")?),
            Err(status) => read_refusal(&status).map(ResolveOutput::from_refusal),
        }
    }

    /// Sends one resolution of several actions.
    ///
    /// # Errors
    /// The server fails to handle it; the message is the server's.
    pub(crate) async fn resolve_batch(&self, input: ResolveBatchInput) -> anyhow::Result<ResolveBatchOutput> {
        let kind = match input.kind {
            ResolutionKind::Undo => v1::ResolutionKind::Undo,
            ResolutionKind::Confirm => v1::ResolutionKind::Confirm,
            ResolutionKind::Dismiss => v1::ResolutionKind::Dismiss,
            kind @ (ResolutionKind::Raise
            | ResolutionKind::Right
            | ResolutionKind::RightDone
            | ResolutionKind::Wrong
            | ResolutionKind::Reopen) => bail!("a batch can only undo, confirm or dismiss, not {}", kind.as_str()),
        };
        let (ids, reason) = (input.actions, input.reason.unwrap_or_default());
        let request = v1::ResolveBatchRequest { ids, kind: kind.into(), reason };
        let response = self.create_actions_client().resolve_batch(self.build_request(request)).await;
        let response = response.map_err(|status| explain_failure(&status))?.into_inner();
        let decode = |one: v1::BatchResult| -> anyhow::Result<ResolveBatchItem> {
            let resolution = match one.result.context("the server's response lacks the result of one action")? {
                batch_result::Result::Resolution(resolution) => decode_resolution(resolution)?,
                batch_result::Result::Refused(refused) => ResolveOutput::from_refusal(
                    serde_json::from_str(&refused.json).context("the server has another version than this command")?,
                ),
            };
            Ok(ResolveBatchItem { action: one.id, resolution })
        };
        let batch_id = serde_json::from_value(response.batch_id.into())
            .context("the server's response holds no valid batch id")?;
        let resolutions = response.results.into_iter().map(decode).collect::<anyhow::Result<_>>()?;
        Ok(ResolveBatchOutput { batch_id, resolutions })
    }

    /// The change that an action proposes; `None` if it proposes none.
    ///
    /// # Errors
    /// The server does not answer or does not know the action.
    pub(crate) async fn fetch_proposed_change(&self, id: &str) -> anyhow::Result<Option<Mutation>> {
        let request = self.build_request(v1::GetActionRequest { id: id.to_owned() });
        let response = self
            .create_actions_client()
            .get_action(request)
            .await
            .map_err(|status| explain_failure(&status))?
            .into_inner();
        let summary = response.action.and_then(|action| action.summary);
        Ok(summary.and_then(|summary| summary.proposed).and_then(decode_change))
    }

    /// Pauses or resumes a stream.
    ///
    /// # Errors
    /// The server knows no stream of that name, or fails.
    pub(crate) async fn request_stream_pause(&self, name: &str, paused: bool) -> anyhow::Result<()> {
        let (mut client, name) = (StreamsServiceClient::new(self.channel.clone()), name.to_owned());
        let result = match paused {
            true => client.pause_stream(self.build_request(v1::PauseStreamRequest { name })).await.map(drop),
            false => client.resume_stream(self.build_request(v1::ResumeStreamRequest { name })).await.map(drop),
        };
        result.map_err(|status| explain_failure(&status))
    }
}

/// The refusal that a status carries.
fn read_refusal(status: &Status) -> anyhow::Result<ResolutionRefusal> {
    let bytes = status.metadata().get_bin(REFUSAL_TRAILER).and_then(|value| value.to_bytes().ok());
    let refusal = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    refusal.ok_or_else(|| explain_failure(status))
}

fn explain_failure(status: &Status) -> anyhow::Error {
    anyhow!("{}", explain_status(status))
}

async fn open_channel(server: &str) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(server.to_owned())?.connect_timeout(CONNECT_PATIENCE).timeout(CALL_PATIENCE);
    let endpoint = match server.starts_with("https://") {
        true => endpoint.tls_config(ClientTlsConfig::new().with_native_roots())?,
        false => endpoint,
    };
    Ok(endpoint.connect().await?)
}

/// Describes a failed call, with the fix.
fn explain_status(status: &Status) -> String {
    let message = status.message();
    match status.code() {
        Code::Unauthenticated => {
            format!(
                "the server does not know this {TOKEN}: it belongs to another vault, or was revoked; \
                 `steward token list` there lists the valid tokens"
            )
        }
        Code::PermissionDenied => {
            format!(
                "{message}: create a token there with `steward token create --scope act`, or with `--scope operate` to \
                 pause streams"
            )
        }
        Code::Unimplemented => format!("the server is not a Steward of this version ({message})"),
        _ => message.to_owned(),
    }
}

fn decode_resolution(resolution: v1::ActionResolution) -> anyhow::Result<ResolveOutput> {
    let id = serde_json::Value::from(resolution.resolution_id);
    Ok(ResolveOutput::Done {
        action_id: serde_json::from_value(id).context("the server's response holds no valid action id")?,
        record: RecordPath::parse(&resolution.record)?,
        target: RecordPath::parse(&resolution.target)?,
        owes: None,
        tracker: (!resolution.tracker.is_empty()).then_some(resolution.tracker),
        lowered: resolution.demotions,
    })
}

#[cfg(test)]
mod tests;
