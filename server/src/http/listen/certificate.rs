//! When a certificate ends, read from its DER form.
//!
//! Only as much of X.509 is read as leads to that time: a certificate is a sequence whose first part holds a version, a
//! serial number, an algorithm, the issuer, and then the validity. Nothing is verified here. The TLS library reads the
//! rest, and refuses a certificate that it cannot use.

use chrono::{DateTime, NaiveDateTime, Utc};

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The optional version, which precedes the serial number.
const VERSION: u8 = 0xa0;

/// Finds the end of a certificate; `None` if the bytes are not one.
pub(super) fn find_certificate_end(der: &[u8]) -> Option<DateTime<Utc>> {
    let mut signed = DerReader(der).read(SEQUENCE)?.read(SEQUENCE)?;
    if signed.0.first() == Some(&VERSION) {
        signed.read(VERSION)?;
    }
    signed.read(INTEGER)?;
    signed.read(SEQUENCE)?;
    signed.read(SEQUENCE)?;
    let mut validity = signed.read(SEQUENCE)?;
    validity.read_any()?;
    let (tag, end) = validity.read_any()?;
    parse_time(tag, std::str::from_utf8(end.0).ok()?)
}

/// Parses a time in one of the two forms that X.509 allows, both in UTC.
fn parse_time(tag: u8, text: &str) -> Option<DateTime<Utc>> {
    let with_century = match tag {
        // Two digits stand for 1950 to 2049.
        UTC_TIME => format!("{}{text}", if text.get(..2)?.parse::<u8>().ok()? < 50 { "20" } else { "19" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    NaiveDateTime::parse_from_str(&with_century, "%Y%m%d%H%M%SZ").ok().map(|time| time.and_utc())
}

/// What is left of the elements of one level.
struct DerReader<'d>(&'d [u8]);

impl<'d> DerReader<'d> {
    /// The next element, which must have this tag.
    fn read(&mut self, tag: u8) -> Option<DerReader<'d>> {
        self.read_any().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// The next element: its tag and its content.
    fn read_any(&mut self) -> Option<(u8, DerReader<'d>)> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            // The number of bytes that hold the length.
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, DerReader(content)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;
    use std::process::Command;

    /// A certificate of this key for so many days, and its end as openssl reads it.
    fn create(key: &[&str], days: &str) -> (CertificateDer<'static>, DateTime<Utc>) {
        let dir = tempfile::tempdir().unwrap();
        let (chain, file) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        let run = |command: &mut Command| {
            let made = command.output().unwrap();
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
            String::from_utf8(made.stdout).unwrap()
        };
        let make = ["req", "-x509", "-nodes", "-subj", "/CN=localhost", "-days", days, "-newkey"];
        run(Command::new("openssl").args(make).args(key).arg("-keyout").arg(&file).arg("-out").arg(&chain));
        let said = run(Command::new("openssl").args(["x509", "-noout", "-enddate", "-in"]).arg(&chain));
        let end = said.trim().strip_prefix("notAfter=").unwrap().trim_end_matches(" GMT");
        let end = NaiveDateTime::parse_from_str(end, "%b %e %H:%M:%S %Y").unwrap().and_utc();
        (CertificateDer::from_pem_file(&chain).unwrap(), end)
    }

    #[test]
    fn the_end_is_the_one_that_openssl_reads_before_and_after_2050() {
        for key in [&["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"][..], &["rsa:2048"]] {
            for days in ["1", "20000"] {
                let (certificate, end) = create(key, days);
                assert_eq!(find_certificate_end(&certificate), Some(end), "{key:?}, {days} days");
            }
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let (certificate, _) = create(&["rsa:2048"], "1");
        for length in 0..certificate.len() {
            // The outer length no longer fits.
            assert_eq!(find_certificate_end(&certificate[..length]), None, "{length}");
        }
        for at in 0..200 {
            // Any answer will do, but no panic.
            let mut broken = certificate.to_vec();
            broken[at] ^= 0xff;
            let _ = find_certificate_end(&broken);
        }
        for (tag, text) in
            [(UTC_TIME, "2"), (UTC_TIME, "é12"), (UTC_TIME, "991301000000Z"), (SEQUENCE, "20300101000000Z")]
        {
            assert_eq!(parse_time(tag, text), None, "{text}");
        }
        let year = |tag, text| parse_time(tag, text).unwrap().format("%Y").to_string();
        assert_eq!((year(UTC_TIME, "491231235959Z"), year(UTC_TIME, "500101000000Z")), ("2049".into(), "1950".into()));
        assert_eq!(year(GENERALIZED_TIME, "99991231235959Z"), "9999");
    }
}
