//! The images of a `read`: pictures that a client hands to its model.
//!
//! Nothing is decoded: a format is known by its first bytes, and a text that begins like an image stays a text.

use crate::mcp::error::{ToolError, ToolErrorCode, shorten_outside};
use crate::mcp::paths::to_path;
use crate::mcp::tool::AnswerImage;
use crate::mcp::workspace::Workspace;
use steward_domain::wiki::registry::hash_content;
use steward_vault::wiki::folder::ReadFault;

/// The most images of one answer: each takes a model about 1,500 tokens.
const MAX_IMAGES: usize = 4;
/// The largest image, in bytes.
const MAX_IMAGE_BYTES: usize = 1024 * 1024;

/// The formats that models take, by the bytes that their files begin with.
const FORMATS: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// The media type of an image; `None` for another file, also for a text that begins like an image.
pub(super) fn find_format(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok() {
        return None;
    }
    let (_, format) = FORMATS.iter().find(|(begin, _)| bytes.starts_with(begin))?;
    (*format != "image/webp" || bytes.get(8..12) == Some(b"WEBP")).then_some(format)
}

/// Reads a file as an image: the line about it, and the picture. `None` for a file that is none.
///
/// # Errors
/// [`ToolErrorCode::TooLarge`] for one of more than 1 MiB, or after the fourth.
pub(super) fn read_image(
    workspace: &Workspace<'_>,
    file: &str,
    before: usize,
) -> Result<Option<(String, AnswerImage)>, ToolError> {
    let path = to_path(file).unwrap_or_default();
    let shown = shorten_outside(&path);
    let too_large = |what: String| ToolError::new(ToolErrorCode::TooLarge, what, "Ask for fewer or smaller images");
    let bytes = match workspace.folder.read_bytes(file, MAX_IMAGE_BYTES) {
        Ok(bytes) => bytes,
        Err(ReadFault::TooLarge(_)) if is_image(workspace, file) => {
            return Err(too_large(format!("the image `{shown}` has more than 1 MiB")));
        }
        // Whoever reads it as text says what is wrong.
        Err(_) => return Ok(None),
    };
    let Some(media_type) = find_format(&bytes) else { return Ok(None) };
    if before == MAX_IMAGES {
        return Err(too_large(format!("`{shown}` is left out: an answer has at most {MAX_IMAGES} images")));
    }
    let sha256 = hash_content(&bytes).replacen("sha256:", "", 1);
    let line =
        format!("{shown}: sha256 {sha256}, {} bytes, live, {media_type}, shown as image {}", bytes.len(), before + 1);
    Ok(Some((line, AnswerImage { media_type, bytes })))
}

/// Whether a file that is too large to be shown is an image.
fn is_image(workspace: &Workspace<'_>, file: &str) -> bool {
    let bytes = workspace.folder.read_bytes(file, steward_domain::wiki::MAX_SOURCE_BYTES);
    bytes.is_ok_and(|bytes| find_format(&bytes).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_its_bytes_and_not_by_its_name() {
        assert_eq!(find_format(b"\x89PNG\r\n\x1a\n...."), Some("image/png"));
        assert_eq!(find_format(b"\xff\xd8\xff\xe0...."), Some("image/jpeg"));
        assert_eq!(find_format(b"RIFF\x24\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(find_format(b"GIF89a is how such a file begins."), None, "it is a text");
        assert_eq!(find_format(b"RIFF....WAVEfmt "), None);
        assert_eq!(find_format(b"<svg xmlns=..."), None);
        assert_eq!(find_format(b""), None);
    }
}
