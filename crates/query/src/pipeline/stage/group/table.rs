//! The groups of one run of `$group`: a hash table of accumulated states, which spills.
//!
//! 1. The table grows with the groups and their states. When the reservation cannot grow, each group's states
//!    are saved as they are (*partial* states), and go to a sorter under the group's key.
//! 2. The table begins anew. A group that comes again has further partial states.
//! 3. At the end the sorter gives the partial states of a group one behind the other, in the order in which
//!    they were saved. So `$first`, `$last` and `$push` keep the order of the input.
//!
//! Without a spill the groups come in the order in which they were met; else in the order of their keys.

mod segments;

use std::sync::Arc;

use pando_catalog::{Reservation, Sorter};
use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawValue};

use self::segments::Segment;
use super::super::unwind::UnwoundValues;
use super::columns::{self, Column, LeavingColumn};
use super::ends::{Ends, Place};
use super::keys::{GroupKeys, Hashing};
use super::{Reads, Specification, Unwinding};
use crate::error::{ErrorCode, QueryError};
use crate::expression::accumulator::{Accumulator, not_saved};
use crate::expression::{Evaluated, Frame};
use crate::literal::Literal;
use crate::memory::{DiskUse, MEMORY_BYTES_MAX, NO_SCRATCH, StageMemory, USED_UP, hold_value};
use crate::sort::Check;

/// Groups between two looks at the reservation while the table is emptied.
const GROUPS_A_LOOK: usize = 256;

/// Elements of one document between two checks whether the operation has to end.
const ELEMENTS_A_CHECK: usize = 64;

/// See the module's head.
pub(super) struct Table {
    specification: Arc<Specification>,
    memory: StageMemory,
    reservation: Reservation,
    groups: Groups,
    bytes: usize,
    /// Groups of tables that were absorbed, in the order of their documents.
    segments: Vec<Segment>,
    key: Vec<u8>,
    sort_key: Vec<u8>,
    phase: Phase,
}

/// The groups in memory. They go by numbers in the order in which they were met.
struct Groups {
    keys: GroupKeys,
    ids: Vec<Literal>,
    columns: Vec<Column>,
    /// Of a group that has taken in a sort.
    ends: Vec<Ends>,
}

/// The group of a document, and the value of its `_id` on it.
struct Found<'a> {
    group: usize,
    id: Evaluated<'a>,
}

/// A group that is put together of partial states.
struct OneGroup {
    id: Literal,
    ends: Option<Ends>,
    states: Vec<Box<dyn Accumulator>>,
}

/// The group to give next.
#[derive(Clone, Copy, Debug, Default)]
struct NextGroup {
    /// Segments that were given, the table's own groups counted as the first.
    passed: usize,
    number: usize,
}

enum Phase {
    Filling,
    /// Some groups were put out.
    Spilling(Box<Sorter>),
    /// From memory.
    Giving(NextGroup),
    /// From the sorter; the group under way, with its key.
    Merging(Box<Sorter>, Option<(Vec<u8>, OneGroup)>),
}

impl Table {
    pub fn new(specification: &Arc<Specification>, memory: &StageMemory) -> Table {
        Table {
            specification: Arc::clone(specification),
            memory: memory.clone(),
            reservation: memory.account.reserve(),
            groups: Groups::new(specification),
            bytes: 0,
            segments: Vec::new(),
            key: Vec::new(),
            sort_key: Vec::new(),
            phase: Phase::Filling,
        }
    }

    /// Whether the input has ended.
    pub fn is_giving(&self) -> bool {
        matches!(self.phase, Phase::Giving(_) | Phase::Merging(..))
    }

    /// Takes a document into its group.
    pub fn take(&mut self, root: &RawDocument, times: u64, check: Check<'_>) -> Result<(), QueryError> {
        debug_assert!(self.segments.is_empty(), "documents come before other tables are absorbed");
        let Table { specification, groups, key, sort_key, bytes, .. } = self;
        let mut frame = Frame::new(root);
        let Found { group, id } = groups.find(specification, &mut frame, key, bytes)?;
        let place = match &specification.sort {
            None => Place::Only,
            Some(pattern) => {
                sort_key.clear();
                pattern.append_key(root, sort_key)?;
                groups.place(group, id.raw_or_null(), sort_key, bytes)
            }
        };
        for (field, column) in specification.fields.iter().zip(&mut groups.columns) {
            if !place.is_for(field.takes) {
                continue;
            }
            let holds_values = column.holds_values();
            let state = column.state(group);
            if !holds_values {
                field.call.feed(state, &mut frame, times)?;
                continue;
            }
            let before = state.held_bytes();
            field.call.feed(state, &mut frame, times)?;
            *bytes = *bytes + state.held_bytes() - before;
        }
        if self.is_above_reservation() {
            return self.make_room(check);
        }
        Ok(())
    }

