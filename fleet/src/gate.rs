//! The gate of a provider: it reserves each call of a tenant in the bucket that all tenants of a key share.
//!
//! One transaction locks the bucket's row, reads the windows, lets `steward_domain::fleet::provider_gate` decide and
//! records the call. It must not decide anything itself. Every fault is a refusal, and a commit without an answer is no
//! success. All times are the database's, held against the newest recorded one.

pub(crate) mod rows;

use crate::ownership::VaultOwnership;
use crate::store::{FleetError, FleetStore, in_time, read_boot_micros};
use chrono::{DateTime, Utc};
use rows::{BucketLock, BucketRow, CallKey, RecordedFacts, ServerClock};
use sqlx::PgConnection;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::provider_gate::{
    BucketFacts, GateDebt, GateGrant, GateRequest, SendDeadline, admit_bucket_call, find_loss,
};
use steward_domain::steward::guard::{ClockReading, GuardCap, GuardRefusal, Probe, SettlementOutcome, loss_clears_at};
use steward_domain::time::format_millis;

/// The gate as one tenant asks it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BucketGate {
    ownership: VaultOwnership,
    tenant: TenantId,
}

impl BucketGate {
    /// The gate for the process that owns this vault.
    #[must_use]
    pub fn new(ownership: VaultOwnership) -> Self {
        let tenant = ownership.permit().tenant().clone();
        Self { ownership, tenant }
    }

    /// Reserves one call.
    ///
    /// # Errors
    /// Why no call may be sent now. Every fault of the database is one.
    pub async fn reserve(&self, request: &GateRequest) -> Result<GateGrant, GuardRefusal> {
        // Before the permit, so that every wait for the database shortens the time to send.
        let deadline = SendDeadline::from_request(Utc::now(), read_boot_micros());
        let permit = self.ownership.ensure().await.map_err(|refusal| refuse(refusal.to_string()))?;
        if let Some(reason) = permit.describe_stop() {
            return Err(GuardRefusal { cap: GuardCap::Stopped, clears_at: None, reason });
        }
        let reserved = in_time(self.reserve_in_bucket(request)).await.and_then(|done| done.map_err(FleetError::from));
        let bucket = reserved.map_err(|e| refuse(e.to_string()))??;
        Ok(GateGrant { deadline, seen: bucket.identity.to_mark() })
    }

    async fn reserve_in_bucket(&self, request: &GateRequest) -> sqlx::Result<Result<BucketRow, GuardRefusal>> {
        let mut tx = self.ownership.permit().store().pool.begin().await?;
        let Some(name) = rows::find_tenants_bucket(&mut tx, &self.tenant, BucketLock::Locked).await? else {
            return Ok(Err(refuse_without_bucket(&self.tenant)));
        };
        let key = CallKey { bucket: &name, tenant: &self.tenant, call: &request.call };
        let found = rows::read_facts(&mut tx, &key).await?;
        let kept = found.bucket.clone();
        let (mut bucket, decided) = decide(&mut tx, found, &key, request).await?;
        let admitted = match decided {
            Ok(at) => {
                rows::insert_call(&mut tx, &mut bucket, &key, request.tokens, at).await?;
                Ok(bucket)
            }
            Err(refusal) => {
                if bucket != kept {
                    bucket.save(&mut tx).await?;
                }
                Err(refusal)
            }
        };
        tx.commit().await?;
        Ok(admitted)
    }

    /// Records how a call ended. A second report of one call changes nothing.
    ///
    /// # Errors
    /// The database gave no answer: report it again.
    pub async fn settle(&self, debt: &GateDebt) -> Result<(), FleetError> {
        Ok(in_time(self.settle_in_bucket(debt)).await??)
    }

    async fn settle_in_bucket(&self, debt: &GateDebt) -> sqlx::Result<()> {
        let mut tx = self.ownership.permit().store().pool.begin().await?;
        let found = rows::find_tenants_bucket(&mut tx, &self.tenant, BucketLock::Locked).await?;
        let Some(name) = found else { return Ok(()) };
        let key = CallKey { bucket: &name, tenant: &self.tenant, call: &debt.call };
        let tokens = match &debt.outcome {
            SettlementOutcome::Answered { usage } => {
                // A provider that reports nothing has used what was reserved.
                Some(usage.prompt_tokens.saturating_add(usage.completion_tokens)).filter(|tokens| *tokens > 0)
            }
            SettlementOutcome::NotSent => Some(0),
            SettlementOutcome::RateLimited { .. } | SettlementOutcome::Failed => None,
        };
        let is_first = rows::settle_call(&mut tx, &key, tokens).await?;
        let is_rate_limited = matches!(debt.outcome, SettlementOutcome::RateLimited { .. });
        // A call that the bucket has forgotten may still bring a 429.
        if is_first == Some(false) || (is_first.is_none() && !is_rate_limited) {
            return tx.rollback().await;
        }
        let Some(mut bucket) = rows::find_bucket(&mut tx, &name, BucketLock::Locked).await? else { return Ok(()) };
        let kept = bucket.state.clone();
        let now = rows::read_server_clock(&mut tx).await?.at;
        bucket.state.record_outcome(&key.to_call_id(), &debt.outcome, now);
        if bucket.state != kept {
            bucket.save(&mut tx).await?;
        }
        tx.commit().await
    }

    /// As [`FleetStore::find_gate_refusal`].
    pub async fn find_refusal(&self) -> Option<GuardRefusal> {
        self.ownership.permit().store().find_gate_refusal(&self.tenant).await
    }
}

