//! The gate of a provider: it reserves each call of a tenant in the bucket that all tenants of a key share.
//!
//! One transaction locks the bucket, reads the windows, lets `steward_domain::fleet::provider_gate` decide and records the
//! call. It must not decide anything itself. Every fault is a refusal, and a commit without an answer is no success. All
//! times are the database's, held against the newest recorded one and against the clock here.

pub(crate) mod rows;

use crate::owner::PermitRefusal;
use crate::ownership::VaultOwnership;
use crate::store::{FleetError, FleetStore, in_time, read_boot_instant};
use chrono::{DateTime, Utc};
use rows::{BucketLock, CallKey, RecordedFacts};
use steward_domain::fleet::TenantId;
use steward_domain::fleet::provider_gate::{
    BucketFacts, BucketRefusal, GateDebt, GateGrant, GateMark, GateRequest, RESERVATION_LIFETIME, SendDeadline,
    admit_bucket_call, find_loss,
};
use steward_domain::steward::guard::{
    CLOCK_TOLERANCE, CallGrant, ClockReading, GuardCap, GuardRefusal, Probe, SettlementOutcome, loss_clears_at,
};
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
        let deadline = SendDeadline::from_request(Utc::now(), read_boot_instant());
        self.ownership.ensure().await.map_err(|refusal| refuse(refusal.to_string()))?;
        let reserved = in_time(self.reserve_in_bucket(request)).await.and_then(|done| done.map_err(FleetError::from));
        let seen = reserved.map_err(|e| refuse(e.to_string()))??;
        Ok(GateGrant { deadline, seen })
    }

    async fn reserve_in_bucket(&self, request: &GateRequest) -> sqlx::Result<Result<GateMark, GuardRefusal>> {
        let mut tx = self.ownership.permit().store().pool.begin().await?;
        let Some(name) = rows::find_tenants_bucket(&mut tx, &self.tenant, BucketLock::Locked).await? else {
            return Ok(Err(refuse_without_bucket(&self.tenant)));
        };
        let key = CallKey { bucket: &name, tenant: self.tenant.as_str(), call: &request.call };
        let mut found = rows::read_facts(&mut tx, &key).await?;
        // Again, because the lock may have taken a while.
        if found.epoch != Some(self.ownership.permit().epoch()) {
            return Ok(Err(refuse(PermitRefusal::Lost.to_string())));
        }
        if found.is_stopped {
            let reason = "the fleet was stopped".to_owned();
            return Ok(Err(GuardRefusal { cap: GuardCap::Stopped, clears_at: None, reason }));
        }
        let kept = found.bucket.clone();
        let decided = match check_bucket(&mut found, request) {
            Ok(ClockReading::Restarted) => {
                let now = found.clock.at;
                found.bucket.last_number = rows::forget_calls_after(&mut tx, &name, now).await?;
                found.bucket.save(&mut tx).await?;
                found = rows::read_facts(&mut tx, &key).await?;
                admit(&found, request, now)
            }
            Ok(ClockReading::Sound { at }) => admit(&found, request, at),
            Ok(ClockReading::Doubted { clears_at, .. }) => Err(refuse_clock(&found, clears_at)),
            Err(refusal) => Err(BucketRefusal { refusal, is_by_window: false }),
        };
        let RecordedFacts { mut bucket, entries, clock, .. } = found;
        let admitted = match decided {
            Ok(grant) => {
                if grant.is_probe() {
                    bucket.state.probe = Some(Probe { call_id: key.to_call_id(), since: grant.counted_at() });
                }
                rows::insert_call(&mut tx, &mut bucket, &key, request.tokens, grant.counted_at()).await?;
                Ok(bucket.identity.to_mark(entries + 1))
            }
            Err(BucketRefusal { refusal, is_by_window }) => {
                if is_by_window {
                    rows::note_refusal(&mut tx, &key, clock.at).await?;
                }
                if bucket != kept {
                    bucket.save(&mut tx).await?;
                }
                Err(refusal)
            }
        };
        tx.commit().await?;
        Ok(admitted)
    }

    /// Records how a call ended. A second report of one call changes nothing. Returns what the tenant has seen then, if the
    /// bucket's state changed.
    ///
    /// # Errors
    /// The database gave no answer: report it again.
    pub async fn settle(&self, debt: &GateDebt) -> Result<Option<GateMark>, FleetError> {
        Ok(in_time(self.settle_in_bucket(debt)).await??)
    }

    async fn settle_in_bucket(&self, debt: &GateDebt) -> sqlx::Result<Option<GateMark>> {
        let mut tx = self.ownership.permit().store().pool.begin().await?;
        let found = rows::find_tenants_bucket(&mut tx, &self.tenant, BucketLock::Locked).await?;
        let Some(name) = found else { return Ok(None) };
        let key = CallKey { bucket: &name, tenant: self.tenant.as_str(), call: &debt.call };
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
            tx.rollback().await?;
            return Ok(None);
        }
        let mut bucket = rows::load_bucket(&mut tx, &name).await?;
        let kept = bucket.state.clone();
        let now = rows::read_server_clock(&mut tx).await?.at;
        bucket.state.record_outcome(&key.to_call_id(), &debt.outcome_at(Utc::now()), now);
        let mut seen = None;
        if bucket.state != kept {
            bucket.save(&mut tx).await?;
            seen = Some(bucket.identity.to_mark(rows::count_entry(&mut tx, &key).await?));
        }
        tx.commit().await?;
        Ok(seen)
    }

    /// As [`FleetStore::find_gate_refusal`].
    pub async fn find_refusal(&self) -> Option<GuardRefusal> {
        self.ownership.permit().store().find_gate_refusal(&self.tenant).await
    }
}

