//! A gRPC client of one server, with or without a token.

use crate::api::Api;
use crate::wait;
use crate::world::World;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// The channel type of the clients.
pub type Line = InterceptedService<Channel, Bearer>;

/// Adds a token to each request.
#[derive(Clone, Debug, Default)]
pub struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// A client without a token.
pub async fn anonymous(api: &Api) -> Line {
    line(endpoint(api), Bearer::default()).await
}

/// A client with this token.
pub async fn with(api: &Api, token: &str) -> Line {
    line(endpoint(api), Bearer(Some(format!("Bearer {token}").parse().unwrap()))).await
}

/// A client with a token of this scope.
pub async fn caller(world: &World, api: &Api, scope: &str) -> Line {
    with(api, &token(world, scope).await.0).await
}

/// Like [`caller`], but with another Host header.
pub async fn caller_of(world: &World, api: &Api, host: &'static str) -> Line {
    let (token, _) = token(world, "operate").await;
    let endpoint = endpoint(api).origin(host.parse().unwrap());
    line(endpoint, Bearer(Some(format!("Bearer {token}").parse().unwrap()))).await
}

/// A token of this scope, and its id.
pub async fn token(world: &World, scope: &str) -> (String, String) {
    let made = world.json(&["token", "create", "--scope", scope, "--name", &format!("test {scope}")]).await;
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

fn endpoint(api: &Api) -> Endpoint {
    Endpoint::from_shared(api.base.clone()).unwrap().timeout(wait::PATIENCE)
}

async fn line(endpoint: Endpoint, bearer: Bearer) -> Line {
    InterceptedService::new(endpoint.connect().await.unwrap(), bearer)
}

/// The code of a refusal, with its HTTP status and its reason from the trailers; the reason may be missing.
#[must_use]
pub fn refusal<T>(answer: Result<T, Status>) -> (Code, String, String) {
    let Err(status) = answer else { panic!("it was not refused") };
    let trailer = |key| status.metadata().get(key).map_or("", |value| value.to_str().unwrap()).to_owned();
    (status.code(), trailer(steward_proto::STATUS_TRAILER), trailer(steward_proto::REASON_TRAILER))
}
