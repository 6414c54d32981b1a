//! `delete`: stages the removal of a page, or gives up a run of the caller.
//!
//! A page that goes lies in the trash after its run was committed, which only a person can do.

use super::write::{ChangeResult, RunChoice, STAGE_WIKI, abandon_run, describe_change, open_run, refuse_change};
use super::write::{discard_empty_run, to_written_file};
use crate::mcp::error::{ToolError, ToolErrorCode};
use crate::mcp::outside::OutsideWords;
use crate::mcp::schema::{describe_arguments, describe_result};
use crate::mcp::tool::{ToolAnswer, ToolCall, ToolDefinition, answer_value};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use steward_domain::wiki::LOG_FILE;
use steward_domain::wiki::claims::Claim;
use steward_domain::wiki::path::PagePath;
use steward_domain::wiki::writer::draft::PageChange;
use steward_domain::wiki::writer::refusal::DraftFault;
use steward_vault::wiki::guardian::{GuardianSession, StagedPage};

/// How the path of a run begins.
const RUNS: &str = "runs/";
/// The most claims that are shown.
const MAX_CLAIMS: usize = 20;

pub(super) const TOOL: ToolDefinition = ToolDefinition {
    name: "delete",
    title: "Stage a removal",
    description: "Stages the removal of a page in a manual run, which a person must commit; or gives up an own run by path=\"runs/<id>\". \
        Example: delete(path=\"wiki/concepts/old-lifetime.md\", reason=\"merged into token-lifetime\")",
    kind: STAGE_WIKI,
    arguments: describe_arguments::<DeleteArguments>,
    result: Some(describe_result::<DeleteResult>),
    run: delete,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    /// The page, or `runs/<id>` for a run of yours.
    #[schemars(length(max = 512))]
    path: String,
    /// Why; the record keeps it.
    #[schemars(length(min = 1, max = 200))]
    reason: String,
    /// The run, as an earlier answer named it. Without it a new manual run is opened.
    #[schemars(length(max = 40))]
    run_id: Option<String>,
}

/// A removal that is staged, or a run that was given up.
#[derive(Debug, Serialize, JsonSchema)]
struct DeleteResult {
    /// The name of the run for later calls.
    run: String,
    /// `open` or `abandoned`.
    state: String,
    /// Outside words: pages that link to the page, one line each.
    warnings: Vec<OutsideWords>,
    /// Outside words: claims that go, at most 20, one line each.
    claims: Vec<OutsideWords>,
    /// What comes next.
    next: String,
}

impl DeleteResult {
    /// A run of which nothing is shown but its state.
    fn of_run(ChangeResult { run, state, warnings, next, .. }: ChangeResult) -> Self {
        Self { run, state, warnings, claims: Vec::new(), next }
    }

    /// A page that is to be removed.
    fn of_removal(session: &GuardianSession, staged: &StagedPage) -> Self {
        let result = Self::of_run(describe_change(session, staged, Vec::new()));
        let place = find_trash_place(session, staged);
        let place =
            place.map(|place| format!("After the commit its text lies in the vault at {place}. ")).unwrap_or_default();
        Self {
            claims: staged.lost_claims.iter().take(MAX_CLAIMS).map(show_claim).collect(),
            next: format!("{place}{}", result.next),
            ..result
        }
    }
}

fn show_claim(claim: &Claim) -> OutsideWords {
    format!("{}: {}", claim.id, claim.statement).into()
}

/// The file of a removed page in the trash, from the root of the vault on; `None` for a page that only the run had made.
fn find_trash_place(session: &GuardianSession, staged: &StagedPage) -> Option<String> {
    staged.before.as_ref()?;
    let meta = &session.run().meta;
    let path = PagePath::new(&meta.folder, &staged.file).ok()?;
    let name = staged.file.rsplit('/').next()?;
    let parts: Vec<&str> = path.trash_folders(meta.run.as_str()).chain([name]).collect();
    Some(parts.join("/"))
}

