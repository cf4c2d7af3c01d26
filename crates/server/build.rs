//! Puts the web page into the server, if somebody has built it: `cargo xtask web` writes it into `page/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("page");
    let mut files = Vec::new();
    // A package from a registry has no such folder, and naming one that is missing would build the server anew each time.
    if folder.is_dir() {
        println!("cargo::rerun-if-changed=page");
        collect(&folder, &mut files)?;
    }
    files.sort();
    let mut code = String::from("&[\n");
    for file in &files {
        // A file that is there compressed, too, is kept only so.
        let is_packed = file.extension().is_some_and(|extension| extension == "gz");
        if !is_packed && files.binary_search(&packed(file)).is_ok() {
            continue;
        }
        let path = file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let path = path.strip_suffix(".gz").unwrap_or(&path);
        let written =
            writeln!(code, "    Asset {{ path: {path:?}, is_packed: {is_packed}, bytes: include_bytes!({file:?}) }},");
        written.map_err(io::Error::other)?;
    }
    code.push_str("]\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("page.rs"), code)
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}

/// Where a file lies compressed: `index.html.gz` for `index.html`.
fn packed(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".gz");
    PathBuf::from(name)
}

/// Every file below a folder, but not those whose names begin with a dot.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !is_hidden {
            collect(&path, files)?;
        } else if !is_hidden {
            files.push(path);
        }
    }
    Ok(())
}
