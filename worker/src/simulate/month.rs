//! Plays the month: messages arrive, stewards decide, the principal reacts, every day ends.
//!
//! The events happen one after the other, in the order of simulated time. For most of the month the mode is `shadow`;
//! for some days the operator lets the stewards act on high confidence. The outcome of a proposal must be written only
//! into the truth.

use super::SimulationOptions;
use super::calendar::{self, SimulatedMessage};
use super::household::{FRESH, MATTERS, PEOPLE, SOURCES};
use super::principal::{PRINCIPAL, PrincipalReaction};
use super::proposal::{SimulatedSignal, SimulatedSignalContext};
use super::truth::GroundTruth;
use crate::cli::output::print_progress;
use crate::simulate::vault::{self, SimulatedVault};
use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use steward_domain::action::mutation::{ContextField, Mutation, MutationClass, RelatedField, format_link};
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::gates::mode::Mode;
use steward_domain::record::entity::RecordState;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::record::path::{PathError, RecordKind, RecordPath};
use steward_domain::trust::by_hand::ANSWER_WINDOW;

/// One proposal in 12 is to archive a task instead of closing it.
const ARCHIVED_ONE_IN: u32 = 12;
/// The most days on which the stewards may act: 7.
const LIVE_DAYS: u32 = 7;
/// How often progress is shown: 2 s.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);
/// How long before its message a task is written: 30 h.
const TASK_BEFORE: TimeDelta = TimeDelta::hours(30);

/// An event of the simulated time.
enum SimulationEvent {
    /// A message arrives; its index among the messages.
    MessageArrives(usize),
    /// The principal reacts to a proposal.
    PrincipalReacts(Box<SimulatedProposal>),
    /// The operator switches the mode.
    ModeSwitches(Mode),
    DayEnds,
}

/// A proposal, as far as the principal's reaction needs it.
struct SimulatedProposal {
    message_index: usize,
    id: ActionId,
    disposition: Disposition,
    record: RecordPath,
    target: RecordPath,
    mutation: Mutation,
}

struct MonthSimulation {
    vault: SimulatedVault,
    messages: Vec<SimulatedMessage>,
    events: BTreeMap<(DateTime<Utc>, usize), SimulationEvent>,
    /// Until when a field of a matter is reserved for one proposal, so that the principal's edit concerns only that
    /// one.
    reserved: BTreeMap<(RecordPath, &'static str), DateTime<Utc>>,
    truth: GroundTruth,
}

/// Plays the simulated time; afterwards the vault is complete.
pub(super) async fn simulate_month(
    dir: &Path,
    state: &Path,
    options: &SimulationOptions,
) -> anyhow::Result<GroundTruth> {
    let start = options.now - TimeDelta::days(i64::from(options.days));
    write_initial_records(dir, start)?;
    let vault = SimulatedVault::open(dir, state, start).await?;
    let messages = calendar::draw_messages(options);
    let mut month = MonthSimulation {
        vault,
        messages,
        events: BTreeMap::new(),
        reserved: BTreeMap::new(),
        truth: GroundTruth::new(options),
    };
    let arrivals: Vec<DateTime<Utc>> = month.messages.iter().map(|message| message.at).collect();
    for (index, at) in arrivals.into_iter().enumerate() {
        month.schedule_event(at, SimulationEvent::MessageArrives(index));
    }
    for (day, mode) in plan_mode_switches(options.days) {
        month.schedule_event(start + TimeDelta::days(i64::from(day)), SimulationEvent::ModeSwitches(mode));
    }
    for day in 1..=options.days {
        month.schedule_event(start + TimeDelta::days(i64::from(day)), SimulationEvent::DayEnds);
    }
    let (mut ended, mut reported) = (0, Instant::now());
    while let Some(((at, _), event)) = month.events.pop_first() {
        if matches!(event, SimulationEvent::DayEnds) {
            ended += 1;
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                print_progress("days simulated", ended, options.days as usize);
            }
        }
        month.handle_event(event, at).await?;
    }
    month.write_fresh_signals(options.now)?;
    month.vault.close().await;
    Ok(month.truth)
}

/// The days on which the stewards may begin and must stop to act.
///
/// In a month the last of them is more than a week before the end. So all undo windows have closed by then, and the
/// last week has no live change yet.
fn plan_mode_switches(days: u32) -> [(u32, Mode); 2] {
    let from = days / 4;
    let until = from + LIVE_DAYS.min(days.div_ceil(4));
    [(from, Mode::LiveHighConfidenceOnly), (until, Mode::Shadow)]
}