    /// Takes the elements of a document into their groups.
    pub fn take_elements(
        &mut self,
        root: &RawDocument,
        unwinding: &Unwinding,
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        let array = match unwinding.unwind.elements(root, &unwinding.field)? {
            UnwoundValues::None => return Ok(()),
            UnwoundValues::One(value) => return self.take_value(root, unwinding, value, check),
            UnwoundValues::Elements(array) => array,
        };
        let specification = Arc::clone(&self.specification);
        let mut frame = Frame::new(root);
        let mut fixed = Vec::with_capacity(specification.fields.len());
        for field in &specification.fields {
            fixed.push(match field.reads {
                Reads::Rest => Some(field.call.argument_value(&mut frame)?),
                Reads::Element => None,
            });
        }
        let mut known = None;
        for (at, element) in array.iter().enumerate() {
            if at % ELEMENTS_A_CHECK == ELEMENTS_A_CHECK - 1 {
                check()?;
            }
            frame.replace_field(&unwinding.field, Some(element?));
            let Table { groups, key, bytes, .. } = &mut *self;
            let group = match (known, unwinding.id_reads) {
                (Some(group), Reads::Rest) => group,
                _ => groups.find(&specification, &mut frame, key, bytes)?.group,
            };
            known = Some(group);
            for ((field, column), fixed) in specification.fields.iter().zip(&mut groups.columns).zip(&fixed) {
                column.feed(group, field, fixed.as_ref(), &mut frame, bytes)?;
            }
            if self.is_above_reservation() {
                self.make_room(&mut *check)?;
                // The groups may have been put out.
                known = None;
            }
        }
        Ok(())
    }

    /// Takes a document in, with another value of the field that is unwound.
    fn take_value(
        &mut self,
        root: &RawDocument,
        unwinding: &Unwinding,
        value: Option<RawValue<'_>>,
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        let Table { specification, groups, key, bytes, .. } = self;
        let mut frame = Frame::new(root);
        frame.replace_field(&unwinding.field, value);
        let group = groups.find(specification, &mut frame, key, bytes)?.group;
        for (field, column) in specification.fields.iter().zip(&mut groups.columns) {
            column.feed(group, field, None, &mut frame, bytes)?;
        }
        if self.is_above_reservation() {
            return self.make_room(check);
        }
        Ok(())
    }

    /// Whether the table has more memory than it may.
    #[inline]
    fn is_above_reservation(&self) -> bool {
        self.bytes > self.reservation.bytes() || self.bytes > MEMORY_BYTES_MAX
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
            format!("$group cannot use {NO_SCRATCH}, and {USED_UP}"),
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
        let groups = std::mem::replace(&mut self.groups, Groups::new(&self.specification));
        let leaving = Leaving { groups, bytes: self.bytes, reservation: &mut self.reservation };
        leaving.put_out(&mut sorter, |_| false, check)?;
        self.bytes = 0;
        for segment in std::mem::take(&mut self.segments) {
            segment.put_out(&mut sorter, check)?;
        }
        Ok(sorter)
    }

    /// Takes in the groups of a table whose documents come behind those of this one.
    pub fn absorb(&mut self, later: &mut Table, check: Check<'_>) -> Result<(), QueryError> {
        if matches!(later.phase, Phase::Spilling(_)) {
            return self.absorb_spilled(later, check);
        }
        if self.keeps_segments() {
            return self.absorb_as_segment(later, check);
        }
        let Groups { keys, ids, columns, .. } =
            std::mem::replace(&mut later.groups, Groups::new(&self.specification));
        let keys = keys.into_descending();
        let mut columns: Vec<LeavingColumn> = columns.into_iter().map(Column::leave).collect();
        let bytes_a_group = later.bytes / keys.len().max(1);
        for (number, id) in ids.into_iter().enumerate() {
            let rank = keys.len() - 1 - number;
            let group = keys.with_key(rank, |key| match self.groups.keys.find(key) {
                Some(group) => Some(group),
                None => {
                    self.bytes += key.len() + self.groups.keys.insert(key, self.groups.ids.len());
                    None
                }
            });
            if group.is_none() {
                self.bytes += columns::push(&mut self.groups.ids, id);
            }
            for (column, later) in self.groups.columns.iter_mut().zip(&mut columns) {
                self.bytes += column.absorb_next(group, later)?;
            }
            if number.is_multiple_of(GROUPS_A_LOOK) {
                check()?;
                later.reservation.shrink_to(later.bytes.saturating_sub(number * bytes_a_group));
            }
            if self.is_above_reservation() {
                self.make_room(check)?;
            }
        }
        later.bytes = 0;
        later.reservation.shrink_to(0);
        Ok(())
    }

