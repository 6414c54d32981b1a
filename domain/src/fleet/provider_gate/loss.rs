//! Whether a bucket has forgotten calls: its database was restored from a backup, or replaced.
//!
//! Each tenant remembers the newest state of the bucket that it saw. A bucket that is older than that has lost calls, and
//! so has one in another database server, until an operator accepts it.

use serde::{Deserialize, Serialize};

/// What a tenant saw of a bucket last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateMark {
    pub bucket: String,
    /// As in [`BucketIdentity`].
    pub incarnation: i64,
    pub revision: i64,
}

/// Which bucket this is, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketIdentity {
    pub bucket: String,
    /// The database server in which it was last known to be whole.
    pub system: String,
    /// Microseconds of Unix time when it was created, or its loss accepted.
    pub incarnation: i64,
    /// Rises with every change.
    pub revision: i64,
    /// Whether this incarnation began with the acceptance of a loss.
    pub is_accepted: bool,
}

impl BucketIdentity {
    /// What a tenant remembers of it.
    #[must_use]
    pub fn to_mark(&self) -> GateMark {
        GateMark { bucket: self.bucket.clone(), incarnation: self.incarnation, revision: self.revision }
    }
}

/// Why calls may be missing from the bucket; `None` if it is whole. `system` names the database server that holds it now.
#[must_use]
pub fn find_loss(bucket: &BucketIdentity, seen: Option<&GateMark>, system: &str) -> Option<&'static str> {
    if bucket.system != system {
        return Some("the database was moved to another server");
    }
    let seen = seen.filter(|seen| seen.bucket == bucket.bucket)?;
    if bucket.incarnation > seen.incarnation {
        return (!bucket.is_accepted).then_some("the bucket was created anew");
    }
    let is_older = (bucket.incarnation, bucket.revision) < (seen.incarnation, seen.revision);
    is_older.then_some("the database was restored to an earlier time")
}
