//! The month as it happens: messages come, stewards decide, the principal reacts, every day ends.
//!
//! One thing after the other, in the order of simulated time. For most of it the stewards only say what they would do;
//! for a stretch the operator lets them act where they are sure. What comes of a proposal is written into the truth,
//! and nowhere else.

use super::SimulationOptions;
use super::calendar::{self, SimulatedMessage};
use super::household::{FRESH, MATTERS, PEOPLE, SOURCES};
use super::principal::{PRINCIPAL, PrincipalReaction};
use super::proposal::{SimulatedSignal, SimulatedSignalContext};
use super::truth::GroundTruth;
use crate::simulate::vault::{self, SimulatedVault};
use anyhow::Context;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use steward_domain::action::mutation::{ContextField, Mutation, MutationClass, RelatedField, format_link};
use steward_domain::action::plan::{ActionId, Disposition};
use steward_domain::gates::mode::Mode;
use steward_domain::record::entity::RecordState;
use steward_domain::record::frontmatter::{self, FieldEdit};
use steward_domain::record::path::{PathError, RecordKind, RecordPath};
use steward_domain::trust::by_hand::WATCHED;

/// One proposal in so many is to archive a task, not to close it.
const ARCHIVED_ONE_IN: u32 = 12;
/// Days for which the stewards may act, in a month.
const LIVE_DAYS: u32 = 7;
/// A task is written so long before the message about it.
const TASK_BEFORE: TimeDelta = TimeDelta::hours(30);

/// What happens.
enum SimulationEvent {
    /// A message, by its place among the cases.
    Comes(usize),
    /// The principal comes to a proposal.
    Reacts(Box<SimulatedProposal>),
    /// The operator turns the switch.
    Turns(Mode),
    DayEnds,
}

/// A proposal, as far as the principal's reaction needs it.
struct SimulatedProposal {
    case: usize,
    id: ActionId,
    landing: Disposition,
    record: RecordPath,
    target: RecordPath,
    mutation: Mutation,
}

