//! The descriptors, as a server's reflection gives them.

use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

/// The contract's own files.
pub(crate) fn ours() -> Vec<FileDescriptorProto> {
    let all = FileDescriptorSet::decode(steward_proto::DESCRIPTORS).unwrap().file;
    all.into_iter().filter(|file| file.package() == "steward.v1").collect()
}

#[test]
fn there_is_a_service_for_each_area() {
    let mut names: Vec<String> =
        ours().iter().flat_map(|file| &file.service).map(|service| service.name().to_owned()).collect();
    names.sort();
    let areas = [
        "Actions",
        "Events",
        "Guard",
        "Matters",
        "Modes",
        "Schedules",
        "Signals",
        "Status",
        "Streams",
        "Tasks",
        "Wikis",
    ];
    assert_eq!(names, areas.map(|area| format!("{area}Service")));
}

#[test]
fn a_client_of_reflection_finds_every_file_that_is_imported() {
    let all = FileDescriptorSet::decode(steward_proto::DESCRIPTORS).unwrap().file;
    for file in &all {
        for wanted in &file.dependency {
            assert!(all.iter().any(|other| other.name() == wanted), "{} imports {wanted}", file.name());
        }
    }
}
