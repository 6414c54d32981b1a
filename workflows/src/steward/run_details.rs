//! What a person sees of a tick in the Temporal UI: its outcome in Markdown, and attributes to search by.
//!
//! It holds paths, ids and decisions, as the result does. A path is written so that Markdown shows it as it is.

use crate::{CHANGED_ATTRIBUTE, DISPOSITION_ATTRIBUTE};
use steward_domain::action::plan::Disposition;
use steward_domain::record::plain_text::{count_noun, escape_markdown};
use steward_domain::record::url::encode_path;
use steward_domain::steward::tick::{RunDisplay, TaskCheckOutcome, TaskCheckReport, TickReport};
use temporalio_common::search_attributes::{SearchAttributeKey, SearchAttributeUpdate};

/// The attributes of a tick that evaluated something. The furthest of its decisions counts.
pub(super) fn list_outcome_attributes(report: &TickReport) -> Vec<SearchAttributeUpdate> {
    let reached = report.evaluated.iter().filter_map(|task| match &task.ended {
        TaskCheckOutcome::Decided { disposition, .. } => Some(*disposition),
        _ => None,
    });
    let furthest = reached.max();
    let disposition = SearchAttributeKey::<String>::keyword(DISPOSITION_ATTRIBUTE);
    let changed = SearchAttributeKey::<bool>::bool(CHANGED_ATTRIBUTE);
    let disposition = furthest.map(|furthest| disposition.value_set(furthest.as_str().to_owned()));
    disposition.into_iter().chain([changed.value_set(furthest == Some(Disposition::Live))]).collect()
}

/// Describes a tick in Markdown.
pub(super) fn describe_tick(report: &TickReport, display: &RunDisplay) -> String {
    let mut counts = vec![
        format!("**{} evaluated**", report.evaluated.len()),
        format!("{} without news", report.quiet),
        format!("{} skipped", report.skipped.values().sum::<u32>()),
    ];
    counts.push(count_noun(report.signals.into(), "signal"));
    let stopped = if report.stopped { " The vault is stopped." } else { "" };
    let mut text = format!(
        "{} – {}. Next check in {}.{stopped}",
        link_record(&report.matter, display),
        counts.join(", "),
        format_interval(report.interval_seconds)
    );
    for (at, task) in report.evaluated.iter().enumerate() {
        text.push_str(if at == 0 { "\n\n" } else { "\n" });
        text.push_str(&describe_task(task, display));
    }
    text
}

fn describe_task(TaskCheckReport { task, ended }: &TaskCheckReport, display: &RunDisplay) -> String {
    let outcome = match ended {
        TaskCheckOutcome::Decided { decision, confidence, disposition, action_id } => {
            let reached = match disposition {
                Disposition::Recorded => "no change",
                Disposition::Shadow => "would change, in shadow",
                Disposition::Pending => "waits for a person",
                Disposition::Live => "**changed**",
            };
            let action = match &display.dashboard {
                Some(dashboard) => format!("[{action_id}]({dashboard}/actions/{action_id})"),
                None => format!("`{action_id}`"),
            };
            format!("`{}` at {:.0} %, {reached} ({action})", decision.as_str(), confidence * 100.0)
        }
        TaskCheckOutcome::RateGuarded { .. } => "the rate guard refused the call".to_owned(),
        TaskCheckOutcome::ClerkFailed { .. } => "no answer from the clerk".to_owned(),
        TaskCheckOutcome::ChangedMeanwhile => "a person changed it meanwhile".to_owned(),
        TaskCheckOutcome::NoTimeLeft => "no time was left".to_owned(),
        TaskCheckOutcome::Stopped => "the vault is stopped".to_owned(),
        TaskCheckOutcome::Error { .. } => "an error; the result says more".to_owned(),
    };
    format!("- {}: {outcome}", link_record(task.as_str(), display))
}

/// The path of a note, as a link to its page if there is a dashboard.
fn link_record(path: &str, display: &RunDisplay) -> String {
    let shown = escape_markdown(path);
    match &display.dashboard {
        Some(dashboard) => format!("[{shown}]({dashboard}/records/{})", encode_path(path)),
        None => shown,
    }
}

fn format_interval(seconds: u32) -> String {
    if seconds >= 120 { format!("{} min", seconds / 60) } else { format!("{seconds} s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_domain::action::plan::ActionId;
    use steward_domain::record::path::RecordPath;
    use steward_domain::steward::clerk::Judgement;

    fn task(path: &str, ended: TaskCheckOutcome) -> TaskCheckReport {
        TaskCheckReport { task: RecordPath::parse(path).unwrap(), ended }
    }

    fn decided(path: &str, disposition: Disposition) -> TaskCheckReport {
        let (decision, action_id) = (Judgement::LikelyDone, ActionId::try_from("3f9a1c22b07d4e51".to_owned()).unwrap());
        task(path, TaskCheckOutcome::Decided { decision, confidence: 0.972, disposition, action_id })
    }

    fn report(evaluated: Vec<TaskCheckReport>) -> TickReport {
        TickReport {
            matter: "matter/house_move.md".into(),
            evaluated,
            signals: 1,
            interval_seconds: 1800,
            ..Default::default()
        }
    }

    #[test]
    fn the_details_link_the_matter_the_tasks_and_the_actions() {
        let display = RunDisplay { dashboard: Some("http://127.0.0.1:8420".into()), ..RunDisplay::default() };
        let evaluated = vec![
            decided("task/Plan [B] *now*.md", Disposition::Live),
            task("task/b.md", TaskCheckOutcome::ClerkFailed { reason: "down".into() }),
        ];
        assert_eq!(
            describe_tick(&report(evaluated.clone()), &display),
            "[matter/house\\_move.md](http://127.0.0.1:8420/records/matter/house_move.md) – **2 evaluated**, 0 without news, 0 skipped, \
             1 signal. Next check in 30 min.\n\n\
             - [task/Plan \\[B\\] \\*now\\*.md](http://127.0.0.1:8420/records/task/Plan%20%5BB%5D%20%2Anow%2A.md): `likely_done` at 97 %, \
             **changed** ([3f9a1c22b07d4e51](http://127.0.0.1:8420/actions/3f9a1c22b07d4e51))\n\
             - [task/b.md](http://127.0.0.1:8420/records/task/b.md): no answer from the clerk"
        );
        let plain = describe_tick(&report(evaluated), &RunDisplay::default());
        assert!(
            plain.contains("task/Plan \\[B\\] \\*now\\*.md: `likely_done` at 97 %, **changed** (`3f9a1c22b07d4e51`)"),
            "{plain}"
        );
        assert!(!plain.contains("http"), "{plain}");
    }

    #[test]
    fn the_furthest_decision_is_the_one_to_search_by() {
        let attributes = |evaluated| format!("{:?}", list_outcome_attributes(&report(evaluated)));
        let both =
            attributes(vec![decided("task/a.md", Disposition::Pending), decided("task/b.md", Disposition::Recorded)]);
        let none = attributes(vec![task("task/a.md", TaskCheckOutcome::NoTimeLeft)]);
        assert!(both.contains("StewardDisposition") && both.contains("StewardChanged"), "{both}");
        assert!(!none.contains("StewardDisposition") && none.contains("StewardChanged"), "{none}");
    }
}
