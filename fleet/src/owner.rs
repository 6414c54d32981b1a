//! The owner of a vault: taking it at the start, saying every few seconds that it lives, and the permits of each act.
//!
//! A heartbeat and a permit are the same statement: an update of the owner's own row. A read would not do, because a
//! server that has lost its standby still answers reads. If no row is updated, another copy owns the vault, and this one
//! must never act again.

use crate::events::{Operator, RecordedChange};
use crate::store::{FleetError, FleetStore, in_time, read_boot_clock};
use crate::tenants::{TenantState, parse, read_owner};
use serde_json::json;
use sqlx::Row;
use std::time::Duration;
use steward_domain::action::audit::ChainHead;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::ownership::{ClaimDecision, OwnerInfo, OwnerProgress, OwnerRow, VaultCopy, decide_claim};
use steward_domain::gates::mode::Mode;

/// How long a permit is good: 1 s, by a clock that goes on while the machine sleeps.
const PERMIT_LIFETIME: Duration = Duration::from_secs(1);

/// Why a process may not own its vault.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    #[error("the fleet has no tenant {0}: create it with `steward fleet tenant add {0}`")]
    Unknown(TenantId),
    #[error("the tenant {0} was dropped: its id cannot be used again")]
    Dropped(TenantId),
    #[error(
        "the tenant {tenant} has the vault {registered}, and the vault here is {here}: mount the right one, or set the right STEWARD_TENANT"
    )]
    OtherVault { tenant: TenantId, registered: String, here: String },
    #[error(
        "another copy of this vault owns the tenant {}: {} at epoch {}, last heard {}. If it must never act again, run `steward fleet \
         take {}` here", .0.tenant, .0.info.instance, .0.epoch, .0.seen.format("%Y-%m-%dT%H:%M:%SZ"), .0.tenant
    )]
    OtherCopy(Box<OwnerRow>),
    #[error(
        "this copy of the vault was shut out: {} owns the tenant {} at epoch {}, last heard {}. Leave this one stopped", .0.info.instance,
        .0.tenant, .0.epoch, .0.seen.format("%Y-%m-%dT%H:%M:%SZ")
    )]
    ShutOut(Box<OwnerRow>),
    #[error(
        "the vault here was set back, as by a snapshot of its disk: it lacks {missing} of the {} audit records that the fleet has \
         seen. If it must go on without them, run `steward fleet take {}` here", .owner.chain.seq, .owner.tenant
    )]
    SetBack { owner: Box<OwnerRow>, missing: u64 },
}

/// Why nothing may be reserved, landed, sent or registered now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PermitRefusal {
    #[error("another copy of this vault owns it now: this one must not act again; see `steward fleet status`")]
    Lost,
    #[error("the tenant was dropped")]
    Dropped,
    #[error("{0}")]
    Away(String),
}

/// A stop of this tenant or of the whole fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetStop {
    pub by: String,
    pub reason: String,
}

/// The leave to act, for one second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The most that may be done.
    pub ceiling: Mode,
    pub stop: Option<FleetStop>,
    /// When it was asked for.
    granted: Duration,
}

impl PermitRefusal {
    /// Whether no later answer can be another one.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Lost | Self::Dropped)
    }
}

impl Permit {
    /// Why nothing but undo and dismiss may be done; `None` without a stop.
    #[must_use]
    pub fn describe_stop(&self) -> Option<String> {
        let FleetStop { by, reason } = self.stop.as_ref()?;
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        Some(format!("the fleet was stopped by {by}{reason}"))
    }

    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        self.granted > other.granted
    }

    /// Whether it is still good. Ask right before the act.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        read_boot_clock().saturating_sub(self.granted) <= PERMIT_LIFETIME
    }
}

/// How the instance of an owner begins that a person's command named and that has not started yet.
const TAKEN_BY: &str = "taken by ";

/// The claim of this process to its vault. Cheap to clone.
#[derive(Clone, Debug)]
pub struct OwnerPermit {
    store: FleetStore,
    tenant: TenantId,
    copy: String,
    epoch: i64,
    was_taken: bool,
}

const CLAIM: &str = "SELECT t.vault_id, t.state, o.copy, o.epoch, o.instance, o.address, o.build, o.mode, o.policy_hash, o.seen, \
    o.chain_records, o.chain_sha256, o.since, o.last_check, o.matters_late, o.signals_fresh, o.shut_out \
    FROM tenant t LEFT JOIN owner o ON o.tenant = t.id WHERE t.id = $1";
