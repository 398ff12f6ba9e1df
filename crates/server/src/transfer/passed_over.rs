//! Files of a folder that an import passes over.

use std::path::{Path, PathBuf};

/// Files that are named one by one.
const NAMES_SHOWN: usize = 5;
/// A file of mongodump that has no documents: the versions of the server and of the tool.
const PRELUDE: &str = "prelude.json";

/// A remark that names the files; `None` if there are none. Hidden files and those without documents do not
/// count.
pub(super) fn remark<'p>(folder: &Path, files: impl Iterator<Item = &'p PathBuf>) -> Option<String> {
    let names = files.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let names: Vec<String> =
        names.filter(|name| !name.starts_with('.') && !name.starts_with(PRELUDE)).collect();
    let shown = names.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let further = match names.len().saturating_sub(NAMES_SHOWN) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    (!names.is_empty()).then(|| {
        format!(
            "passed over in {}: {shown}{further}; of a folder only .bson files are read, and any other file is imported by \
             naming it",
            folder.display()
        )
    })
}
