//! What a proxy that is trusted says of who asks: `X-Forwarded-For` and `X-Forwarded-Proto`.
//!
//! Anybody can send these headers, so they count only where the connection itself comes from an address that the
//! operator named, and of the addresses only the last one that is no such proxy: what stands before it the caller
//! may have written.

use axum::http::HeaderMap;
use ipnet::IpNet;
use std::net::IpAddr;

/// The networks of the proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// From where a request really came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForwardedClient {
    pub(crate) from: IpAddr,
    /// The caller's part of the way was encrypted.
    pub(crate) secure: bool,
}

impl TrustedProxies {
    /// Addresses and networks with commas between, as in `10.0.0.2,192.0.2.0/24`.
    ///
    /// # Errors
    /// The one that is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let one = |text: &str| {
            let address = text.parse::<IpAddr>().map(IpNet::from);
            text.parse::<IpNet>().or(address).map_err(|_| text.to_owned())
        };
        let named = text.split(',').map(str::trim).filter(|text| !text.is_empty());
        named.map(one).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is the address of one of them.
    pub(crate) fn contains_address(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// From where a request came that `peer` brought; `encrypted` where it was so to us.
    pub(crate) fn find_client(&self, peer: IpAddr, encrypted: bool, headers: &HeaderMap) -> ForwardedClient {
        let peer = peer.to_canonical();
        if !self.contains_address(peer) {
            return ForwardedClient { from: peer, secure: encrypted };
        }
        let lines = |name: &str| -> Vec<String> {
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok().map(str::to_owned)).collect()
        };
        let way = lines("x-forwarded-for");
        let hops = way.iter().flat_map(|line| line.split(',')).map(|hop| hop.trim().parse::<IpAddr>().ok());
        // From the nearest: what cannot be read ends what can be believed.
        let mut from = peer;
        for hop in hops.collect::<Vec<_>>().into_iter().rev() {
            let Some(hop) = hop else { break };
            from = hop.to_canonical();
            if !self.contains_address(hop) {
                break;
            }
        }
        let last = lines("x-forwarded-proto").pop();
        let said = last.and_then(|line| line.rsplit(',').next().map(|word| word.trim().to_ascii_lowercase()));
        ForwardedClient { from, secure: said.map_or(encrypted, |word| word == "https") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(proxies: &str, peer: &str, headers: &[(&'static str, &'static str)]) -> (String, bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let came = TrustedProxies::parse(proxies).unwrap().find_client(peer.parse().unwrap(), false, &map);
        (came.from.to_string(), came.secure)
    }

    #[test]
    fn a_stranger_cannot_say_that_he_is_another() {
        let said = [("x-forwarded-for", "192.0.2.7"), ("x-forwarded-proto", "https")];
        assert_eq!(came("", "198.51.100.1", &said), ("198.51.100.1".into(), false));
        assert_eq!(came("10.0.0.0/8", "198.51.100.1", &said), ("198.51.100.1".into(), false));
    }

    #[test]
    fn a_trusted_proxy_is_believed_about_the_hop_before_it_and_no_further() {
        let said = [("x-forwarded-for", "127.0.0.1, 192.0.2.7, 10.0.0.9"), ("x-forwarded-proto", "https")];
        assert_eq!(came("10.0.0.0/8", "10.0.0.2", &said), ("192.0.2.7".into(), true));
        let two = [("x-forwarded-for", "127.0.0.1"), ("x-forwarded-for", "192.0.2.7")];
        assert_eq!(came("10.0.0.2", "10.0.0.2", &two), ("192.0.2.7".into(), false));
        assert_eq!(came("10.0.0.2", "10.0.0.2", &[("x-forwarded-for", "192.0.2.7, nonsense")]).0, "10.0.0.2");
        assert_eq!(came("10.0.0.2", "::ffff:10.0.0.2", &said).0, "10.0.0.9");
        assert_eq!(came("10.0.0.2", "10.0.0.2", &[]), ("10.0.0.2".into(), false));
        assert_eq!(TrustedProxies::parse("10.0.0.0/8, proxy"), Err("proxy".into()));
    }
}