const OWN: &str = "INSERT INTO owner (tenant, copy, epoch, instance, address, build, mode, policy_hash, seen, \
    chain_records, chain_sha256) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp(), $9, $10) \
    ON CONFLICT (tenant) DO UPDATE SET copy = $2, epoch = $3, instance = $4, address = $5, build = $6, mode = $7, \
    policy_hash = $8, seen = clock_timestamp(), since = clock_timestamp() WHERE owner.copy = $2 AND owner.epoch = $3 - 1";
const REPORT: &str = "UPDATE owner SET last_check = $4, matters_late = $5, signals_fresh = $6 \
    WHERE tenant = $1 AND copy = $2 AND epoch = $3";
const HEARTBEAT: &str = "UPDATE owner SET seen = clock_timestamp(), \
    chain_sha256 = CASE WHEN $4 > chain_records THEN $5 ELSE chain_sha256 END, chain_records = greatest(chain_records, $4) \
    WHERE tenant = $1 AND copy = $2 AND epoch = $3 RETURNING \
    (SELECT mode_ceiling FROM tenant WHERE id = $1 AND state = 'active') AS ceiling, \
    (SELECT array[stopped_by, reason] FROM stop WHERE scope IN ('*', $1) ORDER BY scope LIMIT 1) AS stop";

impl FleetStore {
    /// Makes this copy the owner of its tenant's vault. Only the process that holds the vault's lock may call this.
    ///
    /// # Errors
    /// [`ClaimError`]; nothing was changed, except that a first start may have registered the vault's id.
    pub async fn claim_vault(
        &self,
        tenant: &TenantId,
        here: &VaultCopy,
        info: &OwnerInfo,
    ) -> Result<OwnerPermit, ClaimError> {
        let row = in_time(sqlx::query(CLAIM).bind(tenant.as_str()).fetch_optional(&self.pool)).await?;
        let row = row.map_err(FleetError::from)?.ok_or_else(|| ClaimError::Unknown(tenant.clone()))?;
        let sql = |e: sqlx::Error| ClaimError::Fleet(e.into());
        if parse::<TenantState>(&row, "state").map_err(sql)? == TenantState::Dropped {
            return Err(ClaimError::Dropped(tenant.clone()));
        }
        let registered: Option<String> = row.try_get("vault_id").map_err(sql)?;
        self.register_vault(tenant, registered, &here.vault).await?;
        let owner: Option<String> = row.try_get("copy").map_err(sql)?;
        let owner = owner.map(|copy| read_owner(&row, tenant.clone(), copy)).transpose().map_err(sql)?;
        let was_taken = owner.as_ref().is_some_and(|owner| owner.info.instance.starts_with(TAKEN_BY));
        let epoch = match decide_claim(owner.as_ref(), here) {
            ClaimDecision::Own { epoch } => epoch,
            ClaimDecision::Refused { owner } if owner.has_shut_out(&here.copy) => {
                return Err(ClaimError::ShutOut(owner));
            }
            ClaimDecision::Refused { owner } => return Err(ClaimError::OtherCopy(owner)),
            ClaimDecision::SetBack { owner, missing } => return Err(ClaimError::SetBack { owner, missing }),
        };
        let copy = &here.copy;
        let own =
            sqlx::query(OWN).bind(tenant.as_str()).bind(copy).bind(epoch).bind(&info.instance).bind(&info.address);
        let own = own.bind(&info.build).bind(info.mode.as_str()).bind(&info.policy_hash);
        let own = own.bind(count_records(&here.chain)).bind(here.chain.sha256.as_str());
        let owned = in_time(own.execute(&self.pool)).await?.map_err(FleetError::from)?;
        if owned.rows_affected() == 0 {
            // Somebody else has taken it since it was read. The next try sees who.
            return Err(ClaimError::Fleet(FleetError::Late));
        }
        Ok(OwnerPermit { store: self.clone(), tenant: tenant.clone(), copy: copy.to_owned(), epoch, was_taken })
    }

    async fn register_vault(
        &self,
        tenant: &TenantId,
        registered: Option<String>,
        here: &str,
    ) -> Result<(), ClaimError> {
        let registered = match registered {
            Some(registered) => registered,
            None => {
                let query = sqlx::query("UPDATE tenant SET vault_id = $2 WHERE id = $1 AND vault_id IS NULL");
                let query = query.bind(tenant.as_str()).bind(here);
                in_time(query.execute(&self.pool)).await?.map_err(FleetError::from)?;
                here.to_owned()
            }
        };
        if registered == here {
            return Ok(());
        }
        Err(ClaimError::OtherVault { tenant: tenant.clone(), registered, here: here.to_owned() })
    }