/// Writes the matters, each with a task that no message is about.
fn write_initial_records(dir: &Path, start: DateTime<Utc>) -> anyhow::Result<()> {
    for (slug, name) in MATTERS {
        let matter = format!(
            "---\ntype: matter\nname: {name}\nstate: open\nowner: {}\nsummary: As it was.\n\
             description: What belongs to it.\nrelated_orgs: []\n---\n",
            PEOPLE[0]
        );
        vault::write_dated_file(dir, &RecordPath::new(RecordKind::Matter, slug)?, matter.as_bytes(), start)?;
        let task = render_task(&format!("Look after: {name}"), &RecordPath::new(RecordKind::Matter, slug)?);
        vault::write_dated_file(
            dir,
            &RecordPath::new(RecordKind::Task, &format!("{slug}-upkeep"))?,
            task.as_bytes(),
            start,
        )?;
    }
    Ok(())
}

fn render_task(name: &str, matter: &RecordPath) -> String {
    format!(
        "---\ntype: task\nname: {}\nstate: open\nparent_matter: \"{}\"\n---\n- [ ] Do it\n",
        Value::from(name),
        format_link(matter)
    )
}

impl MonthSimulation {
    fn schedule_event(&mut self, at: DateTime<Utc>, event: SimulationEvent) {
        let position = self.events.range((at, 0)..=(at, usize::MAX)).count();
        self.events.insert((at, position), event);
    }

    async fn handle_event(&mut self, event: SimulationEvent, at: DateTime<Utc>) -> anyhow::Result<()> {
        match event {
            SimulationEvent::ModeSwitches(mode) => self.vault.set_mode(mode),
            SimulationEvent::DayEnds => self.vault.end_day(at).await?,
            SimulationEvent::PrincipalReacts(proposal) => self.handle_reaction(*proposal, at).await?,
            SimulationEvent::MessageArrives(index) => {
                let message = self.messages[index].clone();
                let proposal = self.handle_message(index, &message).await;
                if let Some(proposal) = proposal.with_context(|| format!("message {}", message.number))? {
                    self.truth.record_proposal(&message, &proposal.id, proposal.disposition);
                    self.schedule_event(message.reacts_at, SimulationEvent::PrincipalReacts(Box::new(proposal)));
                }
            }
        }
        Ok(())
    }

    /// Writes the signal of a message and has the steward decide; `None` if no free field is left for it.
    async fn handle_message(
        &mut self,
        message_index: usize,
        message: &SimulatedMessage,
    ) -> anyhow::Result<Option<SimulatedProposal>> {
        let Some((target, matter, mutation)) = self.choose_change(message)? else { return Ok(None) };
        let simulated = SimulatedSignal::new(message, target, matter, mutation)?;
        self.vault.write_record(&simulated.reference, simulated.signal.render().as_bytes(), message.at)?;
        let bytes = self.vault.read_record_bytes(&simulated.target)?;
        let context = SimulatedSignalContext {
            bytes: &bytes,
            observations: self.vault.observation_count(message.source.name),
            policy: self.vault.policy(),
        };
        let mut plan = simulated.decide_plan(&context);
        if message.class != MutationClass::StateChange {
            let routed = simulated.route_signal(&context)?;
            self.vault.execute_plan(plan, &simulated.reference).await?;
            plan = routed;
        }
        let receipt = self.vault.execute_plan(plan, &simulated.reference).await?;
        Ok(Some(SimulatedProposal {
            message_index,
            id: receipt.id,
            disposition: receipt.disposition,
            record: receipt.record,
            target: simulated.target,
            mutation: simulated.mutation,
        }))
    }

    /// The record that a message is about, its matter, and the proposed change.
    fn choose_change(
        &mut self,
        message: &SimulatedMessage,
    ) -> anyhow::Result<Option<(RecordPath, RecordPath, Mutation)>> {
        let home = RecordPath::new(RecordKind::Matter, message.source.matter)?;
        let number = message.number;
        match message.class {
            MutationClass::StateChange => {
                let to = if number.is_multiple_of(ARCHIVED_ONE_IN) { RecordState::Archived } else { RecordState::Done };
                Ok(Some((self.write_task(message, &home)?, home, Mutation::StateChange { to })))
            }
            MutationClass::ParentMatter => {
                let to = choose_other_matter(&home, number)?;
                Ok(Some((self.write_task(message, &home)?, home, Mutation::ParentMatter { to })))
            }
            MutationClass::ContextEdit => {
                let Some((matter, field)) = self.reserve_free_field(message)? else { return Ok(None) };
                let to = self.choose_new_text(&matter, field, number)?;
                Ok(Some((matter.clone(), matter, Mutation::ContextEdit { field, to })))
            }
            MutationClass::Related => {
                let member = format!("Company {number}");
                let mutation = Mutation::Related { field: RelatedField::RelatedOrgs, member, present: true };
                Ok(Some((home.clone(), home, mutation)))
            }
        }
    }