struct MonthSimulation {
    house: SimulatedVault,
    cases: Vec<SimulatedMessage>,
    events: BTreeMap<(DateTime<Utc>, usize), SimulationEvent>,
    /// Until when a field of a matter belongs to a proposal, so that the principal's edit answers one alone.
    taken: BTreeMap<(RecordPath, &'static str), DateTime<Utc>>,
    truth: GroundTruth,
}

/// Lives through the simulated time; the vault is complete then.
pub(super) async fn simulate_month(dir: &Path, state: &Path, ask: &SimulationOptions) -> anyhow::Result<GroundTruth> {
    let start = ask.now - TimeDelta::days(i64::from(ask.days));
    write_initial_records(dir, start)?;
    let house = SimulatedVault::open(dir, state, start).await?;
    let cases = calendar::draw_messages(ask);
    let mut month =
        MonthSimulation { house, cases, events: BTreeMap::new(), taken: BTreeMap::new(), truth: GroundTruth::new(ask) };
    let comes: Vec<DateTime<Utc>> = month.cases.iter().map(|case| case.at).collect();
    comes.into_iter().enumerate().for_each(|(place, at)| month.schedule_event(at, SimulationEvent::Comes(place)));
    for (day, mode) in plan_mode_switches(ask.days) {
        month.schedule_event(start + TimeDelta::days(i64::from(day)), SimulationEvent::Turns(mode));
    }
    for day in 1..=ask.days {
        month.schedule_event(start + TimeDelta::days(i64::from(day)), SimulationEvent::DayEnds);
    }
    while let Some(((at, _), event)) = month.events.pop_first() {
        month.handle_event(event, at).await?;
    }
    month.write_fresh_signals(ask.now)?;
    month.house.close().await;
    Ok(month.truth)
}

/// When the stewards may act. In a month that ends more than a week before the end, so that undo windows have closed
/// by then and the last week has no live change but those that are still to come.
fn plan_mode_switches(days: u32) -> [(u32, Mode); 2] {
    let from = days / 4;
    let until = from + LIVE_DAYS.min(days.div_ceil(4));
    [(from, Mode::LiveHighConfidenceOnly), (until, Mode::Shadow)]
}

/// The matters, and in each a task that nobody writes about.
fn write_initial_records(dir: &Path, start: DateTime<Utc>) -> anyhow::Result<()> {
    for (slug, name) in MATTERS {
        let matter = format!(
            "---\ntype: matter\nname: {name}\nstate: open\nowner: {}\nsummary: As it was.\ndescription: What belongs to it.\nrelated_orgs: []\n---\n",
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
        let place = self.events.range((at, 0)..=(at, usize::MAX)).count();
        self.events.insert((at, place), event);
    }

    async fn handle_event(&mut self, event: SimulationEvent, at: DateTime<Utc>) -> anyhow::Result<()> {
        match event {
            SimulationEvent::Turns(mode) => self.house.set_mode(mode),
            SimulationEvent::DayEnds => self.house.end_day(at).await?,
            SimulationEvent::Reacts(made) => self.handle_reaction(*made, at).await?,
            SimulationEvent::Comes(place) => {
                let case = self.cases[place].clone();
                if let Some(made) =
                    self.handle_message(place, &case).await.with_context(|| format!("message {}", case.number))?
                {
                    self.truth.record_proposal(&case, (&made.id, made.landing));
                    self.schedule_event(case.reacts_at, SimulationEvent::Reacts(Box::new(made)));
                }
            }
        }
        Ok(())
    }

    /// A message comes and is decided upon; `None` where there is no field left that it could be about.
    async fn handle_message(
        &mut self,
        place: usize,
        case: &SimulatedMessage,
    ) -> anyhow::Result<Option<SimulatedProposal>> {
        let Some((target, matter, mutation)) = self.choose_change(case)? else { return Ok(None) };
        let said = SimulatedSignal::new(case, (target, matter), mutation)?;
        self.house.write_record(&said.reference, said.signal.render().as_bytes(), case.at)?;
        let bytes = self.house.read_record_bytes(&said.target)?;
        let known = SimulatedSignalContext {
            bytes: &bytes,
            observations: self.house.observation_count(case.source.name),
            policy: self.house.policy(),
        };
        let mut plan = said.decide_plan(&known);
        if case.class != MutationClass::StateChange {
            let routed = said.route_signal(&known)?;
            self.house.execute_plan(plan, &said.reference).await?;
            plan = routed;
        }
        let receipt = self.house.execute_plan(plan, &said.reference).await?;
        let (id, landing, record) = (receipt.id, receipt.landing, receipt.record);
        Ok(Some(SimulatedProposal { case: place, id, landing, record, target: said.target, mutation: said.mutation }))
    }

    /// The record a message is about, its matter, and the change.
    fn choose_change(&mut self, case: &SimulatedMessage) -> anyhow::Result<Option<(RecordPath, RecordPath, Mutation)>> {
        let home = RecordPath::new(RecordKind::Matter, case.source.matter)?;
        let number = case.number;
        match case.class {
            MutationClass::StateChange => {
                let to = if number.is_multiple_of(ARCHIVED_ONE_IN) { RecordState::Archived } else { RecordState::Done };
                Ok(Some((self.write_task(case, &home)?, home, Mutation::StateChange { to })))
            }
            MutationClass::ParentMatter => {
                let to = choose_other_matter(&home, number)?;
                Ok(Some((self.write_task(case, &home)?, home, Mutation::ParentMatter { to })))
            }
            MutationClass::ContextEdit => {
                let Some((matter, field)) = self.reserve_free_field(case)? else { return Ok(None) };
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

    fn write_task(&self, case: &SimulatedMessage, matter: &RecordPath) -> anyhow::Result<RecordPath> {
        let path = RecordPath::new(RecordKind::Task, &format!("{}-{:04}", case.source.slug, case.number))?;
        let text = render_task(&format!("{} {}", case.source.job, case.number), matter);
        self.house.write_record(&path, text.as_bytes(), case.at - TASK_BEFORE)?;
        Ok(path)
    }

    /// A field of a matter that no other proposal is about.
    fn reserve_free_field(&mut self, case: &SimulatedMessage) -> anyhow::Result<Option<(RecordPath, ContextField)>> {
        let first = case.number as usize;
        for place in (0..MATTERS.len() * ContextField::ALL.len()).map(|n| n + first) {
            let matter = RecordPath::new(RecordKind::Matter, MATTERS[place % MATTERS.len()].0)?;
            let field = ContextField::ALL[place / MATTERS.len() % ContextField::ALL.len()];
            let until = self.taken.entry((matter.clone(), field.as_str())).or_default();
            if *until <= case.at {
                *until = case.at + WATCHED;
                return Ok(Some((matter, field)));
            }
        }
        Ok(None)
    }

    /// A text that the field does not say yet.
    fn choose_new_text(&self, matter: &RecordPath, field: ContextField, number: u32) -> anyhow::Result<String> {
        let document = frontmatter::read_document(&self.house.read_record_bytes(matter)?)?;
        let now = document.fields().get(field.as_str()).and_then(Value::as_str).unwrap_or_default().to_owned();
        let owners = PEOPLE.into_iter().cycle().skip(number as usize % PEOPLE.len());
        Ok(match field {
            ContextField::Owner => owners.take(PEOPLE.len()).find(|name| *name != now).unwrap_or_default().to_owned(),
            ContextField::Summary | ContextField::Description => format!("As agreed in letter {number}."),
        })
    }

    async fn handle_reaction(&mut self, made: SimulatedProposal, at: DateTime<Utc>) -> anyhow::Result<()> {
        let case = self.cases[made.case].clone();
        let mut reaction = PRINCIPAL.choose_reaction(made.landing, case.right, (case.errs, case.acts));
        if reaction == PrincipalReaction::Confirmed && self.house.policy().mode == Mode::Shadow {
            // Nothing may be confirmed any more.
            reaction = PrincipalReaction::DidItByHand;
        }
        if reaction == PrincipalReaction::DidOtherwise && case.class == MutationClass::Related {
            // Whoever wants no such member does nothing.
            reaction = PrincipalReaction::Nothing;
        }
        let edits = match reaction {
            PrincipalReaction::DidItByHand => Some(self.proposed_edits(&made)?),
            PrincipalReaction::DidOtherwise => Some(self.alternative_edits(&made, at)?),
            PrincipalReaction::Confirmed
            | PrincipalReaction::Dismissed
            | PrincipalReaction::Undid
            | PrincipalReaction::LeftInPlace
            | PrincipalReaction::Nothing => None,
        };
        if let Some(edits) = edits {
            self.house.edit_fields(&made.target, &edits, at)?;
        }
        let settled = self.house.apply_reaction(reaction, (&made.record, &made.target), at).await;
        settled.with_context(|| format!("{} of message {}", made.id, case.number))?;
        self.truth.record_reaction(&made.id, reaction);
        match (case.class, reaction) {
            (MutationClass::StateChange | MutationClass::ParentMatter, PrincipalReaction::Nothing) => {
                self.house.remove_record(&made.target)
            }
            (MutationClass::ParentMatter, _) => {
                self.house.edit_fields(&made.target, &[field_edit("state", "done")], at)
            }
            (MutationClass::ContextEdit, reaction) => {
                if reaction != PrincipalReaction::Nothing {
                    self.taken.insert((made.target, made.mutation.field()), at);
                }
                Ok(())
            }
            (MutationClass::StateChange | MutationClass::Related, _) => Ok(()),
        }
    }

    fn proposed_edits(&self, made: &SimulatedProposal) -> anyhow::Result<Vec<FieldEdit>> {
        Ok(vec![match &made.mutation {
            Mutation::StateChange { to } => field_edit("state", to.as_str()),
            Mutation::ContextEdit { field, to } => field_edit(field.as_str(), to),
            Mutation::ParentMatter { to } => field_edit("parent_matter", &format_link(to)),
            Mutation::Related { field, member, .. } => {
                let document = frontmatter::read_document(&self.house.read_record_bytes(&made.target)?)?;
                let now = document.fields().get(field.as_str()).and_then(Value::as_array).cloned().unwrap_or_default();
                let all = now.into_iter().chain([Value::from(member.as_str())]).collect();
                FieldEdit { field: field.as_str().into(), value: Some(Value::Array(all)) }
            }
        }])
    }

    /// Something else by hand: a task is put off or archived, a field says a third thing.
    fn alternative_edits(&self, made: &SimulatedProposal, at: DateTime<Utc>) -> anyhow::Result<Vec<FieldEdit>> {
        let number = self.cases[made.case].number;
        let put_off = || field_edit("snoozed_until", &(at + TimeDelta::days(90)).format("%Y-%m-%d").to_string());
        Ok(vec![match &made.mutation {
            Mutation::StateChange { to: RecordState::Done } if number.is_multiple_of(2) => {
                field_edit("state", "archived")
            }
            Mutation::StateChange { .. } => put_off(),
            Mutation::ContextEdit { field: ContextField::Owner, .. } => field_edit("owner", &format!("Guest {number}")),
            Mutation::ContextEdit { field, .. } => field_edit(field.as_str(), &format!("Not as letter {number} says.")),
            Mutation::ParentMatter { to } => field_edit("parent_matter", &format_link(&choose_third_matter(made, to)?)),
            Mutation::Related { .. } => return Ok(Vec::new()),
        }])
    }

    /// The clear signals of the last hours, about open tasks, which nobody has decided upon.
    fn write_fresh_signals(&mut self, now: DateTime<Utc>) -> anyhow::Result<()> {
        let (source, first) = (&SOURCES[0], self.cases.len() + 1);
        let matter = RecordPath::new(RecordKind::Matter, source.matter)?;
        for place in 0..FRESH {
            let minutes = 10 * i64::try_from(FRESH - place).unwrap_or(1);
            let case = SimulatedMessage {
                number: u32::try_from(first + place).unwrap_or(u32::MAX),
                at: now - TimeDelta::minutes(minutes),
                source,
                class: MutationClass::StateChange,
                right: true,
                target_confidence: 0.98,
                effect_confidence: 0.97,
                errs: 1.0,
                acts: 1.0,
                reacts_at: now,
            };
            let task = self.write_task(&case, &matter)?;
            let said =
                SimulatedSignal::new(&case, (task, matter.clone()), Mutation::StateChange { to: RecordState::Done })?;
            self.house.write_record(&said.reference, said.signal.render().as_bytes(), case.at)?;
            self.truth.undecided.push(said.reference);
        }
        Ok(())
    }
}

fn field_edit(field: &str, value: &str) -> FieldEdit {
    FieldEdit { field: field.into(), value: Some(Value::from(value)) }
}

/// Another matter than this one.
fn choose_other_matter(than: &RecordPath, number: u32) -> Result<RecordPath, PathError> {
    let others: Vec<&str> = MATTERS.iter().map(|(slug, _)| *slug).filter(|slug| *slug != than.slug()).collect();
    RecordPath::new(RecordKind::Matter, others[number as usize % others.len()])
}

/// A matter that is neither the proposed one nor that of before.
fn choose_third_matter(made: &SimulatedProposal, proposed: &RecordPath) -> Result<RecordPath, PathError> {
    let home = SOURCES.iter().find(|source| made.target.slug().starts_with(source.slug)).map(|source| source.matter);
    let mut others =
        MATTERS.iter().map(|(slug, _)| *slug).filter(|slug| *slug != proposed.slug() && Some(*slug) != home);
    RecordPath::new(RecordKind::Matter, others.next().unwrap_or(MATTERS[0].0))
}
