//! Entry estimates: what the storage engine tells the planner of the numbers of entries and documents.

use pando_catalog::{BlockingMode, Collection, IndexDescription, Transaction};

use super::key_ranges::{self, KeyRanges, storage_direction};
use crate::plan::{Estimates, IndexAccess, Intervals, ScanBounds, ScanDirection};

/// Ranges of one scan that are counted. The others are taken to be like them.
const RANGES_COUNTED_MAX: usize = 16;

/// Entries at each end of a scan whose values are compared.
const ENTRIES_SAMPLED: u32 = 64;

/// The estimates of a collection as a transaction sees it. They never wait for the device, unless the engine
/// cannot tell whether they would.
#[derive(Clone, Copy)]
pub struct EntryEstimates<'e> {
    collection: &'e Collection,
    transaction: &'e dyn Transaction,
    blocking: BlockingMode,
}

impl<'e> EntryEstimates<'e> {
    /// Asks for nothing yet.
    pub fn new(collection: &'e Collection, transaction: &'e dyn Transaction) -> EntryEstimates<'e> {
        EntryEstimates { collection, transaction, blocking: collection.blocking_of_estimates() }
    }
}

impl Estimates for EntryEstimates<'_> {
    fn entries(&self, index: &IndexDescription, bounds: &[Intervals]) -> Option<u64> {
        let counted = bounds.iter().map(|field| field.first(RANGES_COUNTED_MAX)).collect();
        let whole_bytes = key_ranges::whole_bytes(index);
        let mut ranges = KeyRanges::new(index, counted, ScanDirection::Forward, whole_bytes);
        let (mut entries, mut count) = (0_u64, 0);
        while count < RANGES_COUNTED_MAX
            && let Some(range) = ranges.next_range()
        {
            let estimate = match index.is_primary() {
                true => self.collection.estimate_documents(&range, self.transaction, self.blocking),
                false => {
                    let index = self.collection.index(&index.name)?;
                    self.collection.estimate_index(index, &range, self.transaction, self.blocking)
                }
            };
            entries = entries.saturating_add(estimate.ok()?.entries);
            count += 1;
        }
        let all = key_ranges::combinations(bounds).max(count);
        Some(entries.saturating_mul(all as u64) / count.max(1) as u64)
    }

    fn share_of_firsts(&self, access: &IndexAccess, fields: usize) -> Option<f64> {
        let ScanBounds::Fields(bounds) = &access.bounds else { return None };
        let index = self.collection.index(&access.index.name)?;
        let (mut entries, mut firsts) = (0_u32, 0_u32);
        for direction in [ScanDirection::Forward, ScanDirection::Backward] {
            let range = KeyRanges::new(&access.index, bounds.clone(), direction, None).next_range()?;
            let mut scan = self.collection.scan_index(index, range, storage_direction(direction));
            let mut last: Option<Vec<u8>> = None;
            for _ in 0..ENTRIES_SAMPLED {
                let Some(entry) = scan.next(self.transaction, self.blocking).ok()? else { break };
                let length =
                    pando_keyorder::parts_length(entry.fields, &index.directions()[..fields]).ok()?;
                let combination = &entry.fields[..length];
                if last.as_deref() != Some(combination) {
                    firsts += 1;
                    last = Some(combination.to_vec());
                }
                entries += 1;
            }
        }
        (entries > 0).then(|| f64::from(firsts) / f64::from(entries))
    }

    fn documents(&self) -> Option<u64> {
        let whole = pando_catalog::KeyRange::all();
        let estimate = self.collection.estimate_documents(&whole, self.transaction, self.blocking);
        Some(estimate.ok()?.entries)
    }
}
