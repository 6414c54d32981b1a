//! Cuts a long source into windows, at headings where it has some. No text is dropped.
//!
//! A model receives one window at a time, because an answer about a whole book would be cut off.

/// The most characters of a window.
pub const MAX_WINDOW: usize = 20_000;
/// The most windows of a source.
pub const MAX_WINDOWS: usize = 20;

/// The windows of a text, in their order.
#[must_use]
pub fn cut_windows(text: &str, is_markdown: bool) -> Vec<&str> {
    let (mut windows, mut rest) = (Vec::new(), text);
    while rest.chars().nth(MAX_WINDOW).is_some() {
        let limit = rest.char_indices().nth(MAX_WINDOW).map_or(rest.len(), |(at, _)| at);
        let cut = find_cut(&rest[..limit], is_markdown);
        windows.push(&rest[..cut]);
        rest = &rest[cut..];
    }
    windows.push(rest);
    windows
}

/// Where a window ends: before the last heading, else behind the last blank line, the last line, or the last blank. A cut in the
/// first half would make windows of a few lines.
fn find_cut(text: &str, is_markdown: bool) -> usize {
    let least = text.len() / 2;
    let behind = |pattern: &str| text.rfind(pattern).map(|at| at + pattern.len());
    let heading = text.rfind("\n#").map(|at| at + 1).filter(|_| is_markdown);
    let cuts = [heading, behind("\u{c}"), behind("\n\n"), behind("\n"), behind(" ")];
    cuts.into_iter().flatten().find(|cut| *cut > least).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_headings_begin_windows() {
        let section = |n: usize| format!("# Part {n}\n\n{}\n\n", "Word é. ".repeat(900));
        let text: String = (0..8).map(section).collect();
        let windows = cut_windows(&text, true);
        assert_eq!(windows.concat(), text);
        assert!(windows.len() > 2 && windows.iter().all(|window| window.starts_with("# Part ")), "{}", windows.len());
        assert!(windows.iter().all(|window| window.chars().count() <= MAX_WINDOW));
        let plain = "é".repeat(50_000);
        assert_eq!(cut_windows(&plain, false).concat(), plain);
        assert_eq!(cut_windows("", true), [""]);
        assert_eq!(cut_windows("short", true), ["short"]);
    }
}
