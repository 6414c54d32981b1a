//! Lets the rate guard's ledger ask the gate of the fleet.
//!
//! The ledger knows a trait, and the fleet's crate knows no vault; this joins the two. It must not decide anything.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use steward_domain::fleet::provider_gate::{GateDebt, GateGrant, GateMark, GateRequest};
use steward_domain::steward::guard::GuardRefusal;
use steward_fleet::{BucketGate, VaultOwnership};
use steward_vault::steward::guard::ProviderGate;

#[derive(Debug)]
struct FleetGate(BucketGate);

impl ProviderGate for FleetGate {
    fn reserve(&self, request: GateRequest) -> BoxFuture<'_, Result<GateGrant, GuardRefusal>> {
        async move { self.0.reserve(&request).await }.boxed()
    }

    fn settle(&self, debt: GateDebt) -> BoxFuture<'_, Result<Option<GateMark>, String>> {
        async move { self.0.settle(&debt).await.map_err(|e| e.to_string()) }.boxed()
    }

    fn find_refusal(&self) -> BoxFuture<'_, Option<GuardRefusal>> {
        self.0.find_refusal().boxed()
    }
}

/// The gate that the ledger of a fleet's vault must ask for calls to a provider.
#[must_use]
pub fn create_provider_gate(ownership: VaultOwnership) -> Arc<dyn ProviderGate> {
    Arc::new(FleetGate(BucketGate::new(ownership)))
}
