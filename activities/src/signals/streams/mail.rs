//! Parses the bytes of a mail as one message; shared by all streams that read mails.
//!
//! The text part is used; if there is none, or an empty one, the HTML is converted to text. Attachments must not be
//! opened. The sender is the address in `From`, which anyone can write. If the stream names a trusted mail server, a
//! sender for whom that server does not vouch (`authserv`) gets another name. Trust in a name is decided elsewhere. A
//! crash of the parser on an invalid mail loses only that mail: it runs on a thread of its own, whose stack is deep
//! enough for the deepest nesting that fits into a mail.

mod authserv;

use super::FoundMessage;
use super::hash_id;
use super::source_pattern;
use chrono::DateTime;
use mail_parser::decoders::html::html_to_text;
use mail_parser::{Address, Header, Message, MessageParser};
use std::{io, thread};

/// Most parts of a mail that are read as text: 20. Newsletters have two, a hostile mail ten thousand.
const MAX_PARTS: usize = 20;

/// Stack of the parser's thread for each byte of the mail: 32 bytes.
///
/// A mail inside a mail takes at least 29 bytes, and dropping it takes some 300 bytes of the stack. Memory that is not
/// touched costs nothing.
const STACK_PER_BYTE: usize = 32;
/// Stack for everything that does not nest: 2 MiB, as other threads have.
const STACK: usize = 2 * 1024 * 1024;

/// The suffix of a sender's name for whom the trusted server does not vouch.
const UNVERIFIED: &str = ":unverified";

/// Parses a mail, or returns why it is none.
///
/// `trusted` is the name of the mail server whose `Authentication-Results` count. Without it, every sender keeps the
/// name in `From`.
///
/// # Errors
/// When the system has no thread left, which is no mail's fault.
pub(super) fn parse_mail(bytes: &[u8], trusted: Option<&str>) -> io::Result<Result<FoundMessage, String>> {
    let parse = || MessageParser::default().parse(bytes).and_then(|message| build_found(&message, bytes, trusted));
    let stack = STACK + bytes.len().saturating_mul(STACK_PER_BYTE);
    let parsed = thread::scope(|scope| {
        let parser = thread::Builder::new().name("mail".into()).stack_size(stack).spawn_scoped(scope, parse)?;
        Ok::<_, io::Error>(parser.join().map_err(|_| "the mail parser crashed on it".to_owned()))
    })?;
    let no_mail = || "not a mail: From, Subject, Date and Message-ID are all missing".to_owned();
    Ok(parsed.and_then(|found| found.ok_or_else(no_mail)))
}

fn build_found(message: &Message<'_>, bytes: &[u8], trusted: Option<&str>) -> Option<FoundMessage> {
    let address = message.from().and_then(Address::first).and_then(|from| from.address());
    let (subject, id) = (message.subject(), message.message_id());
    if address.is_none() && subject.is_none() && id.is_none() && message.date().is_none() {
        return None;
    }
    let at = message.date().and_then(|date| DateTime::from_timestamp(date.to_timestamp(), 0));
    let verified = trusted.is_none_or(|trusted| is_verified(message, trusted));
    Some(FoundMessage {
        source_id: id.map_or_else(|| hash_id(bytes), |id| format!("<{id}>")),
        pattern: source_pattern("mail", address) + if verified { "" } else { UNVERIFIED },
        origin_at: at,
        author: message.from().and_then(Address::first).map(|from| format_author(from.name(), from.address())),
        subject: subject.map(str::to_owned),
        text: read_text(message),
    })
}

/// Reports whether the trusted server vouches for the sender. There must be one `From` with one address.
fn is_verified(message: &Message<'_>, trusted: &str) -> bool {
    let headers_named = |name: &str| -> Vec<String> {
        let headers = message.headers().iter().filter(|header| header.name().eq_ignore_ascii_case(name));
        let raw = |header: &Header<'_>| {
            let place = header.offset_start() as usize..header.offset_end() as usize;
            String::from_utf8_lossy(message.raw_message.get(place).unwrap_or_default()).into_owned()
        };
        headers.map(raw).collect()
    };
    let mut addresses = message.from().into_iter().flat_map(Address::iter);
    let (Some(only), None) = (addresses.next(), addresses.next()) else { return false };
    let Some((_, domain)) = only.address().and_then(|address| address.rsplit_once('@')) else { return false };
    headers_named("From").len() == 1
        && authserv::is_domain_vouched(&headers_named("Authentication-Results"), trusted, domain.trim())
}

fn format_author(name: Option<&str>, address: Option<&str>) -> String {
    match (name.map(str::trim).filter(|name| !name.is_empty()), address) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    }
}

/// Reads the text of a mail. An empty text part does not hide a full HTML part.
fn read_text(message: &Message<'_>) -> String {
    let count = message.text_body_count().min(MAX_PARTS);
    let texts = (0..count).filter_map(|at| message.body_text(at)).filter(|t| !t.trim().is_empty());
    let text = texts.collect::<Vec<_>>().join("\n\n");
    if !text.trim().is_empty() {
        return text;
    }
    let count = message.html_body_count().min(MAX_PARTS);
    (0..count).filter_map(|at| message.body_html(at)).map(|html| html_to_text(&html)).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests;
