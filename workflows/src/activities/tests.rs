use super::*;

#[test]
fn the_id_of_a_check_keeps_its_name_in_recorded_histories() {
    let input = ObserveInput { matter: RecordPath::parse("matter/m.md").unwrap(), check_id: "run/1".into() };
    assert_eq!(serde_json::to_value(input).unwrap()["look_id"], "run/1");
}