    /// The same where the later table has spilled: this one spills, too, and its states come first.
    fn absorb_spilled(&mut self, later: &mut Table, check: Check<'_>) -> Result<(), QueryError> {
        let mut sorter = self.empty_into_sorter(check)?;
        let mut spilled = later.empty_into_sorter(check)?;
        spilled.finish(check)?;
        while let Some((key, saved)) = spilled.next(check)? {
            sorter.push(key, saved, check)?;
        }
        self.phase = Phase::Spilling(sorter);
        Ok(())
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
                self.groups.keys = GroupKeys::new(&self.specification.hashing);
                self.segments.iter_mut().for_each(|segment| segment.forget_keys(&self.specification));
                Phase::Giving(NextGroup::default())
            }
        };
        Ok(())
    }

    /// Writes the document of the next group; false behind the last.
    pub fn write_next(&mut self, out: &mut Vec<u8>, check: Check<'_>) -> Result<bool, QueryError> {
        let mut finished = match &mut self.phase {
            Phase::Filling | Phase::Spilling(_) => return Ok(false),
            Phase::Giving(next) => {
                let (groups, segments) = (&mut self.groups, &mut self.segments);
                return segments::write_next(groups, segments, next, &self.specification, out);
            }
            Phase::Merging(sorter, under_way) => {
                let merge = Merge { specification: &self.specification, reservation: &mut self.reservation };
                merge.next(sorter, under_way, check)?
            }
        };
        match &mut finished {
            Some(group) => group.write(&self.specification, out).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Groups that leave a table, and the reservation that shrinks as they do.
struct Leaving<'t> {
    groups: Groups,
    bytes: usize,
    reservation: &'t mut Reservation,
}

impl Leaving<'_> {
    /// Moves the groups into a sorter, but those of some numbers.
    fn put_out(
        mut self,
        sorter: &mut Sorter,
        leaves_out: impl Fn(usize) -> bool,
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        let no_keys = GroupKeys::new(&Hashing::default());
        let keys = std::mem::replace(&mut self.groups.keys, no_keys).into_descending();
        let bytes_a_group = self.bytes / keys.len().max(1);
        let mut saved = Vec::new();
        for rank in 0..keys.len() {
            saved.clear();
            self.groups.pop(&mut saved);
            if !leaves_out(keys.len() - 1 - rank) {
                keys.with_key(rank, |key| sorter.push(key, &saved, check))?;
            }
            if rank.is_multiple_of(GROUPS_A_LOOK) {
                check()?;
                self.reservation.shrink_to(self.bytes.saturating_sub(rank * bytes_a_group));
            }
        }
        self.reservation.shrink_to(0);
        Ok(())
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
                    group.merge(saved, self.specification)?;
                    hold_value(self.reservation, group.held_bytes(), "an accumulator of $group")?;
                    continue;
                }
                _ => under_way.take(),
            };
            let id = saved_id(saved)?;
            let states = self.specification.start(id.raw())?;
            let mut group = OneGroup { id, ends: None, states };
            group.merge(saved, self.specification)?;
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
        let ends = self.ends.as_ref().map_or(0, Ends::held_bytes);
        ends + self.states.iter().map(|state| state.held_bytes()).sum::<usize>()
    }

    /// Takes in the states of a saved group, which are later ones.
    fn merge(&mut self, saved: &[u8], specification: &Specification) -> Result<(), QueryError> {
        let array = RawArray::from_document(RawDocument::from_bytes(saved)?);
        let mut parts = array.iter().skip(1);
        let places = match specification.sort {
            None => [Place::Only; 2],
            Some(_) => {
                let (Some(first), Some(last)) = (parts.next(), parts.next()) else { return Err(not_saved()) };
                self.merge_ends(&Ends::saved(first?, last?)?, saved)?
            }
        };
        for ((field, state), saved) in specification.fields.iter().zip(&mut self.states).zip(parts) {
            if places.iter().any(|place| place.is_for(field.takes)) {
                state.merge(saved?)?;
            }
        }
        Ok(())
    }

    /// Takes in the ends of a saved group; the places of its first and its last document.
    fn merge_ends(&mut self, later: &Ends, saved: &[u8]) -> Result<[Place; 2], QueryError> {
        let Some(ends) = &mut self.ends else {
            self.ends = Some(later.clone());
            return Ok([Place::Only; 2]);
        };
        let places = ends.merge(later);
        if places[0] == Place::First {
            self.id = saved_id(saved)?;
        }
        Ok(places)
    }

    fn write(&mut self, specification: &Specification, out: &mut Vec<u8>) -> Result<(), QueryError> {
        let states = self.states.iter_mut().map(|state| &mut **state as &mut dyn Accumulator);
        write_group(&self.id, specification, states, out)
    }
}

