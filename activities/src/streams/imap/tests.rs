use super::*;

#[test]
fn a_cursor_reads_back() {
    let cursor = Cursor { validity: 7, last: 42 };
    assert_eq!(Cursor::read(&cursor.text()), Some(cursor));
    assert_eq!(Cursor::read("7"), None);
}

#[test]
fn only_this_machine_may_be_asked_in_the_clear() {
    for (host, here) in [("localhost", true), ("127.0.0.1", true), ("::1", true), ("localhost.evil.example", false)] {
        assert_eq!(connection::is_here(host), here, "{host}");
    }
}
