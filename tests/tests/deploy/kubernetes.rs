//! `deploy/kubernetes/`: rendered by kubectl, and held against the schemas of Kubernetes and against rules of our own.
//!
//! Nothing of it starts in a cluster. Its shell scripts run here alone. Each rule also meets a document that breaks it.

use crate::{
    POD, bash, change_value, check_restored, deploy, find_object, list_containers, list_values, make_backups,
    name_object, prepare_restic, read_file, render_kustomization, render_objects, validate_objects,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use steward_tests::{run, wait};

/// Variables of Temporal's SDK.
const TEMPORAL: [&str; 3] = ["TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_CONFIG_FILE"];
/// Addresses that are not on the internet.
const PRIVATE: [&str; 6] =
    ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"];
/// Returns what is wrong with an object. One that the rule is not about has no faults.
type Rule = fn(&Value) -> Vec<String>;
const RULES: [Rule; 7] =
    [check_images, check_locks, check_limits, check_probes, check_environment, check_settings, check_network];

fn kubernetes() -> PathBuf {
    deploy().join("kubernetes")
}

/// A copy of `deploy/kubernetes/`, as an operator has one.
fn copy_folder() -> PathBuf {
    let folder = run::new_folder().0.join("kubernetes");
    bash(&format!("cp -r {} {}", kubernetes().display(), folder.display()));
    folder
}

fn complain_about_containers(object: &Value, fault: impl Fn(&Value) -> Option<String>) -> Vec<String> {
    let describe = |it: &Value| Some(format!("{}, {}: {}", name_object(object), it["name"], fault(it)?));
    list_containers(object).into_iter().filter_map(describe).collect()
}

fn check_images(object: &Value) -> Vec<String> {
    complain_about_containers(object, |container| {
        let image = container["image"].as_str().unwrap_or_default();
        let (name, tag) = image.rsplit_once(':').unwrap_or((image, ""));
        let has_registry = name.split_once('/').is_some_and(|(registry, _)| registry.contains('.'));
        let is_exact = tag.contains(|c: char| c.is_ascii_digit()) && !tag.contains('/');
        (!has_registry || !is_exact).then(|| format!("{image} has no registry or no version"))
    })
}

/// Nothing but its own work: no user but its own, no rights on the node or in the cluster. Kubernetes must not make
/// variables of Services either, because Steward refuses unknown ones.
fn check_locks(object: &Value) -> Vec<String> {
    let mut found = complain_about_containers(object, |container| {
        let locked = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]}});
        (container["securityContext"] != locked).then(|| "is not locked up".to_owned())
    });
    let Some(pod) = object.pointer(POD) else { return found };
    let context = &pod["securityContext"];
    let is_locked = context["runAsNonRoot"] == true
        && context["runAsUser"] == 65_532
        && context["seccompProfile"] == json!({"type": "RuntimeDefault"})
        && pod["automountServiceAccountToken"] == false
        && pod["enableServiceLinks"] == false
        && ["hostNetwork", "hostPID", "hostIPC", "serviceAccountName"].iter().all(|key| pod.get(key).is_none())
        && list_values(pod, "volumes").all(|volume| volume.get("hostPath").is_none());
    found.extend((!is_locked).then(|| format!("{}: its pod is not locked up", name_object(object))));
    found
}

fn check_limits(object: &Value) -> Vec<String> {
    complain_about_containers(object, |container| {
        let is_set = |part: &str| ["cpu", "memory"].iter().all(|key| container["resources"][part][key].is_string());
        (!is_set("limits") || !is_set("requests")).then(|| "has no limits".to_owned())
    })
}

fn check_probes(object: &Value) -> Vec<String> {
    let is_served = object["kind"] == "StatefulSet";
    let mut found = complain_about_containers(object, |container| {
        let path = |probe: &str| container.get(probe).map(|probe| &probe["httpGet"]["path"]);
        let is_ready_late = path("readinessProbe").is_some_and(|path| path != "/startz");
        let is_watched = path("startupProbe").is_some_and(|path| path == "/startz")
            && path("livenessProbe").is_some_and(|path| path == "/healthz");
        let must_be_watched = is_served && container["name"] == "steward";
        (is_ready_late || (must_be_watched && !is_watched)).then(|| "has other probes".to_owned())
    });
    let is_killed_early = object.pointer(POD).is_some_and(|pod| pod["terminationGracePeriodSeconds"] != 60);
    found.extend(is_killed_early.then(|| format!("{}: is killed too early", name_object(object))));
    found
}

