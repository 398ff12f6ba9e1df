//! Stores in the cluster that `make test-tikv` has started: `PANDO_TIKV_PD` names its placement drivers.

use std::path::Path;

use pando_tikv::TikvOptions;

/// The name of the store of a temporary folder.
pub fn keyspace_of(folder: &Path) -> String {
    let name = folder.file_name().expect("a temporary folder has a name").to_string_lossy();
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The options of a server that opens a store of this name. `servers` is the option of that name.
pub fn options(keyspace: &str, servers: &str) -> TikvOptions {
    let drivers =
        std::env::var("PANDO_TIKV_PD").expect("PANDO_TIKV_PD names the placement drivers: make test-tikv");
    let entries = [("pd", &*drivers), ("keyspace", keyspace), ("history", "off"), ("servers", servers)];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    TikvOptions::default().with_entries(&entries).expect("the options are fine")
}
