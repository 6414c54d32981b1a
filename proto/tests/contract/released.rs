//! No number is ever used again for something else: `released.txt` keeps what each one means, and only grows.
//!
//! A line is `field Message.name number type`, `value Enum.NAME number` or `rpc Service.Name Request Response`. What
//! goes is `reserved` in its message, number and name, and its line stays. Messages, enums and rpcs stay for good.

use crate::descriptors::ours;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

const OURS: &str = ".steward.v1.";

/// What the contract says now.
#[derive(Default)]
struct Contract {
    /// As in `released.txt`.
    lines: Vec<String>,
    /// `Message 7` and `Message name`, for what is reserved.
    reserved: Vec<(String, Range<i32>)>,
    reserved_names: BTreeSet<(String, String)>,
}

impl Contract {
    fn of(files: &[FileDescriptorProto]) -> Self {
        let mut contract = Self::default();
        for file in files {
            file.message_type.iter().for_each(|message| contract.message("", message));
            file.enum_type.iter().for_each(|it| contract.values("", it));
            for service in &file.service {
                for rpc in &service.method {
                    let (asked, answered) = (short(rpc.input_type()), short(rpc.output_type()));
                    let stream = if rpc.server_streaming() { "stream " } else { "" };
                    contract.lines.push(format!("rpc {}.{} {asked} {stream}{answered}", service.name(), rpc.name()));
                }
            }
        }
        contract
    }

    fn message(&mut self, outer: &str, message: &DescriptorProto) {
        let name = format!("{outer}{}", message.name());
        for field in &message.field {
            let (number, kind) = (field.number(), kind(field));
            self.lines.push(format!("field {name}.{} {number} {kind}", field.name()));
        }
        self.reserved.extend(message.reserved_range.iter().map(|r| (name.clone(), r.start()..r.end())));
        self.reserved_names.extend(message.reserved_name.iter().map(|gone| (name.clone(), gone.clone())));
        let inner = format!("{name}.");
        message.nested_type.iter().for_each(|nested| self.message(&inner, nested));
        message.enum_type.iter().for_each(|it| self.values(&inner, it));
    }

    fn values(&mut self, outer: &str, it: &EnumDescriptorProto) {
        let name = format!("{outer}{}", it.name());
        let lines = it.value.iter().map(|value| format!("value {name}.{} {}", value.name(), value.number()));
        self.lines.extend(lines);
        // The end of an enum's range belongs to it, that of a message's does not.
        let reserved = it.reserved_range.iter().map(|r| (name.clone(), r.start()..r.end().saturating_add(1)));
        self.reserved.extend(reserved);
        self.reserved_names.extend(it.reserved_name.iter().map(|gone| (name.clone(), gone.clone())));
    }

    /// Whether a released line holds still.
    fn keeps(&self, line: &str) -> bool {
        self.lines.iter().any(|now| now == line) || self.has_reserved(line).unwrap_or(false)
    }

    fn has_reserved(&self, line: &str) -> Option<bool> {
        let mut words = line.split(' ').skip_while(|word| *word == "field" || *word == "value");
        let (owner, name) = words.next()?.rsplit_once('.')?;
        let number: i32 = words.next()?.parse().ok()?;
        let is_number = self.reserved.iter().any(|(of, range)| of == owner && range.contains(&number));
        Some(is_number && self.reserved_names.contains(&(owner.to_owned(), name.to_owned())))
    }
}

/// The type of a field, with what else changes the bytes or the meaning of its absence.
fn kind(field: &FieldDescriptorProto) -> String {
    let name = match field.r#type() {
        Type::Message | Type::Enum => short(field.type_name()).to_owned(),
        scalar => scalar.as_str_name().trim_start_matches("TYPE_").to_ascii_lowercase(),
    };
    match (field.label(), field.proto3_optional()) {
        (Label::Repeated, _) => format!("repeated {name}"),
        (Label::Optional | Label::Required, true) => format!("optional {name}"),
        (Label::Optional | Label::Required, false) => name,
    }
}