    /// Makes another copy the owner, by a person's command. The copy that owned it until now can never act again.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn take_vault(
        &self,
        tenant: &TenantId,
        here: &VaultCopy,
        operator: &Operator,
    ) -> Result<bool, FleetError> {
        Ok(in_time(self.try_take_vault(tenant, here, operator)).await??)
    }

    async fn try_take_vault(&self, tenant: &TenantId, here: &VaultCopy, operator: &Operator) -> sqlx::Result<bool> {
        let mut tx = self.pool.begin().await?;
        let select = "SELECT jsonb_build_object('copy', copy, 'instance', instance, 'epoch', epoch, 'records', chain_records) FROM owner \
            WHERE tenant = $1 FOR UPDATE";
        let before = sqlx::query_scalar(select).bind(tenant.as_str()).fetch_optional(&mut *tx).await?;
        let Some(before) = before else { return Ok(false) };
        let update = "UPDATE owner SET copy = $2, epoch = epoch + 1, instance = $3, address = '', seen = clock_timestamp(), \
            chain_records = $4, chain_sha256 = $5, shut_out = CASE WHEN copy = $2 THEN shut_out \
            ELSE array_append(array_remove(shut_out, $2), copy) END WHERE tenant = $1";
        let instance = format!("{TAKEN_BY}{}", operator.name);
        let update = sqlx::query(update).bind(tenant.as_str()).bind(&here.copy).bind(instance);
        update.bind(count_records(&here.chain)).bind(here.chain.sha256.as_str()).execute(&mut *tx).await?;
        let (subject, after) = (tenant.as_str(), Some(json!({"copy": here.copy, "records": here.chain.seq})));
        let change = RecordedChange { event: "take", subject, before: Some(before), after };
        operator.record(&mut tx, change).await?;
        tx.commit().await?;
        Ok(true)
    }
}

/// The number of records as the database holds it.
fn count_records(chain: &ChainHead) -> i64 {
    to_bigint(chain.seq)
}

fn to_bigint(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl OwnerPermit {
    pub(crate) fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    pub(crate) fn store(&self) -> &FleetStore {
        &self.store
    }

    /// Whether this is the first start after the vault was taken from another copy.
    #[must_use]
    pub fn was_taken(&self) -> bool {
        self.was_taken
    }

    /// The epoch of this process.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Reports what this process has done, for people who look after the fleet.
    ///
    /// # Errors
    /// [`FleetError`].
    pub(crate) async fn report_progress(&self, progress: &OwnerProgress) -> Result<(), FleetError> {
        let report = sqlx::query(REPORT).bind(self.tenant.as_str()).bind(&self.copy).bind(self.epoch);
        let report = report.bind(progress.last_check).bind(to_bigint(progress.matters_late));
        in_time(report.bind(to_bigint(progress.signals_fresh)).execute(&self.store.pool)).await??;
        Ok(())
    }

    /// Says that this process lives and how far its audit chain has come, and asks for the leave to act.
    ///
    /// # Errors
    /// [`PermitRefusal`]. A commit without an answer counts as a refusal.
    pub async fn obtain(&self, chain: &ChainHead) -> Result<Permit, PermitRefusal> {
        let granted = read_boot_clock();
        let heartbeat = sqlx::query(HEARTBEAT).bind(self.tenant.as_str()).bind(&self.copy).bind(self.epoch);
        let heartbeat = heartbeat.bind(count_records(chain)).bind(chain.sha256.as_str());
        let away = |e: FleetError| PermitRefusal::Away(e.to_string());
        let row = in_time(heartbeat.fetch_optional(&self.store.pool)).await.map_err(away)?;
        let Some(row) = row.map_err(|e| away(e.into()))? else { return Err(PermitRefusal::Lost) };
        let sql = |e: sqlx::Error| away(e.into());
        let is_active = row.try_get::<Option<String>, _>("ceiling").map_err(sql)?.is_some();
        if !is_active {
            return Err(PermitRefusal::Dropped);
        }
        let stop: Option<Vec<String>> = row.try_get("stop").map_err(sql)?;
        let stop = stop.map(|mut words| {
            let reason = words.pop().unwrap_or_default();
            FleetStop { by: words.pop().unwrap_or_default(), reason }
        });
        let permit = Permit { ceiling: parse(&row, "ceiling").map_err(sql)?, stop, granted };
        // The process may have slept while it waited.
        if permit.is_fresh() { Ok(permit) } else { Err(away(FleetError::Late)) }
    }
}
