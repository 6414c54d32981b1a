use super::super::IntakeTally;
use super::super::StreamConfig;
use super::super::tests::{StreamFixture, config};
use super::*;
use serde_json::json;

const DENTIST: &str = "BEGIN:VEVENT\r\nUID:1@cal\r\nDTSTAMP:20261120T080000Z\r\nLAST-MODIFIED:20261119T080000Z\r\n\
    SEQUENCE:2\r\nSUMMARY:Dentist\\, again\r\nDTSTART;TZID=Europe/Berlin:20991201T093000\r\nDTEND;TZID=Europe/Berlin:20991201T100000\r\n\
    LOCATION:Main St 1\r\nORGANIZER;CN=Ann:mailto:Ann@Example.org\r\nDESCRIPTION:Bring the\\nold X-ra\r\n ys\r\n\
    BEGIN:VALARM\r\nACTION:DISPLAY\r\nDESCRIPTION:Wake up\r\nEND:VALARM\r\nEND:VEVENT\r\n";

fn calendar(entries: &str) -> String {
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n{entries}END:VCALENDAR\r\n")
}

fn read_all(text: &str) -> (Vec<FoundMessage>, usize) {
    let oldest = steward_domain::time::parse("2026-11-20").unwrap();
    let (found, ill) = parse_entries(text.as_bytes(), "family", oldest, 1_000_000);
    (found, ill.len())
}

async fn bench() -> (StreamFixture, StreamConfig) {
    let bench = StreamFixture::new().await;
    let config = config("family", json!({"kind": "ics", "path": bench.at("../family.ics")})).unwrap();
    (bench, config)
}

#[test]
fn an_entry_is_read_as_people_would_tell_it() {
    let (found, refused) = read_all(&calendar(DENTIST));
    assert_eq!((found.len(), refused), (1, 0));
    let entry = &found[0];
    assert_eq!(entry.source_id, "1@cal sequence 2");
    assert_eq!(
        (entry.subject.as_deref(), entry.pattern.as_str()),
        (Some("Dentist, again"), "calendar:ann@example.org")
    );
    let text = "Starts: 2099-12-01 09:30 (Europe/Berlin)\nEnds: 2099-12-01 10:00 (Europe/Berlin)\nWhere: Main St 1\n\n\
        Bring the\nold X-rays\n";
    assert_eq!(entry.text, text);
}

#[test]
fn a_rule_without_end_is_one_entry() {
    let entry =
        "BEGIN:VEVENT\r\nUID:2\r\nDTSTART:19700101T000000Z\r\nRRULE:FREQ=SECONDLY\r\nSUMMARY:tick\r\nEND:VEVENT\r\n";
    let (found, refused) = read_all(&calendar(entry));
    assert_eq!((found.len(), refused), (1, 0));
    assert!(found[0].text.contains("Repeats: FREQ=SECONDLY"), "{}", found[0].text);
}

#[test]
fn an_ill_entry_is_counted_and_the_others_go_on() {
    let ill = "BEGIN:VEVENT\r\nthis is no line\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nSUMMARY:no id\r\nEND:VEVENT\r\n";
    let (found, refused) = read_all(&calendar(&format!("{ill}{DENTIST}")));
    assert_eq!((found.len(), refused), (1, 2));
}

#[test]
fn what_is_long_over_is_left_out() {
    let past = DENTIST.replace("20991201", "20261101");
    assert_eq!(read_all(&calendar(&past)), (Vec::new(), 0));
    assert_eq!(read_all(&calendar(&past.replace("SEQUENCE:2", "RRULE:FREQ=DAILY"))).0.len(), 1);
}

#[test]
fn nests_and_lines_without_end_cost_no_more_than_their_bytes() {
    let deep = format!("BEGIN:VEVENT\r\nUID:3\r\n{}", "BEGIN:VALARM\r\n".repeat(100_000));
    assert_eq!(read_all(&calendar(&deep)).0.len(), 0);
    let long = format!("BEGIN:VEVENT\r\nUID:4\r\nSUMMARY:{}\r\nEND:VEVENT\r\n", "x".repeat(2_000_000));
    assert_eq!(read_all(&calendar(&long)), (Vec::new(), 1));
    let commas = format!("BEGIN:VEVENT\r\nUID:5\r\nSUMMARY;A={}:x\r\nEND:VEVENT\r\n", "a,".repeat(100_000));
    let _ = read_all(&calendar(&commas));
}