fn short(name: &str) -> &str {
    name.strip_prefix(OURS).unwrap_or_else(|| name.trim_start_matches('.'))
}

fn released() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("released.txt")).unwrap()
}

fn lines(released: &str) -> impl Iterator<Item = &str> {
    released.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// What was released and holds no more.
fn broken(files: &[FileDescriptorProto]) -> Vec<String> {
    let contract = Contract::of(files);
    lines(&released()).filter(|line| !contract.keeps(line)).map(str::to_owned).collect()
}

/// What the list lacks.
fn missing(released: &str, contract: Contract) -> Vec<String> {
    let known: BTreeSet<&str> = lines(released).collect();
    contract.lines.into_iter().filter(|line| !known.contains(line.as_str())).collect()
}

/// The contract with one message changed.
fn with(name: &str, change: impl FnOnce(&mut DescriptorProto)) -> Vec<FileDescriptorProto> {
    let mut files = ours();
    let message = files.iter_mut().flat_map(|file| &mut file.message_type).find(|m| m.name() == name).unwrap();
    change(message);
    files
}

#[test]
fn every_number_means_what_it_meant() {
    let broken = broken(&ours());
    assert!(broken.is_empty(), "put back, or reserve number and name:\n{}", broken.join("\n"));
}

#[test]
fn whatever_is_new_is_written_down() {
    let mut text = released();
    let new = missing(&text, Contract::of(&ours()));
    if std::env::var("STEWARD_RELEASE").is_ok_and(|it| it == "1") {
        new.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("released.txt"), text).unwrap();
        return;
    }
    assert!(new.is_empty(), "`STEWARD_RELEASE=1 cargo test -p steward-proto` writes it down:\n{}", new.join("\n"));
}

#[test]
fn a_new_field_that_is_not_written_down_is_caught() {
    let files = with("Task", |task| {
        let mut field = task.field[0].clone();
        (field.name, field.number) = (Some("colour".into()), Some(99));
        task.field.push(field);
    });
    assert_eq!(missing(&released(), Contract::of(&files)), ["field Task.colour 99 string"]);
}

#[test]
fn a_number_that_is_used_again_is_caught() {
    let was = ["field Task.path 1 string"];
    assert_eq!(broken(&with("Task", |task| task.field[0].name = Some("colour".into()))), was, "another name");
    assert_eq!(broken(&with("Task", |task| task.field[0].set_type(Type::Bytes))), was, "another type");
    assert_eq!(broken(&with("Task", |task| task.field[0].set_label(Label::Repeated))), was, "another label");
    assert_eq!(broken(&with("Task", |task| task.field[0].number = Some(99))), was, "another number");
}

#[test]
fn what_goes_must_be_reserved_by_number_and_name() {
    let range = prost_types::descriptor_proto::ReservedRange { start: Some(1), end: Some(2) };
    let gone = |task: &mut DescriptorProto| drop(task.field.remove(0));
    let was = ["field Task.path 1 string"];
    assert_eq!(broken(&with("Task", gone)), was);
    let by_number = with("Task", |task| {
        gone(task);
        task.reserved_range.push(range);
    });
    assert_eq!(broken(&by_number), was);
    let by_both = with("Task", |task| {
        gone(task);
        task.reserved_range.push(range);
        task.reserved_name.push("path".into());
    });
    assert_eq!(broken(&by_both), [""; 0]);
}

#[test]
fn a_value_that_means_something_else_and_an_rpc_that_is_gone_are_caught() {
    let mut files = ours();
    let mode = files.iter_mut().flat_map(|file| &mut file.enum_type).find(|it| it.name() == "Mode").unwrap();
    mode.value[3].name = Some("MODE_WILD".into());
    assert_eq!(broken(&files), ["value Mode.MODE_LIVE 3"]);
    let mut files = ours();
    let modes = files.iter_mut().flat_map(|file| &mut file.service).find(|s| s.name() == "ModesService").unwrap();
    modes.method.retain(|rpc| rpc.name() != "Stop");
    assert_eq!(broken(&files), ["rpc ModesService.Stop StopRequest StopResponse"]);
}
