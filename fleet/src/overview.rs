//! What a process that watches the fleet reads at once: tenants, stops, buckets, and the connections of the server.
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
    pub connections: ServerConnections,
}

/// The connections of the database server, whichever database they are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConnections {
    pub used: i64,
    /// `max_connections` of the server.
    pub max: i64,
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
                connections: self.count_connections().await?,
            })
        };
        in_time(read).await?
    }

    async fn count_connections(&self) -> Result<ServerConnections, FleetError> {
        // Everybody may read these; of another role's sessions only their number.
        let select = "SELECT coalesce(sum(numbackends), 0)::bigint, current_setting('max_connections')::bigint \
            FROM pg_stat_database";
        let (used, max) = sqlx::query_as(select).fetch_one(&self.pool).await?;
        Ok(ServerConnections { used, max })
    }
}