#[tokio::test]
async fn an_export_with_another_stamp_is_no_news_and_another_wording_is() {
    let (bench, config) = bench().await;
    bench.put("../family.ics", calendar(DENTIST));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 1, known: 0, refused: 0 });
    bench.put("../family.ics", calendar(&DENTIST.replace("DTSTAMP:20261120", "DTSTAMP:20261121")));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 0, known: 1, refused: 0 });
    bench.put("../family.ics", calendar(&DENTIST.replace("MODIFIED:20261119", "MODIFIED:20261121")));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 0, known: 1, refused: 0 });
    bench.put("../family.ics", calendar(&DENTIST.replace("SEQUENCE", "CREATED:20261121T080000Z\r\nSEQUENCE")));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 0, known: 1, refused: 0 });
    bench.put("../family.ics", calendar(&DENTIST.replace("T093000", "T103000")));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 1, known: 0, refused: 0 });
}

#[tokio::test]
async fn an_ill_entry_is_refused_once_also_where_no_good_one_is_left() {
    let (bench, config) = bench().await;
    let ill = |stamp: &str| format!("BEGIN:VEVENT\r\nDTSTAMP:{stamp}\r\nSUMMARY:no id\r\nEND:VEVENT\r\n");
    for (stamp, refused) in [("20261120T080000Z", 1), ("20261121T080000Z", 0)] {
        bench.put("../family.ics", calendar(&ill(stamp)));
        assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 0, known: 0, refused });
    }
    bench.put("../family.ics", calendar(&format!("{}{DENTIST}", ill("20261122T080000Z"))));
    assert_eq!(bench.round(&config).await.unwrap().0, IntakeTally { stored: 1, known: 0, refused: 0 });
    assert_eq!(bench.index.signals().list_stream_counts().await.unwrap()[0].refused, 1);
}

#[tokio::test]
async fn an_address_that_is_a_secret_stands_in_a_file_and_is_told_by_nothing() {
    let app = axum::Router::new()
        .route("/secret-token/basic.ics", axum::routing::get(|| async { axum::response::Redirect::to("/moved") }))
        .route(
            "/moved",
            axum::routing::get(|headers: axum::http::HeaderMap| async move {
                assert!(headers.get("referer").is_none());
                calendar(DENTIST)
            }),
        );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let bench = StreamFixture::new().await;
    let file = bench.at("../address");
    let config = config("family", json!({"kind": "ics", "url_file": file})).unwrap();
    let write = |text: &str| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    };
    write(&format!("http://127.0.0.1:{port}/secret-token/basic.ics\n"));
    assert_eq!(bench.round(&config).await.unwrap().0.stored, 1);
    server.abort();
    let _ = server.await;
    for text in ["", "ftp://x/secret-token", "secret-token", &format!("http://127.0.0.1:{port}/secret-token")] {
        if !text.is_empty() {
            write(text);
        }
        let message = bench.round(&config).await.unwrap_err().to_string();
        assert!(!message.contains("secret-token") && !format!("{config:?}").contains("secret-token"), "{message}");
    }
}

#[tokio::test]
async fn a_calendar_on_the_web_is_read_and_its_address_is_not_told() {
    let app = axum::Router::new()
        .route("/secret-token/basic.ics", axum::routing::get(|| async { calendar(DENTIST) }))
        .route("/gone", axum::routing::get(|| async { axum::http::StatusCode::NOT_FOUND }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let bench = StreamFixture::new().await;
    let at =
        |path: &str| config("family", json!({"kind": "ics", "url": format!("http://127.0.0.1:{port}{path}")})).unwrap();
    assert_eq!(bench.round(&at("/secret-token/basic.ics")).await.unwrap().0.stored, 1);
    let message = bench.round(&at("/gone")).await.unwrap_err().to_string();
    assert!(message.contains("404") && !message.contains("/gone"), "{message}");
    server.abort();
    let _ = server.await;
    let message = bench.round(&at("/secret-token/basic.ics")).await.unwrap_err().to_string();
    assert!(message.contains("127.0.0.1") && !message.contains("secret-token"), "{message}");
}
