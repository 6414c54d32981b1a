//! Performs one delivery in steps, so that it can be interrupted anywhere and continued later.
//!
//! The comment is named by the action, so an earlier one is found. The old and the new state of the issue are durable
//! before the issue is moved, so the issue itself shows afterwards whether the move happened. An issue in neither of
//! the two states was moved by a person. It must stay there, and the record says so. A revert checks what is there in
//! the same way. A missing issue is believed only if its project exists, because a wrong address or a proxy answers
//! 404 to everything.

use super::DeliveryJob;
use super::TrackerDispatcher;
use super::plane::{CommentSearch, PlaneError};
use chrono::{DateTime, TimeDelta, Utc};
use steward_domain::action::audit::ActionKind;
use steward_domain::action::plan::ActionId;
use steward_domain::record::frontmatter;
use steward_domain::tracker::{self, PlaneAction, TrackerId, TrackerIssue, TrackerStateGroup, render_comment};
use steward_vault::files::crash;
use steward_vault::tracker::outbox::{self, DeliveryProgress};
use temporalio_common::ActivityError;

const NO_SUCH_ISSUE: &str = "the issue is not there any more";
const TOO_MANY: &str = "our comment, if it was made, is not among the newest 1,000 of the issue, so it was not removed";
/// This text is compared with the reasons of earlier records, so it must not change.
const ANOTHER_ISSUE: &str = "the task names another issue now";
/// How long a request may still run at the tracker after our time-out: 60 s, longer than web servers allow.
const LATE_REQUEST: TimeDelta = TimeDelta::seconds(60);

/// The result of some steps. The outer error means that the vault could not be read or written.
type DeliveryStep<T> = Result<Result<T, PlaneError>, ActivityError>;

/// What was made at the tracker for an action, as far as it is known.
struct DeliveryTrace {
    comment: Option<TrackerId>,
    asked_at: Option<DateTime<Utc>>,
    from: Option<TrackerId>,
    to: Option<TrackerId>,
}