    fn write_task(&self, message: &SimulatedMessage, matter: &RecordPath) -> anyhow::Result<RecordPath> {
        let path = RecordPath::new(RecordKind::Task, &format!("{}-{:04}", message.source.slug, message.number))?;
        let text = render_task(&format!("{} {}", message.source.job, message.number), matter);
        self.vault.write_record(&path, text.as_bytes(), message.at - TASK_BEFORE)?;
        Ok(path)
    }

    /// Reserves a field of a matter that no other proposal is about.
    fn reserve_free_field(&mut self, message: &SimulatedMessage) -> anyhow::Result<Option<(RecordPath, ContextField)>> {
        let first = message.number as usize;
        for slot in (0..MATTERS.len() * ContextField::ALL.len()).map(|n| n + first) {
            let matter = RecordPath::new(RecordKind::Matter, MATTERS[slot % MATTERS.len()].0)?;
            let field = ContextField::ALL[slot / MATTERS.len() % ContextField::ALL.len()];
            let until = self.reserved.entry((matter.clone(), field.as_str())).or_default();
            if *until <= message.at {
                *until = message.at + ANSWER_WINDOW;
                return Ok(Some((matter, field)));
            }
        }
        Ok(None)
    }

    /// A text that differs from the current value of the field.
    fn choose_new_text(&self, matter: &RecordPath, field: ContextField, number: u32) -> anyhow::Result<String> {
        let document = frontmatter::read_document(&self.vault.read_record_bytes(matter)?)?;
        let now = document.fields().get(field.as_str()).and_then(Value::as_str).unwrap_or_default().to_owned();
        let owners = PEOPLE.into_iter().cycle().skip(number as usize % PEOPLE.len());
        Ok(match field {
            ContextField::Owner => owners.take(PEOPLE.len()).find(|name| *name != now).unwrap_or_default().to_owned(),
            ContextField::Summary | ContextField::Description => format!("As agreed in letter {number}."),
        })
    }

    async fn handle_reaction(&mut self, proposal: SimulatedProposal, at: DateTime<Utc>) -> anyhow::Result<()> {
        let message = self.messages[proposal.message_index].clone();
        let mut reaction =
            PRINCIPAL.choose_reaction(proposal.disposition, message.right, message.error_draw, message.action_draw);
        if reaction == PrincipalReaction::Confirmed && self.vault.policy().mode == Mode::Shadow {
            // In shadow mode nothing can be confirmed.
            reaction = PrincipalReaction::DidItByHand;
        }
        if reaction == PrincipalReaction::DidOtherwise && message.class == MutationClass::Related {
            // A principal who does not want such a member does nothing.
            reaction = PrincipalReaction::Nothing;
        }
        let edits = match reaction {
            PrincipalReaction::DidItByHand => Some(self.proposed_edits(&proposal)?),
            PrincipalReaction::DidOtherwise => Some(self.alternative_edits(&proposal, at)?),
            PrincipalReaction::Confirmed
            | PrincipalReaction::Dismissed
            | PrincipalReaction::Undid
            | PrincipalReaction::LeftInPlace
            | PrincipalReaction::Nothing => None,
        };
        if let Some(edits) = edits {
            self.vault.edit_fields(&proposal.target, &edits, at)?;
        }
        let applied = self.vault.apply_reaction(reaction, &proposal.record, &proposal.target, at).await;
        applied.with_context(|| format!("{} of message {}", proposal.id, message.number))?;
        self.truth.record_reaction(&proposal.id, reaction);
        match (message.class, reaction) {
            (MutationClass::StateChange | MutationClass::ParentMatter, PrincipalReaction::Nothing) => {
                self.vault.remove_record(&proposal.target)
            }
            (MutationClass::ParentMatter, _) => {
                self.vault.edit_fields(&proposal.target, &[field_edit("state", "done")], at)
            }
            (MutationClass::ContextEdit, reaction) => {
                if reaction != PrincipalReaction::Nothing {
                    self.reserved.insert((proposal.target, proposal.mutation.field()), at);
                }
                Ok(())
            }
            (MutationClass::StateChange | MutationClass::Related, _) => Ok(()),
        }
    }

