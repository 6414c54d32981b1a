use super::*;

fn all(text: &[u8], max: u64) -> (Vec<FoundMessage>, Vec<(u64, String)>) {
    let mut lines = LineReader::new(io::BufReader::with_capacity(16, text), max);
    let (mut found, mut bad) = (Vec::new(), Vec::new());
    loop {
        let chunk = lines.read_chunk().unwrap();
        found.extend(chunk.found);
        bad.extend(chunk.bad);
        if chunk.last {
            return (found, bad);
        }
    }
}

#[test]
fn each_line_is_one_thing_and_a_bad_one_is_told_by_its_number() {
    let text = "{\"id\": 7, \"at\": \"2026-11-20T08:00:00Z\", \"from\": \"Ann\", \"subject\": \"s\", \"text\": \"paid\", \"x\": 1}\n\n\
        no json\n{\"text\": \"äöü\"}\r\n{\"at\": \"soon\", \"text\": \"x\"}\n{\"subject\": \"no text\"}\n{\"text\":\"last\"}";
    let (found, bad) = all(text.as_bytes(), 1000);
    assert_eq!(found.iter().map(|f| f.text.as_str()).collect::<Vec<_>>(), ["paid", "äöü", "last"]);
    assert_eq!((found[0].source_id.as_str(), found[0].pattern.as_str()), ("7", "drop:ann"));
    assert!(found[0].origin_at.is_some() && found[1].source_id.starts_with("sha256:"));
    assert_eq!(bad.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [3, 5, 6]);
    assert!(bad[1].1.contains("soon") && bad[2].1.contains("text"), "{bad:?}");
}

#[test]
fn a_line_without_end_is_passed_over() {
    let text = format!("{{\"text\":\"{}\"}}\n{{\"text\":\"short\"}}\n", "x".repeat(5000));
    let (found, bad) = all(text.as_bytes(), 100);
    assert_eq!(found.len(), 1);
    assert!(bad[0].0 == 1 && bad[0].1.contains("may have at most 100"), "{bad:?}");
}

#[test]
fn complaints_without_end_are_counted() {
    let mut complaints = LineComplaints::default();
    complaints.add((1..=70).map(|n| (n, "bad".to_owned())).collect());
    let told = complaints.into_report("a.jsonl").unwrap();
    assert!(told.starts_with("a.jsonl, line 1: bad\n") && told.ends_with("and 20 more"), "{told}");
    assert_eq!(LineComplaints::default().into_report("a"), None);
}
