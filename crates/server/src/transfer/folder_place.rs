//! The file of a folder at which an import goes on, as a part of its [`ResumePoint`].
//!
//! A point of a folder counts the records of one file. The files before it are passed over without being
//! read, so none of them may have changed: the place has a checksum of their names and sizes. A resumed
//! import is refused where the checksum differs, because it would pass over documents that nobody has
//! imported.
//!
//! A file that was damaged is passed over as well, but not in silence: the place has its number, and the
//! import that goes on says that its rest is not in. Its size is not part of the checksum, since it changes
//! when the file is mended.
//!
//! [`ResumePoint`]: super::resume_point::ResumePoint

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use flate2::Crc;

use super::error::TransferError;
use super::import_plan::{Content, ImportPlan, PlanOrigin, Unit};
use super::input::Source;
use super::resume_point::ResumePoint;

/// See the [module](self). Written `4-9b3c01aa`, or `4-9b3c01aa-0,2` with the numbers of damaged files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderPlace {
    /// Files before this one.
    pub(super) file: usize,
    checksum: u32,
    /// Numbers of files that could not be read to their end; the last may be that of `file` itself.
    pub(super) damaged: Vec<usize>,
}

impl FolderPlace {
    /// The place of a file of the plan. `damaged` are the numbers of files that could not be read to their
    /// end.
    pub(super) fn of(plan: &ImportPlan, file: usize, damaged: Vec<usize>) -> FolderPlace {
        let checksum = checksum(plan, file, &damaged);
        FolderPlace { file, checksum, damaged }
    }

    fn is_of(&self, plan: &ImportPlan) -> bool {
        self.file < plan.units.len() && checksum(plan, self.file, &self.damaged) == self.checksum
    }
}

/// Refuses a point of another input: one of a folder in an import of a file, or the reverse, or one of a
/// folder whose files have changed.
///
/// # Errors
/// [`TransferError::WrongPoint`].
pub(super) fn check_point(plan: &ImportPlan, point: &ResumePoint) -> Result<(), TransferError> {
    let refused = |reason: String| Err(TransferError::WrongPoint { reason });
    match (&plan.origin, &point.place) {
        (PlanOrigin::Folder(_), None) => refused(
            "this point counts the records of one file, and the input is a folder: name that file, or the point that an \
             import of this folder has named"
                .to_owned(),
        ),
        (PlanOrigin::File | PlanOrigin::Store, Some(_)) => {
            refused("this point is one of a folder of mongodump; name that folder".to_owned())
        }
        (PlanOrigin::Folder(folder), Some(place)) if !place.is_of(plan) => refused(format!(
            "the files of {} are not those of the import that named this point: one before the point, or the file at the \
             point, was added, removed, renamed or changed, so that it would pass over documents that are not in; put the \
             files back as they were, or import each file that is missing by naming it",
            folder.display()
        )),
        _ => Ok(()),
    }
}

/// The checksum of the files up to this one. A damaged one counts by its name alone.
fn checksum(plan: &ImportPlan, file: usize, damaged: &[usize]) -> u32 {
    let mut crc = Crc::new();
    for (number, unit) in plan.units.iter().enumerate().take(file + 1) {
        let size = if damaged.contains(&number) { None } else { size(unit) };
        crc.update(format!("{}\0{size:?}\0", name(plan, unit)).as_bytes());
    }
    crc.sum()
}

/// The name of a file within the folder; that of the collection for a view, which has no documents.
fn name(plan: &ImportPlan, unit: &Unit) -> String {
    match (path_of(unit), &plan.origin) {
        (Some(path), PlanOrigin::Folder(folder)) => {
            path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned()
        }
        (Some(path), _) => path.to_string_lossy().into_owned(),
        (None, _) => unit.collection.clone(),
    }
}

fn size(unit: &Unit) -> Option<u64> {
    std::fs::metadata(path_of(unit)?).ok().map(|found| found.len())
}

fn path_of(unit: &Unit) -> Option<&Path> {
    match &unit.content {
        Some(Content::Bytes(bytes)) => match &bytes.source {
            Source::File(path) => Some(path),
            Source::Standard => None,
        },
        Some(Content::Stored(_)) | None => None,
    }
}

impl fmt::Display for FolderPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.file, self.checksum)?;
        for (at, number) in self.damaged.iter().enumerate() {
            write!(f, "{}{number}", if at == 0 { '-' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for FolderPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<FolderPlace, ()> {
        let mut parts = text.splitn(3, '-');
        let file = parts.next().and_then(|part| part.parse().ok()).ok_or(())?;
        let checksum = parts.next().and_then(|part| u32::from_str_radix(part, 16).ok()).ok_or(())?;
        let damaged: Result<Vec<usize>, ()> = match parts.next() {
            Some(numbers) => numbers.split(',').map(|number| number.parse().map_err(|_| ())).collect(),
            None => Ok(Vec::new()),
        };
        Ok(FolderPlace { file, checksum, damaged: damaged? })
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;
    use crate::transfer::dump::{Renamed, plan_of};

    #[test]
    fn a_place_is_its_text() {
        for text in ["4-9b3c01aa", "0-00000007", "12-ffffffff-0,2"] {
            assert_eq!(text.parse::<FolderPlace>().unwrap().to_string(), text);
        }
        for text in ["", "4", "x-1", "4-xyz", "4-1-", "4-1-a"] {
            assert!(text.parse::<FolderPlace>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_changed_list_of_files_before_the_place_is_noticed_and_one_behind_it_does_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, documents: i32| {
            let bytes: Vec<u8> = (0..documents).flat_map(|id| doc! { "_id": id }.to_vec().unwrap()).collect();
            std::fs::write(folder.path().join(name), bytes).unwrap();
        };
        let plan = || plan_of(folder.path(), Renamed::default()).unwrap();
        let remove = |name: &str| std::fs::remove_file(folder.path().join(name)).unwrap();
        for name in ["a.bson", "b.bson", "c.bson", "d.bson"] {
            put(name, 2);
        }
        let place = FolderPlace::of(&plan(), 2, vec![0]);
        put("d.bson", 5);
        put("e.bson", 1);
        put("a.bson", 3);
        assert!(place.is_of(&plan()), "behind the place, and the damaged one mended");
        put("b.bson", 3);
        assert!(!place.is_of(&plan()), "another size");
        put("b.bson", 2);
        put("aa.bson", 2);
        assert!(!place.is_of(&plan()), "one more before");
        remove("aa.bson");
        assert!(place.is_of(&plan()));
        remove("a.bson");
        assert!(!place.is_of(&plan()), "one less before");
        put("a.bson", 2);
        remove("c.bson");
        assert!(!place.is_of(&plan()), "the file at the place is gone");
    }
}
