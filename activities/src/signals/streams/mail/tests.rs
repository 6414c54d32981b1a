use super::*;
use std::time::{Duration, Instant};

fn mail(headers: &str, body: &str) -> FoundMessage {
    parse_mail(format!("{headers}\r\n\r\n{body}").as_bytes(), None).unwrap().unwrap()
}

/// The processor time of this thread, so that a busy machine does not count; or the wall time if the system does not
/// report it.
fn spent(since: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

const FROM: &str = "From: \"Billing, Inc.\" <Billing@Vendor.example>\r\nSubject: =?utf-8?q?Zahlung_f=C3=BCr?= Mai\r\n\
    Date: Fri, 20 Nov 2026 09:00:00 +0100\r\nMessage-ID: <a1@vendor.example>";

#[test]
fn a_plain_mail_is_read_with_its_sender_subject_time_and_id() {
    let found = mail(FROM, "Invoice 7 is paid.\r\n");
    assert_eq!(found.pattern, "mail:billing@vendor.example");
    assert_eq!(found.author.as_deref(), Some("Billing, Inc. <Billing@Vendor.example>"));
    assert_eq!(found.subject.as_deref(), Some("Zahlung für Mai"));
    assert_eq!(found.source_id, "<a1@vendor.example>");
    assert_eq!(found.origin_at.unwrap().to_rfc3339(), "2026-11-20T08:00:00+00:00");
    assert_eq!(found.text.trim(), "Invoice 7 is paid.");
}

#[test]
fn a_mail_of_html_alone_is_read_as_text() {
    let html = "<html><head><style>p{color:red}</style><script>alert(1)</script></head><body><p>It is <b>paid</b>.</p></body></html>";
    let found = mail(&format!("{FROM}\r\nContent-Type: text/html; charset=utf-8"), html);
    assert!(found.text.contains("It is paid."), "{}", found.text);
    assert!(!found.text.contains("alert") && !found.text.contains("color"), "{}", found.text);
}

#[test]
fn an_empty_text_part_hides_no_html() {
    let body = "--x\r\nContent-Type: text/plain\r\n\r\n \r\n--x\r\nContent-Type: text/html\r\n\r\n<p>It is paid.</p>\r\n--x--\r\n";
    let found = mail(&format!("{FROM}\r\nContent-Type: multipart/alternative; boundary=x"), body);
    assert!(found.text.contains("It is paid."), "{}", found.text);
}

#[test]
fn charsets_from_1995_are_read() {
    for (charset, body, expected) in [
        ("iso-8859-1", b"gr\xfc\xdfe".as_slice(), "grüße"),
        ("windows-1252", b"\x80 5".as_slice(), "€ 5"),
        ("koi8-r", b"\xcf\xd0\xcc\xc1\xde\xc5\xce\xcf".as_slice(), "оплачено"),
        ("shift_jis", b"\x8e\x78\x95\xa5".as_slice(), "支払"),
        ("iso-2022-jp", b"\x1b$B;YJ'\x1b(B".as_slice(), "支払"),
        ("big5", b"\xa4\xe4\xa5I".as_slice(), "支付"),
    ] {
        let head =
            format!("{FROM}\r\nContent-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: 8bit\r\n\r\n");
        let found = parse_mail(&[head.as_bytes(), body].concat(), None).unwrap().unwrap();
        assert_eq!(found.text.trim(), expected, "{charset}");
    }
}

#[test]
fn a_mail_without_an_id_is_known_by_its_bytes() {
    let one = mail("From: a@b.example", "x");
    assert!(one.source_id.starts_with("sha256:"));
    assert_eq!(one, mail("From: a@b.example", "x"));
    assert_ne!(one.source_id, mail("From: a@b.example", "y").source_id);
}

#[test]
fn what_is_no_mail_is_refused() {
    for bytes in [b"".as_slice(), b"just words\n\nand more", &[0xff; 500], b"\n\n\n"] {
        assert!(parse_mail(bytes, None).unwrap().is_err(), "{bytes:?}");
    }
}

#[test]
fn mails_that_are_ill_are_read_or_refused_within_seconds() {
    let deep = (0..20_000).fold(String::new(), |text, n| {
        text + &format!("Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n")
    });
    let nested = "Content-Type:message/rfc822\n\n".repeat(36_000);
    let spaced = "Content-Type: message / global\r\n\r\n".repeat(30_000);
    let digest = (0..15_000).fold(String::new(), |text, n| {
        text + &format!("Content-Type: multipart/digest; boundary=b{n}\r\n\r\n--b{n}\r\n\r\n")
    });
    let parts = "--x\r\nContent-Type: text/plain\r\n\r\nhello\r\n".repeat(10_000);
    let many = format!("To: {}\r\n", (0..10_000).map(|n| format!("a{n}@b.example")).collect::<Vec<_>>().join(", "));
    let bombs = [
        format!("{FROM}\r\n{deep}"),
        format!("{FROM}\r\n{nested}"),
        format!("{FROM}\r\n{spaced}"),
        format!("{FROM}\r\n{digest}"),
        format!("{FROM}\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n{parts}"),
        format!("{FROM}\r\n{many}\r\nhello"),
        format!("{FROM}\r\nContent-Type: text/html\r\n\r\n{}", "<div>".repeat(150_000)),
        format!("{FROM}\r\nContent-Type: text/html\r\n\r\n{}", "<".repeat(900_000)),
        format!(
            "{FROM}\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n{}",
            "=".repeat(900_000)
        ),
        format!("{FROM}\r\nSubject: {}\r\n\r\nhello", "=?utf-8?q?=41?= ".repeat(50_000)),
        format!("From: {}\r\n\r\nhello", "(".repeat(900_000)),
    ];
    for (number, bomb) in bombs.iter().enumerate() {
        let since = Instant::now();
        let begun = spent(since);
        let _ = parse_mail(bomb.as_bytes(), Some("mx"));
        let took = spent(since).saturating_sub(begun);
        assert!(took < Duration::from_secs(5), "bomb {number} took {took:?}");
    }
}

/// Compressed attachments stay compressed, so a mail cannot grow when it is read.
#[test]
fn an_attachment_is_not_opened() {
    let zip = "UEsDBBQAAAAIAAAAIQAAAAAAAAAAAAAAAAABAAAAYQ=="; // the head of an archive that says it holds a file
    let body = format!(
        "--x\r\nContent-Type: text/plain\r\n\r\nSee the list.\r\n--x\r\nContent-Type: application/zip; name=a.zip\r\n\
         Content-Disposition: attachment; filename=a.zip\r\nContent-Transfer-Encoding: base64\r\n\r\n{zip}\r\n--x--"
    );
    let found = mail(&format!("{FROM}\r\nContent-Type: multipart/mixed; boundary=x"), &body);
    assert_eq!(found.text.trim(), "See the list.");
}

#[test]
fn any_cut_of_a_mail_is_read_or_refused() {
    let body = "--x\r\nContent-Type: text/plain; charset=koi8-r\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=D0=\r\n--x--";
    let whole = format!("{FROM}\r\nContent-Type: multipart/mixed; boundary=\"x\"\r\n\r\n{body}");
    for end in 0..whole.len() {
        let _ = parse_mail(&whole.as_bytes()[..end], Some("mx"));
    }
}

#[test]
fn a_sender_for_whom_the_trusted_server_does_not_vouch_goes_by_another_name() {
    let named = |above: &str, headers: &str| {
        let mail = format!("{above}{headers}\r\n\r\nIt is paid.");
        parse_mail(mail.as_bytes(), Some("mx.example.org")).unwrap().unwrap().pattern
    };
    let pass = "Authentication-Results: mx.example.org;\r\n dmarc=pass header.from=vendor.example\r\n";
    let fail = "authentication-results: mx.example.org; dmarc=fail header.from=vendor.example\r\n";
    let (known, other) = ("mail:billing@vendor.example", "mail:billing@vendor.example:unverified");
    assert_eq!(named(pass, FROM), known);
    for above in ["", fail, &format!("{fail}{pass}"), "Authentication-Results: evil.example; dmarc=pass\r\n"] {
        assert_eq!(named(above, FROM), other, "{above}");
    }
    // The server's own header is still the topmost one if it holds an invalid byte.
    let bytes =
        [b"Authentication-Results: mx.example.org; spf=fail (\xff); dmarc=fail\r\n", pass.as_bytes(), FROM.as_bytes()];
    let found = parse_mail(&[&bytes.concat()[..], b"\r\n\r\nx"].concat(), Some("mx.example.org")).unwrap().unwrap();
    assert_eq!(found.pattern, other);
    // The server must vouch for the very sender that the event names.
    let two = format!("{FROM}\r\nFrom: eve@vendor.example");
    assert!(named(pass, &two).ends_with(":unverified"));
    let list = FROM.replace("<Billing@Vendor.example>", "<billing@vendor.example>, eve@vendor.example");
    assert!(named(pass, &list).ends_with(":unverified"));
    assert_eq!(named(pass, "Subject: x"), "mail:unknown:unverified");
    assert!(named(pass, &FROM.replace("@Vendor.example>", "@evil.example>")).ends_with(":unverified"));
    assert_eq!(
        parse_mail(FROM.as_bytes(), None).unwrap().unwrap().pattern,
        known,
        "nothing is checked where no server is named"
    );
}
