//! Looks which functions the RocksDB library lacks that will be linked.
//!
//! The crate `rocksdb` builds a library that has all. A library that is named by `ROCKSDB_LIB_DIR` may be
//! older, as Debian 12's 7.8.3 is: a call of a missing function would not link. All other functions that this
//! engine reaches are in 7.8.3, with the same arguments.

use std::env;
use std::fs;
use std::path::Path;

/// Functions that a library may lack, and the names by which the code knows of it.
const FUNCTIONS: [(&str, &str); 2] = [
    ("rocksdb_cache_create_hyper_clock", "lacks_hyper_clock_cache"),
    ("rocksdb_write_buffer_manager_destroy", "lacks_write_buffer_manager"),
];

/// The names that a library may have.
const LIBRARIES: [&str; 3] = ["librocksdb.so", "librocksdb.dylib", "librocksdb.a"];

fn main() {
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    println!("cargo::rerun-if-changed=build.rs");
    let library = env::var_os("ROCKSDB_LIB_DIR")
        .and_then(|folder| LIBRARIES.iter().find_map(|name| fs::read(Path::new(&folder).join(name)).ok()));
    for (function, lack) in FUNCTIONS {
        println!("cargo::rustc-check-cfg=cfg({lack})");
        let is_in =
            |library: &Vec<u8>| library.windows(function.len()).any(|bytes| bytes == function.as_bytes());
        if library.as_ref().is_some_and(|library| !is_in(library)) {
            println!("cargo::rustc-cfg={lack}");
        }
    }
}
