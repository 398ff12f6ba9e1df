//! The point at which an interrupted import goes on, and the `_id`s that it gives.
//!
//! Documents without an `_id` get theirs here and not from the server: the `_id` of the first record plus the
//! number of the record. An import that goes on with the same first `_id` therefore gives a document the
//! `_id` that it had before. If the store has the document already, it refuses the `_id`, and no document is
//! in twice.
//!
//! The point of a folder belongs to one of its files ([`FolderPlace`]): the records are those of this file,
//! and the `_id` is that of its first record.

use std::fmt;
use std::str::FromStr;

use bson::RawDocumentBuf;
use bson::oid::ObjectId;

use super::folder_place::FolderPlace;

/// See the [module](self). Written `2000:65f0c3a8e4b0f2a1c3d4e5f6`; the `_id` may be missing. That of a
/// folder goes on with its place: `2000:65f0c3a8e4b0f2a1c3d4e5f6:4-9b3c01aa`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// Records at the front of the input that are done.
    pub records: u64,
    /// The `_id` of record 0, if it has none of its own.
    pub first_id: ObjectId,
    /// The file of a folder to which both belong.
    pub place: Option<FolderPlace>,
}

impl ResumePoint {
    /// The beginning of an input.
    pub fn beginning() -> ResumePoint {
        ResumePoint { records: 0, first_id: ObjectId::new(), place: None }
    }

    /// The point of an input alone that begins with this record of several inputs. So many of its records are
    /// done.
    pub(super) fn of_input(&self, begin: u64, records: u64) -> ResumePoint {
        ResumePoint { records, first_id: self.id(begin), place: None }
    }

    /// The document with an `_id`: its own, or that of this record.
    pub(super) fn identified(&self, record: u64, document: RawDocumentBuf) -> RawDocumentBuf {
        match document.get("_id") {
            Ok(None) => {}
            // A fault is reported by the store.
            Ok(Some(_)) | Err(_) => return document,
        }
        const ELEMENT_HEAD: &[u8] = b"\x07_id\0";
        let old = document.as_bytes();
        let length = old.len() + ELEMENT_HEAD.len() + 12;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_le_bytes());
        bytes.extend_from_slice(ELEMENT_HEAD);
        bytes.extend_from_slice(&self.id(record).bytes());
        bytes.extend_from_slice(&old[4..]);
        // The framing is right by construction.
        RawDocumentBuf::from_bytes(bytes).unwrap_or(document)
    }

    /// The `_id` of a record that has none: the lower eight bytes count on.
    pub(super) fn id(&self, record: u64) -> ObjectId {
        let mut bytes = self.first_id.bytes();
        let mut counter = [0; 8];
        counter.copy_from_slice(&bytes[4..]);
        bytes[4..].copy_from_slice(&u64::from_be_bytes(counter).wrapping_add(record).to_be_bytes());
        ObjectId::from_bytes(bytes)
    }
}

impl fmt::Display for ResumePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.records, self.first_id.to_hex())?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, ":{place}"))
    }
}

impl FromStr for ResumePoint {
    type Err = String;

    fn from_str(text: &str) -> Result<ResumePoint, String> {
        let wrong = || {
            "expected the point that an import names when it stops, such as 2000:65f0c3a8e4b0f2a1c3d4e5f6, or a number of \
             records to pass over"
                .to_owned()
        };
        let mut parts = text.splitn(3, ':');
        let records = parts.next().and_then(|records| records.parse().ok()).ok_or_else(wrong)?;
        let first_id = match parts.next() {
            Some(id) => ObjectId::parse_str(id).map_err(|_| wrong())?,
            None => ObjectId::new(),
        };
        let place = parts.next().map(|place| place.parse().map_err(|()| wrong())).transpose()?;
        Ok(ResumePoint { records, first_id, place })
    }
}

#[cfg(test)]
mod tests {
    use bson::{Document, doc};

    use super::*;

    fn with_id(point: &ResumePoint, record: u64, document: &Document) -> Document {
        let raw = RawDocumentBuf::try_from(document).unwrap();
        Document::try_from(&point.identified(record, raw)).unwrap()
    }

    #[test]
    fn a_document_has_one_id_in_the_first_run_and_in_the_one_that_goes_on() {
        let first = ResumePoint::beginning();
        let again: ResumePoint = ResumePoint { records: 2000, ..first.clone() }.to_string().parse().unwrap();
        assert_eq!(again.records, 2000);
        assert_eq!(first.of_input(10, 3).id(5), first.id(15));
        let document = doc! { "a": 1 };
        assert_eq!(with_id(&first, 2500, &document), with_id(&again, 2500, &document));
        assert_ne!(with_id(&first, 2500, &document), with_id(&first, 2501, &document));
        assert_eq!(with_id(&first, 7, &document), doc! { "_id": first.id(7), "a": 1 });
        assert_eq!(with_id(&first, 0, &doc! {}), doc! { "_id": first.first_id });
    }

    #[test]
    fn an_own_id_is_kept() {
        let document = doc! { "a": 1, "_id": 5 };
        assert_eq!(with_id(&ResumePoint::beginning(), 1, &document), document);
    }

    #[test]
    fn a_point_is_a_number_with_or_without_an_id() {
        assert_eq!("12".parse::<ResumePoint>().unwrap().records, 12);
        let of_folder = "7:65f0c3a8e4b0f2a1c3d4e5f6:4-9b3c01aa-0,2";
        assert_eq!(of_folder.parse::<ResumePoint>().unwrap().to_string(), of_folder);
        for text in ["", "x", "1:2", "-1", "7:65f0c3a8e4b0f2a1c3d4e5f6:", "7:65f0c3a8e4b0f2a1c3d4e5f6:x"] {
            assert!(text.parse::<ResumePoint>().is_err(), "{text}");
        }
    }
}