/// The variables that an object sets, with their values; a ConfigMap's keys may be some.
fn list_variables(object: &Value) -> Vec<(&str, &str)> {
    let of_containers = list_containers(object)
        .into_iter()
        .flat_map(|container| list_values(container, "env"))
        .map(|variable| (variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap_or_default()));
    let data = object["data"].as_object().filter(|_| object["kind"] == "ConfigMap");
    let of_maps = data.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap()));
    of_containers.chain(of_maps.filter(|(key, _)| !key.contains('.'))).collect()
}

/// No secret in a variable, nor in a ConfigMap.
fn check_environment(object: &Value) -> Vec<String> {
    let holds_secret = |(name, value): &(&str, &str)| {
        let is_secret = ["KEY", "PASSWORD", "SECRET", "TOKEN", "CREDENTIALS"].iter().any(|word| name.contains(word));
        let has_password = value.split_once("://").is_some_and(|(_, rest)| {
            rest.split('/').next().and_then(|host| host.split_once('@')).is_some_and(|(user, _)| user.contains(':'))
        });
        (is_secret && !name.ends_with("_FILE")) || has_password
    };
    let variables = list_variables(object).into_iter().filter(holds_secret);
    let mut found: Vec<String> =
        variables.map(|(name, _)| format!("{}: {name} holds a secret", name_object(object))).collect();
    found.extend(complain_about_containers(object, |container| {
        let text = format!("{}{}", container["env"], container["envFrom"]);
        (text.contains("secretKeyRef") || text.contains("secretRef")).then(|| "has a Secret as variables".to_owned())
    }));
    found.extend((object["kind"] == "Secret").then(|| format!("{}: lies in the files", name_object(object))));
    found
}

/// Every variable of ours and every key of a TOML file is documented.
fn check_settings(object: &Value) -> Vec<String> {
    let reference = fs::read_to_string(run::project().join("docs/reference/configuration.md")).unwrap();
    let is_known = |name: &str| reference.contains(&format!("`{name}`")) || TEMPORAL.contains(&name);
    let ours = list_variables(object).into_iter().map(|(name, _)| name);
    let ours = ours.filter(|name| name.starts_with("STEWARD_") || name.starts_with("TEMPORAL_"));
    let mut names: Vec<String> = ours.map(str::to_owned).collect();
    if let Some(text) = object["data"]["steward.toml"].as_str() {
        for (key, value) in text.parse::<toml::Table>().unwrap() {
            match value {
                toml::Value::Table(table) if key != "streams" => {
                    names.extend(table.keys().map(|inner| format!("{key}.{inner}")));
                }
                _ => names.push(key),
            }
        }
    }
    names
        .iter()
        .filter(|name| !is_known(name))
        .map(|name| format!("{}: {name} is not in the reference", name_object(object)))
        .collect()
}

/// Holds objects that are together in a namespace against every rule. What their pods name must be among them, except
/// for Secrets, which an operator makes.
fn check_all(objects: &[Value]) {
    let found: Vec<String> = objects.iter().flat_map(|object| RULES.iter().flat_map(|rule| rule(object))).collect();
    assert_eq!(found, Vec::<String>::new());
    let names: BTreeSet<String> = objects.iter().map(name_object).collect();
    assert_eq!(names.len(), objects.len(), "two objects have one name");
    for object in objects {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let is_there = |kind: &str, name: &Value| {
            name.as_str().is_none_or(|name| names.contains(&format!("{kind}/{namespace}/{name}")))
        };
        let volumes: Vec<&Value> =
            object.pointer(POD).into_iter().flat_map(|pod| list_values(pod, "volumes")).collect();
        for volume in &volumes {
            assert!(is_there("PersistentVolumeClaim", &volume["persistentVolumeClaim"]["claimName"]), "{volume}");
            assert!(is_there("ConfigMap", &volume["configMap"]["name"]), "{volume}");
        }
        for container in list_containers(object) {
            let is_mounted = |mount: &Value| volumes.iter().any(|volume| volume["name"] == mount["name"]);
            assert!(list_values(container, "volumeMounts").all(is_mounted), "{container}");
            let mut maps = list_values(container, "envFrom").map(|from| &from["configMapRef"]["name"]);
            assert!(maps.all(|name| is_there("ConfigMap", name)), "{container}");
        }
    }
}