impl Groups {
    fn new(specification: &Specification) -> Groups {
        Groups {
            keys: GroupKeys::new(&specification.hashing),
            ids: Vec::new(),
            columns: specification.fields.iter().map(|field| Column::of(&field.call)).collect(),
            ends: Vec::new(),
        }
    }

    /// The group of a frame's document; a new one where there is none, whose memory is added to `bytes`.
    #[inline]
    fn find<'a>(
        &mut self,
        specification: &'a Specification,
        frame: &mut Frame<'a>,
        key: &mut Vec<u8>,
        bytes: &mut usize,
    ) -> Result<Found<'a>, QueryError> {
        key.clear();
        let id = specification.id.evaluate(frame, &specification.order, key)?;
        let group = match self.keys.find(key) {
            Some(group) => group,
            None => self.add(key, id.raw_or_null(), specification, bytes)?,
        };
        Ok(Found { group, id })
    }

    /// Adds a group, and its memory to `bytes`; its number.
    fn add(
        &mut self,
        key: &[u8],
        id: RawValue<'_>,
        specification: &Specification,
        bytes: &mut usize,
    ) -> Result<usize, QueryError> {
        let group = self.ids.len();
        // The key is about as long as the value.
        *bytes += key.len() + self.keys.insert(key, group) + columns::push(&mut self.ids, Literal::new(id));
        for (field, column) in specification.fields.iter().zip(&mut self.columns) {
            *bytes += column.push(&field.call, id)?;
        }
        Ok(group)
    }

    /// Adds a document to the order of its group.
    fn place(&mut self, group: usize, id: RawValue<'_>, sort_key: &[u8], bytes: &mut usize) -> Place {
        let Some(ends) = self.ends.get_mut(group) else {
            let ends = Ends::of(sort_key);
            *bytes += ends.held_bytes() + columns::push(&mut self.ends, ends);
            return Place::Only;
        };
        let before = ends.held_bytes();
        let place = ends.add(sort_key);
        *bytes = *bytes + ends.held_bytes() - before;
        // The group shows the value of its first document.
        if place == Place::First {
            self.ids[group] = Literal::new(id);
        }
        place
    }

    /// Removes the last group. Appends an array of its `_id` and its states.
    fn pop(&mut self, out: &mut Vec<u8>) {
        let Some(last) = self.ids.len().checked_sub(1) else { return };
        let mut array = ArrayWriter::begin(out);
        array.push(self.ids[last].raw());
        if let Some(ends) = self.ends.pop() {
            ends.save(&mut array);
        }
        self.columns.iter_mut().for_each(|column| column.state(last).save(&mut array));
        array.finish();
        columns::truncate(&mut self.ids, last);
        self.columns.iter_mut().for_each(|column| column.truncate(last));
    }

    /// Writes the document of a group; false behind the last.
    fn write(
        &mut self,
        group: usize,
        specification: &Specification,
        out: &mut Vec<u8>,
    ) -> Result<bool, QueryError> {
        let Some(id) = self.ids.get(group) else { return Ok(false) };
        let states = self.columns.iter_mut().map(|column| column.state(group));
        write_group(id, specification, states, out).map(|()| true)
    }
}

/// Writes the document of a group that is whole.
fn write_group<'s>(
    id: &Literal,
    specification: &Specification,
    states: impl Iterator<Item = &'s mut dyn Accumulator>,
    out: &mut Vec<u8>,
) -> Result<(), QueryError> {
    let mut writer = DocumentWriter::begin(out);
    writer.append("_id", id.raw());
    for (field, state) in specification.fields.iter().zip(states) {
        writer.append(&field.name, state.finish()?.raw_or_null());
    }
    writer.finish();
    Ok(())
}
