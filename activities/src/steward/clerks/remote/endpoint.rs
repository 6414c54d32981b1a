//! The address and the headers of a clerk's server, from its configuration.
//!
//! An address must hold no password, query or fragment. The key is marked as sensitive, so that it is never printed.

use super::{ClerkSetupError, RemoteClerkConfig};
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

pub(super) fn build_endpoint(config: &RemoteClerkConfig) -> Result<Url, ClerkSetupError> {
    let base = Url::parse(config.base_url.trim()).map_err(|_| ClerkSetupError::BaseUrl)?;
    let plain = base.username().is_empty() && base.password().is_none();
    let bare = base.query().is_none() && base.fragment().is_none();
    if !matches!(base.scheme(), "http" | "https") || !plain || !bare {
        return Err(ClerkSetupError::BaseUrl);
    }
    let (base, path) = (base.as_str().trim_end_matches('/'), config.wire.path);
    Url::parse(&format!("{base}{path}")).map_err(|_| ClerkSetupError::BaseUrl)
}

pub(super) fn build_headers(config: &RemoteClerkConfig) -> Result<HeaderMap, ClerkSetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in config.wire.headers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = &config.api_key {
        let refused = |_| ClerkSetupError::Key { variable: config.api_key_variable.clone() };
        let (name, value) = config.wire.key_header(key.expose()).map_err(refused)?;
        headers.insert(name, value);
    }
    Ok(headers)
}