/// A policy of one tenant that names every peer, and of the internet only public addresses.
fn check_network(object: &Value) -> Vec<String> {
    if object["kind"] != "NetworkPolicy" {
        return Vec::new();
    }
    let spec = &object["spec"];
    let is_narrow = |peer: &Value| match peer["ipBlock"]["cidr"].as_str() {
        None => peer["namespaceSelector"]["matchLabels"].is_object(),
        Some("0.0.0.0/0") => peer["ipBlock"]["except"] == json!(PRIVATE),
        Some("::/0") => peer["ipBlock"]["except"] == json!(["fc00::/7", "fe80::/10"]),
        Some(_) => true,
    };
    let mut rules = list_values(spec, "ingress")
        .map(|rule| (rule, "from"))
        .chain(list_values(spec, "egress").map(|rule| (rule, "to")));
    let is_whole = spec["podSelector"] == json!({}) && spec["policyTypes"] == json!(["Ingress", "Egress"]);
    let is_tight = rules.all(|(rule, side)| {
        rule["ports"].is_array() && list_values(rule, side).next().is_some() && list_values(rule, side).all(is_narrow)
    });
    if is_whole && is_tight { Vec::new() } else { vec![format!("{}: is open", name_object(object))] }
}

/// What belongs to the tenant of a namespace alone.
fn list_owned(objects: &[Value], namespace: &str) -> BTreeSet<String> {
    let mut owned = BTreeSet::new();
    for object in objects.iter().filter(|object| object["metadata"]["namespace"] == namespace) {
        owned.insert(name_object(object));
        let (rules, tls) = (list_values(&object["spec"], "rules"), list_values(&object["spec"], "tls"));
        owned.extend(rules.map(|rule| rule["host"].to_string()));
        owned.extend(tls.flat_map(|tls| list_values(tls, "hosts")).map(Value::to_string));
        for key in ["STEWARD_TENANT", "STEWARD_FLEET_DB"] {
            owned.extend(object["data"].get(key).map(Value::to_string));
        }
        for volume in object.pointer(POD).into_iter().flat_map(|pod| list_values(pod, "volumes")) {
            let parts = [&volume["persistentVolumeClaim"]["claimName"], &volume["secret"]["secretName"]];
            owned.extend(parts.into_iter().filter(|name| name.is_string()).map(|name| format!("{namespace} {name}")));
        }
    }
    owned
}

#[test]
fn every_folder_renders_passes_the_schemas_and_keeps_the_rules() {
    let tenant = render_objects(&kubernetes().join("tenant"));
    check_all(&[tenant.clone(), render_objects(&kubernetes().join("jobs/restore"))].concat());
    for folder in ["jobs/fleet-init", "jobs/fleet-migrate", "jobs/preflight", "export", "example"] {
        check_all(&render_objects(&kubernetes().join(folder)));
    }
    for claim in ["data", "backup"] {
        let claim = find_object(&tenant, &format!("PersistentVolumeClaim//{claim}"));
        assert_eq!(claim["spec"]["accessModes"], json!(["ReadWriteOncePod"]));
    }
    assert_eq!(find_object(&tenant, "StatefulSet//steward")["spec"]["replicas"], 1);
    // The page with Stop must be reachable while restic, in the same pod, fails.
    assert_eq!(find_object(&tenant, "Service//steward")["spec"]["publishNotReadyAddresses"], true);
}

#[test]
fn an_invalid_document_and_a_missing_kubectl_are_reported() {
    let text = render_kustomization("kubectl", &kubernetes().join("tenant")).unwrap();
    let misspelt = validate_objects(&text.replace("readOnlyRootFilesystem", "readOnlyRootFileSystem")).unwrap_err();
    assert!(misspelt.contains("readOnlyRootFileSystem"), "{misspelt}");
    assert!(validate_objects(&text.replace("kind: Ingress\n", "kind: Ingres\n")).is_err());
    let missing = render_kustomization("no-kubectl", &kubernetes()).unwrap_err();
    assert!(missing.contains("install kubectl"), "{missing}");
}

