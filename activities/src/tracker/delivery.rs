//! One delivery, step by step, so that it may be cut short anywhere and taken up again.
//!
//! The comment is named by the action, so a second one is found to be there. What the issue's state was
//! and what it shall be is durable before it is moved; so the issue itself tells afterwards whether that
//! happened. An issue that is in neither of the two states was moved by a person: it stays, and the
//! record says so. The way back looks at what is there in the same way. That an issue is not there is
//! believed where its project is: a wrong address or a proxy answers 404 to everything.

use super::plane::Trouble;
use super::{Courier, Job};
use steward_domain::audit::ActionKind;
use steward_domain::plan::ActionId;
use steward_domain::tracker::{Issue, PlaneAction, StateGroup, TrackerId, comment_html};
use steward_vault::crash;
use steward_vault::outbox::{self, Progress};
use temporalio_common::ActivityError;

const NO_SUCH_ISSUE: &str = "the issue is not there any more";

/// What came of some steps, if the vault could be written.
type Step<T> = Result<Result<T, Trouble>, ActivityError>;

/// What was made for an action, as far as it is known.
struct Made {
    comment: Option<TrackerId>,
    from: Option<TrackerId>,
    to: Option<TrackerId>,
}

/// Goes on with the value, or ends the step with its trouble.
macro_rules! went {
    ($step:expr) => {
        match $step {
            Ok(value) => value,
            Err(trouble) => return Ok(Err(trouble)),
        }
    };
}

impl Courier {
    /// Does what the record owes; `ahead` where something else is owed to the issue before.
    pub(super) async fn work(&self, job: &Job, ahead: bool) -> Step<PlaneAction> {
        let first = || Err(Trouble::Passing("has to be told something earlier about this issue first".into()));
        match &job.record.plane_action {
            Some(PlaneAction::Owed { issue, group }) if !ahead => self.make(job, issue, *group).await,
            Some(PlaneAction::RevertOwed { issue, of }) => match self.made_for(of).await? {
                None => {
                    let nothing = PlaneAction::Reverted {
                        issue: issue.clone(),
                        comment_removed: false,
                        state_restored: false,
                        left: None,
                    };
                    Ok(Ok(nothing))
                }
                Some(made) if !ahead => Ok(self.take_back((issue, of), made).await),
                Some(_) => Ok(first()),
            },
            _ => Ok(first()),
        }
    }

    async fn make(&self, job: &Job, issue: &Issue, group: StateGroup) -> Step<PlaneAction> {
        let (plane, id) = (&self.plane, &job.record.draft.id);
        let mut progress = job.progress.clone();
        let now = plane.state_of(issue).await;
        if matches!(now, Err(Trouble::Missing)) && job.fails_for_long() {
            went!(plane.states(&issue.project).await);
            return Ok(Ok(PlaneAction::GivenUp { issue: issue.clone(), reason: NO_SUCH_ISSUE.into() }));
        }
        let now = went!(now);
        let states = went!(plane.states(&issue.project).await);
        let comment = match progress.comment.clone() {
            Some(comment) => comment,
            None => {
                progress.begun = true;
                self.noted(id, &progress).await?;
                let comment = went!(plane.comment(issue, id, &comment_html(&job.record)).await);
                crash::point("after-comment");
                progress.comment = Some(comment.clone());
                self.noted(id, &progress).await?;
                comment
            }
        };
        let made = |from_state, to_state, left: Option<&str>| {
            let left = left.map(str::to_owned);
            Ok(Ok(PlaneAction::Made { issue: issue.clone(), comment: comment.clone(), from_state, to_state, left }))
        };
        if let Some(to) = progress.to.clone() {
            if now.as_ref() == Some(&to) {
                return made(progress.from, Some(to), None);
            }
            if now != progress.from {
                return made(progress.from, None, Some("a person has moved the issue meanwhile, and it stays there"));
            }
        } else if now.as_ref().is_some_and(|now| states.is_of(now, group)) {
            return made(now, None, None);
        }
        let Some(to) = states.first_of(group) else {
            let why = format!("has no state of the group `{}` in this project: add one", group.word());
            return Ok(Err(Trouble::Lasting(why)));
        };
        (progress.from, progress.to) = (now.clone(), Some(to.clone()));
        self.noted(id, &progress).await?;
        went!(plane.move_to(issue, to).await);
        crash::point("after-transition");
        made(now, Some(to.clone()), None)
    }

    /// What was made for an action, or may have been; `None` where nothing was ever sent.
    async fn made_for(&self, of: &ActionId) -> Result<Option<Made>, ActivityError> {
        let Some(undone) = self.record(of).await? else { return Ok(None) };
        let id = of.clone();
        self.keep(move |keeper| {
            let root = keeper.root();
            let tracked = outbox::follower(root, &undone, ActionKind::Tracked)?.and_then(|(_, r)| r.plane_action);
            if let Some(PlaneAction::Made { comment, from_state, to_state, .. }) = tracked {
                return Ok(Some(Made { comment: Some(comment), from: from_state, to: to_state }));
            }
            let tried = outbox::follower(root, &undone, ActionKind::TrackFailed)?.is_some();
            Ok(match outbox::progress(root, &id)? {
                Some(Progress { begun: true, from, to, comment, .. }) => Some(Made { comment, from, to }),
                Some(_) => None,
                // The note of how far it came is lost, so the tracker is asked.
                None => tried.then_some(Made { comment: None, from: None, to: None }),
            })
        })
        .await
    }

    async fn take_back(&self, (issue, of): (&Issue, &ActionId), made: Made) -> Result<PlaneAction, Trouble> {
        let plane = &self.plane;
        let reverted = |comment_removed, state_restored, left: Vec<String>| PlaneAction::Reverted {
            issue: issue.clone(),
            comment_removed,
            state_restored,
            left: (!left.is_empty()).then(|| left.join("; ")),
        };
        // Asked first, so that a refusal below is one of that step alone.
        let now = match plane.state_of(issue).await {
            Err(Trouble::Missing) => {
                plane.states(&issue.project).await?;
                return Ok(reverted(false, false, vec![NO_SUCH_ISSUE.into()]));
            }
            now => now?,
        };
        let mut left = Vec::new();
        let comment = match made.comment {
            Some(comment) => Some(comment),
            None => plane.find_comment(issue, of).await?,
        };
        let mut removed = false;
        if let Some(comment) = comment {
            match plane.remove_comment(issue, &comment).await {
                Ok(()) => removed = true,
                Err(Trouble::Refused(code)) => {
                    left.push(format!("the comment stays, its removal was refused ({code})"))
                }
                Err(trouble) => return Err(trouble),
            }
            crash::point("after-uncomment");
        }
        let mut restored = false;
        match (made.from, made.to) {
            (_, None) => {}
            (from, Some(_)) if now == from => restored = true,
            (None, Some(_)) => left.push("the issue had no state before, so it stays where it is".into()),
            (Some(from), to) if now == to => {
                plane.move_to(issue, &from).await?;
                crash::point("after-transition-back");
                restored = true;
            }
            (Some(_), Some(_)) => left.push("a person has moved the issue since, and it stays there".into()),
        }
        Ok(reverted(removed, restored, left))
    }

    async fn noted(&self, of: &ActionId, progress: &Progress) -> Result<(), ActivityError> {
        let (of, progress) = (of.clone(), progress.clone());
        self.keep(move |keeper| keeper.note_delivery(&of, &progress)).await
    }
}
