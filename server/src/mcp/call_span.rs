//! The span of a call, for whoever exports the traces of the process.
//!
//! It names the tool, the workspace and the caller, and no content. The trace of the client stands in a field: this crate does not know where
//! spans go, so it cannot make that trace the parent.

use super::call_log::shorten_part;
use tracing::Span;

/// The most characters of the name of a workspace.
const MAX_WORKSPACE: usize = 96;
/// The digits of the id of a trace, of the id of a span, and of the flags.
const TRACE_DIGITS: usize = 32;
const SPAN_DIGITS: usize = 16;
const FLAG_DIGITS: usize = 2;

/// Opens the span of a call. `parent` is what the client says about its own trace.
pub(super) fn open_span(tool: &str, workspace: Option<&str>, caller: &str, parent: Option<&str>) -> Span {
    let workspace = workspace.map(|name| shorten_part(name, MAX_WORKSPACE));
    let traceparent = parent.filter(|text| is_traceparent(text));
    tracing::info_span!("mcp.tool", tool, workspace = workspace.as_deref(), caller, traceparent)
}

/// Whether a text has the form of a W3C `traceparent` of version 00, as in `00-<trace>-<span>-01`.
fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    // An id of zeros alone is none.
    let is_id = |part: &str, digits: usize| is_hex(part, digits) && part.bytes().any(|byte| byte != b'0');
    match text.split('-').collect::<Vec<_>>().as_slice() {
        ["00", trace, span, flags] => {
            is_id(trace, TRACE_DIGITS) && is_id(span, SPAN_DIGITS) && is_hex(flags, FLAG_DIGITS)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_trace_of_a_client_is_named() {
        assert!(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"));
        for text in [
            "",
            "x",
            "01-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-x",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7",
        ] {
            assert!(!is_traceparent(text), "{text}");
        }
    }
}
