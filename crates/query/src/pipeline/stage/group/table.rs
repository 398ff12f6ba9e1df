//! The groups of one run of `$group`: a hash table of accumulated states, which spills.
//!
//! 1. The table grows with the groups and their states. When the reservation cannot grow, each group's states
//!    are saved as they are (*partial* states), and go to a sorter under the group's key.
//! 2. The table begins anew. A group that comes again has further partial states.
//! 3. At the end the sorter gives the partial states of a group one behind the other, in the order in which
//!    they were saved. So `$first`, `$last` and `$push` keep the order of the input.
//!
//! Without a spill the groups come in the order in which they were met; else in the order of their keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use pando_catalog::{Bytes, Reservation, Sorter};
use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawValue};

use super::Specification;
use crate::error::{ErrorCode, QueryError};
use crate::expression::Frame;
use crate::expression::accumulator::Accumulator;
use crate::literal::Literal;
use crate::memory::{DiskUse, MEMORY_BYTES_MAX, StageMemory, USED_UP, hold_value};
use crate::sort::Check;

/// Memory of a group beside its key and its states, about: its places in table and list, which are half empty
/// after they have grown.
const GROUP_BYTES: usize = 96 + size_of::<OneGroup>() * 3 / 2;
/// Memory of a state beside its own bytes: its allocation and the pointer to it.
const STATE_BYTES: usize = 32;
/// Groups between two looks at the reservation while the table is emptied.
const GROUPS_A_LOOK: usize = 256;

/// See the module's head.
pub(super) struct Table {
    specification: Arc<Specification>,
    memory: StageMemory,
    reservation: Reservation,
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<OneGroup>,
    bytes: usize,
    key: Vec<u8>,
    phase: Phase,
}

struct OneGroup {
    id: Literal,
    states: Vec<Box<dyn Accumulator>>,
}

enum Phase {
    Filling,
    /// Some groups were put out.
    Spilling(Box<Sorter>),
    /// From memory; the group to give next.
    Giving(usize),
    /// From the sorter; the group under way, with its key.
    Merging(Box<Sorter>, Option<(Vec<u8>, OneGroup)>),
}

impl Table {
    pub fn new(specification: &Arc<Specification>, memory: &StageMemory) -> Table {
        Table {
            specification: Arc::clone(specification),
            memory: memory.clone(),
            reservation: memory.account.reserve(),
            places: HashMap::new(),
            groups: Vec::new(),
            bytes: 0,
            key: Vec::new(),
            phase: Phase::Filling,
        }
    }

    /// Whether the input has ended.
    pub fn is_giving(&self) -> bool {
        matches!(self.phase, Phase::Giving(_) | Phase::Merging(..))
    }

    /// Takes a document into its group.
    pub fn take(&mut self, root: &RawDocument, times: u64, check: Check<'_>) -> Result<(), QueryError> {
        let specification = Arc::clone(&self.specification);
        self.key.clear();
        let mut frame = Frame::new(root);
        let id = specification.id.evaluate(&mut frame, &mut self.key)?;
        let id = id.raw_or_null();
        let place = match self.places.get(&self.key) {
            Some(place) => *place,
            None => self.new_group(id),
        };
        let group = &mut self.groups[place];
        for ((_, call), state) in specification.fields.iter().zip(&mut group.states) {
            let before = state.held_bytes();
            call.feed(state.as_mut(), &mut frame, times)?;
            self.bytes = self.bytes + state.held_bytes() - before;
        }
        if self.bytes > self.reservation.bytes() || self.bytes > MEMORY_BYTES_MAX {
            return self.make_room(check);
        }
        Ok(())
    }

    fn new_group(&mut self, id: RawValue<'_>) -> usize {
        let place = self.groups.len();
        let states = self.specification.start();
        // The key stands for the size of the value as well.
        let states_bytes: usize = states.iter().map(|state| STATE_BYTES + size_of_val(&**state)).sum();
        self.bytes += 2 * self.key.len() + GROUP_BYTES + states_bytes;
        self.groups.push(OneGroup { id: Literal::new(id), states });
        if let Entry::Vacant(vacant) = self.places.entry(self.key.clone()) {
            vacant.insert(place);
        }
        place
    }

