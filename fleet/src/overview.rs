//! What a process that watches the fleet reads at once: tenants, stops, buckets, and the state of the database server.
//!
//! It reads what the operators' lists show, and the version of the tables with it. A role that can only read suffices. It
//! must not change anything, nor read what operators did.

use crate::buckets::BucketStatus;
use crate::stops::StopRow;
use crate::store::{FleetError, FleetStore, in_time};
use crate::tenants::TenantRow;

/// The state of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetOverview {
    /// The version of the tables.
    pub version: i32,
    /// Every tenant that ever was.
    pub tenants: Vec<TenantRow>,
    pub stops: Vec<StopRow>,
    pub buckets: Vec<BucketStatus>,
    pub server: DatabaseServer,
}

/// The database server, whichever of its databases the fleet uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseServer {
    pub connections: i64,
    /// `max_connections` of the server.
    pub max_connections: i64,
    /// Servers and archives that receive its changes as they happen. A base backup under way is none.
    pub standbys: i64,
    /// Whether its newest attempt to archive a file failed.
    pub archive_fails: bool,
}

impl FleetStore {
    /// Reads the state of the fleet, within the time of one call.
    ///
    /// # Errors
    /// [`FleetError`], also if the tables are not for this build any more.
    pub async fn read_overview(&self) -> Result<FleetOverview, FleetError> {
        let read = async {
            Ok(FleetOverview {
                version: self.check_version().await?,
                tenants: self.list_tenants(None).await?,
                stops: self.list_stops().await?,
                buckets: self.list_buckets().await?,
                server: self.read_server().await?,
            })
        };
        in_time(read).await?
    }

    async fn read_server(&self) -> Result<DatabaseServer, FleetError> {
        // Everybody may read these; of another role's sessions only their number and the name of the program.
        let select = "SELECT (SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database), \
            current_setting('max_connections')::bigint, \
            (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup'), \
            (SELECT coalesce(last_failed_time > last_archived_time, last_failed_time IS NOT NULL) FROM pg_stat_archiver)";
        let row = sqlx::query_as(select).fetch_one(&self.pool).await?;
        let (connections, max_connections, standbys, archive_fails) = row;
        Ok(DatabaseServer { connections, max_connections, standbys, archive_fails })
    }
}