    fn proposed_edits(&self, proposal: &SimulatedProposal) -> anyhow::Result<Vec<FieldEdit>> {
        Ok(vec![match &proposal.mutation {
            Mutation::StateChange { to } => field_edit("state", to.as_str()),
            Mutation::ContextEdit { field, to } => field_edit(field.as_str(), to),
            Mutation::ParentMatter { to } => field_edit("parent_matter", &format_link(to)),
            Mutation::Related { field, member, .. } => {
                let document = frontmatter::read_document(&self.vault.read_record_bytes(&proposal.target)?)?;
                let now = document.fields().get(field.as_str()).and_then(Value::as_array).cloned().unwrap_or_default();
                let all = now.into_iter().chain([Value::from(member.as_str())]).collect();
                FieldEdit { field: field.as_str().into(), value: Some(Value::Array(all)) }
            }
        }])
    }

    /// Another change by hand: a task is postponed or archived, or a field gets a third value.
    fn alternative_edits(&self, proposal: &SimulatedProposal, at: DateTime<Utc>) -> anyhow::Result<Vec<FieldEdit>> {
        let number = self.messages[proposal.message_index].number;
        let postpone = || field_edit("snoozed_until", &(at + TimeDelta::days(90)).format("%Y-%m-%d").to_string());
        Ok(vec![match &proposal.mutation {
            Mutation::StateChange { to: RecordState::Done } if number.is_multiple_of(2) => {
                field_edit("state", "archived")
            }
            Mutation::StateChange { .. } => postpone(),
            Mutation::ContextEdit { field: ContextField::Owner, .. } => field_edit("owner", &format!("Guest {number}")),
            Mutation::ContextEdit { field, .. } => field_edit(field.as_str(), &format!("Not as letter {number} says.")),
            Mutation::ParentMatter { to } => {
                field_edit("parent_matter", &format_link(&choose_third_matter(proposal, to)?))
            }
            Mutation::Related { .. } => return Ok(Vec::new()),
        }])
    }

    /// Writes the clear signals of the last hours about open tasks, on which no steward has decided.
    fn write_fresh_signals(&mut self, now: DateTime<Utc>) -> anyhow::Result<()> {
        let (source, first) = (&SOURCES[0], self.messages.len() + 1);
        let matter = RecordPath::new(RecordKind::Matter, source.matter)?;
        for index in 0..FRESH {
            let minutes = 10 * i64::try_from(FRESH - index).unwrap_or(1);
            let message = SimulatedMessage {
                number: u32::try_from(first + index).unwrap_or(u32::MAX),
                at: now - TimeDelta::minutes(minutes),
                source,
                class: MutationClass::StateChange,
                right: true,
                target_confidence: 0.98,
                effect_confidence: 0.97,
                error_draw: 1.0,
                action_draw: 1.0,
                reacts_at: now,
            };
            let task = self.write_task(&message, &matter)?;
            let mutation = Mutation::StateChange { to: RecordState::Done };
            let simulated = SimulatedSignal::new(&message, task, matter.clone(), mutation)?;
            self.vault.write_record(&simulated.reference, simulated.signal.render().as_bytes(), message.at)?;
            self.truth.undecided.push(simulated.reference);
        }
        Ok(())
    }
}

fn field_edit(field: &str, value: &str) -> FieldEdit {
    FieldEdit { field: field.into(), value: Some(Value::from(value)) }
}

/// A matter other than `current`.
fn choose_other_matter(current: &RecordPath, number: u32) -> Result<RecordPath, PathError> {
    let others: Vec<&str> = MATTERS.iter().map(|(slug, _)| *slug).filter(|slug| *slug != current.slug()).collect();
    RecordPath::new(RecordKind::Matter, others[number as usize % others.len()])
}

/// A matter that is neither the proposed one nor the original one.
fn choose_third_matter(proposal: &SimulatedProposal, proposed: &RecordPath) -> Result<RecordPath, PathError> {
    let home =
        SOURCES.iter().find(|source| proposal.target.slug().starts_with(source.slug)).map(|source| source.matter);
    let mut others =
        MATTERS.iter().map(|(slug, _)| *slug).filter(|slug| *slug != proposed.slug() && Some(*slug) != home);
    RecordPath::new(RecordKind::Matter, others.next().unwrap_or(MATTERS[0].0))
}
