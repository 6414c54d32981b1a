//! Whether a bucket has forgotten calls: its database was restored from a backup, or replaced.
//!
//! Each tenant remembers how many entries of its own it has seen in the bucket. A bucket that holds fewer has lost calls,
//! and so has one in another database server, until an operator accepts it.

use serde::{Deserialize, Serialize};

/// What a tenant saw of a bucket last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateMark {
    /// The random id of the fleet. What was seen in another fleet says nothing.
    pub fleet: String,
    pub bucket: String,
    /// As in [`BucketIdentity`].
    pub incarnation: i64,
    /// The tenant's own calls and 429s in this bucket. Nobody else raises the number.
    pub entries: i64,
}

/// Which bucket this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketIdentity {
    pub fleet: String,
    pub bucket: String,
    /// The database server in which it was last known to be whole.
    pub system: String,
    /// Microseconds of Unix time when it was created, or its loss accepted.
    pub incarnation: i64,
    /// Whether this incarnation began with the acceptance of a loss.
    pub is_accepted: bool,
}

/// Why calls may be missing from a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum LossKind {
    Moved,
    Recreated,
    Restored,
}

impl LossKind {
    /// For a person.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Moved => "the database was moved to another server",
            Self::Recreated => "the bucket was created anew",
            Self::Restored => "the database was restored to an earlier time",
        }
    }
}

impl BucketIdentity {
    /// What a tenant with so many entries remembers of it.
    #[must_use]
    pub fn to_mark(&self, entries: i64) -> GateMark {
        let (fleet, bucket) = (self.fleet.clone(), self.bucket.clone());
        GateMark { fleet, bucket, incarnation: self.incarnation, entries }
    }
}

/// Whether calls may be missing from the bucket; `None` if it is whole. It holds `entries` of the tenant that saw `seen`
/// last, and is now in the database server `system`.
#[must_use]
pub fn find_loss(bucket: &BucketIdentity, entries: i64, seen: Option<&GateMark>, system: &str) -> Option<LossKind> {
    if bucket.system != system {
        return Some(LossKind::Moved);
    }
    let seen = seen.filter(|seen| seen.fleet == bucket.fleet && seen.bucket == bucket.bucket)?;
    if bucket.incarnation > seen.incarnation {
        return (!bucket.is_accepted).then_some(LossKind::Recreated);
    }
    ((bucket.incarnation, entries) < (seen.incarnation, seen.entries)).then_some(LossKind::Restored)
}
