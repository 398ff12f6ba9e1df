//! The opening of a store: its folder, its lease, and the list of its trees.
//!
//! The folder of a server holds no documents. Its file `tikv-store` names the keyspace and the number of the
//! server:
//!
//! ```text
//! pando tikv 1
//! keyspace shop
//! server 0123456789abcdef
//! ```

use std::path::Path;

use pando_environment::{Access, Environment, OpenMode};
use pando_storage::{StorageError, TreeId};

use crate::cluster::{Cluster, Mutation, Order};
use crate::failure::{corrupt, environment_failed, invalid};
use crate::layout::{FORMAT, Keyspace};
use crate::tree_record::TreeRecord;
use crate::trees::{TreeFigures, Trees};

/// The file that tells a folder of this engine.
pub(crate) const MARKER: &str = "tikv-store";

const FIRST_LINE: &str = "pando tikv 1";
const MARKER_BYTES_MAX: u64 = 1_024;
/// Trees of a page.
const PAGE: u32 = 4_096;

/// The number of the server of a folder. A new folder gets one.
pub(crate) fn server_of(
    environment: &Environment,
    folder: &Path,
    keyspace: &str,
) -> Result<u64, StorageError> {
    let failed = |error| environment_failed("cannot read the file `tikv-store`", error);
    let path = folder.join(MARKER);
    let files = environment.files();
    if files.exists(&path).map_err(failed)? {
        let file = files.open(&path, OpenMode::ReadOnly, Access::Buffered).map_err(failed)?;
        let mut bytes = vec![0; file.length().map_err(failed)?.min(MARKER_BYTES_MAX) as usize];
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        return read_marker(&String::from_utf8_lossy(&bytes), folder, keyspace);
    }
    let server = environment.random().next_u64();
    let text = format!("{FIRST_LINE}\nkeyspace {keyspace}\nserver {server:016x}\n");
    let file = files.open(&path, OpenMode::CreateOrOpen, Access::Buffered).map_err(failed)?;
    file.write_all_at(text.as_bytes(), 0).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    files.sync_dir(folder).map_err(failed)?;
    Ok(server)
}

fn read_marker(text: &str, folder: &Path, keyspace: &str) -> Result<u64, StorageError> {
    let path = folder.join(MARKER);
    let path = path.display();
    let damaged = || {
        corrupt(format!("{path} is damaged: remove it, and wait half a minute for the lease of the store"))
    };
    let mut lines = text.lines();
    if lines.next() != Some(FIRST_LINE) {
        return Err(damaged());
    }
    let named = lines.next().and_then(|line| line.strip_prefix("keyspace ")).ok_or_else(damaged)?;
    if named != keyspace {
        return Err(invalid(format!(
            "{path} belongs to the keyspace `{named}`, and `{keyspace}` was asked for: choose that keyspace, or another \
             folder"
        )));
    }
    let server = lines.next().and_then(|line| line.strip_prefix("server ")).ok_or_else(damaged)?;
    u64::from_str_radix(server, 16).map_err(|_| damaged())
}

/// Refuses a store of another format, and makes a new one.
pub(crate) fn check_format(cluster: &Cluster, keyspace: &Keyspace) -> Result<(), StorageError> {
    match cluster.get(cluster.timestamp()?, &keyspace.format())? {
        None => cluster.change(|_| Ok(vec![Mutation::Put(keyspace.format(), FORMAT.to_vec())])),
        Some(format) if format == FORMAT => Ok(()),
        Some(format) => {
            let format = String::from_utf8_lossy(&format).into_owned();
            Err(invalid(format!(
                "the store has the format {format:?}: open it with a newer version of Pando"
            )))
        }
    }
}

/// Reads the list of trees.
pub(crate) fn read_trees(cluster: &Cluster, keyspace: &Keyspace) -> Result<Trees, StorageError> {
    let now = cluster.timestamp()?;
    let no_number = || corrupt("the number of a tree makes no sense");
    let mut figures = std::collections::BTreeMap::<TreeId, TreeFigures>::new();
    for (key, stored) in read_all(cluster, now, keyspace.all_figures())? {
        figures.insert(keyspace.tree_of(&key).ok_or_else(no_number)?, TreeFigures::decode(&stored));
    }
    let mut trees = Trees::default();
    for (key, record) in read_all(cluster, now, keyspace.tree_records())? {
        let tree = keyspace.tree_of(&key).ok_or_else(no_number)?;
        match TreeRecord::decode(&record)? {
            TreeRecord::Live { name, merging } => {
                trees.insert(tree, &name, merging, figures.remove(&tree).unwrap_or_default());
            }
            TreeRecord::Dropped => trees.insert_dropped(tree),
        }
    }
    Ok(trees)
}

fn read_all(
    cluster: &Cluster,
    at: u64,
    mut range: std::ops::Range<Vec<u8>>,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StorageError> {
    let mut all = Vec::new();
    loop {
        let page = cluster.scan(at, &range, Order::Ascending, PAGE)?;
        let is_last = page.len() < PAGE as usize;
        all.extend(page);
        match all.last() {
            Some((last, _)) if !is_last => range.start = [last, &[0][..]].concat(),
            _ => return Ok(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_server_and_its_keyspace() {
        let (environment, folder) = (Environment::real(), tempfile::tempdir().expect("a temporary folder"));
        let server = server_of(&environment, folder.path(), "shop").expect("it is made");
        assert_eq!(server_of(&environment, folder.path(), "shop").expect("it is read"), server);
        let other = server_of(&environment, folder.path(), "bank").expect_err("it is refused").to_string();
        assert!(other.contains("`shop`") && other.contains("`bank`"), "{other}");
        for broken in ["", "pando tikv 1\n", "pando tikv 1\nkeyspace shop\nserver no\n"] {
            assert!(read_marker(broken, folder.path(), "shop").is_err(), "{broken:?}");
        }
    }
}
