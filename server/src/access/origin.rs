//! Checks whether a browser's request comes from a page of this dashboard (CSRF).
//!
//! A browser may attach a cookie to a request that another site made it send. `SameSite=Strict` prevents that for other
//! sites. In addition, `Origin` must match the host, or `Sec-Fetch-Site` if `Origin` is missing. Every form also
//! carries a key of its session.

use axum::http::{HeaderMap, header};

/// Whether the page that sent the request has the same scheme, host and port as the request itself.
pub(crate) fn is_same_origin(headers: &HeaderMap, host: &str, secure: bool) -> bool {
    let word = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match headers.get(header::ORIGIN) {
        Some(origin) => {
            let ours = format!("{}://{host}", if secure { "https" } else { "http" });
            origin.to_str().is_ok_and(|origin| origin.eq_ignore_ascii_case(&ours))
        }
        None => word("sec-fetch-site") == Some("same-origin"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>()
    }

    fn ours(pairs: &[(&'static str, &'static str)], secure: bool) -> bool {
        is_same_origin(&header_map(pairs), "localhost:8420", secure)
    }

    #[test]
    fn only_a_page_of_the_same_host_port_and_scheme_is_ours() {
        assert!(ours(&[("origin", "http://localhost:8420")], false));
        assert!(ours(&[("sec-fetch-site", "same-origin")], false));
        for origin in ["http://evil.example", "null", "http://localhost", "https://localhost:8420", ""] {
            assert!(!ours(&[("origin", origin), ("sec-fetch-site", "same-origin")], false), "{origin}");
        }
        assert!(ours(&[("origin", "https://localhost:8420")], true));
        assert!(!ours(&[("origin", "http://localhost:8420")], true));
        assert!(!ours(&[("sec-fetch-site", "same-site")], false) && !ours(&[], false));
    }
}
