//! Says from the record of a committed run whether an assistant of a caller wrote it.
//!
//! The folder of a run is removed some time after its commit, and the record stays. Its reasoning begins with the name of who began the
//! run, and names the writer.

use steward_domain::record::plain_text::to_one_line;

/// How the reasoning goes on after the name.
const WORK: [&str; 2] = [" had an assistant change pages: ", " ingested the source "];
/// What stands before the name of the writer.
const WRITTEN: &str = ". Written by ";
/// The name of an assistant, and what follows it.
const ASSISTANT: &str = "an assistant; ";

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
}