fn delete(call: &ToolCall) -> Result<ToolAnswer, ToolError> {
    let (workspace, DeleteArguments { path, reason, run_id }) = call.open::<DeleteArguments>()?;
    if let Some(run) = path.trim_start_matches('/').strip_prefix(RUNS) {
        let run = abandon_run(call, &workspace, run, &reason)?;
        return answer_value(&DeleteResult::of_run(ChangeResult::of_run(
            &run,
            "abandoned",
            "Nothing was changed".to_owned(),
        )));
    }
    let file = to_written_file(&path)?;
    if file == LOG_FILE {
        let code = ToolErrorCode::Draft(DraftFault::ProtectedFile);
        return Err(ToolError::new(code, "the log is never removed", "Name a page"));
    }
    let choice = RunChoice { run: run_id.as_deref(), run_type: None, source: None };
    let (mut session, is_new) = open_run(call, &workspace, &choice)?;
    match session.change(&PageChange::Remove { file, reason }, None) {
        Ok(staged) => answer_value(&DeleteResult::of_removal(&session, &staged)),
        Err(error) => {
            if is_new {
                discard_empty_run(session)?;
            }
            Err(refuse_change(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tests::TestWiki;
    use chrono::Utc;
    use serde_json::{Value, json};
    use steward_domain::wiki::run::RunId;
    use steward_vault::wiki::guardian::Submission;
    use steward_vault::wiki::staged::{RunState, StagedRuns};
    use steward_vault::wiki::state::{find_wiki_folder, read_wiki};

    const QUOTE: &str = "The lease of plot 12 ends on 31 March 2027.";

    fn desk() -> TestWiki {
        let wiki = TestWiki::accepted("allotment");
        wiki.write("sources/lease.md", &format!("# The lease\n\n{QUOTE}\n"));
        wiki.register("sources/lease.md");
        let body = format!("It ends in 2027.[^c6107d23f]\n\n[^c6107d23f]: lease — \"{QUOTE}\"\n");
        wiki.write("concepts/end.md", &TestWiki::render_page("end", "concept", "", &body));
        wiki
    }

    fn call(wiki: &TestWiki, tool: &str, arguments: Value) -> Value {
        wiki.call(tool, arguments).unwrap().structured_content.unwrap()
    }

    fn create(path: &str) -> Value {
        let content =
            format!("---\ntitle: Lease\nkind: concept\n---\nIt ends in March 2027.[^1]\n\n[^1]: lease — \"{QUOTE}\"\n");
        json!({"op": "create", "path": path, "content": content})
    }

    #[test]
    fn a_removal_names_the_claims_that_go_and_the_place_in_the_trash() {
        let wiki = desk();
        let removal = call(&wiki, "delete", json!({"path": "wiki/concepts/end.md", "reason": "a test"}));
        assert_eq!(removal["claims"], json!(["c6107d23f: It ends in 2027."]), "{removal:#}");
        let runs = StagedRuns::new(wiki.vault.root()).list().unwrap();
        let place = format!("wiki/allotment/.trash/{}/concepts/end.md", runs[0].meta.run);
        assert!(removal["next"].as_str().unwrap().contains(&place), "{removal:#}");
    }

    #[test]
    fn nothing_is_staged_through_a_symbolic_link() {
        let (wiki, outside) = (desk(), tempfile::tempdir().unwrap());
        let (folder, moved) = (wiki.folder().join("concepts"), outside.path().join("concepts"));
        std::fs::create_dir(&moved).unwrap();
        std::fs::rename(folder.join("end.md"), moved.join("end.md")).unwrap();
        std::os::unix::fs::symlink(moved.join("end.md"), folder.join("end.md")).unwrap();
        let append = json!({"op": "append", "path": "wiki/concepts/end.md", "content": "x"});
        let remove = json!({"path": "wiki/concepts/end.md", "reason": "x"});
        let refuse = |tool: &str, arguments: &Value| wiki.call(tool, arguments.clone()).unwrap_err().code;
        assert_eq!(refuse("write", &append), ToolErrorCode::IsALink);
        assert_eq!(refuse("delete", &remove), ToolErrorCode::IsALink);
        std::fs::remove_file(folder.join("end.md")).unwrap();
        std::fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&moved, &folder).unwrap();
        // The folder of the kind is a link, whether the path names it or not.
        for arguments in [create("wiki/concepts/lease.md"), create("wiki/lease.md"), append] {
            assert_eq!(refuse("write", &arguments), ToolErrorCode::IsALink, "{arguments}");
        }
        assert_eq!(refuse("delete", &remove), ToolErrorCode::IsALink);
        assert_eq!(StagedRuns::new(wiki.vault.root()).list().unwrap(), [], "a refused call leaves no run");
    }

    #[test]
    fn a_submitted_run_is_given_up_by_the_process_that_holds_the_vault() {
        let wiki = desk();
        let made = call(&wiki, "write", create("wiki/concepts/lease.md"));
        let run: RunId = made["run_id"].as_str().unwrap().parse().unwrap();
        let root = wiki.vault.root();
        let read = read_wiki(root, "allotment", &find_wiki_folder(root, "allotment").unwrap()).unwrap();
        let mut session = GuardianSession::open(root, read, &run, "ann via mcp", Utc::now()).unwrap();
        let touched = ["concepts/lease.md".to_owned()];
        session.submit(&Submission { subject: "Lease", touched: &touched, keeps: &[] }, Utc::now()).unwrap();
        drop(session);
        let give_up = || wiki.call("delete", json!({"path": format!("runs/{run}"), "reason": "a test"}));
        assert_eq!(give_up().unwrap_err().code, ToolErrorCode::EngineAway, "nobody holds the vault");
        let staged = StagedRuns::new(root).open(&run).unwrap();
        staged.set_status(RunState::Committed, Utc::now(), "it was committed").unwrap();
        drop(staged);
        assert_eq!(give_up().unwrap_err().code, ToolErrorCode::RunClosed);
    }
}
