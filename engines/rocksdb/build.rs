//! Looks whether the RocksDB library that will be linked has HyperClockCache.
//!
//! The crate `rocksdb` builds a library that has it. A library that is named by `ROCKSDB_LIB_DIR` may be
//! older, as Debian 12's 7.8.3 is: then a call of the missing function would not link.

use std::env;
use std::fs;
use std::path::Path;

const FUNCTION: &[u8] = b"rocksdb_cache_create_hyper_clock";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(hyper_clock_cache)");
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    println!("cargo::rerun-if-changed=build.rs");
    let has_function = match env::var_os("ROCKSDB_LIB_DIR") {
        None => true,
        Some(folder) => ["librocksdb.so", "librocksdb.dylib", "librocksdb.a"]
            .iter()
            .find_map(|name| fs::read(Path::new(&folder).join(name)).ok())
            .is_some_and(|library| library.windows(FUNCTION.len()).any(|bytes| bytes == FUNCTION)),
    };
    if has_function {
        println!("cargo::rustc-cfg=hyper_clock_cache");
    }
}