impl FleetStore {
    /// The refusal that a tenant's call without tokens would get now; `None` if it would be admitted. Only reads.
    pub async fn find_gate_refusal(&self, tenant: &TenantId) -> Option<GuardRefusal> {
        let read = in_time(self.read_gate_refusal(tenant)).await.and_then(|done| done.map_err(FleetError::from));
        read.unwrap_or_else(|e| Some(refuse(e.to_string())))
    }

    async fn read_gate_refusal(&self, tenant: &TenantId) -> sqlx::Result<Option<GuardRefusal>> {
        let mut connection = self.pool.acquire().await?;
        let Some(name) = rows::find_tenants_bucket(&mut connection, tenant, BucketLock::ReadOnly).await? else {
            return Ok(Some(refuse_without_bucket(tenant)));
        };
        let mut found =
            rows::read_facts(&mut connection, &CallKey { bucket: &name, tenant: tenant.as_str(), call: "" }).await?;
        let request = GateRequest { call: String::new(), tokens: 0, seen: None };
        Ok(match check_bucket(&mut found, &request) {
            Ok(ClockReading::Sound { at }) => admit(&found, &request, at).err().map(|refused| refused.refusal),
            Ok(ClockReading::Doubted { clears_at, .. }) => Some(refuse_clock(&found, clears_at).refusal),
            Ok(ClockReading::Restarted) => None,
            Err(refusal) => Some(refusal),
        })
    }
}

/// Checks what must hold before any window counts: the bucket is whole, the call is new, and the clocks agree. Notes a loss
/// or a doubt in the bucket's row.
fn check_bucket(found: &mut RecordedFacts, request: &GateRequest) -> Result<ClockReading, GuardRefusal> {
    if found.has_call {
        // An earlier answer was lost. Nobody has sent the call, but its time may be over.
        return Err(refuse("an earlier reservation of this call had no answer; it stays spent".to_owned()));
    }
    let here = Utc::now();
    if (here - found.clock.at).abs() > CLOCK_TOLERANCE {
        let reason = format!(
            "the clock here shows {}, and that of the database {}: set the wrong one right",
            format_millis(here),
            format_millis(found.clock.at)
        );
        return Err(GuardRefusal { cap: GuardCap::Clock, clears_at: None, reason });
    }
    check_loss(found, request)?;
    Ok(found.bucket.state.check_clock(found.clock.at))
}

fn admit(found: &RecordedFacts, request: &GateRequest, at: DateTime<Utc>) -> Result<CallGrant, BucketRefusal> {
    let state = &found.bucket.state;
    let facts = BucketFacts {
        back_off: state.back_off,
        probe: state.probe.clone(),
        windows: found.windows.clone(),
        rival_refused_at: found.rival_refused_at,
    };
    admit_bucket_call(request.tokens, &facts, at)
}

/// Refuses for a day, or until an operator accepts it, if the bucket has forgotten calls.
fn check_loss(found: &mut RecordedFacts, request: &GateRequest) -> Result<(), GuardRefusal> {
    let RecordedFacts { bucket, clock, entries, .. } = found;
    if bucket.lost.is_none() {
        let why = find_loss(&bucket.identity, *entries, request.seen.as_ref(), &clock.system);
        bucket.lost = why.map(|why| (clock.at, why));
    }
    let Some((noticed_at, why)) = bucket.lost else { return Ok(()) };
    let (noticed_at, clears_at) = loss_clears_at(noticed_at, clock.at);
    let clears_at = clears_at + RESERVATION_LIFETIME;
    if clock.at >= clears_at {
        // Nothing was sent for a day, so every window is empty.
        bucket.accept_loss(clock);
        return Ok(());
    }
    bucket.lost = Some((noticed_at, why));
    let name = &bucket.identity.bucket;
    let reason = format!(
        "the bucket {name} may have forgotten calls: {}; nothing is sent until {} unless an operator accepts it \
         (`steward fleet bucket accept-loss {name}`)",
        why.describe(),
        format_millis(clears_at)
    );
    Err(GuardRefusal { cap: GuardCap::Gate, clears_at: Some(clears_at), reason })
}

fn refuse(reason: String) -> GuardRefusal {
    GuardRefusal { cap: GuardCap::Gate, clears_at: None, reason }
}

fn refuse_without_bucket(tenant: &TenantId) -> GuardRefusal {
    refuse(format!(
        "the tenant {tenant} has no bucket, so the limits of its provider are unknown: an operator of the fleet sets one with \
         `steward fleet bucket set <name> --calls …` and `steward fleet tenant set {tenant} --bucket <name>`"
    ))
}

fn refuse_clock(found: &RecordedFacts, clears_at: DateTime<Utc>) -> BucketRefusal {
    let newest = found.bucket.state.newest.map_or_else(|| "a later time".to_owned(), format_millis);
    let reason = format!(
        "the database's clock shows {}, but the newest call is from {newest}: set the clock of the database's machine right",
        format_millis(found.clock.at)
    );
    let refusal = GuardRefusal { cap: GuardCap::Clock, clears_at: Some(clears_at), reason };
    BucketRefusal { refusal, is_by_window: false }
}
