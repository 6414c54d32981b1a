//! Which names this server answers to.
//!
//! A page of somebody else's may have a name that points at this machine, and its script then asks us as its own
//! host. Such a request has their name in `Host`, so it is refused before anything else is looked at.

use axum::http::{HeaderMap, Uri, header};
use std::net::{IpAddr, SocketAddr};

/// The names that are answered to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHosts {
    /// In lower case, with a port where it is not left out.
    names: Vec<String>,
}

impl AllowedHosts {
    /// This machine's own names at the port that is listened on, the address itself where it is a real one, and what
    /// the operator adds (`STEWARD_HOSTS`): `name:port`, or `name` for that port and for none.
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

    /// The name that a request was sent to, if it is one of these.
    #[must_use]
    pub fn match_host<'r>(&self, uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
        let mut said = headers.get_all(header::HOST).iter();
        let host = match (uri.authority(), said.next()) {
            (Some(authority), None) => authority.as_str(),
            (_, Some(host)) => host.to_str().ok()?,
            (None, None) => return None,
        };
        let agrees = uri.authority().is_none_or(|authority| authority.as_str().eq_ignore_ascii_case(host));
        let one = said.next().is_none();
        (one && agrees && self.names.contains(&host.to_ascii_lowercase())).then_some(host)
    }
}

/// Whether others than this machine can reach what listens there.
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

    fn named(hosts: &AllowedHosts, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        hosts.match_host(&Uri::from_static("/"), &headers).is_some()
    }

    #[test]
    fn only_our_own_names_are_answered_to() {
        let hosts = AllowedHosts::from_address("127.0.0.1:8420".parse().unwrap(), &["Steward.example".into()]);
        for host in [
            "127.0.0.1:8420",
            "localhost:8420",
            "LOCALHOST:8420",
            "[::1]:8420",
            "steward.example",
            "steward.example:8420",
        ] {
            assert!(named(&hosts, host), "{host}");
        }
        for host in ["evil.example", "evil.example:8420", "localhost", "localhost:8421", "steward.example:8421", ""] {
            assert!(!named(&hosts, host), "{host}");
        }
        assert!(hosts.match_host(&Uri::from_static("/"), &HeaderMap::new()).is_none());
    }

    #[test]
    fn a_request_that_names_two_hosts_is_none_of_ours() {
        let hosts = AllowedHosts::from_address("127.0.0.1:8420".parse().unwrap(), &[]);
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost:8420".parse().unwrap());
        assert!(hosts.match_host(&Uri::from_static("http://localhost:8420/"), &headers).is_some());
        assert!(hosts.match_host(&Uri::from_static("http://evil.example/"), &headers).is_none());
        headers.append(header::HOST, "evil.example".parse().unwrap());
        assert!(hosts.match_host(&Uri::from_static("/"), &headers).is_none());
    }

    #[test]
    fn every_address_of_this_machine_alone_is_not_open() {
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