#[test]
fn a_document_that_breaks_a_rule_is_caught() {
    let tenant = render_objects(&kubernetes().join("tenant"));
    let pod = |path: &str| format!("{POD}/{path}");
    let set = "StatefulSet//steward";
    let cases: [(Rule, &str, String, Value); 23] = [
        (check_images, set, pod("containers/0/image"), json!("registry.example.org/steward:latest")),
        (check_images, set, pod("containers/0/image"), json!("registry.example.org:5000/steward")),
        (check_images, set, pod("initContainers/0/image"), json!("restic:0.18.1")),
        (check_locks, set, pod("securityContext/runAsUser"), json!(0)),
        (check_locks, set, pod("securityContext/seccompProfile"), json!({"type": "Unconfined"})),
        (check_locks, set, pod("hostNetwork"), json!(true)),
        (check_locks, set, pod("containers/1/securityContext/readOnlyRootFilesystem"), json!(false)),
        (check_locks, set, pod("initContainers/0/securityContext"), json!({})),
        (check_limits, set, pod("containers/1/resources/limits"), json!({"cpu": "1"})),
        (check_locks, set, pod("automountServiceAccountToken"), json!(true)),
        (check_locks, set, pod("enableServiceLinks"), json!(true)),
        (check_locks, set, pod("serviceAccountName"), json!("admin")),
        (check_probes, set, pod("containers/0/startupProbe/httpGet/path"), json!("/readyz")),
        (check_probes, set, pod("containers/0/readinessProbe"), json!({"httpGet": {"path": "/readyz"}})),
        (check_probes, set, pod("terminationGracePeriodSeconds"), json!(30)),
        (check_environment, set, pod("containers/0/env/0"), json!({"name": "STEWARD_CLERK_API_KEY", "value": "x"})),
        (check_environment, set, pod("containers/0/envFrom/0"), json!({"secretRef": {"name": "steward"}})),
        (check_environment, "ConfigMap//steward", "/data/STEWARD_FLEET_DB".into(), json!("postgres://a:b@c/d")),
        (check_settings, "ConfigMap//steward", "/data/STEWARD_LIVEMODE".into(), json!("live")),
        (check_settings, "ConfigMap//steward-files", "/data/steward.toml".into(), json!("livemode = \"live\"")),
        (check_settings, "ConfigMap//steward-files", "/data/steward.toml".into(), json!("[caps]\nper_year = 1")),
        (check_network, "NetworkPolicy//steward", "/spec/ingress/0/from".into(), json!([])),
        (check_network, "NetworkPolicy//steward", "/spec/egress/4/to/0/ipBlock/except".into(), json!(["10.0.0.0/8"])),
    ];
    for (rule, name, pointer, value) in cases {
        let good = find_object(&tenant, name);
        assert_eq!(rule(good), Vec::<String>::new());
        assert!(!rule(&change_value(good, &pointer, value.clone())).is_empty(), "{pointer} = {value} is not caught");
    }
}

#[test]
fn two_tenants_share_no_name_claim_secret_or_host() {
    let example = render_objects(&kubernetes().join("example"));
    let (acme, birch) = (list_owned(&example, "steward-acme"), list_owned(&example, "steward-birch"));
    for part in ["PersistentVolumeClaim/steward-acme/data", "\"acme.example.org\"", "steward-acme \"steward-restic\""] {
        assert!(acme.contains(part), "{part} is not in {acme:?}");
    }
    assert!(acme.len() > 15 && acme.is_disjoint(&birch), "{acme:?} {birch:?}");
    let ingress = find_object(&example, "Ingress/steward-birch/steward");
    let thief = change_value(ingress, "/spec/rules/0/host", json!("acme.example.org"));
    assert!(!acme.is_disjoint(&list_owned(&[thief], "steward-birch")), "a shared host is not caught");
}

#[test]
fn the_variant_for_temporal_cloud_has_its_address_and_a_key_in_a_file() {
    let folder = copy_folder();
    let cell = folder.join("base/cell/kustomization.yaml");
    bash(&format!("sed -i 's|^components: .*|components: [../../cloud]|' {}", cell.display()));
    for (part, namespace) in [("example", "steward-acme"), ("jobs/fleet-init", "steward")] {
        let objects = render_objects(&folder.join(part));
        check_all(&objects);
        let addresses = &find_object(&objects, &format!("ConfigMap/{namespace}/steward-cell"))["data"];
        assert!(addresses["TEMPORAL_ADDRESS"].as_str().unwrap().ends_with(".temporal.io:7233"), "{addresses}");
        assert_eq!(addresses["TEMPORAL_CONFIG_FILE"], "/secrets/temporal.toml");
    }
    let policy = find_object(&render_objects(&folder.join("example")), "NetworkPolicy/steward-acme/steward").clone();
    let mut cloud = list_values(&policy["spec"], "egress").filter(|rule| rule["ports"][0]["port"] == 7233);
    assert!(cloud.any(|rule| rule["to"][0]["ipBlock"]["cidr"] == "0.0.0.0/0"), "{policy}");
}

