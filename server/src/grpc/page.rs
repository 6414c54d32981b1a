//! Pages: how many rows, and where they begin.
//!
//! A token is the place after the last row of the page before, in base64 with a letter for its list, so that nobody
//! takes it for more than it is and one of another list is not read.

use super::invalid_argument;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::str::FromStr;
use steward_vault::index::MAX_PAGE;
use tonic::Status;

/// Rows of a page of which nobody says how many.
const USUAL: u32 = 100;
/// Longest token that is read.
const LONGEST: usize = 1024;

/// How many rows are asked for.
pub(super) fn parse_page_size(asked: u32) -> Result<u32, Status> {
    match asked {
        0 => Ok(USUAL),
        1..=MAX_PAGE => Ok(asked),
        _ => Err(invalid_argument(&format!("`page_size` is {asked}, and at most {MAX_PAGE}"))),
    }
}

/// Where the page begins; `None` for the first.
pub(super) fn parse_page_token<T: FromStr>(list: &str, token: &str) -> Result<Option<T>, Status> {
    if token.is_empty() {
        return Ok(None);
    }
    let bytes = if token.len() > LONGEST { None } else { URL_SAFE_NO_PAD.decode(token).ok() };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let place = text.as_deref().and_then(|text| text.strip_prefix(list)?.strip_prefix(' ')?.parse().ok());
    place.map(Some).ok_or_else(|| invalid_argument("`page_token` is not the `next_page_token` of a page of this list"))
}

/// The token of the page that begins there; empty where there is none.
pub(super) fn encode_page_token(list: &str, next: Option<impl ToString>) -> String {
    next.map(|place| URL_SAFE_NO_PAD.encode(format!("{list} {}", place.to_string()))).unwrap_or_default()
}

/// The page of rows that are all there, after the one that is named so.
pub(super) fn take_page<T>(
    rows: Vec<T>,
    (after, size): (Option<&str>, u32),
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
    fn a_token_leads_to_its_own_place_in_its_own_list() {
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
    fn a_page_holds_1_to_500_rows_and_100_where_nobody_says() {
        assert_eq!(
            (parse_page_size(0).unwrap(), parse_page_size(1).unwrap(), parse_page_size(500).unwrap()),
            (100, 1, 500)
        );
        assert_eq!(parse_page_size(501).unwrap_err().code(), Code::InvalidArgument);
    }

    #[test]
    fn pages_of_a_whole_list_hold_each_row_once() {
        let rows = || vec!["a", "b", "c"];
        assert_eq!(take_page(rows(), (None, 2), |row| row), (vec!["a", "b"], Some("b".to_owned())));
        assert_eq!(take_page(rows(), (Some("b"), 2), |row| row), (vec!["c"], None));
        assert_eq!(take_page(rows(), (Some("gone"), 2), |row| row), (vec![], None));
    }
}
