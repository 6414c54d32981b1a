//! The process that listens for this vault, asked by gRPC.
//!
//! One on this machine that says so in its note is asked with the key that lies in the state folder. Where there is none,
//! or nobody answers at its address, the command goes its other way: `None` says that nothing was asked. One that is named
//! (`STEWARD_SERVER`) is asked with a token and needs no vault here; there is no other way then. A process that answers
//! with another certificate, or that does not know the key, is another vault's.

mod line;

use crate::config::StewardConfig;
use crate::temporal::note::ServerEndpoint;
use anyhow::{Context, anyhow, bail};
use steward_domain::action::mutation::Mutation;
use steward_domain::action::undo::{ResolutionKind, ResolutionRefusal};
use steward_domain::record::path::RecordPath;
use steward_proto::v1::actions_service_client::ActionsServiceClient;
use steward_proto::v1::status_service_client::StatusServiceClient;
use steward_proto::v1::streams_service_client::StreamsServiceClient;
use steward_proto::v1::{self, answer_result};
use steward_proto::{REFUSAL_TRAILER, STATUS_TRAILER};
use steward_server::access::{SecretStore, local};
use steward_server::grpc::{decode_change, encode_change};
use steward_vault::files::root::VaultRoot;
use steward_workflows::ResolveBatchInput;
use steward_workflows::ResolveBatchItem;
use steward_workflows::ResolveBatchOutput;
use steward_workflows::activities::{ResolveInput, ResolveOutput};
use tonic::metadata::{Ascii, Binary, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// The token for a server that is named.
const TOKEN: &str = "STEWARD_TOKEN";
/// Most actions that a server answers together.
const TOGETHER: usize = 100;

/// A server that answers.
pub(crate) struct RemoteStewardClient {
    channel: Channel,
    token: MetadataValue<Ascii>,
    by: MetadataValue<Binary>,
    /// It is named, and may be anywhere.
    far: bool,
}

impl RemoteStewardClient {
    /// The server that is named, or the one of this vault, asked in this name; `None` where neither is.
    ///
    /// # Errors
    /// When the vault or the key cannot be read; of one that is named also when it does not answer.
    pub(crate) async fn find(config: &StewardConfig, by: &str) -> anyhow::Result<Option<Self>> {
        if let Some(server) = &config.server {
            return Self::connect_named(server, by).await.map(Some);
        }
        let (root, state) = (VaultRoot::open(config.vault_folder()?)?, config.state_dir()?);
        let Some(door) = ServerEndpoint::find_for_vault(&root, &state) else { return Ok(None) };
        Self::connect_local(&door, &SecretStore::new(&state), by).await
    }

    /// The one behind this door; `None` where nobody answers there.
    async fn connect_local(door: &ServerEndpoint, store: &SecretStore, by: &str) -> anyhow::Result<Option<Self>> {
        let Some(token) = local::read_command_token(store)? else { return Ok(None) };
        let Ok(channel) = line::open_local_channel(door).await else { return Ok(None) };
        Self::new(channel, &token, (by, false)).map(Some)
    }

    async fn connect_named(server: &str, by: &str) -> anyhow::Result<Self> {
        let token = std::env::var(TOKEN).ok().filter(|token| !token.trim().is_empty()).with_context(|| {
            format!("STEWARD_SERVER is set and {TOKEN} is not: make one there with `steward token create --scope act`")
        })?;
        let channel = line::open_remote_channel(server).await;
        let channel = channel.with_context(|| {
            format!("no server answers at {server}: is `steward up` or `steward serve` running there, and is that its address?")
        })?;
        Self::new(channel, token.trim(), (by, true))
    }

    fn new(channel: Channel, token: &str, (by, far): (&str, bool)) -> anyhow::Result<Self> {
        let token = format!("Bearer {token}").parse().map_err(|_| anyhow!("{TOKEN} holds what no token has"))?;
        Ok(Self { channel, token, by: MetadataValue::from_bytes(by.as_bytes()), far })
    }

    fn build_request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.token.clone());
        if !self.far {
            request.metadata_mut().insert_bin(local::BY, self.by.clone());
        }
        request
    }

    fn create_actions_client(&self) -> ActionsServiceClient<Channel> {
        ActionsServiceClient::new(self.channel.clone())
    }

    /// A human's answer; a refusal is one too. `None` when the server says that nothing was asked: it starts, or Temporal
    /// is away.
    ///
    /// # Errors
    /// When the server cannot take it, with its own words.
    pub(crate) async fn resolve_action(&self, ask: ResolveInput) -> anyhow::Result<Option<ResolveOutput>> {
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
            Ok(answered) => decode_answered(answered.context("the server said nothing of the answer")?).map(Some),
            Err(status) if !self.far && is_server_unready(&status) => Ok(None),
            Err(status) => self.read_refusal(&status).map(ResolveOutput::from_refusal).map(Some),
        }
    }

    /// Whether so many are answered at once.
    pub(crate) fn can_batch(&self, ask: &ResolveBatchInput) -> bool {
        self.far || ask.actions.len() <= TOGETHER
    }

    /// One answer to several actions; `None` as for one.
    ///
    /// # Errors
    /// When the server cannot take it, with its own words.
    pub(crate) async fn resolve_batch(&self, ask: ResolveBatchInput) -> anyhow::Result<Option<ResolveBatchOutput>> {
        let kind = match ask.kind {
            ResolutionKind::Undo => v1::AnswerKind::Undo,
            ResolutionKind::Confirm => v1::AnswerKind::Confirm,
            ResolutionKind::Dismiss => v1::AnswerKind::Dismiss,
            ResolutionKind::Raise => bail!("a raise is asked by way of Temporal"),
        };
        let (ids, reason) = (ask.actions, ask.reason.unwrap_or_default());
        let asked = v1::AnswerTogetherRequest { ids, kind: kind.into(), reason };
        let answer = self.create_actions_client().answer_together(self.build_request(asked)).await;
        let answer = match answer {
            Ok(answer) => answer.into_inner(),
            Err(status) if !self.far && is_server_unready(&status) => return Ok(None),
            Err(status) => return Err(self.explain_failure(&status)),
        };
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
        Ok(Some(ResolveBatchOutput { together, answers }))
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
            .map_err(|status| self.explain_failure(&status))?
            .into_inner();
        Ok(answer.action.and_then(|action| action.summary).and_then(|summary| summary.proposed).and_then(decode_change))
    }

    /// Pauses a stream or lets it go on; `false` as `None` of an answer.
    ///
    /// # Errors
    /// When the server knows none of that name, or cannot.
    pub(crate) async fn request_stream_pause(&self, name: &str, paused: bool) -> anyhow::Result<bool> {
        let (mut client, name) = (StreamsServiceClient::new(self.channel.clone()), name.to_owned());
        let done = match paused {
            true => client.pause_stream(self.build_request(v1::PauseStreamRequest { name })).await.map(drop),
            false => client.resume_stream(self.build_request(v1::ResumeStreamRequest { name })).await.map(drop),
        };
        match done {
            Ok(()) => Ok(true),
            Err(status) if !self.far && is_server_unready(&status) => Ok(false),
            Err(status) => Err(self.explain_failure(&status)),
        }
    }

    /// The refusal that a status carries.
    fn read_refusal(&self, status: &Status) -> anyhow::Result<ResolutionRefusal> {
        let whole = status.metadata().get_bin(REFUSAL_TRAILER).and_then(|whole| whole.to_bytes().ok());
        let refusal = whole.and_then(|whole| serde_json::from_slice(&whole).ok());
        refusal.ok_or_else(|| self.explain_failure(status))
    }

    fn explain_failure(&self, status: &Status) -> anyhow::Error {
        anyhow!("{}", explain_status(self.far, status))
    }
}

