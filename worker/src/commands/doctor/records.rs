//! The checks of `steward doctor` that concern the notes of the vault and their index.
//!
//! Without an index, the notes are read into a temporary one, so that the findings are the same before the first start.
//! Nothing here writes the vault or creates its index.

use super::{DoctorFindings, mapping, retry_until_clean};
use crate::cli::output::format_causes;
use crate::commands::{TemporaryIndex, open_index};
use crate::config::StewardConfig;
use crate::config::mapping::{MappingBroken, MappingNotAccepted};
use anyhow::Context;
use chrono::Utc;
use steward_domain::record::plain_text::count_noun;
use steward_server::views::VaultViews;
use steward_vault::files::root::VaultRoot;
use steward_vault::index::{DifferenceKind, FILE, Index, StateCounts, SyncReport};
use steward_vault::wiki::create::list_wikis;

/// Checks the index, and every note by it.
pub(super) async fn check_records(
    config: &StewardConfig,
    root: &VaultRoot,
    is_served: bool,
    findings: &mut DoctorFindings,
) -> anyhow::Result<()> {
    let opened = if config.state_dir()?.join(FILE).exists() { open_index(config).await.map(Some) } else { Ok(None) };
    let index = match opened {
        Ok(index) => index.filter(Index::is_filled),
        // The finding on the mapping says it already.
        Err(e) if is_about_mapping(&e) => return Ok(()),
        Err(e) => {
            findings.add_fault("index", format_causes(&e));
            return Ok(());
        }
    };
    let Some(index) = index else { return check_without_index(config, root, findings).await };
    let differences = retry_until_clean(is_served, async || Ok(index.compare_with_files(root).await?)).await?;
    if differences.is_empty() {
        findings.add_ok("index", "agrees with every file");
    } else {
        let count = count_noun(differences.len() as u64, "file");
        let is_new = differences.iter().all(|difference| difference.differs == DifferenceKind::NotIndexed);
        if is_new && !is_served {
            findings.add_note("index", format!("{count} came since the index was read: the next start reads them"));
        } else {
            let fix = "a running worker reads them again within a minute; otherwise run `steward index rebuild`";
            findings.add_fault("index", format!("{count} differ: {fix}"));
        }
    }
    list_findings(config, root, &index, findings).await
}

fn is_about_mapping(error: &anyhow::Error) -> bool {
    error.is::<MappingNotAccepted>() || error.is::<MappingBroken>()
}

/// Reads the notes themselves, as the first start will.
async fn check_without_index(
    config: &StewardConfig,
    root: &VaultRoot,
    findings: &mut DoctorFindings,
) -> anyhow::Result<()> {
    let schema = match config.mapping.note_schema() {
        Ok(schema) => schema,
        Err(e) if is_about_mapping(&e) => return Ok(()),
        Err(e) => return Err(e),
    };
    findings.add_ok("index", "does not exist yet: `steward up` creates it");
    let read = async {
        let temporary = TemporaryIndex::create(schema, config.mapping.list_accepted()).await?;
        let report = temporary.read_vault(root).await?;
        anyhow::Ok((temporary, report))
    };
    match read.await.context("the notes could not be read into a temporary index; set TMPDIR to a folder with space") {
        Err(e) => findings.add_fault("index", format_causes(&e)),
        Ok((temporary, report)) => {
            list_unlisted_folders(&report, findings);
            list_findings(config, root, &temporary.index, findings).await?;
        }
    }
    Ok(())
}

/// Names the folders that could not be listed. Every other problem of the scan is in its index.
fn list_unlisted_folders(report: &SyncReport, findings: &mut DoctorFindings) {
    for folder in report.problems.iter().filter(|problem| problem.path.ends_with('/')) {
        findings.add_fault("record", folder.to_string());
    }
}

async fn list_findings(
    config: &StewardConfig,
    root: &VaultRoot,
    index: &Index,
    findings: &mut DoctorFindings,
) -> anyhow::Result<()> {
    let problems = index.read().list_problems().await?;
    let counts = index.read().count_records(chrono::Utc::now()).await?;
    let (matters, tasks) = (count_all(counts.matters), count_all(counts.tasks));
    let has_faulty_notes =
        problems.iter().any(|problem| ["matter/", "task/"].iter().any(|f| problem.path.starts_with(f)));
    if matters + tasks > 0 {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let found = format!("{matters} matter{} and {tasks} task{} can be read", plural(matters), plural(tasks));
        findings.add_ok("records", found);
    } else if list_wikis(root).is_ok_and(|wikis| !wikis.is_empty()) {
        findings.add_ok("records", "no matter and no task; `steward wiki status` shows the wikis");
    } else if let Some(step) = find_first_step(config, root).filter(|_| !has_faulty_notes) {
        findings.add_fault("records", step);
    }
    for problem in problems {
        findings.add_fault("record", problem.to_string());
    }
    mapping::list_left_out(index, findings).await?;
    mapping::list_lost_notes(index, findings).await?;
    let drill = VaultViews::new(root.clone(), index.clone()).read_drill_status(Utc::now()).await?;
    super::check_drill(&drill, findings);
    Ok(())
}

fn count_all(counts: StateCounts) -> u64 {
    counts.open + counts.done + counts.archived
}

/// What to do with a vault that holds no matter and no task. `None` if the finding on the mapping says it already.
fn find_first_step(config: &StewardConfig, root: &VaultRoot) -> Option<&'static str> {
    if config.mapping.is_mapped() {
        return Some(
            "no note is a matter or a task by the mapping: correct `where` in `[map]` of steward.toml, then run \
             `steward init --accept`",
        );
    }
    config.mapping.refuse_unmapped_notes(root).is_ok().then_some(
        "the vault holds no matter and no task: put a note into matter/ that begins with `type: matter` and a `name` \
         between two lines `---`, or let `steward init` propose how your own notes are read",
    )
}