/// Continues with the value, or ends the step with its error.
macro_rules! try_step {
    ($step:expr) => {
        match $step {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

impl TrackerDispatcher {
    /// Delivers or reverts what the record owes. `ahead` means that an earlier debt to the issue must come first.
    pub(super) async fn deliver_or_revert(&self, job: &DeliveryJob, ahead: bool) -> DeliveryStep<PlaneAction> {
        let must_wait = || Err(PlaneError::Passing("must first get an earlier update of this issue".into()));
        match &job.record.plane_action {
            Some(PlaneAction::Owed { issue, group }) if !ahead => self.make_delivery(job, issue, *group).await,
            Some(PlaneAction::RevertOwed { issue, action_id: of }) => match self.find_delivery_trace(of).await? {
                None => {
                    let nothing = PlaneAction::Reverted {
                        issue: issue.clone(),
                        comment_removed: false,
                        state_restored: false,
                        left: None,
                    };
                    Ok(Ok(nothing))
                }
                Some(trace) if !ahead => Ok(self.revert_delivery(issue, of, trace).await),
                Some(_) => Ok(must_wait()),
            },
            _ => Ok(must_wait()),
        }
    }

    async fn make_delivery(
        &self,
        job: &DeliveryJob,
        issue: &TrackerIssue,
        group: TrackerStateGroup,
    ) -> DeliveryStep<PlaneAction> {
        let (plane, id) = (&self.plane, &job.record.draft.id);
        let given_up = |reason: &str| Ok(Ok(PlaneAction::GivenUp { issue: issue.clone(), reason: reason.into() }));
        if !job.progress.begun && self.has_changed_issue(job, issue).await? {
            return given_up(ANOTHER_ISSUE);
        }
        let mut progress = job.progress.clone();
        let found_state = plane.read_issue_state(issue).await;
        if matches!(found_state, Err(PlaneError::Missing)) && job.has_failed_for_long() {
            try_step!(plane.read_project_states(&issue.project).await);
            return given_up(NO_SUCH_ISSUE);
        }
        try_step!(found_state);
        let states = try_step!(plane.read_project_states(&issue.project).await);
        let comment = try_step!(self.ensure_comment(job, issue, &mut progress).await?);
        // The state is read again, because a person may have moved the issue since.
        let now = try_step!(plane.read_issue_state(issue).await);
        let made = |from_state, to_state, left: Option<&str>| {
            let left = left.map(str::to_owned);
            Ok(Ok(PlaneAction::Delivered {
                issue: issue.clone(),
                comment: comment.clone(),
                from_state,
                to_state,
                left,
            }))
        };
        if let Some(to) = progress.to.clone() {
            if now.as_ref() == Some(&to) {
                return made(progress.from, Some(to), None);
            }
            if now != progress.from {
                return made(progress.from, None, Some("a person has moved the issue meanwhile, and it stays there"));
            }
        } else if now.as_ref().is_some_and(|now| states.is_in_group(now, group)) {
            return made(now, None, None);
        }
        let Some(to) = states.first_in_group(group) else {
            let why = format!("has no state of the group `{}` in this project: add one", group.as_str());
            return Ok(Err(PlaneError::Lasting(why)));
        };
        (progress.from, progress.to) = (now.clone(), Some(to.clone()));
        self.record_progress(id, &progress).await?;
        try_step!(plane.move_issue(issue, to).await);
        crash::die_if_armed("after-transition");
        made(now, Some(to.clone()), None)
    }

    /// Reports whether the task names another issue now than its record does.
    async fn has_changed_issue(&self, job: &DeliveryJob, issue: &TrackerIssue) -> Result<bool, ActivityError> {
        let (target, issue) = (job.record.draft.target.clone(), issue.clone());
        self.run_with_writer(move |writer| {
            let Ok(task) = writer.root().read_file(&target) else { return Ok(false) };
            let default = writer.tracker_site().and_then(|site| site.project.as_ref());
            let named =
                frontmatter::read_document(&task.bytes).ok().and_then(|d| tracker::read_issue(d.fields(), default));
            Ok(matches!(named, Some(Ok(named)) if named != issue))
        })
        .await
    }

    /// Ensures that our comment is on the issue once.
    ///
    /// If an earlier request got no clear answer, the comment is searched first. It is requested again only when the
    /// earlier request can no longer create it.
    async fn ensure_comment(
        &self,
        job: &DeliveryJob,
        issue: &TrackerIssue,
        progress: &mut DeliveryProgress,
    ) -> DeliveryStep<TrackerId> {
        let (plane, id) = (&self.plane, &job.record.draft.id);
        if let Some(comment) = progress.comment.clone() {
            return Ok(Ok(comment));
        }
        let found = match progress.asked_at {
            Some(_) => try_step!(plane.find_comment(issue, id).await),
            None => CommentSearch::Nothing,
        };
        let comment = match (found, late_comment_wait(progress.asked_at)) {
            (CommentSearch::Found(comment), _) => comment,
            (CommentSearch::Nothing | CommentSearch::TooMany, Some(error)) => return Ok(Err(error)),
            (CommentSearch::Nothing | CommentSearch::TooMany, None) => {
                (progress.begun, progress.asked_at) = (true, Some(Utc::now()));
                self.record_progress(id, progress).await?;
                let posted = plane.post_comment(issue, id, &render_comment(&job.record)).await;
                if !matches!(posted, Ok(_) | Err(PlaneError::Passing(_))) {
                    progress.asked_at = None;
                    self.record_progress(id, progress).await?;
                }
                try_step!(posted)
            }
        };
        crash::die_if_armed("after-comment");
        progress.comment = Some(comment.clone());
        self.record_progress(id, progress).await?;
        Ok(Ok(comment))
    }

    /// Finds what was made for an action, or may have been; `None` if nothing was ever sent.
    async fn find_delivery_trace(&self, of: &ActionId) -> Result<Option<DeliveryTrace>, ActivityError> {
        let Some(undone) = self.find_record(of).await? else { return Ok(None) };
        let id = of.clone();
        self.run_with_writer(move |writer| {
            let root = writer.root();
            match outbox::find_follower(root, &undone, ActionKind::Tracked)?.and_then(|(_, r)| r.plane_action) {
                Some(PlaneAction::Delivered { comment, from_state: from, to_state: to, .. }) => {
                    return Ok(Some(DeliveryTrace { comment: Some(comment), asked_at: None, from, to }));
                }
                Some(PlaneAction::GivenUp { reason, .. }) if reason == ANOTHER_ISSUE => return Ok(None),
                _ => {}
            }
            let failure = outbox::find_follower(root, &undone, ActionKind::TrackFailed)?;
            Ok(match outbox::read_delivery_progress(root, &id)? {
                Some(DeliveryProgress { begun: true, from, to, comment, asked_at, .. }) => {
                    Some(DeliveryTrace { comment, asked_at, from, to })
                }
                Some(_) => None,
                // The progress file is lost, so the tracker is asked.
                None => failure.map(|(_, failed)| DeliveryTrace {
                    comment: None,
                    asked_at: Some(failed.draft.timestamp),
                    from: None,
                    to: None,
                }),
            })
        })
        .await
    }

    async fn revert_delivery(
        &self,
        issue: &TrackerIssue,
        of: &ActionId,
        trace: DeliveryTrace,
    ) -> Result<PlaneAction, PlaneError> {
        let plane = &self.plane;
        let reverted = |comment_removed, state_restored, left: Vec<String>| PlaneAction::Reverted {
            issue: issue.clone(),
            comment_removed,
            state_restored,
            left: (!left.is_empty()).then(|| left.join("; ")),
        };
        // The state is read first, so that a refusal below concerns that step alone.
        let now = match plane.read_issue_state(issue).await {
            Err(PlaneError::Missing) => {
                plane.read_project_states(&issue.project).await?;
                return Ok(reverted(false, false, vec![NO_SUCH_ISSUE.into()]));
            }
            now => now?,
        };
        let mut left = Vec::new();
        let comment = match trace.comment {
            Some(comment) => Some(comment),
            None => match (plane.find_comment(issue, of).await?, late_comment_wait(trace.asked_at)) {
                (CommentSearch::Found(comment), _) => Some(comment),
                (CommentSearch::Nothing | CommentSearch::TooMany, Some(error)) => return Err(error),
                (CommentSearch::Nothing, None) => None,
                (CommentSearch::TooMany, None) => {
                    left.push(TOO_MANY.into());
                    None
                }
            },
        };
        let mut removed = false;
        if let Some(comment) = comment {
            match plane.remove_comment(issue, &comment).await {
                Ok(()) => removed = true,
                Err(PlaneError::Refused(code)) => {
                    left.push(format!("the comment stays, its removal was refused ({code})"))
                }
                Err(error) => return Err(error),
            }
            crash::die_if_armed("after-uncomment");
        }
        let mut restored = false;
        match (trace.from, trace.to) {
            (_, None) => {}
            (from, Some(_)) if now == from => restored = true,
            (None, Some(_)) => left.push("the issue had no state before, so it stays where it is".into()),
            (Some(from), to) if now == to => {
                plane.move_issue(issue, &from).await?;
                crash::die_if_armed("after-transition-back");
                restored = true;
            }
            (Some(_), Some(_)) => left.push("a person has moved the issue since, and it stays there".into()),
        }
        Ok(reverted(removed, restored, left))
    }

    async fn record_progress(&self, of: &ActionId, progress: &DeliveryProgress) -> Result<(), ActivityError> {
        let (of, progress) = (of.clone(), progress.clone());
        self.run_with_writer(move |writer| writer.write_delivery_progress(&of, &progress)).await
    }
}

/// The wait while an earlier request may still create the comment.
fn late_comment_wait(asked_at: Option<DateTime<Utc>>) -> Option<PlaneError> {
    let left = (asked_at? + LATE_REQUEST - Utc::now()).min(LATE_REQUEST).num_milliseconds();
    u64::try_from(left).ok().filter(|left| *left > 0).map(|left| PlaneError::Unsure(left.div_ceil(1_000)))
}
