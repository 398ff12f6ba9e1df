//! Writes the sample store of a frozen format, which later programs are tested with. It runs once for each
//! format.
//!
//! ```text
//! cargo run -p pando-betree --example store_of_this_format -- engines/betree/tests/stores/version-2
//! ```
//!
//! The store is copied while it is open, so that its log holds the last writes. An existing store is not
//! written again: it would show the writes of a later program.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use pando_betree::{Betree, Options};
use pando_environment::Environment;

#[path = "../tests/stores/content.rs"]
mod content;

fn main() -> io::Result<()> {
    let target = PathBuf::from(env::args().nth(1).expect("the folder that is to be made"));
    if target.exists() {
        return Err(io::Error::other(format!("{} is there: it stays as it is", target.display())));
    }
    let store = env::temp_dir().join(format!("store-of-this-format-{}", std::process::id()));
    let entries = content::OPTIONS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = Options::default().with_entries(&entries).expect("the options are possible");
    let engine = Betree::open(&Environment::real(), &store, options).expect("a new store opens");
    let _expected = content::fill(&engine);
    // Until background work has come to rest: files that change are no moment's.
    std::thread::sleep(Duration::from_secs(3));
    fs::create_dir_all(&target)?;
    copy(&store, &store, &target)?;
    drop(engine);
    fs::remove_dir_all(&store)
}

/// Compresses the files of a folder into another, a folder within it as a part of the names.
fn copy(store: &Path, folder: &Path, target: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(store).expect("it is in the store").display().to_string();
        if path.is_dir() {
            copy(store, &path, target)?;
        } else if name != "LOCK" && !name.starts_with("spill") {
            let compressed = zstd::encode_all(fs::read(&path)?.as_slice(), 19)?;
            fs::write(target.join(format!("{}.zst", name.replace('/', "+"))), compressed)?;
        }
    }
    Ok(())
}
