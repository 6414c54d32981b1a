//! The host names that this server answers to.
//!
//! Another site can let its own name point at this machine (DNS rebinding). Its scripts then reach this server as if it
//! were their own host. Such a request carries the foreign name in `Host`, so it is refused before any other check.

use axum::http::{HeaderMap, Uri, header};
use std::net::{IpAddr, SocketAddr};

/// The host names that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHosts {
    /// In lower case, with a port unless the scheme implies it.
    names: Vec<String>,
}

impl AllowedHosts {
    /// Collects this machine's own names with the server's port, the listening address unless it is unspecified, and
    /// the names of `STEWARD_HOSTS`. Those are `name:port`, or `name`, which counts with the server's port and without
    /// one.
    #[must_use]
    pub fn from_address(listening: SocketAddr, added: &[String]) -> Self {
        let port = listening.port();
        let mut names: Vec<String> =
            ["127.0.0.1", "localhost", "[::1]"].iter().map(|name| format!("{name}:{port}")).collect();
        if !listening.ip().is_unspecified() {
            names.push(listening.to_string());
        }
        // A browser leaves out the port that its scheme implies.
        if port == 80 || port == 443 {
            let bare = names.iter().filter_map(|name| Some(name.rsplit_once(':')?.0.to_owned()));
            names.extend(bare.collect::<Vec<_>>());
        }
        for name in added.iter().map(|name| name.trim().to_ascii_lowercase()) {
            if !name.contains(':') {
                names.push(format!("{name}:{port}"));
            }
            names.push(name);
        }
        Self { names }
    }

    /// The names, in lower case, with a port unless the scheme implies it.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The origins of pages of these hosts.
    #[must_use]
    pub fn list_origins(&self) -> Vec<String> {
        let has_port = |name: &str| name.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok());
        let origins = self.names.iter().flat_map(|name| match has_port(name) {
            true => [format!("http://{name}"), format!("https://{name}")],
            false => [format!("http://{name}:80"), format!("https://{name}:443")],
        });
        origins.collect()
    }

    /// Returns the host name of a request if it is accepted. A request that names no host, or different ones, is not.
    #[must_use]
    pub fn match_host<'r>(&self, uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
        let mut values = headers.get_all(header::HOST).iter();
        let host = match (uri.authority(), values.next()) {
            (Some(authority), None) => authority.as_str(),
            (_, Some(host)) => host.to_str().ok()?,
            (None, None) => return None,
        };
        let agrees = uri.authority().is_none_or(|authority| authority.as_str().eq_ignore_ascii_case(host));
        let is_only = values.next().is_none();
        (is_only && agrees && self.names.contains(&host.to_ascii_lowercase())).then_some(host)
    }
}

/// Whether other machines can reach a server that listens on this address.
#[must_use]
pub fn is_reachable_remotely(listening: SocketAddr) -> bool {
    match listening.ip() {
        IpAddr::V4(ip) => !ip.is_loopback(),
        IpAddr::V6(ip) => !ip.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(hosts: &AllowedHosts, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        hosts.match_host(&Uri::from_static("/"), &headers).is_some()
    }

    #[test]
    fn only_our_own_names_are_accepted() {
        let hosts = AllowedHosts::from_address("127.0.0.1:8420".parse().unwrap(), &["Steward.example".into()]);
        for host in [
            "127.0.0.1:8420",
            "localhost:8420",
            "LOCALHOST:8420",
            "[::1]:8420",
            "steward.example",
            "steward.example:8420",
        ] {
            assert!(accepts(&hosts, host), "{host}");
        }
        for host in ["evil.example", "evil.example:8420", "localhost", "localhost:8421", "steward.example:8421", ""] {
            assert!(!accepts(&hosts, host), "{host}");
        }
        assert!(hosts.match_host(&Uri::from_static("/"), &HeaderMap::new()).is_none());
    }

    #[test]
    fn a_request_that_names_two_hosts_is_refused() {
        let hosts = AllowedHosts::from_address("127.0.0.1:8420".parse().unwrap(), &[]);
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost:8420".parse().unwrap());
        assert!(hosts.match_host(&Uri::from_static("http://localhost:8420/"), &headers).is_some());
        assert!(hosts.match_host(&Uri::from_static("http://evil.example/"), &headers).is_none());
        headers.append(header::HOST, "evil.example".parse().unwrap());
        assert!(hosts.match_host(&Uri::from_static("/"), &headers).is_none());
    }

    #[test]
    fn loopback_addresses_are_not_reachable_remotely() {
        assert!(
            !is_reachable_remotely("127.0.0.1:1".parse().unwrap())
                && !is_reachable_remotely("[::1]:1".parse().unwrap())
        );
        assert!(
            is_reachable_remotely("0.0.0.0:1".parse().unwrap())
                && is_reachable_remotely("192.168.1.2:1".parse().unwrap())
        );
    }
}