/// The server of this vault, held against its note: its version, or why it does not answer.
pub(crate) async fn fetch_server_version(door: &ServerEndpoint, config: &StewardConfig) -> Result<String, String> {
    let told = |e: anyhow::Error| crate::cli::output::format_causes(&e);
    let store = SecretStore::new(&config.state_dir().map_err(told)?);
    let token = local::read_command_token(&store).map_err(|e| e.to_string())?.ok_or("it has made no key yet")?;
    let channel = line::open_local_channel(door).await.map_err(told)?;
    let server = RemoteStewardClient::new(channel, &token, (&config.operator, false)).map_err(told)?;
    let mut asked = server.build_request(v1::GetStatusRequest {});
    asked.set_timeout(line::NEAR);
    let answer = StatusServiceClient::new(server.channel.clone()).get_status(asked).await;
    answer.map(|status| status.into_inner().version).map_err(|status| explain_status(false, &status))
}

/// What is wrong, with the mend.
fn explain_status(far: bool, status: &Status) -> String {
    let said = status.message();
    match (status.code(), far) {
        (Code::Unauthenticated, false) => {
            format!("the server does not know the key of this vault's state folder: start it again ({said})")
        }
        (Code::Unauthenticated, true) => {
            format!(
                "the server does not know this {TOKEN}: it is another vault's, or was revoked; `steward token list` there says which are left"
            )
        }
        (Code::PermissionDenied, true) => {
            format!(
                "{said}: `steward token create --scope act` there makes one that answers, `operate` one that pauses streams"
            )
        }
        (Code::Unimplemented, _) => format!("what answers there is no Steward of this version ({said})"),
        _ => said.to_owned(),
    }
}

/// What the server itself says with this status is that nothing was asked; a line that broke says nothing of the kind.
fn is_server_unready(status: &Status) -> bool {
    status.code() == Code::Unavailable && status.metadata().get(STATUS_TRAILER).is_some_and(|http| http == "503")
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
