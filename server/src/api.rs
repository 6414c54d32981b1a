//! The JSON API, `/api/v1/steward/…`, and its OpenAPI description.
//!
//! Each group of endpoints has its own file and documents every response, and tests compare the description with the
//! real responses. Errors are [`problem::ProblemDetails`]. The text of a refusal is the one that the command line
//! prints.

pub(crate) mod actions;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod problem;
pub(crate) mod resolutions;
pub(crate) mod wikis;

use crate::access::AccessScope;
use crate::access::admission::{self, require_scope};
use crate::http::app::SharedAppState;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Steward",
        description = "What the stewards of a vault changed and would change, and a human's resolutions of it. \
            Send a token from `steward token create` as `Authorization: Bearer …`.",
        license(name = "MIT OR Apache-2.0")
    ),
    components(schemas(wikis::WikiReceipt)),
    modifiers(&BearerTokenScheme),
    security(("token" = []))
)]
struct OpenApiDescription;

struct BearerTokenScheme;

impl utoipa::Modify for BearerTokenScheme {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("`read` reads, `act` also resolves and stops, `operate` also resumes"))
            .build();
        openapi.components.get_or_insert_default().add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// Builds the routes of all endpoints, each with the scope it needs, and their description.
pub(crate) fn build_router(app: &SharedAppState) -> Router<SharedAppState> {
    let (read, read_api) = OpenApiRouter::<SharedAppState>::with_openapi(OpenApiDescription::openapi())
        .routes(routes!(actions::recent_actions))
        .routes(routes!(actions::action))
        .routes(routes!(metrics::metrics))
        .routes(routes!(wikis::wikis))
        .routes(routes!(wikis::wiki_runs))
        .routes(routes!(wikis::wiki_run))
        .routes(routes!(wikis::wiki_page))
        .routes(routes!(wikis::wiki_health))
        .split_for_parts();
    let (act, act_api) = OpenApiRouter::<SharedAppState>::new()
        .routes(routes!(resolutions::undo))
        .routes(routes!(resolutions::confirm))
        .routes(routes!(resolutions::dismiss))
        .routes(routes!(wikis::reject_wiki_run))
        .routes(routes!(wikis::revert_wiki_run))
        .split_for_parts();
    let (live, live_api) = OpenApiRouter::<SharedAppState>::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::startz))
        .split_for_parts();
    let (ready, ready_api) = OpenApiRouter::<SharedAppState>::new().routes(routes!(health::readyz)).split_for_parts();
    let description = read_api.merge_from(act_api).merge_from(live_api).merge_from(ready_api);
    let text: Arc<str> = description.to_json().unwrap_or_default().into();
    let described = Router::new().route("/api/v1/openapi.json", get(serve_openapi_description)).layer(Extension(text));
    // `/healthz` and `/startz` have no rate limit: a monitor that asks too often must not conclude that the process is dead.
    let open = live.merge(admission::limit_open_routes(ready.merge(described), app));
    require_scope(read, app, AccessScope::Read).merge(require_scope(act, app, AccessScope::Act)).merge(open)
}

/// Serves the description. It contains no secret, and tools fetch it without a token.
async fn serve_openapi_description(Extension(text): Extension<Arc<str>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text.to_string())
}
