//! Says from the record of a run who asked for it, and whether an assistant of a caller wrote it.
//!
//! The folder of a run is removed some time after its end, and the record stays. Its reasoning begins with the name of who began the
//! run, and names the writer.

use steward_domain::record::plain_text::to_one_line;

/// How the reasoning goes on after the name if an assistant may have written the run, and otherwise.
const WORK: [&str; 2] = [" had an assistant change pages: ", " ingested the source "];
const OTHER_WORK: [&str; 4] = [" kept the answer ", " kept the review ", " changed pages: ", " took back the run "];
/// What stands around that name in the record of a run that committed nothing.
const ASKED: &str = " Asked for by ";
const ASKED_END: &str = ", written by ";
/// What stands before the name of the writer.
const WRITTEN: &str = ". Written by ";
/// The name of an assistant, and what follows it.
const ASSISTANT: &str = "an assistant; ";

/// Who asked for a run, as the reasoning of its record says. Untrusted.
pub(crate) fn find_asker(reasoning: &str) -> Option<String> {
    let asked = reasoning.split_once(ASKED).and_then(|(_, rest)| rest.split_once(ASKED_END));
    let work = || WORK.iter().chain(&OTHER_WORK);
    let named = || work().filter_map(|work| reasoning.find(work)).min().map(|end| &reasoning[..end]);
    asked.map(|(by, _)| by).or_else(named).filter(|by| !by.is_empty()).map(str::to_owned)
}

/// Whether the reasoning of a committed run says that an assistant of this caller wrote it. A run that the caller had written in another
/// way is none.
#[must_use]
pub fn is_written_for(reasoning: &str, by: &str) -> bool {
    let Some(work) = reasoning.strip_prefix(to_one_line(by).as_str()) else { return false };
    let writer = work.split_once(WRITTEN).map_or("", |(_, writer)| writer);
    WORK.iter().any(|start| work.starts_with(start)) && writer.starts_with(ASSISTANT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_and_the_writer_must_both_be_right() {
        let pages = "ann via mcp had an assistant change pages: 1 page made, 0 extended. Written by an assistant; the rules found no fault, and no clerk checked it.";
        let source = "ann via mcp ingested the source lease: 1 page made, 0 extended. Written by an assistant; the rules found no fault, and a/b checked every claim. bob approved it on the dashboard.";
        for reasoning in [pages, source] {
            assert!(is_written_for(reasoning, "ann via mcp"), "{reasoning}");
            for other in ["ann", "", "ann via mcp had", "eve via mcp"] {
                assert!(!is_written_for(reasoning, other), "{other}: {reasoning}");
            }
        }
        let by_rules = source.replace("an assistant;", "fixed rules;");
        assert!(!is_written_for(&by_rules, "ann via mcp"));
        let forged =
            format!("{by_rules} bob committed it on the dashboard against the verifier: x. Written by an assistant; y");
        assert!(!is_written_for(&forged, "ann via mcp"));
        assert!(!is_written_for("ann via mcp took the run back.", "ann via mcp"));
    }

    #[test]
    fn a_record_says_who_asked() {
        for (reasoning, by) in [
            (
                "ann via mcp had an assistant change pages: 1 page made, 0 extended. Written by an assistant; x",
                "ann via mcp",
            ),
            ("ann ingested the source 2026-lease: 1 page made, 0 extended. Written by fixed rules; x", "ann"),
            ("rejected: a budget. Asked for by ann, written by openai/gpt-4.1.", "ann"),
        ] {
            assert_eq!(find_asker(reasoning).as_deref(), Some(by), "{reasoning}");
        }
        assert_eq!(find_asker("The run took another one back."), None);
    }
}
