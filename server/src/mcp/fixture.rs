//! A handler with the tools, prompts, and resources that the public MCP conformance suite asks for.
//!
//! It takes the place of the production handler in tests, so that the suite judges the transport, the sessions, and the limits around it. Make one
//! for each client, as for the production handler: it keeps the log level of its session, and which changes of lists were before its client came.

mod contents;
mod inputs;
mod tools;

use inputs::{FlowStep, find_flow};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
#[expect(deprecated, reason = "clients of the older protocol set a log level")]
use rmcp::model::{LoggingLevel, SetLevelRequestMethod, SetLevelRequestParams};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};
use tokio::sync::watch;

/// How often tools said that a list has changed. What is in the lists stays: the suite looks for the notifications.
#[derive(Clone, Copy, Default)]
struct ListChanges {
    tools: u64,
    prompts: u64,
}

/// Common to all clients: the call that changes a list is another request than the stream that reports it.
static LIST_CHANGES: LazyLock<watch::Sender<ListChanges>> = LazyLock::new(watch::Sender::default);

/// Answers one client of the suite.
#[derive(Clone)]
pub(crate) struct FixtureHandler {
    /// The least level that the session of an older client wants; at first, all.
    log_level: Arc<AtomicU8>,
    /// The changes before the client came. A stream compares with them, since one may come while it opens.
    known: ListChanges,
}

impl FixtureHandler {
    /// A handler for a client that comes now.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self { log_level: Arc::default(), known: *LIST_CHANGES.borrow() }
    }

    /// The least level that is logged for a request; `None` if it wants no log.
    fn find_log_level(&self, context: &RequestContext<RoleServer>) -> Option<u8> {
        match is_newest(context) {
            true => context.meta.log_level().map(rank_level),
            false => Some(self.log_level.load(Ordering::Relaxed)),
        }
    }
}

impl Default for FixtureHandler {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a request is of the protocol without sessions.
fn is_newest(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// How serious a level is, from 0.
#[expect(deprecated, reason = "the suite tests the log")]
fn rank_level(level: LoggingLevel) -> u8 {
    level as u8
}

impl ServerHandler for FixtureHandler {
    /// Completions have the answer that every handler has: no suggestion.
    #[expect(deprecated, reason = "the suite tests the log")]
    fn get_info(&self) -> ServerConfig {
        let builder = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        let builder = builder.enable_prompts().enable_prompts_list_changed().enable_completions().enable_logging();
        let capabilities = builder.enable_resources().enable_resources_subscribe().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("conformance-fixture", "1.0.0"))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const VERSIONS: [ProtocolVersion; 3] =
            [ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
        Cow::Borrowed(&VERSIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list_tools().to_vec()))
    }

    /// The transport compares the headers of a call with the schema of its tool.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list_tools().iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(flow) = find_flow(&request.name) else {
            return Ok(tools::run_tool(&request, &context, self.find_log_level(&context)).await?.into());
        };
        let step = flow.advance(request.request_state.as_deref(), request.input_responses.as_ref(), &context)?;
        Ok(match step {
            FlowStep::Asks(asked) => asked.into(),
            FlowStep::Ends(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(contents::list_resources()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![contents::describe_template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(contents::read_resource(&request.uri)?.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(contents::list_prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(flow) = find_flow(&request.name) else {
            return Ok(contents::get_prompt(&request)?.into());
        };
        let step = flow.advance(request.request_state.as_deref(), request.input_responses.as_ref(), &context)?;
        Ok(match step {
            FlowStep::Asks(asked) => asked.into(),
            FlowStep::Ends(text) => contents::say_prompt([ContentBlock::text(text)]).into(),
        })
    }

    #[expect(deprecated, reason = "clients of the older protocol set a log level")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_newest(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.log_level.store(rank_level(request.level), Ordering::Relaxed);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (mut changes, mut known) = (LIST_CHANGES.subscribe(), self.known);
        loop {
            let now = *changes.borrow_and_update();
            // What the client did not ask for is refused by the sink, and a client that is gone ends the stream below.
            if now.tools != known.tools {
                let _ = context.sink().notify_tool_list_changed().await;
            }
            if now.prompts != known.prompts {
                let _ = context.sink().notify_prompt_list_changed().await;
            }
            known = now;
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return Ok(()) },
                () = context.cancelled() => return Ok(()),
            }
        }
    }

    /// No resource ever changes, so there is nothing to keep.
    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}
