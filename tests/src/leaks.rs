//! Searches texts for words that must not be there, also in the forms in which programs write them down.
//!
//! The search is of bytes, so it needs to know nothing of the place: a log, a page, a history, a database dump.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use memchr::memmem;
use std::io::{Read, Write};

/// The first bytes of everything that gzip wrote.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];
/// The most that is unpacked of one place: 16 MiB.
const MAX_UNPACKED: u64 = 16 * 1024 * 1024;

/// Whether the text has the word in any form.
#[must_use]
pub fn has_leak(text: &[u8], word: &str) -> bool {
    let forms = list_encodings(word.as_bytes());
    if forms.iter().any(|form| contains(text, form)) {
        return true;
    }
    memmem::find_iter(text, &GZIP).any(|at| {
        let mut unpacked = Vec::new();
        // What breaks off was unpacked up to there.
        let _ = GzDecoder::new(&text[at..]).take(MAX_UNPACKED).read_to_end(&mut unpacked);
        forms.iter().any(|form| contains(&unpacked, form))
    })
}

/// The word in every form that [`has_leak`] must find, each inside some other text.
///
/// # Panics
/// Never: it writes to memory.
#[must_use]
pub fn plant_leaks(word: &str) -> Vec<Vec<u8>> {
    let mut planted: Vec<Vec<u8>> = Vec::new();
    for before in ["", "a", "ab"] {
        let text = format!("{before}{word} and more");
        planted.push(text.clone().into_bytes());
        planted.push(STANDARD_NO_PAD.encode(&text).into_bytes());
        planted.push(URL_SAFE_NO_PAD.encode(&text).into_bytes());
        planted.push(encode_bytes(text.as_bytes(), "%", false));
        planted.push(encode_bytes(text.as_bytes(), "", false));
        planted.push(encode_bytes(text.as_bytes(), "\\u00", true));
        let mut gzip = GzEncoder::new(before.as_bytes().to_vec(), Compression::default());
        gzip.write_all(text.as_bytes()).unwrap();
        planted.push(gzip.finish().unwrap());
    }
    planted
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memmem::find(text, part).is_some()
}

fn encode_bytes(bytes: &[u8], before: &str, lower: bool) -> Vec<u8> {
    let encode = |byte: &u8| if lower { format!("{before}{byte:02x}") } else { format!("{before}{byte:02X}") };
    bytes.iter().map(encode).collect::<String>().into_bytes()
}

fn list_encodings(word: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![word.to_vec()];
    for before in ["%", "", "\\u00"] {
        forms.push(encode_bytes(word, before, true));
        forms.push(encode_bytes(word, before, false));
    }
    for offset in 0..3 {
        let padded = [vec![0; offset], word.to_vec()].concat();
        // The first and the last characters also depend on the bytes beside the word.
        let (first, last) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            forms.push(encoded.as_bytes()[first..last].to_vec());
        }
    }
    forms
}
