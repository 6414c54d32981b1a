//! What is reported to a client of the older protocol, if it set a level: refusals of tools, by tool and code.
//!
//! No content and no argument is reported. The newer protocol has no such messages.

#![expect(deprecated, reason = "the newer protocol has no log, and clients of the older one may ask for it")]

use super::error::ERROR_KEY;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ErrorData, LoggingLevel, LoggingMessageNotificationParam, ProtocolVersion, SetLevelRequestMethod,
    SetLevelRequestParams,
};
use rmcp::service::RequestContext;
use serde_json::json;
use std::sync::{Mutex, PoisonError};

/// Who speaks in a message.
const LOGGER: &str = "steward";

/// The level that a session set. Nothing is reported without one.
#[derive(Debug, Default)]
pub(crate) struct ClientLog(Mutex<Option<LoggingLevel>>);

impl ClientLog {
    /// Sets the level.
    ///
    /// # Errors
    /// The protocol of the request has no log.
    pub(crate) fn set_level(
        &self,
        request: &SetLevelRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    /// Reports to the client that a call was refused.
    pub(crate) async fn report_call(&self, tool: &str, result: &CallToolResult, context: &RequestContext<RoleServer>) {
        let level = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let code = result.meta.as_ref().and_then(|meta| meta.0.get(ERROR_KEY)?.get("code"));
        let (Some(level), Some(code)) = (level, code) else { return };
        if rank_level(level) > rank_level(LoggingLevel::Warning) {
            return;
        }
        let data = json!({"tool": tool, "refused": code});
        let message = LoggingMessageNotificationParam::new(LoggingLevel::Warning, data).with_logger(LOGGER);
        // A client that is gone needs no message.
        let _ = context.peer.notify_logging_message(message).await;
    }
}

/// How serious a level is, from 0.
fn rank_level(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
