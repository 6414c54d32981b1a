//! Trusted proxies, and the client address that they report in `X-Forwarded-For` and `X-Forwarded-Proto`.
//!
//! Anybody can send these headers. They count only if the connection itself comes from an address that the operator
//! named. Of the reported addresses, the last one that is not a trusted proxy is the client. The caller may have
//! invented those before it.

use axum::http::HeaderMap;
use ipnet::IpNet;
use std::net::IpAddr;

/// The networks of the trusted proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// The client that really sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForwardedClient {
    pub(crate) from: IpAddr,
    /// The client's own connection was encrypted.
    pub(crate) secure: bool,
}

impl TrustedProxies {
    /// Parses addresses and networks, separated by commas, as in `10.0.0.2,192.0.2.0/24`.
    ///
    /// # Errors
    /// The first entry that is neither an address nor a network.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parse = |text: &str| {
            let address = text.parse::<IpAddr>().map(IpNet::from);
            text.parse::<IpNet>().or(address).map_err(|_| text.to_owned())
        };
        let entries = text.split(',').map(str::trim).filter(|text| !text.is_empty());
        entries.map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether no proxy is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is the address of a trusted proxy.
    pub(crate) fn contains_address(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// Finds the client of a request that came from `peer`. `encrypted` says that the connection to this server uses
    /// TLS.
    pub(crate) fn find_client(&self, peer: IpAddr, encrypted: bool, headers: &HeaderMap) -> ForwardedClient {
        let peer = peer.to_canonical();
        if !self.contains_address(peer) {
            return ForwardedClient { from: peer, secure: encrypted };
        }
        let lines = |name: &str| -> Vec<String> {
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok().map(str::to_owned)).collect()
        };
        let forwarded = lines("x-forwarded-for");
        let hops = forwarded.iter().flat_map(|line| line.split(',')).map(|hop| hop.trim().parse::<IpAddr>().ok());
        // Starting with the nearest hop. Nothing before an unreadable one can be believed.
        let mut from = peer;
        for hop in hops.collect::<Vec<_>>().into_iter().rev() {
            let Some(hop) = hop else { break };
            from = hop.to_canonical();
            if !self.contains_address(hop) {
                break;
            }
        }
        let last = lines("x-forwarded-proto").pop();
        let scheme = last.and_then(|line| line.rsplit(',').next().map(|word| word.trim().to_ascii_lowercase()));
        ForwardedClient { from, secure: scheme.map_or(encrypted, |scheme| scheme == "https") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(proxies: &str, peer: &str, headers: &[(&'static str, &'static str)]) -> (String, bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let client = TrustedProxies::parse(proxies).unwrap().find_client(peer.parse().unwrap(), false, &map);
        (client.from.to_string(), client.secure)
    }

    #[test]
    fn an_untrusted_client_cannot_claim_another_address() {
        let claim = [("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")];
        assert_eq!(find("", "198.51.100.1", &claim), ("198.51.100.1".into(), false));
        assert_eq!(find("10.0.0.0/8", "198.51.100.1", &claim), ("198.51.100.1".into(), false));
    }

    #[test]
    fn a_trusted_proxy_is_believed_about_the_hop_before_it_and_no_further() {
        let hops = [("x-forwarded-for", "127.0.0.1, 192.0.2.7, 10.0.0.9"), ("x-forwarded-proto", "https")];
        assert_eq!(find("10.0.0.0/8", "10.0.0.2", &hops), ("192.0.2.7".into(), true));
        let two = [("x-forwarded-for", "127.0.0.1"), ("x-forwarded-for", "192.0.2.7")];
        assert_eq!(find("10.0.0.2", "10.0.0.2", &two), ("192.0.2.7".into(), false));
        assert_eq!(find("10.0.0.2", "10.0.0.2", &[("x-forwarded-for", "192.0.2.7, nonsense")]).0, "10.0.0.2");
        assert_eq!(find("10.0.0.2", "::ffff:10.0.0.2", &hops).0, "10.0.0.9");
        assert_eq!(find("10.0.0.2", "10.0.0.2", &[]), ("10.0.0.2".into(), false));
        assert_eq!(TrustedProxies::parse("10.0.0.0/8, proxy"), Err("proxy".into()));
    }
}
