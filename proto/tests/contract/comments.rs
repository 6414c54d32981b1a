//! Every rpc says who may call it. That there is a comment at all is buf's to hold.

use prost_types::FileDescriptorProto;

const SCOPES: [&str; 3] = ["Scope: read.", "Scope: act.", "Scope: operate."];
/// In a path of the descriptor: the services of a file, the methods of a service.
const SERVICE: i32 = 6;
const METHOD: i32 = 2;

fn without_a_scope(file: &FileDescriptorProto) -> Vec<String> {
    let info = file.source_code_info.as_ref().unwrap();
    let mut found = Vec::new();
    for (service, s) in (0..).zip(&file.service) {
        for (method, m) in (0..).zip(&s.method) {
            let path = [SERVICE, service, METHOD, method];
            let comment = info.location.iter().find(|l| l.path == path).map_or("", |l| l.leading_comments());
            if SCOPES.iter().filter(|scope| comment.contains(*scope)).count() != 1 {
                found.push(format!("{}.{}: say its scope, once", s.name(), m.name()));
            }
        }
    }
    found
}

fn with_comments() -> Vec<FileDescriptorProto> {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut compiler = protox::Compiler::new([root]).unwrap();
    compiler.include_source_info(true);
    for file in crate::descriptors::ours() {
        compiler.open_file(file.name()).unwrap();
    }
    compiler.file_descriptor_set().file
}

#[test]
fn every_rpc_says_its_scope() {
    let files = with_comments();
    assert!(files.iter().flat_map(|file| &file.service).count() == 11);
    assert_eq!(files.iter().flat_map(without_a_scope).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn an_rpc_without_a_scope_or_with_two_is_caught() {
    let files = with_comments();
    let mut file = files.into_iter().find(|file| file.name().ends_with("matters.proto")).unwrap();
    let info = file.source_code_info.as_mut().unwrap();
    for location in info.location.iter_mut().filter(|l| l.path.len() == 4 && l.path[0] == SERVICE) {
        let twice = if location.path[3] == 0 { "Lists." } else { "Scope: read. Scope: act." };
        location.leading_comments = Some(twice.to_owned());
    }
    let said = ["ListMatters", "GetMatter"].map(|rpc| format!("MattersService.{rpc}: say its scope, once"));
    assert_eq!(without_a_scope(&file), said);
}
