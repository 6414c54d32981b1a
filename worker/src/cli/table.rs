//! Tables for a person: one line for each row, and no wider than the terminal.
//!
//! Ids and short words stay whole. Only columns that are named as flexible get narrower; what does not fit there ends in `…`. With
//! `--long`, or where the output is not a terminal, everything is shown.

use super::style::TextStyle;
use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Row, Table};
use std::fmt::{self, Display};
use steward_domain::action::plan::Disposition;

/// A line below the headings and no other border. The positions are those of comfy-table's presets.
const PLAIN: &str = "     ──            ";
/// Stands where the end of a text is left out.
const ELLIPSIS: &str = "…";
/// No text holds it, so a text is cut where the room ends, and not before its last word.
const NO_DELIMITER: char = '\u{1f}';

/// A table that is being filled.
pub(crate) struct TextTable {
    table: Table,
    style: TextStyle,
    /// For each column, whether it is left out.
    hidden: Vec<bool>,
}

/// Creates an empty table with these headings. Those that are also in `flexible` give room to the others.
pub(crate) fn create_table(headings: &[&str], flexible: &[&str]) -> TextTable {
    TextTable::new(headings, flexible, &[], TextStyle::current())
}

/// As [`create_table`]; columns in `long_only` are there with `--long` and in a pipe alone.
pub(crate) fn create_wide_table(headings: &[&str], flexible: &[&str], long_only: &[&str]) -> TextTable {
    TextTable::new(headings, flexible, long_only, TextStyle::current())
}

impl TextTable {
    fn new(headings: &[&str], flexible: &[&str], long_only: &[&str], style: TextStyle) -> Self {
        debug_assert!(
            flexible.iter().chain(long_only).all(|name| headings.contains(name)),
            "{flexible:?} {long_only:?}"
        );
        let is_hidden = |name: &&str| !style.is_long && long_only.contains(name);
        let hidden = headings.iter().map(is_hidden).collect();
        let headings: Vec<&str> = headings.iter().filter(|name| !is_hidden(name)).copied().collect();
        let mut table = Table::new();
        table.load_preset(PLAIN).set_truncation_indicator(ELLIPSIS).set_delimiter(NO_DELIMITER).force_no_tty();
        if style.has_color {
            table.enforce_styling();
        }
        let mut row = Row::from(headings.clone());
        match style.width {
            Some(width) => {
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
                row.max_height(1);
            }
            None => drop(table.set_content_arrangement(ContentArrangement::Disabled)),
        }
        table.set_header(row);
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
        }
        if style.width.is_some() {
            for (column, heading) in table.column_iter_mut().zip(&headings) {
                if !flexible.contains(heading) {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
        }
        Self { table, style, hidden }
    }

    /// Adds a row. Untrusted text in it is escaped before.
    pub(crate) fn add_row<T: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let shown = cells.into_iter().zip(&self.hidden).filter(|(_, is_hidden)| !**is_hidden);
        let mut row = Row::from(shown.map(|(cell, _)| cell.into()).collect::<Vec<Cell>>());
        if self.style.width.is_some() {
            row.max_height(1);
        }
        self.table.add_row(row);
    }

    pub(crate) fn row_count(&self) -> usize {
        self.table.row_count()
    }
}

impl Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.table.lines().map(|line| line.trim_end().to_owned());
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

/// A cell that shows a disposition: green if a record was changed, yellow if it waits for a person.
pub(crate) fn show_disposition(disposition: Option<Disposition>) -> Cell {
    let cell = Cell::new(disposition.map_or("", Disposition::as_str));
    match disposition {
        Some(Disposition::Live) => cell.fg(Color::Green),
        Some(Disposition::Pending) => cell.fg(Color::Yellow),
        Some(Disposition::Shadow | Disposition::Recorded) | None => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(width: Option<u16>, has_color: bool) -> TextStyle {
        TextStyle { width, is_long: width.is_none(), has_color }
    }

    fn render(width: Option<u16>) -> String {
        let mut table = TextTable::new(&["action", "record", "state"], &["record"], &[], style(width, false));
        table.add_row(["4edabddd", "task/hollins-collect-the-last-part-of-the-payment.md", "pending"]);
        table.add_row(["0000000a", "task/short.md", "live"]);
        table.to_string()
    }

    #[test]
    fn an_id_is_never_broken_and_the_flexible_column_is_cut() {
        let text = render(Some(48));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 48), "{text}");
        assert!(lines[2].starts_with("4edabddd ") && lines[2].contains('…') && lines[2].ends_with("pending"), "{text}");
        assert!(lines[3].contains(" task/short.md "), "{text}");
    }

    #[test]
    fn without_a_width_everything_is_shown_on_one_line() {
        let text = render(None);
        assert!(text.contains("task/hollins-collect-the-last-part-of-the-payment.md"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn some_columns_are_for_the_long_form_alone() {
        for (width, expected) in [(None, "id  kind"), (Some(80), "id")] {
            let mut table = TextTable::new(&["id", "kind"], &[], &["kind"], style(width, false));
            table.add_row(["1", "decided"]);
            assert_eq!(table.to_string().lines().next().unwrap().trim_end(), expected);
        }
    }

    #[test]
    fn color_is_there_only_if_it_is_wanted() {
        for has_color in [true, false] {
            let mut table = TextTable::new(&["disposition"], &[], &[], style(None, has_color));
            table.add_row([show_disposition(Some(Disposition::Live))]);
            assert_eq!(table.to_string().contains('\u{1b}'), has_color);
        }
    }
}
