//! The connection to the fleet's database, and its version.
//!
//! A build knows the version of the tables that it was made for. A newer database names the oldest build that it still
//! works with, so that a rollback stays possible for one release.

use chrono::{DateTime, Utc};
use rustix::time::{ClockId, clock_gettime};
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;
use steward_domain::fleet::TenantId;
use steward_domain::fleet::provider_gate::BootInstant;

/// The tables of every version.
pub(crate) static MIGRATIONS: Migrator = sqlx::migrate!();
/// The version of the tables that this build was made for.
const VERSION: i32 = 7;
/// Connections of one process: one for permits, one for the gate.
const CONNECTIONS: u32 = 2;
/// How long a call may take, the connection included: 3 s.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why the fleet's database gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("STEWARD_FLEET_DB: {0}")]
    Url(String),
    /// What was asked for may have happened, or happen later.
    #[error("the fleet's database gave no answer within {} s: check STEWARD_FLEET_DB and the server", PATIENCE.as_secs())]
    Late,
    #[error("the fleet's database: {0}")]
    Sql(#[from] sqlx::Error),
    #[error("the fleet's database: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    #[error("the database holds no fleet: run `steward fleet init`")]
    NotInitialised,
    #[error(
        "the fleet's database has version {version} and wants a build that knows version {min_reader}; this one knows {VERSION}: \
         install a newer Steward"
    )]
    TooNew { version: i32, min_reader: i32 },
    #[error("the fleet's database has version {version}, and this build needs {VERSION}: run `steward fleet migrate`")]
    TooOld { version: i32 },
}

/// The database of a fleet. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FleetStore {
    pub(crate) pool: PgPool,
}

/// Whose role a connection has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectedRole {
    Operator,
    /// It sees all that an operator sees but their log, and changes nothing.
    Reader,
    Tenant(TenantId),
}

/// `the role of the tenant acme`.
impl fmt::Display for ConnectedRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("an operator's role"),
            Self::Reader => f.write_str("a role that can only read"),
            Self::Tenant(tenant) => write!(f, "the role of the tenant {tenant}"),
        }
    }
}

impl FleetError {
    /// Whether a commit got no answer: this one, or one before it that still holds the row.
    #[must_use]
    pub fn is_unanswered_commit(&self) -> bool {
        match self {
            Self::Late => true,
            // lock_not_available
            Self::Sql(sqlx::Error::Database(e)) => e.code().is_some_and(|code| code == "55P03"),
            _ => false,
        }
    }

    /// Whether the same call may succeed later, without a person's help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Late => true,
            Self::Sql(sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut) => true,
            Self::Sql(sqlx::Error::Database(e)) => {
                // Connection failures, too few resources, a server that starts or ends.
                e.code().is_some_and(|code| ["08", "53", "57"].iter().any(|class| code.starts_with(class)))
            }
            Self::Sql(_)
            | Self::Url(_)
            | Self::Migrate(_)
            | Self::NotInitialised
            | Self::TooNew { .. }
            | Self::TooOld { .. } => false,
        }
    }
}

impl FleetStore {
    /// Whose role is connected. A role that may both read and change is an operator's.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn find_connected_role(&self) -> Result<ConnectedRole, FleetError> {
        // A database that was restored on another server may lack the role.
        let select = "SELECT CASE WHEN session_user LIKE 'steward\\_tenant\\_%' THEN connected_tenant() END, \
            NOT has_table_privilege('tenant', 'UPDATE') AND EXISTS (SELECT FROM pg_roles \
            WHERE rolname = 'steward_reader' AND pg_has_role(oid, 'USAGE'))";
        let found: (Option<String>, bool) = in_time(sqlx::query_as(select).fetch_one(&self.pool)).await??;
        Ok(match found {
            (Some(tenant), _) => tenant.parse().map_or(ConnectedRole::Operator, ConnectedRole::Tenant),
            (None, true) => ConnectedRole::Reader,
            (None, false) => ConnectedRole::Operator,
        })
    }

    /// The present by the database's clock.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn read_clock(&self) -> Result<DateTime<Utc>, FleetError> {
        Ok(in_time(sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&self.pool)).await??)
    }

    /// Connects, and checks that this build can use the tables.
    ///
    /// # Errors
    /// [`FleetError`].
    pub async fn connect(url: &str) -> Result<Self, FleetError> {
        let store = Self::connect_unchecked(url)?;
        store.check_version().await?;
        Ok(store)
    }

    /// Prepares a connection. The first call opens it.
    pub(crate) fn connect_unchecked(url: &str) -> Result<Self, FleetError> {
        // The text of the error would hold the URL.
        let options = PgConnectOptions::from_str(url).map_err(|_| FleetError::Url("is no valid URL".to_owned()))?;
        // A slow statement would be logged in full, and one of them holds a password.
        let options = options.application_name("steward").disable_statement_logging();
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(PATIENCE);
        Ok(Self { pool: pool.connect_lazy_with(options) })
    }

    /// Checks that this build can use the tables, and returns their version.
    pub(crate) async fn check_version(&self) -> Result<i32, FleetError> {
        let query = sqlx::query_as("SELECT version, min_reader FROM fleet");
        let found: Result<Option<(i32, i32)>, sqlx::Error> = in_time(query.fetch_optional(&self.pool)).await?;
        match found {
            Ok(Some((version, min_reader))) if min_reader > VERSION => Err(FleetError::TooNew { version, min_reader }),
            Ok(Some((version, _))) if version < VERSION => Err(FleetError::TooOld { version }),
            Ok(Some((version, _))) => Ok(version),
            Ok(None) => Err(FleetError::NotInitialised),
            Err(e) if is_missing_table(&e) => Err(FleetError::NotInitialised),
            Err(e) => Err(e.into()),
        }
    }
}

/// Waits for a call, at most [`PATIENCE`].
pub(crate) async fn in_time<T>(call: impl Future<Output = T>) -> Result<T, FleetError> {
    tokio::time::timeout(PATIENCE, call).await.map_err(|_| FleetError::Late)
}

fn is_missing_table(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|e| e.code()).is_some_and(|code| code == "42P01")
}

/// The time since the machine was started, its sleep included.
pub(crate) fn read_boot_clock() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The present by the clock since the start of the machine.
#[must_use]
pub fn read_boot_instant() -> BootInstant {
    /// Empty where the system shows none; then the other clocks still hold.
    static BOOT_ID: LazyLock<String> = LazyLock::new(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
    });
    let micros = i64::try_from(read_boot_clock().as_micros()).unwrap_or(i64::MAX);
    BootInstant { boot_id: BOOT_ID.clone(), micros }
}
