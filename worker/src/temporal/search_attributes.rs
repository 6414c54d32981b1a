//! The search attributes of Steward at a Temporal server: which it has, and how they are added.
//!
//! They let people search the Temporal UI for a matter and for the runs that changed something. Nothing relies on them: where
//! they cannot be added, runs go without.

use std::collections::HashMap;
use steward_workflows::{CHANGED_ATTRIBUTE, DISPOSITION_ATTRIBUTE, MATTER_ATTRIBUTE};
use temporalio_client::tonic::{Code, IntoRequest, Status};
use temporalio_client::{Client, NamespacedClient};
use temporalio_common::protos::temporal::api::enums::v1::IndexedValueType;
use temporalio_common::protos::temporal::api::operatorservice::v1::{
    AddSearchAttributesRequest, ListSearchAttributesRequest,
};

/// A search attribute and its type.
pub(crate) type AttributeType = (&'static str, IndexedValueType);

/// Those of every run of a steward.
pub(crate) const RUN_ATTRIBUTES: [AttributeType; 3] = [
    (MATTER_ATTRIBUTE, IndexedValueType::Keyword),
    (DISPOSITION_ATTRIBUTE, IndexedValueType::Keyword),
    (CHANGED_ATTRIBUTE, IndexedValueType::Bool),
];

/// Lists those of the attributes that the namespace lacks, or has with another type.
///
/// # Errors
/// The server does not tell.
pub(crate) async fn list_missing(client: &Client) -> Result<Vec<AttributeType>, Status> {
    let request = ListSearchAttributesRequest { namespace: client.namespace() };
    let found = client.connection().operator_service().list_search_attributes(request.into_request()).await?;
    let known = found.into_inner().custom_attributes;
    Ok(RUN_ATTRIBUTES.into_iter().filter(|(name, kind)| known.get(*name) != Some(&i32::from(*kind))).collect())
}

/// Adds attributes to the namespace of the client.
///
/// # Errors
/// The server refuses, as Temporal Cloud does.
pub(crate) async fn add(client: &Client, attributes: &[AttributeType]) -> Result<(), Status> {
    let search_attributes: HashMap<String, i32> =
        attributes.iter().map(|(name, kind)| ((*name).to_owned(), i32::from(*kind))).collect();
    let request = AddSearchAttributesRequest { search_attributes, namespace: client.namespace() };
    match client.connection().operator_service().add_search_attributes(request.into_request()).await {
        Ok(_) => Ok(()),
        Err(status) if status.code() == Code::AlreadyExists => Ok(()),
        Err(status) => Err(status),
    }
}

/// Whether runs may have the attributes. At a server of our own, `is_ours`, they are added if they are missing.
pub(crate) async fn prepare(client: &Client, is_ours: bool) -> bool {
    let missing = match list_missing(client).await {
        Ok(missing) if is_ours && !missing.is_empty() => add(client, &missing).await.map(|()| Vec::new()),
        listed => listed,
    };
    match missing {
        Ok(missing) => missing.is_empty(),
        Err(status) => {
            tracing::info!("runs have no search attributes: {}", status.message());
            false
        }
    }
}

/// The command with which an operator adds attributes.
pub(crate) fn describe_command(namespace: &str, attributes: &[AttributeType]) -> String {
    let each = |(name, kind): &AttributeType| {
        let kind = if *kind == IndexedValueType::Bool { "Bool" } else { "Keyword" };
        format!(" --name {name} --type {kind}")
    };
    let names: String = attributes.iter().map(each).collect();
    format!("temporal operator search-attribute create --namespace {namespace}{names}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_each_attribute_with_its_type() {
        assert_eq!(
            describe_command("default", &RUN_ATTRIBUTES),
            "temporal operator search-attribute create --namespace default --name StewardMatter --type Keyword \
             --name StewardDisposition --type Keyword --name StewardChanged --type Bool"
        );
    }
}
