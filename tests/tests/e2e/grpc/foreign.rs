//! A foreign client: it learns the contract by reflection, as the README shows it.

use serde_json::Value;
use std::path::Path;
use steward_tests::world::World;
use steward_tests::{api, rpc};
use tokio::process::Command;

#[tokio::test]
async fn the_line_of_the_readme_lists_what_waits_and_only_to_who_may() {
    let world = World::with_one_done().await;
    let (_up, api) = api::up(&world).await;
    world.tick("house").await;
    let (token, _) = rpc::token(&world, "read").await;
    let buf = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(".tools/buf/bin/buf");
    assert!(buf.is_file(), "{}: `make tools` fetches it", buf.display());
    let curl = async |token: &str| {
        let who = format!("authorization: Bearer {token}");
        let mut buf = Command::new(&buf);
        buf.args([
            "curl",
            "--protocol",
            "grpc",
            "--http2-prior-knowledge",
            "--reflect",
            "--reflect-header",
            &who,
            "-H",
            &who,
        ]);
        buf.args(["-d", r#"{"page_size": 1}"#]).arg(format!("{}/steward.v1.ActionsService/ListActions", api.base));
        let output = buf.current_dir(world.vault.path()).kill_on_drop(true).output().await.unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (went, said) = curl(&token).await;
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert!(went && said["actions"][0]["disposition"] == "DISPOSITION_SHADOW", "{said}");
    assert_eq!(curl("steward_AAAA").await, (false, String::new()), "not even the contract is told");
}
