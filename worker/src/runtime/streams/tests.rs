use super::*;

#[test]
fn a_failing_stream_is_retried_less_often_and_never_given_up() {
    let waits: Vec<u64> = [1, 2, 3, 8, 9, 1_000, u32::MAX].into_iter().map(|n| compute_back_off(n).as_secs()).collect();
    assert_eq!(waits, [5, 10, 20, 640, 900, 900, 900]);
}
