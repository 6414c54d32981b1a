//! The cache of clerks' answers.

use super::*;
use crate::index::cursors::clerk_answers::MAX_ANSWERS;
use chrono::TimeDelta;

#[tokio::test]
async fn an_answer_is_given_again_as_long_as_it_is_asked_for_and_kept_for_thirty_days() {
    let bench = Bench::new().await;
    let now = noon("12:00:00");
    assert_eq!(bench.index.cursors().find_cached_answer("k", now - TimeDelta::days(1)).await.unwrap(), None);
    bench.index.cursors().cache_answer("k", "words", now).await.unwrap();
    bench.index.cursors().cache_answer("k", "others", now).await.unwrap();
    let found = bench.index.cursors().find_cached_answer("k", now - TimeDelta::seconds(1)).await.unwrap();
    assert_eq!(found.as_deref(), Some("others"));
    assert_eq!(bench.index.cursors().find_cached_answer("k", now).await.unwrap(), None, "it is not later than that");
    let later = now + TimeDelta::days(31);
    bench.index.cursors().cache_answer("other", "x", later).await.unwrap();
    assert_eq!(
        bench.index.cursors().find_cached_answer("k", now - TimeDelta::days(1)).await.unwrap(),
        None,
        "it was forgotten"
    );
}

#[tokio::test]
async fn beyond_their_number_the_oldest_answers_are_forgotten() {
    let bench = Bench::new().await;
    let now = noon("12:00:00");
    let mut tx = bench.index.begin_write().await.unwrap();
    sqlx::query(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO answers (key, answer, at) SELECT 'old-' || i, 'x', ?2 - i FROM n",
    )
    .bind(MAX_ANSWERS)
    .bind(now.timestamp_micros())
    .execute(&mut *tx)
    .await
    .unwrap();
    tx.commit().await.unwrap();
    bench.index.cursors().cache_answer("new", "x", now + TimeDelta::seconds(1)).await.unwrap();
    let count: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM answers").fetch_one(&bench.index.store.reader).await.unwrap();
    assert_eq!(count, MAX_ANSWERS);
    let early = now - TimeDelta::days(1);
    assert_eq!(
        bench.index.cursors().find_cached_answer(&format!("old-{MAX_ANSWERS}"), early).await.unwrap(),
        None,
        "the oldest went"
    );
    for key in ["new", "old-1"] {
        assert!(bench.index.cursors().find_cached_answer(key, early).await.unwrap().is_some(), "{key}");
    }
}
