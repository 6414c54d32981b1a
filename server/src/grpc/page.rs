//! Pages of lists: their size and their tokens.
//!
//! A token is the cursor after the last row of the previous page, in base64 with the name of its list. So clients treat
//! it as opaque, and a token of another list is refused.

use super::invalid_argument;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::str::FromStr;
use steward_vault::index::MAX_PAGE;
use tonic::Status;

/// Rows of a page if the request does not say how many.
const DEFAULT_SIZE: u32 = 100;
/// Longest token that is read.
const LONGEST: usize = 1024;

/// Checks the page size of a request; 0 stands for the default.
pub(super) fn parse_page_size(requested: u32) -> Result<u32, Status> {
    match requested {
        0 => Ok(DEFAULT_SIZE),
        1..=MAX_PAGE => Ok(requested),
        _ => Err(invalid_argument(&format!("`page_size` is {requested}, expected at most {MAX_PAGE}"))),
    }
}

/// Decodes a page token; `None` for the first page.
pub(super) fn parse_page_token<T: FromStr>(list: &str, token: &str) -> Result<Option<T>, Status> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = if token.len() > LONGEST { None } else { URL_SAFE_NO_PAD.decode(token).ok() };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let cursor = text.as_deref().and_then(|text| text.strip_prefix(list)?.strip_prefix(' ')?.parse().ok());
    cursor.map(Some).ok_or_else(|| invalid_argument("`page_token` is not the `next_page_token` of a page of this list"))
}

/// Encodes the token of the next page; empty if there is none.
pub(super) fn encode_page_token(list: &str, next: Option<impl ToString>) -> String {
    next.map(|cursor| URL_SAFE_NO_PAD.encode(format!("{list} {}", cursor.to_string()))).unwrap_or_default()
}

/// Cuts one page out of a complete list: the rows after the one with the name `after`, and the name to continue with.
pub(super) fn take_page<T>(
    rows: Vec<T>,
    after: Option<&str>,
    size: u32,
    name: impl Fn(&T) -> &str,
) -> (Vec<T>, Option<String>) {
    let begin = after.map_or(0, |after| rows.iter().position(|row| name(row) == after).map_or(rows.len(), |at| at + 1));
    let mut rows: Vec<T> = rows.into_iter().skip(begin).collect();
    let more = rows.len() > size as usize;
    rows.truncate(size as usize);
    let next = if more { rows.last().map(|row| name(row).to_owned()) } else { None };
    (rows, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    #[test]
    fn a_token_is_valid_only_for_its_own_list() {
        let next = encode_page_token("tasks", Some("task/a.md"));
        assert_eq!(parse_page_token::<String>("tasks", &next).unwrap().as_deref(), Some("task/a.md"));
        assert_eq!(parse_page_token::<String>("tasks", "").unwrap(), None);
        assert_eq!(encode_page_token("tasks", None::<String>), "");
        for (list, bad) in [("actions", next.as_str()), ("tasks", "x"), ("tasks", "/../"), ("tasks", "dGFza3M")] {
            assert_eq!(
                parse_page_token::<String>(list, bad).unwrap_err().code(),
                Code::InvalidArgument,
                "{list} {bad}"
            );
        }
        assert_eq!(parse_page_token::<String>("tasks", &"A".repeat(2000)).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(
            parse_page_token::<u64>("n", &encode_page_token("n", Some("x"))).unwrap_err().code(),
            Code::InvalidArgument
        );
    }

    #[test]
    fn a_page_has_1_to_500_rows_and_100_by_default() {
        assert_eq!(
            (parse_page_size(0).unwrap(), parse_page_size(1).unwrap(), parse_page_size(500).unwrap()),
            (100, 1, 500)
        );
        assert_eq!(parse_page_size(501).unwrap_err().code(), Code::InvalidArgument);
    }

    #[test]
    fn the_pages_of_a_complete_list_contain_each_row_once() {
        let rows = || vec!["a", "b", "c"];
        assert_eq!(take_page(rows(), None, 2, |row| row), (vec!["a", "b"], Some("b".to_owned())));
        assert_eq!(take_page(rows(), Some("b"), 2, |row| row), (vec!["c"], None));
        assert_eq!(take_page(rows(), Some("gone"), 2, |row| row), (vec![], None));
    }
}
