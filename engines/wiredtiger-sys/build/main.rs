//! The build script: finds WiredTiger, links it, and generates the bindings from its header.

mod installation;

use std::path::PathBuf;

use installation::{HEADER_DIR, Installation, LIB_DIR};

/// The part of the interface that the engine uses.
const NAMES: &str = "wiredtiger_(open|strerror)|WT_.*";

fn main() {
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed={LIB_DIR}");
    println!("cargo::rerun-if-env-changed={HEADER_DIR}");
    let folder = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let installation = match Installation::find(folder(HEADER_DIR), folder(LIB_DIR)) {
        Ok(installation) => installation,
        Err(message) => {
            // The reader wants this sentence, and no backtrace of a build script.
            println!("cargo::error={message}");
            std::process::exit(1);
        }
    };
    println!("cargo::rerun-if-changed={}", installation.header.display());
    println!("cargo::rustc-link-lib=dylib=wiredtiger");
    if let Some(folder) = &installation.library_folder {
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
    let bindings = bindgen::Builder::default()
        .header(installation.header.display().to_string())
        .allowlist_item(NAMES)
        .layout_tests(false)
        .generate_comments(false)
        .generate();
    let written = match (bindings, std::env::var_os("OUT_DIR")) {
        (Ok(bindings), Some(out)) => {
            bindings.write_to_file(PathBuf::from(out).join("bindings.rs")).map_err(|error| error.to_string())
        }
        (Err(error), _) => Err(error.to_string()),
        (Ok(_), None) => Err("there is no OUT_DIR".to_owned()),
    };
    if let Err(error) = written {
        println!("cargo::error=no bindings of {}: {error}", installation.header.display());
        std::process::exit(1);
    }
}
