//! Reads of single records that were written earlier: the parts of large commits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pando_encryption::Vault;
use pando_environment::{Access, Environment, OpenMode};

use super::log_recovery::FOLDER;
use super::reader::{PayloadRooms, SegmentReader, read_header};
use super::segment::{FoundHeader, file_name, segment_path};
use super::{LogError, RecordProblem};
use crate::base::LogPosition;

/// A reader of single records. The segment that was read last stays open.
pub(crate) struct ReadBack {
    environment: Environment,
    folder: PathBuf,
    vault: Option<Arc<Vault>>,
    last: Option<(u64, SegmentReader)>,
    rooms: PayloadRooms,
}

impl ReadBack {
    /// Reads the log of a store; `vault` has its keys, if it is encrypted.
    pub(crate) fn new(
        environment: &Environment,
        store_folder: &Path,
        vault: Option<&Arc<Vault>>,
    ) -> ReadBack {
        let folder = store_folder.join(FOLDER);
        let (environment, vault) = (environment.clone(), vault.cloned());
        ReadBack { environment, folder, vault, last: None, rooms: PayloadRooms::default() }
    }

    /// The payload of the record at a place. The caller knows that it was written there and that its segment
    /// is not released.
    pub(crate) fn payload(&mut self, place: LogPosition) -> Result<&[u8], LogError> {
        let path = self.folder.join(file_name(place.segment()));
        let problem = |problem| LogError::Corrupt { path, offset: place.offset(), lsn: place.lsn(), problem };
        if self.last.as_ref().is_none_or(|(number, _)| *number != place.segment()) {
            let path = segment_path(&self.folder, place.segment());
            let file = self.environment.files().open(&path, OpenMode::ReadOnly, Access::Buffered)?;
            let FoundHeader::Valid(header) = read_header(file.as_ref())? else {
                return Err(problem(RecordProblem::NoSegment));
            };
            self.last = Some((place.segment(), SegmentReader::new(file, &header)?));
        }
        let (_, reader) = self.last.as_mut().expect("the segment is open");
        let Some(record) = reader.record(place.offset(), place.lsn(), place.chain())? else {
            return Err(problem(RecordProblem::Payload { lsn: place.lsn() }));
        };
        record.payload(self.vault.as_deref(), &mut self.rooms).map_err(problem)
    }
}
