use super::*;

fn set(pairs: &[&str]) -> Vec<String> {
    pairs.iter().map(|p| (*p).to_owned()).collect()
}

#[test]
fn a_stream_is_added_and_everything_else_stays_as_it_was() {
    let before = "# mine\nvault   = \"v\" # here\n\n[caps]\nper_minute=7\n";
    let pairs = set(&["host=imap.example.org", "user=ann", "password_env=MAIL", "port=1993", "folder=Work = all"]);
    let after = insert_stream(before, "mail", "imap", &pairs).unwrap();
    assert_eq!(
        after,
        format!(
            "{before}\n[streams.mail]\nkind = \"imap\"\nhost = \"imap.example.org\"\nuser = \"ann\"\npassword_env = \"MAIL\"\n\
             port = 1993\nfolder = \"Work = all\"\n"
        )
    );
    let more = insert_stream(&after, "post", "maildir", &set(&["path=/m"])).unwrap();
    assert!(more.starts_with(&after) && more.contains("[streams.post]"), "{more}");
}

#[test]
fn a_stream_that_could_not_be_read_again_is_not_written() {
    for (name, kind, pairs, part) in [
        ("mail", "imap", vec!["host=h"], "user"),
        ("mail", "fax", vec![], "fax"),
        ("../x", "inbox", vec![], "name"),
        ("post", "maildir", vec!["path=/m", "paht=/m"], "paht"),
        ("post", "maildir", vec!["path"], "KEY=VALUE"),
        ("post", "maildir", vec!["path=/m", "path=/n"], "twice"),
        ("there", "maildir", vec!["path=/m"], "exists already"),
    ] {
        let text = "[streams.there]\nkind = \"inbox\"\n";
        let message = format!("{:#}", insert_stream(text, name, kind, &set(&pairs)).unwrap_err());
        assert!(message.contains(part), "{message}");
    }
}
