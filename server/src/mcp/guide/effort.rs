//! Says how much work a question is worth. It names the tools that the caller has, and no others.
//!
//! The text is ours, so it stands before the fence.

/// Renders the part for a caller with these tools.
pub(super) fn describe_effort(tools: &[&str]) -> String {
    let name = |wanted: &[&str]| {
        let known = wanted.iter().filter(|tool| tools.contains(tool)).map(|tool| format!("`{tool}`"));
        Some(known.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    let sentences = [
        name(&["read"]).map(|tools| format!("One {tools} suffices for a fact whose page you know.")),
        name(&["search", "read", "follow", "why"])
            .map(|tools| format!("Go deep ({tools}) if pages disagree, or if much depends on the answer.")),
        name(&["history"])
            .map(|tools| format!("Hand several topics to subagents, one topic each; each begins with {tools}.")),
        name(&["write"]).map(|tools| format!("Go on with your own partial ingest by {tools} with its run.")),
    ];
    let sentences: Vec<String> = sentences.into_iter().flatten().collect();
    format!("## Effort\n{}", sentences.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_the_caller_has_are_named() {
        let reader = describe_effort(&["guide", "read", "search"]);
        assert!(reader.contains("One `read` suffices") && reader.contains("(`search`, `read`)"), "{reader}");
        assert!(!reader.contains("history") && !reader.contains("write"), "{reader}");
        assert!(describe_effort(&["read", "write"]).contains("partial ingest by `write`"));
    }
}
