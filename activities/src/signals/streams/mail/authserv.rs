//! Reads what the trusted mail server reports about a mail's sender (RFC 8601, `Authentication-Results`).
//!
//! Anyone can write such a header. So only the topmost one with the trusted server's name counts: a server puts its own
//! header on top and removes others in its name (RFC 8601). Comments must not count, and a quoted text is one word. The
//! result is only whether the domain in `From` may be believed.

/// Reports whether the trusted server vouches for mail of this domain.
///
/// That means `dmarc=pass`, or without any DMARC result `dkim=pass` of the same domain.
pub(super) fn is_domain_vouched(headers: &[String], trusted: &str, domain: &str) -> bool {
    // A header that cannot be parsed may be the server's own, so the headers below it are not believed.
    let mut ours = headers
        .iter()
        .map(|header| split_header(header))
        .skip_while(|parts| parts.as_ref().is_some_and(|parts| !is_from_server(parts, trusted)));
    let Some(Some(results)) = ours.next() else { return false };
    let results_of = |method: &str| -> Vec<(bool, &Vec<String>)> {
        results.iter().skip(1).filter_map(|words| parse_result(words, method).map(|pass| (pass, words))).collect()
    };
    let dmarc = results_of("dmarc");
    if !dmarc.is_empty() {
        // A second result with another value would not be the server's.
        return dmarc.iter().all(|(pass, words)| {
            *pass && find_property(words, "header.from").is_none_or(|from| from.eq_ignore_ascii_case(domain))
        });
    }
    results_of("dkim").iter().any(|(pass, words)| {
        *pass && find_property(words, "header.d").is_some_and(|signer| signer.eq_ignore_ascii_case(domain))
    })
}

/// Reports whether the trusted server wrote a header. The server's name comes first, perhaps followed by a version.
fn is_from_server(parts: &[Vec<String>], trusted: &str) -> bool {
    parts.first().and_then(|words| words.first()).is_some_and(|id| id.eq_ignore_ascii_case(trusted))
}

/// Reports whether the result of a method is a pass (`dmarc=pass`, `dmarc/1=pass`); `None` for another method.
fn parse_result(words: &[String], method: &str) -> Option<bool> {
    let (name, value) = words.first()?.split_once('=')?;
    let name = name.split('/').next().unwrap_or_default();
    name.eq_ignore_ascii_case(method).then(|| value.eq_ignore_ascii_case("pass"))
}

fn find_property<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    let mut all = words.iter().skip(1).filter_map(|word| word.split_once('='));
    all.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The parts between semicolons as words, without comments; `None` for what is no such header.
fn split_header(header: &str) -> Option<Vec<Vec<String>>> {
    let (mut parts, mut word): (Vec<Vec<String>>, String) = (vec![Vec::new()], String::new());
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for c in header.chars() {
        let literal = std::mem::replace(&mut escaped, false);
        match c {
            _ if literal => {
                if depth == 0 {
                    word.push(c);
                }
            }
            '\\' if quoted || depth > 0 => escaped = true,
            '"' if depth == 0 => quoted = !quoted,
            _ if quoted => word.push(c),
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ if depth > 0 => {}
            ';' => {
                push_word(&mut parts, &mut word);
                parts.push(Vec::new());
            }
            c if c.is_whitespace() => push_word(&mut parts, &mut word),
            c => word.push(c),
        }
    }
    push_word(&mut parts, &mut word);
    (depth == 0 && !quoted).then_some(parts)
}

fn push_word(parts: &mut [Vec<String>], word: &mut String) {
    if let Some(last) = parts.last_mut().filter(|_| !word.is_empty()) {
        last.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(headers: &[&str]) -> bool {
        let headers: Vec<String> = headers.iter().map(|h| (*h).to_owned()).collect();
        is_domain_vouched(&headers, "mx.example.org", "vendor.example")
    }

    #[test]
    fn a_pass_of_the_trusted_server_is_believed() {
        for header in [
            "mx.example.org; dmarc=pass header.from=vendor.example",
            " MX.Example.ORG 1;\r\n\tspf=fail smtp.mailfrom=x@y.example;\r\n\tDMARC=Pass (p=reject dis=none) header.from=VENDOR.example",
            "mx.example.org (a (nested \\) one) comment); dmarc/1=pass",
            "\"mx.example.org\"; dkim=fail; dmarc=pass",
            "mx.example.org; dkim=pass header.d=vendor.example header.s=a",
            "mx.example.org; dkim=fail header.d=vendor.example; dkim=pass header.d=vendor.example",
        ] {
            assert!(says(&[header]), "{header}");
        }
    }

    #[test]
    fn nothing_else_is() {
        for header in [
            "",
            "mx.example.org",
            "mx.example.org; none",
            "evil.example; dmarc=pass header.from=vendor.example",
            "mx.example.org.evil.example; dmarc=pass",
            "(mx.example.org) evil.example; dmarc=pass",
            "mx.example.org; dmarc=fail (dmarc=pass) header.from=vendor.example",
            "mx.example.org; (; dmarc=pass) spf=pass",
            "mx.example.org; spf=pass smtp.mailfrom=\"a; dmarc=pass\"@evil.example",
            "mx.example.org; spf=pass reason=\"x dmarc=pass\"",
            "mx.example.org; dmarc=pass header.from=evil.example",
            "mx.example.org; dmarc=pass header.from=vendor.example; dmarc=fail",
            "mx.example.org; dmarc=none; dkim=pass header.d=vendor.example",
            "mx.example.org; dkim=pass header.d=evil.example",
            "mx.example.org; dkim=pass header.i=@vendor.example",
            "mx.example.org; arc=pass; spf=pass smtp.mailfrom=vendor.example",
            "mx.example.org; dmarc=passed",
            "mx.example.org; dmarc=pass (unclosed",
            "mx.example.org; dmarc=pass reason=\"unclosed",
        ] {
            assert!(!says(&[header]), "{header}");
        }
    }

    #[test]
    fn the_topmost_one_in_the_servers_name_decides_and_what_stands_below_does_not() {
        let (pass, fail) = ("mx.example.org; dmarc=pass", "mx.example.org; dmarc=fail");
        assert!(says(&[pass, fail]) && !says(&[fail, pass]));
        assert!(says(&["other.example; dmarc=fail", pass, "evil.example; dmarc=fail"]));
        assert!(!says(&["other.example; dmarc=pass", fail, pass]));
        assert!(!says(&["mx.example.org; dmarc=fail (broken by a name", pass]), "it may have been the server's");
        assert!(!says(&[]));
    }
}
