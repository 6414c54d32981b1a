//! Speaks with one client over standard input and output.
//!
//! Nothing else may write to standard output while it runs. It ends with the input, and gives calls under way a moment. A line that is too long is
//! dropped, because nothing is known of it; a request that is nested too deeply is refused.

use super::caller::McpCaller;
use super::handler::{CallerSource, McpHandler};
use super::http::bodies::{MAX_DEPTH, is_shallow};
use super::updates::ChangeSource;
use super::vault::McpVault;
use rmcp::model::{ErrorData, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::io::stdio_pipes;
use rmcp::{RoleServer, ServiceExt};
use std::sync::Arc;

/// The longest line, in bytes: 4 MiB, several times the largest page with its escapes.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// Serves one client until it closes the input.
///
/// # Errors
/// The client does not begin as the protocol says, or the pipe breaks.
pub async fn serve_stdio(vault: McpVault, caller: McpCaller) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let handler = McpHandler::new(Arc::new(vault), CallerSource::Fixed(caller), ChangeSource::Files, "stdio");
    let (input, output) = stdio_pipes();
    let lines = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_LINE);
    let service = handler.serve(ShallowTransport(lines)).await?;
    service.waiting().await?;
    Ok(())
}

/// A transport that refuses what is nested more deeply than over HTTP. The parser bounds the depth before, so its stack suffices.
struct ShallowTransport<T>(T);

impl<T: Transport<RoleServer>> Transport<RoleServer> for ShallowTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.0.receive().await?;
            if serde_json::to_vec(&message).is_ok_and(|json| is_shallow(&json)) {
                return Some(message);
            }
            // Nobody waits for an answer to anything but a request.
            let JsonRpcMessage::Request(request) = message else { continue };
            let what = format!("a request is nested at most {MAX_DEPTH} levels deep");
            let refusal = JsonRpcMessage::error(ErrorData::invalid_request(what, None), Some(request.id));
            // This wait may be dropped at any moment, and the answer must not be lost with it.
            tokio::spawn(self.0.send(refusal));
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    /// A call with arguments that are nested so deeply.
    fn call(id: u64, depth: usize) -> String {
        let nested = "[".repeat(depth) + &"]".repeat(depth);
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"x\",\"arguments\":{{\"a\":{nested}}}}}}}\n"
        )
    }

    #[tokio::test]
    async fn a_request_that_is_nested_too_deeply_is_refused_and_a_line_that_is_too_long_is_dropped() {
        let (near, far) = tokio::io::duplex(1024 * 1024);
        let (input, output) = tokio::io::split(near);
        let lines = AsyncRwTransport::new_server(input, output).with_max_line_length(1000);
        let mut transport = ShallowTransport(lines);
        let (answers, mut requests) = tokio::io::split(far);
        let long = call(6, 3).replace("\"x\"", &format!("\"{}\"", "x".repeat(2000)));
        for line in [call(7, MAX_DEPTH), long, call(8, MAX_DEPTH - 3)] {
            requests.write_all(line.as_bytes()).await.unwrap();
        }
        let Some(JsonRpcMessage::Request(received)) = transport.receive().await else { panic!("nothing is received") };
        assert_eq!(received.id.to_string(), "8");
        let mut line = String::new();
        BufReader::new(answers).read_line(&mut line).await.unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)), "{answer}");
    }
}
