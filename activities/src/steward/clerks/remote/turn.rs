//! A turn of a conversation with tools: one request, and the calls in its answer.
//!
//! What the model answers is kept as it came, because the server wants its own words back with the next turn. Nothing is
//! carried out here.

use super::wire::ModelTarget;
use super::{ClerkCallFailure, ClerkCallFailureKind, RemoteClerk, ServerReply, answer, prompt};
use steward_domain::steward::conversation::{Conversation, ToolForm, TurnOutcome, TurnReply};
use steward_domain::steward::guard::{Reservation, estimate_tokens};

impl RemoteClerk {
    /// Sends a conversation once, with at most one HTTP request.
    pub async fn send_turn(&self, reservation: &Reservation, conversation: &Conversation) -> TurnReply {
        let body = self.render_turn(conversation);
        let mut clerk = self.build_mark(&body);
        let form = conversation.form;
        let read = |body: &[u8]| {
            let read = answer::read_turn_response(body, self.config.wire, form, self.api_key())?;
            Ok((Ok(read.turn), read.usage))
        };
        let outcome = match self.post_body(reservation, body, read).await {
            Ok((reply, usage)) => {
                clerk.tokens = usage;
                match reply {
                    ServerReply::Answered(turn) => TurnOutcome::Answered(turn),
                    ServerReply::Bad(reason) => TurnOutcome::Failed { reason },
                    ServerReply::Wait(retry_after_seconds) => TurnOutcome::RateLimited { retry_after_seconds },
                }
            }
            Err(ClerkCallFailure { reason, kind }) => match kind {
                ClerkCallFailureKind::NotSent => TurnOutcome::NotSent { reason },
                ClerkCallFailureKind::NoTools if form == ToolForm::Native => TurnOutcome::NoTools { reason },
                _ => TurnOutcome::Failed { reason },
            },
        };
        TurnReply { outcome, clerk }
    }

    /// The request body that [`RemoteClerk::send_turn`] would send.
    fn render_turn(&self, conversation: &Conversation) -> Vec<u8> {
        let target = ModelTarget {
            model: &self.config.model,
            host: self.endpoint.host_str().unwrap_or_default(),
            max_tokens: conversation.max_tokens.min(self.config.max_tokens),
        };
        let data = prompt::render_data(&conversation.data);
        let mut conversation = conversation.clone();
        for reply in conversation.past.iter_mut().flat_map(|past| &mut past.replies) {
            reply.text = prompt::break_markers(&reply.text);
        }
        (self.config.wire.turn_body)(&conversation, &data, &target).to_string().into_bytes()
    }

    /// The most tokens that a turn may use.
    pub(in crate::steward::clerks) fn estimate_turn_tokens(&self, conversation: &Conversation) -> u64 {
        let answer = conversation.max_tokens.min(self.config.max_tokens);
        estimate_tokens(self.render_turn(conversation).len()) + u64::from(answer)
    }

    /// Who would answer, as in `openai/gpt-4.1`.
    pub(in crate::steward::clerks) fn describe(&self) -> String {
        format!("{}/{}", self.config.wire.name, self.config.model)
    }
}