    /// Reserves what the table has, or empties it.
    #[cold]
    fn make_room(&mut self, check: Check<'_>) -> Result<(), QueryError> {
        let may_spill = self.memory.disk_use == DiskUse::Allowed;
        if !may_spill && self.bytes > MEMORY_BYTES_MAX {
            return Err(QueryError::new(
                ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.",
            ));
        }
        if self.reservation.grow_to(self.bytes) {
            return Ok(());
        }
        if may_spill {
            return self.spill(check);
        }
        Err(QueryError::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            format!("$group did not allow external sort, and {USED_UP}"),
        ))
    }

    /// Puts all groups out.
    fn spill(&mut self, check: Check<'_>) -> Result<(), QueryError> {
        let mut sorter = self.empty_into_sorter(check)?;
        sorter.spill(check)?;
        self.phase = Phase::Spilling(sorter);
        Ok(())
    }

    /// Moves all groups into the sorter. The table's reservation shrinks as the sorter's grows.
    fn empty_into_sorter(&mut self, check: Check<'_>) -> Result<Box<Sorter>, QueryError> {
        let mut sorter = match std::mem::replace(&mut self.phase, Phase::Filling) {
            Phase::Spilling(sorter) => sorter,
            Phase::Filling | Phase::Giving(_) | Phase::Merging(..) => {
                Box::new(Sorter::new(&self.memory.account))
            }
        };
        let places = std::mem::take(&mut self.places);
        let mut groups = std::mem::take(&mut self.groups);
        let bytes_a_group = self.bytes / groups.len().max(1);
        let mut saved = Vec::new();
        for (count, (key, place)) in places.into_iter().enumerate() {
            let group = &mut groups[place];
            saved.clear();
            group.save(&mut saved);
            group.states = Vec::new();
            sorter.push(&key, &saved, check)?;
            if count.is_multiple_of(GROUPS_A_LOOK) {
                check()?;
                self.reservation.shrink_to(self.bytes.saturating_sub(count * bytes_a_group));
            }
        }
        self.bytes = 0;
        self.reservation.shrink_to(0);
        Ok(sorter)
    }

    /// Ends the input.
    pub fn finish(&mut self, check: Check<'_>) -> Result<(), QueryError> {
        self.phase = match self.phase {
            Phase::Spilling(_) => {
                let mut sorter = self.empty_into_sorter(check)?;
                sorter.finish(check)?;
                Phase::Merging(sorter, None)
            }
            Phase::Filling | Phase::Giving(_) | Phase::Merging(..) => {
                self.places = HashMap::new();
                Phase::Giving(0)
            }
        };
        Ok(())
    }

    /// The document of the next group.
    pub fn next(&mut self, check: Check<'_>) -> Result<Option<Bytes>, QueryError> {
        let mut finished = match &mut self.phase {
            Phase::Filling | Phase::Spilling(_) => return Ok(None),
            Phase::Giving(place) => {
                let Some(group) = self.groups.get_mut(*place) else { return Ok(None) };
                *place += 1;
                return group.write(&self.specification).map(Some);
            }
            Phase::Merging(sorter, under_way) => {
                let merge = Merge { specification: &self.specification, reservation: &mut self.reservation };
                merge.next(sorter, under_way, check)?
            }
        };
        finished.as_mut().map(|group| group.write(&self.specification)).transpose()
    }
}

/// The surroundings of a merge of partial states.
struct Merge<'t> {
    specification: &'t Specification,
    reservation: &'t mut Reservation,
}

impl Merge<'_> {
    /// Takes partial states in until those of another group come; the group that is whole then.
    fn next(
        self,
        sorter: &mut Sorter,
        under_way: &mut Option<(Vec<u8>, OneGroup)>,
        check: Check<'_>,
    ) -> Result<Option<OneGroup>, QueryError> {
        while let Some((key, saved)) = sorter.next(check)? {
            let whole = match under_way {
                Some((same, group)) if same.as_slice() == key => {
                    group.merge(saved)?;
                    hold_value(self.reservation, group.held_bytes(), "an accumulator of $group")?;
                    continue;
                }
                _ => under_way.take(),
            };
            let mut group = OneGroup { id: saved_id(saved)?, states: self.specification.start() };
            group.merge(saved)?;
            self.reservation.shrink_to(0);
            hold_value(self.reservation, group.held_bytes(), "an accumulator of $group")?;
            *under_way = Some((key.to_vec(), group));
            if let Some((_, whole)) = whole {
                return Ok(Some(whole));
            }
        }
        self.reservation.shrink_to(0);
        Ok(under_way.take().map(|(_, group)| group))
    }
}

/// The `_id` of a saved group.
fn saved_id(saved: &[u8]) -> Result<Literal, QueryError> {
    let first = RawDocument::from_bytes(saved)?.iter().next().transpose()?;
    Ok(Literal::new(first.map_or(RawValue::Null, |(_, id)| id)))
}

impl OneGroup {
    fn held_bytes(&self) -> usize {
        self.states.iter().map(|state| state.held_bytes()).sum()
    }

    /// Appends an array of the `_id` and the states.
    fn save(&self, out: &mut Vec<u8>) {
        let mut array = ArrayWriter::begin(out);
        array.push(self.id.raw());
        self.states.iter().for_each(|state| state.save(&mut array));
        array.finish();
    }

    /// Takes in the states of a saved group, which are later ones.
    fn merge(&mut self, saved: &[u8]) -> Result<(), QueryError> {
        let saved = RawArray::from_document(RawDocument::from_bytes(saved)?);
        for (state, saved) in self.states.iter_mut().zip(saved.iter().skip(1)) {
            state.merge(saved?)?;
        }
        Ok(())
    }

    fn write(&mut self, specification: &Specification) -> Result<Bytes, QueryError> {
        let mut bytes = Vec::with_capacity(64);
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append("_id", self.id.raw());
        for ((name, _), state) in specification.fields.iter().zip(&mut self.states) {
            writer.append(name, state.finish()?.raw_or_null());
        }
        writer.finish();
        Ok(Bytes::from(bytes))
    }
}
