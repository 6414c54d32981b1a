//! Compiles `steward/v1/*.proto` without protoc: Rust code with the comments, and descriptors without them.

use prost::Message;
use std::path::{Path, PathBuf};
use std::{env, error::Error, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo:rerun-if-changed=steward");
    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_source_info(true).include_imports(true);
    compiler.open_files(files(&root.join("steward/v1"))?)?;
    let mut descriptors = compiler.file_descriptor_set();
    tonic_prost_build::configure().build_transport(false).compile_fds(descriptors.clone())?;
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("descriptors.bin"), descriptors.encode_to_vec())?;
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.retain(|path| path.extension().is_some_and(|ending| ending == "proto"));
    files.sort();
    Ok(files)
}