#[test]
fn the_script_writes_a_tenant_and_refuses_what_is_none() {
    let write_tenant = |script: &Path, folder: &Path, arguments: &[&str]| {
        Command::new(script).args(arguments).current_dir(folder).output().unwrap()
    };
    let script = kubernetes().join("new-tenant");
    let (folder, _) = run::new_folder();
    let output = write_tenant(&script, &folder, &["oak-2", "notes.oak.example"]);
    assert!(output.status.success(), "{output:?}");
    check_all(&render_objects(&folder.join("oak-2")));
    // The example is what the script writes.
    let copy = copy_folder();
    for tenant in ["acme", "birch"] {
        fs::remove_dir_all(copy.join("example").join(tenant)).unwrap();
        write_tenant(&copy.join("new-tenant"), &copy.join("example"), &[tenant, &format!("{tenant}.example.org")]);
        let path = format!("example/{tenant}/kustomization.yaml");
        assert_eq!(fs::read_to_string(copy.join(&path)).unwrap(), read_file(&format!("kubernetes/{path}")));
    }
    let refuse = |arguments: &[&str], reason: &str| {
        let output = write_tenant(&script, &folder, arguments);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && printed.contains(reason), "{arguments:?}: {printed}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "{arguments:?} left something");
    };
    for id in ["Acme", "2oak", "", "../acme", "-n", "oak_2", &"a".repeat(32)] {
        refuse(&[id, "a.example"], "is no tenant id");
    }
    for host in ["", "example", "https://a.example", "10.1.2.3", "A.example", "-a.example", "a..example"] {
        refuse(&["acme", host], "is no host name");
    }
    refuse(&["acme"], "give a tenant and its host name");
    refuse(&["a\nb", "a.example"], "one line");
    refuse(&["oak-", "a.example"], "ends with a hyphen");
    refuse(&["oak-2", "a.example"], "already");
}

/// The shell script of an init container, with its folders below another one.
fn read_script(object: &Value, index: usize, folders: &[&str], below: &Path) -> String {
    let container = &object.pointer(POD).unwrap()["initContainers"][index];
    let script = container["args"][0].as_str().or(container["command"][2].as_str()).unwrap();
    folders.iter().fold(script.to_owned(), |text, name| text.replace(name, &format!("{}{name}", below.display())))
}

#[test]
fn secrets_that_a_group_may_read_become_files_of_one_user() {
    let tenant = render_objects(&kubernetes().join("tenant"));
    let (folder, _) = run::new_folder();
    let script = read_script(find_object(&tenant, "StatefulSet//steward"), 0, &["/mounted", "/secrets"], &folder);
    // As Kubernetes mounts a Secret: links into a hidden folder.
    bash(&format!(
        "cd {}; mkdir -p mounted/..data secrets; echo key > mounted/..data/pgpass; chmod 440 mounted/..data/pgpass
         ln -s ..data/pgpass mounted/pgpass; sh -euc '{script}'; sh -euc '{script}'
         test \"$(stat -c %a secrets/pgpass)\" = 400; cmp secrets/pgpass mounted/pgpass",
        folder.display()
    ));
}

#[tokio::test]
async fn the_loop_copies_backups_obeys_its_end_and_the_job_restores_them() {
    let (folder, _) = run::new_folder();
    let backups = make_backups(&folder.join("backup/steward"));
    let own = [("STEWARD_TENANT", "acme".into()), ("STEWARD_BACKUP_DIR", backups.clone())];
    let variables = [own.to_vec(), prepare_restic(&folder).to_vec()].concat();
    let log = folder.join("restic.log");
    let file = fs::File::create(&log).unwrap();
    let mut child = Command::new("sh")
        .arg(kubernetes().join("tenant/restic.sh"))
        .envs(variables.clone())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    run::note(child.id());
    wait::until("a snapshot", async || fs::read_to_string(&log).unwrap().contains("1 snapshots").then_some(())).await;
    let asked = Instant::now();
    bash(&format!("kill -TERM {}", child.id()));
    assert!(child.wait().unwrap().success() && asked.elapsed() < Duration::from_secs(5), "it must end at once");
    run::strike(child.id());

    let kept = folder.join("kept");
    bash(&format!("cd {}; mv backup/steward kept; mkdir backup/steward", folder.display()));
    let restore = render_objects(&kubernetes().join("jobs/restore"));
    let script = read_script(&restore[0], 1, &["/backup/steward"], &folder);
    let restored = Command::new("sh").args(["-euc", &script]).envs(variables).output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    check_restored(&kept, &backups);
}
