//! The compose file, read by a parser of the Compose Specification. It is started by no test: that needs a registry.

use crate::{deploy, read_file};
use serde_json::Value;
use std::process::Command;
use steward_tests::run;

/// Prints the parsed file as JSON, after the parser has taken it. The parser ignores keys that it does not know; a
/// misspelt one must not count as set.
const PARSE: &str = r#"
import json, sys, yaml, compose_spec
from compose_spec.models import Service
document = yaml.safe_load(open(sys.argv[1]))
compose_spec.ComposeSpecification.model_validate(document)
def names(model):
    return {name for field, info in model.model_fields.items() for name in (field, info.alias)}
for model, mapping in [(compose_spec.ComposeSpecification, document)] + [(Service, s) for s in document["services"].values()]:
    unknown = [key for key in mapping if key not in names(model) and not key.startswith("x-")]
    assert not unknown, f"unknown keys {unknown}"
print(json.dumps(document))
"#;

fn parse() -> Value {
    let output = Command::new("python3")
        .args(["-c", PARSE])
        .arg(deploy().join("compose/compose.yaml"))
        .env("PYTHONPATH", run::project().join(".tools/deploy"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_specification_takes_it_and_every_service_is_watched_and_restarted() {
    let compose = parse();
    let services = compose["services"].as_object().unwrap();
    assert_eq!(services.len(), 9);
    let once = ["temporal-schema", "temporal-namespace"];
    for (name, service) in services {
        assert_eq!(
            service["restart"],
            if once.contains(&name.as_str()) { "on-failure:10" } else { "unless-stopped" },
            "{name}"
        );
        // The image of Steward has its own check; that of the Temporal UI has no program to check with.
        let watched = service.get("healthcheck").is_some() || once.contains(&name.as_str());
        assert!(watched || ["steward", "temporal-ui"].contains(&name.as_str()), "{name} has no health check");
        for port in service["ports"].as_array().into_iter().flatten() {
            let open = port.as_str().unwrap();
            assert!(open.starts_with("127.0.0.1:") || name == "caddy", "{name} is open to the world at {open}");
        }
        for mount in service["volumes"].as_array().into_iter().flatten().map(|mount| mount.as_str().unwrap()) {
            let source = mount.split(':').next().unwrap();
            if source.starts_with("..") {
                assert!(deploy().join("compose").join(source).exists(), "{name} mounts {source}, which is not there");
            }
        }
    }
    let steward = &services["steward"];
    assert_eq!(steward["read_only"], true);
    assert_eq!(steward["cap_drop"], serde_json::json!(["ALL"]));
    assert_eq!(steward["environment"]["STEWARD_LIVE_MODE"], "${STEWARD_LIVE_MODE:-shadow}");
    // A backup is made, and outlives the container.
    let backup = steward["environment"]["STEWARD_BACKUP_DIR"].as_str().unwrap();
    let is_kept = |mount: &Value| mount.as_str().unwrap().ends_with(&format!(":{backup}"));
    assert!(steward["volumes"].as_array().unwrap().iter().any(is_kept), "{}", steward["volumes"]);
    // Caddy is believed because of its address.
    let caddy = &services["caddy"]["networks"]["inside"]["ipv4_address"];
    assert_eq!(&steward["environment"]["STEWARD_TRUSTED_PROXIES"], caddy);
    assert!(read_file("image/Containerfile").contains("HEALTHCHECK"));
}
