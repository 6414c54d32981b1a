//! Where a redirect may lead: back to the configured server, or to a public address.
//!
//! Otherwise a server that is asked could make this process call another one inside its network (SSRF). Addresses are
//! checked after the name was resolved, so a public name with a private address is refused too.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{ClientBuilder, Url};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// Most redirects that are followed: 3, because calendars move between hosts.
const REDIRECTS: usize = 3;

/// Limits the redirects of a client that asks this address.
pub(super) fn limit_redirects(builder: ClientBuilder, configured: &Url) -> ClientBuilder {
    let host = configured.host_str().unwrap_or_default().to_owned();
    let resolver = RedirectResolver { configured: host, is_private: Arc::default() };
    let configured = configured.clone();
    let policy = Policy::custom(move |attempt: Attempt<'_>| {
        match attempt.previous().len() <= REDIRECTS && may_follow(&configured, attempt.previous(), attempt.url()) {
            true => attempt.follow(),
            false => attempt.error("it leads where no redirect may lead"),
        }
    });
    builder.redirect(policy).dns_resolver(Arc::new(resolver))
}

/// Judges what can be judged before the name is resolved.
fn may_follow(configured: &Url, previous: &[Url], next: &Url) -> bool {
    let was_encrypted = previous.iter().any(|url| url.scheme() == "https");
    if next.scheme() != "https" && (was_encrypted || next.scheme() != "http") {
        return false;
    }
    if next.host_str() == configured.host_str() {
        // Another port is another server, except that a web server leads to its encrypted self.
        let (from, to) = (configured.port_or_known_default(), next.port_or_known_default());
        return from == to || (from, to) == (Some(80), Some(443));
    }
    match next.host() {
        Some(url::Host::Domain(_)) => true,
        Some(url::Host::Ipv4(address)) => is_public(address.into()),
        Some(url::Host::Ipv6(address)) => is_public(address.into()),
        None => false,
    }
}

/// Resolves the configured name to any address, and other names to public ones. A configured name that was public at first
/// stays so: its owner cannot lead a redirect into the network by another answer of its name server.
struct RedirectResolver {
    configured: String,
    /// Whether the configured name had a private address when it was first looked up.
    is_private: Arc<OnceLock<bool>>,
}

impl Resolve for RedirectResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_configured = name.as_str().eq_ignore_ascii_case(&self.configured);
        let is_private = Arc::clone(&self.is_private);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let has_private = || found.iter().any(|found| !is_public(found.ip()));
            let allows_all = is_configured && *is_private.get_or_init(has_private);
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|found| allows_all || is_public(found.ip())).collect();
            if allowed.is_empty() {
                return Err("the name has no public address".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether an address can be reached from the internet, by the special-purpose registries of IANA (RFC 6890).
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        // This network, shared addresses of providers, protocol assignments, relays, benchmarks, reserved.
        (0, _, _) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _) | (240.., _, _)
    );
    !(is_special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([one, two], [three, four]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(one, two, three, four))
    };
    match (a, b) {
        // Addresses that lead to an IPv4 address: NAT64 and 6to4.
        (0x64, 0xff9b) => (c, d, e, f) == (0, 0, 0, 0) && embedded(g, h),
        (0x2002, _) => embedded(b, c),
        // Teredo, benchmarks, ORCHID and documentation.
        (0x2001, 0 | 2 | 0x10..=0x2f | 0xdb8) | (0x3fff, 0..=0xfff) => false,
        // Only this block is given out for the internet.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests;