impl FleetStore {
    /// The refusal that a tenant's call without tokens would get now; `None` if it would be admitted. Changes nothing.
    pub async fn find_gate_refusal(&self, tenant: &TenantId) -> Option<GuardRefusal> {
        let read = in_time(self.read_gate_refusal(tenant)).await.and_then(|done| done.map_err(FleetError::from));
        read.unwrap_or_else(|e| Some(refuse(e.to_string())))
    }

    async fn read_gate_refusal(&self, tenant: &TenantId) -> sqlx::Result<Option<GuardRefusal>> {
        let mut tx = self.pool.begin().await?;
        let Some(name) = rows::find_tenants_bucket(&mut tx, tenant, BucketLock::ReadOnly).await? else {
            return Ok(Some(refuse_without_bucket(tenant)));
        };
        let key = CallKey { bucket: &name, tenant, call: "" };
        let request = GateRequest { call: String::new(), tokens: 0, seen: None };
        // What it notes is taken back.
        let found = rows::read_facts(&mut tx, &key).await?;
        let (_, decided) = decide(&mut tx, found, &key, &request).await?;
        tx.rollback().await?;
        Ok(decided.err())
    }
}

/// Decides on a call in the locked bucket, and notes in its row what the decision found: a loss, a doubt about the clock, a
/// refusal by a window, a probe. Returns the instant at which the call counts.
async fn decide(
    db: &mut PgConnection,
    found: RecordedFacts,
    key: &CallKey<'_>,
    request: &GateRequest,
) -> sqlx::Result<(BucketRow, Result<DateTime<Utc>, GuardRefusal>)> {
    let RecordedFacts { mut bucket, clock, has_call, mut windows, mut rival_refused_at } = found;
    if has_call {
        // An earlier answer was lost. Nobody has sent the call, but its time may be over.
        let reason = "an earlier reservation of this call had no answer; it stays spent".to_owned();
        return Ok((bucket, Err(refuse(reason))));
    }
    if let Some(refusal) = check_loss(&mut bucket, request, &clock) {
        return Ok((bucket, Err(refusal)));
    }
    let at = match bucket.state.check_clock(clock.at) {
        ClockReading::Sound { at } => at,
        ClockReading::Doubted { clears_at, .. } => {
            let refusal = refuse_clock(bucket.state.newest, clock.at, clears_at);
            return Ok((bucket, Err(refusal)));
        }
        ClockReading::Restarted => {
            bucket.last_number = rows::forget_calls_after(db, key.bucket, clock.at).await?;
            bucket.save(db).await?;
            let again = rows::read_facts(db, key).await?;
            (windows, rival_refused_at) = (again.windows, again.rival_refused_at);
            clock.at
        }
    };
    let (back_off, probe) = (bucket.state.back_off, bucket.state.probe.clone());
    let facts = BucketFacts { back_off, probe, windows, rival_refused_at };
    match admit_bucket_call(request.tokens, &facts, at) {
        Ok(grant) => {
            if grant.is_probe() {
                bucket.state.probe = Some(Probe { call_id: key.to_call_id(), since: at });
            }
            Ok((bucket, Ok(grant.counted_at())))
        }
        Err(refused) => {
            if refused.is_by_window {
                rows::note_refusal(db, key, at).await?;
            }
            Ok((bucket, Err(refused.refusal)))
        }
    }
}

/// Refuses for a day, or until an operator accepts it, if the bucket has forgotten calls.
fn check_loss(bucket: &mut BucketRow, request: &GateRequest, clock: &ServerClock) -> Option<GuardRefusal> {
    if bucket.lost.is_none() {
        let why = find_loss(&bucket.identity, request.seen.as_ref(), &clock.system)?;
        bucket.lost = Some((clock.at, why.to_owned()));
    }
    let (noticed_at, why) = bucket.lost.take()?;
    let (noticed_at, clears_at) = loss_clears_at(noticed_at, clock.at);
    if clock.at >= clears_at {
        // Nothing was sent for a day, so every window is empty.
        bucket.accept_loss(clock);
        return None;
    }
    bucket.lost = Some((noticed_at, why.clone()));
    let name = &bucket.identity.bucket;
    let reason = format!(
        "the bucket {name} may have forgotten calls: {why}; nothing is sent until {} unless an operator accepts it \
         (`steward fleet bucket accept-loss {name}`)",
        format_millis(clears_at)
    );
    Some(GuardRefusal { cap: GuardCap::Gate, clears_at: Some(clears_at), reason })
}

fn refuse(reason: String) -> GuardRefusal {
    GuardRefusal { cap: GuardCap::Gate, clears_at: None, reason }
}

fn refuse_without_bucket(tenant: &TenantId) -> GuardRefusal {
    refuse(format!(
        "the tenant {tenant} has no bucket, so the limits of its provider are unknown: run `steward fleet tenant set {tenant} \
         --bucket <name>`"
    ))
}

fn refuse_clock(newest: Option<DateTime<Utc>>, now: DateTime<Utc>, clears_at: DateTime<Utc>) -> GuardRefusal {
    let newest = newest.map_or_else(|| "a later time".to_owned(), format_millis);
    let reason = format!(
        "the database's clock shows {}, but the newest call is from {newest}: set the clock of the database's machine right",
        format_millis(now)
    );
    GuardRefusal { cap: GuardCap::Clock, clears_at: Some(clears_at), reason }
}
