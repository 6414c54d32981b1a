//! The settings of the dashboard and the control API: host names, proxies, the certificate, addresses.
//!
//! This module only reads and checks them. An error names the setting and an example. [`crate::runtime::web`] uses the
//! settings.

use anyhow::bail;
use axum::http::Uri;
use std::net::IpAddr;
use std::path::PathBuf;
use steward_server::access::proxy::TrustedProxies;
use steward_server::http::listen::CertificateFiles;

/// Reads a setting that is `on` unless it says otherwise.
///
/// # Errors
/// It is neither `on` nor `off`.
pub(super) fn read_switch(name: &str, text: Option<&str>) -> anyhow::Result<bool> {
    match text.map(str::trim) {
        None | Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => bail!("{name} is `{other}`: use `on` or `off`"),
    }
}

/// Reads host names, each `name` or `name:port`, separated by commas.
pub(super) fn parse_hosts(text: &str) -> anyhow::Result<Vec<String>> {
    let names: Vec<String> =
        text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    let is_name = |name: &String| !name.contains(|c: char| c == '/' || c == '*' || c.is_whitespace() || c.is_control());
    match names.iter().find(|name| !is_name(name)) {
        None => Ok(names),
        Some(other) => bail!(
            "STEWARD_HOSTS has `{}`, expected names like steward.example or steward.example:8443",
            other.escape_debug()
        ),
    }
}

pub(super) fn parse_proxies(text: &str) -> anyhow::Result<TrustedProxies> {
    let wrong = |other: String| {
        format!(
            "STEWARD_TRUSTED_PROXIES has `{}`, expected addresses or networks like 10.0.0.0/8",
            other.escape_debug()
        )
    };
    TrustedProxies::parse(text).map_err(wrong).map_err(anyhow::Error::msg)
}

pub(super) fn read_certificate(
    chain: Option<PathBuf>,
    key: Option<PathBuf>,
) -> anyhow::Result<Option<CertificateFiles>> {
    match (chain, key) {
        (Some(chain), Some(key)) => Ok(Some(CertificateFiles { chain, key })),
        (None, None) => Ok(None),
        (Some(_), None) => bail!("STEWARD_TLS_CERT is set and STEWARD_TLS_KEY is not: set both, to PEM files"),
        (None, Some(_)) => bail!("STEWARD_TLS_KEY is set and STEWARD_TLS_CERT is not: set both, to PEM files"),
    }
}

/// Checks the address of a server that receives a token. It needs TLS, except on this machine.
pub(super) fn check_server_address(address: Option<String>) -> anyhow::Result<Option<String>> {
    let Some(address) = address.map(|address| address.trim_end_matches('/').to_owned()) else { return Ok(None) };
    let uri = address.parse::<Uri>().ok().filter(|uri| uri.scheme_str() == Some("http"));
    let host = uri.as_ref().and_then(Uri::host).map(|host| host.trim_matches(['[', ']']).to_owned());
    let is_local =
        host.is_some_and(|host| host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()));
    if !is_local && !address.starts_with("https://") {
        bail!(
            "STEWARD_SERVER is `{}`, expected an address like https://steward.example: a token is sent there, and \
             unencrypted only to this machine",
            address.escape_debug()
        );
    }
    Ok(Some(address))
}

/// Checks an address that a page may link to.
pub(super) fn check_ui_address(address: Option<String>) -> anyhow::Result<Option<String>> {
    match address.map(|address| address.trim_end_matches('/').to_owned()).filter(|address| !address.is_empty()) {
        Some(other) if !other.starts_with("http://") && !other.starts_with("https://") => {
            bail!(
                "STEWARD_TEMPORAL_UI is `{}`, expected an address like https://temporal.example",
                other.escape_debug()
            )
        }
        address => Ok(address),
    }
}
