//! The image: its Containerfile is linted, its runtime stages are built from a Debian root, and the result serves an example vault.

use crate::{bash, deploy, find_tool, install_binary, make_debian};
use std::fs;
use std::path::{Path, PathBuf};
use steward_tests::api::Api;
use steward_tests::world::World;
use steward_tests::{run, wait};

/// The largest size of the image, in MiB.
const MAX_SIZE: u64 = 150;

/// Builds the image and returns the folder with its files. The stage that compiles is replaced by the compiled program.
fn build_image(folder: &Path) -> PathBuf {
    let built = folder.join("built");
    fs::create_dir_all(built.join("src/target/release")).unwrap();
    fs::create_dir_all(built.join("src/worker")).unwrap();
    fs::write(built.join("src/worker/sbom.json"), "{}").unwrap();
    install_binary(&built.join("src/target/release/steward"));
    let mounted = bash(&format!(
        "buildah() {{ command buildah --root {folder}/store --runroot {folder}/run --storage-driver vfs \"$@\"; }}
         root=$(buildah from scratch); buildah add --quiet $root {debian} / >&2; buildah commit --quiet $root localhost/debian >&2
         buildah bud --quiet --isolation chroot --format docker --build-context build={folder}/built \
           --build-arg DEBIAN=localhost/debian --file {deploy}/image/Containerfile --tag steward {project} >&2
         buildah inspect --type image steward > {folder}/image.json
         buildah mount $(buildah from steward) > {folder}/mounted",
        folder = folder.display(),
        debian = make_debian("debian", "systemd,systemd-sysv,dbus").display(),
        deploy = deploy().display(),
        project = run::project().display(),
    ));
    let path = fs::read_to_string(folder.join("mounted")).unwrap();
    assert!(!path.trim().is_empty(), "{mounted}");
    PathBuf::from(path.trim())
}

/// The size of a folder in MiB.
fn measure_size(folder: &Path) -> u64 {
    bash(&format!("du -sm {}", folder.display())).split_whitespace().next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_image_is_small_has_no_shell_and_serves_a_vault_from_a_read_only_root() {
    let world = World::with_one_done().await;
    bash(&format!("{} {}/image/Containerfile", find_tool("hadolint"), deploy().display()));
    let image = build_image(&world.folder);
    let size = measure_size(&image);
    assert!(size < MAX_SIZE, "{size} MiB");
    for program in ["bin/sh", "usr/bin/sh", "bin/bash", "usr/bin/env", "usr/bin/apt-get"] {
        assert!(!image.join(program).exists(), "{program} is in the image");
    }
    let described = fs::read_to_string(world.folder.join("image.json")).unwrap();
    for part in ["65532:65532", "/usr/bin/steward", "--no-login-link", "--healthz", "SIGTERM"] {
        assert!(described.contains(part), "{part} is not in the description of the image");
    }

    // As a container runtime does: a read-only root, the two volumes, /proc, /dev and /tmp.
    let state = world.folder.join("state");
    fs::create_dir(&state).unwrap();
    bash(&format!("chown -R 65532:65532 {} {}", world.vault.path().display(), state.display()));
    let port = run::free_port();
    let start = format!(
        "exec 2>&1; image={image}; mkdir -p $image/proc $image/dev; mount --bind $image $image
         mount --bind {vault} $image/vault; mount --bind {state} $image/state
         mount -t proc proc $image/proc; mount --bind /dev $image/dev; mount -t tmpfs tmpfs $image/tmp
         mount -o remount,bind,ro $image
         exec env -i PATH=/usr/sbin:/usr/bin HOME=/state XDG_STATE_HOME=/state STEWARD_VAULT=/vault STEWARD_STATE_DIR=/state \
           TEMPORAL_ADDRESS={temporal} TEMPORAL_NAMESPACE={namespace} STEWARD_TASK_QUEUE={queue} \
           STEWARD_LISTEN=0.0.0.0:{port} STEWARD_LIVE_MODE=live \
           chroot --userspec=65532:65532 $image /usr/bin/steward",
        image = image.display(),
        vault = world.vault.path().display(),
        state = state.display(),
        temporal = world.server.address(),
        namespace = world.namespace,
        queue = world.queue,
    );
    let script = world.folder.join("start.sh");
    fs::write(&script, format!("{start} \"$@\"\n")).unwrap();
    let log = world.folder.join("image.log");
    let mut up = tokio::process::Command::new("unshare")
        .args(["--mount", "bash", "-eu"])
        .arg(&script)
        .args(["up", "--no-login-link"])
        .stdout(fs::File::create(&log).unwrap())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = up.id().unwrap();
    run::note(pid);
    let api = Api::new(&format!("http://127.0.0.1:{port}"));
    wait::until("the image to serve the vault", async || {
        let log = fs::read_to_string(&log).unwrap();
        assert!(up.try_wait().unwrap().is_none(), "it ended:\n{log}");
        log.contains("up; Ctrl-C ends it").then_some(())
    })
    .await;
    assert_eq!(api.get("/startz").await.body, "started");
    wait::until("the change to be made", async || (world.vault.state("rent") == "done").then_some(())).await;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("Uid:\t65532\t65532"), "{status}");
    let refused = fs::write(format!("/proc/{pid}/root/etc/x"), "").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem, "{refused}");
    let printed = fs::read_to_string(&log).unwrap();
    assert!(!printed.contains("/login?"), "a log must hold no login link:\n{printed}");
    let checked = bash(&format!(
        "STEWARD_VAULT=/vault STEWARD_STATE_DIR=/state nsenter --target {pid} --mount chroot --userspec=65532:65532 {} \
         /usr/bin/steward status --healthz",
        image.display()
    ));
    assert_eq!(checked.trim(), "ok");
    bash(&format!("kill -TERM {pid}"));
    assert!(up.wait().await.unwrap().success(), "{}", fs::read_to_string(&log).unwrap());
    run::strike(pid);
}
