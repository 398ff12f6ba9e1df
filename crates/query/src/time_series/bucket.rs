//! Buckets: the options of a time series, and measurements into a bucket and out of it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use pando_document::{
    DocumentWriter, ObjectId, RawBinary, RawDocument, RawDocumentBuf, RawValue, compare_values,
};

use super::column::{self, Column, damaged};
use super::time_span::TimeSpan;
use crate::QueryError;

/// The subtype of the binary values that are columns: one of those that are free for users.
const COLUMN_SUBTYPE: u8 = 0x80;
/// The subtype of MongoDB's own columns.
const FOREIGN_COLUMN_SUBTYPE: u8 = 7;
/// The version of a bucket, as in MongoDB before it compresses one.
const VERSION: i32 = 1;
/// The most measurements of a bucket, as in MongoDB.
pub const ROWS_MAX: usize = 1000;

/// The options of a time series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The field with the time.
    pub time_field: String,
    /// The field with the meta value, if there is one.
    pub meta_field: Option<String>,
    /// The length of a window, in seconds.
    pub span_seconds: i64,
}

impl Series {
    /// The series in the option `timeseries`, or in the argument of the stage that unpacks.
    pub fn of(options: &RawDocument) -> Option<Series> {
        let text =
            |name| options.get(name).ok().flatten().and_then(|value| value.as_str()).map(str::to_owned);
        let span = options.get("bucketMaxSpanSeconds").ok().flatten().and_then(|span| span.as_i64_exact());
        let span_seconds = span.filter(|span| *span > 0)?;
        Some(Series { time_field: text("timeField")?, meta_field: text("metaField"), span_seconds })
    }

    /// The time of a measurement, in milliseconds; `None` where it has none.
    pub fn time_of(&self, measurement: &RawDocument) -> Result<Option<i64>, QueryError> {
        match measurement.get(&self.time_field)? {
            Some(RawValue::DateTime(time)) => Ok(Some(time)),
            _ => Ok(None),
        }
    }

    /// The meta value of a measurement.
    pub fn meta_of<'m>(&self, measurement: &'m RawDocument) -> Result<Option<RawValue<'m>>, QueryError> {
        match &self.meta_field {
            Some(name) => Ok(measurement.get(name)?),
            None => Ok(None),
        }
    }

    /// The first second of the window of a time in milliseconds.
    pub fn window_of(&self, time: i64) -> i64 {
        let seconds = time.div_euclid(1000);
        seconds - seconds.rem_euclid(self.span_seconds)
    }

    /// The bucket of some measurements, which have one meta value and lie in one window.
    pub fn pack(
        &self,
        id: ObjectId,
        meta: Option<RawValue<'_>>,
        measurements: &[RawDocumentBuf],
    ) -> Result<RawDocumentBuf, QueryError> {
        let columns = self.columns_of(measurements)?;
        let mut bytes = Vec::new();
        let mut bucket = DocumentWriter::begin(&mut bytes);
        bucket.append_object_id("_id", id);
        let mut control = bucket.document("control");
        control.append_i32("version", VERSION);
        for (bound, wanted) in [("min", Ordering::Less), ("max", Ordering::Greater)] {
            let mut bounds = control.document(bound);
            for (name, column) in &columns {
                let extreme = column
                    .values()
                    .iter()
                    .copied()
                    .reduce(|have, next| if compare_values(next, have) == wanted { next } else { have });
                if let Some(extreme) = extreme {
                    bounds.append(name, extreme);
                }
            }
            bounds.finish();
        }
        control.append_i32("count", i32::try_from(measurements.len()).unwrap_or(i32::MAX));
        control.finish();
        if let Some(meta) = meta {
            bucket.append("meta", meta);
        }
        let mut data = bucket.document("data");
        for (name, column) in &columns {
            let column = column::encode(column, measurements.len());
            data.append(name, RawValue::Binary(RawBinary { subtype: COLUMN_SUBTYPE, bytes: &column }));
        }
        data.finish();
        bucket.finish();
        Ok(RawDocumentBuf::from_vec(bytes)?)
    }

    /// The columns of measurements: that of the time, and the others as their names come.
    fn columns_of<'m>(
        &'m self,
        measurements: &'m [RawDocumentBuf],
    ) -> Result<Vec<(&'m str, Column<'m>)>, QueryError> {
        let mut columns = vec![Column::growing()];
        let mut names = FieldNames::default();
        names.place_of(&self.time_field);
        for (row, measurement) in (0_u32..).zip(measurements) {
            names.begin_measurement();
            for field in measurement.iter() {
                let (name, value) = field?;
                if self.meta_field.as_deref() == Some(name) {
                    continue;
                }
                let place = names.place_of(name);
                if place == columns.len() {
                    columns.push(Column::growing());
                }
                columns[place].push(row, value);
            }
        }
        let columns = names.list.into_iter().zip(columns).collect();
        Ok(columns)
    }

    /// The number of the measurements of a bucket.
    pub fn count(&self, bucket: &RawDocument) -> Result<usize, QueryError> {
        let part = |name| match bucket.get(name)? {
            Some(RawValue::Document(part)) => Ok::<_, QueryError>(part),
            _ => Err(damaged()),
        };
        match part("control")?.get("count")?.and_then(|count| count.as_i64_exact()) {
            Some(count) => usize::try_from(count).ok().filter(|count| *count <= ROWS_MAX).ok_or_else(damaged),
            None => count_of(part("data")?.get(&self.time_field)?),
        }
    }

    /// The measurements of a bucket; of their fields only the wanted ones, where the caller says.
    ///
    /// # Errors
    /// The document is no bucket, or is one that MongoDB has compressed.
    pub fn unpack<'b>(
        &'b self,
        bucket: &'b RawDocument,
        wanted: Option<&BTreeSet<String>>,
    ) -> Result<Unpacked<'b>, QueryError> {
        self.unpack_within(bucket, wanted, &mut |_| Ok(()))
    }

    /// The same, where `hold` is told how many bytes of memory the columns so far take: a bucket may have
    /// far fewer bytes than its values.
    ///
    /// # Errors
    /// Those of `unpack`, and those of `hold`.
    pub fn unpack_within<'b>(
        &'b self,
        bucket: &'b RawDocument,
        wanted: Option<&BTreeSet<String>>,
        hold: &mut dyn FnMut(usize) -> Result<(), QueryError>,
    ) -> Result<Unpacked<'b>, QueryError> {
        let count = self.count(bucket)?;
        let Some(RawValue::Document(data)) = bucket.get("data")? else { return Err(damaged()) };
        let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.contains(name));
        let (mut columns, mut bytes) = (Vec::new(), 0);
        for field in data.iter() {
            let (name, value) = field?;
            if !is_wanted(name) {
                continue;
            }
            let column = column_of(value, count)?;
            bytes += size_of::<&str>() + column.memory_bytes();
            hold(bytes)?;
            columns.push((name, column));
        }
        // The time comes first.
        if let Some(at) = columns.iter().rposition(|(name, _)| *name == self.time_field) {
            columns[..=at].rotate_right(1);
        }
        let meta = match &self.meta_field {
            Some(name) if is_wanted(name) => bucket.get("meta")?.map(|meta| (name.as_str(), meta)),
            _ => None,
        };
        let has_time = columns.first().is_some_and(|(name, _)| *name == self.time_field);
        Ok(Unpacked { count, columns, meta, meta_place: usize::from(has_time) })
    }
}

/// The different names of the fields of measurements, in the order in which they first come.
#[derive(Debug, Default)]
pub struct FieldNames<'m> {
    list: Vec<&'m str>,
    places: HashMap<&'m str, usize>,
    /// The place of the name that is expected next: the fields of most measurements come in one order.
    next: usize,
}

impl<'m> FieldNames<'m> {
    /// The next name is the first one of a measurement.
    pub fn begin_measurement(&mut self) {
        self.next = 0;
    }

    /// The place of a name, which is added where it is new.
    pub fn place_of(&mut self, name: &'m str) -> usize {
        let place = match self.list.get(self.next) {
            Some(expected) if *expected == name => self.next,
            _ => *self.places.entry(name).or_insert(self.list.len()),
        };
        if place == self.list.len() {
            self.list.push(name);
        }
        self.next = place + 1;
        place
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }
}

/// The measurements in a column of MongoDB that is a document.
fn count_of(column: Option<RawValue<'_>>) -> Result<usize, QueryError> {
    let Some(RawValue::Document(column)) = column else { return Err(damaged()) };
    let mut count = 0;
    for field in column.iter() {
        count = count.max(place_of(field?.0)? + 1);
    }
    Ok(count)
}

fn place_of(name: &str) -> Result<usize, QueryError> {
    name.parse().ok().filter(|place| *place < ROWS_MAX).ok_or_else(damaged)
}

fn column_of(column: RawValue<'_>, count: usize) -> Result<Column<'_>, QueryError> {
    match column {
        RawValue::Binary(RawBinary { subtype: COLUMN_SUBTYPE, bytes }) => column::decode(bytes, count),
        RawValue::Binary(RawBinary { subtype: FOREIGN_COLUMN_SUBTYPE, .. }) => {
            Err(QueryError::not_implemented(
                "a bucket that MongoDB has compressed: copy the measurements instead",
            ))
        }
        RawValue::Document(fields) => {
            let mut values = BTreeMap::new();
            for field in fields.iter() {
                let (name, value) = field?;
                let place = Some(place_of(name)?).filter(|place| *place < count).ok_or_else(damaged)?;
                values.insert(u32::try_from(place).map_err(|_| damaged())?, value);
            }
            Ok(Column::of(values))
        }
        _ => Err(damaged()),
    }
}

/// The measurements of a bucket.
pub struct Unpacked<'b> {
    count: usize,
    columns: Vec<(&'b str, Column<'b>)>,
    meta: Option<(&'b str, RawValue<'b>)>,
    /// The columns before the meta value: that of the time.
    meta_place: usize,
}

impl Unpacked<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the time of one of them lies within a span, as far as times are unpacked.
    pub fn is_within(&self, at: usize, span: TimeSpan) -> bool {
        match self.columns.first() {
            Some((_, times)) if self.meta_place == 1 => span.has(times.get(at)),
            _ => true,
        }
    }

    /// Appends one of them as a document: the time, the meta value, all others.
    pub fn write(&self, at: usize, out: &mut Vec<u8>) {
        self.write_with(at, self.meta, out);
    }

    /// The same without the meta value, which [`Series::pack`] takes once for all.
    pub fn write_without_meta(&self, at: usize, out: &mut Vec<u8>) {
        self.write_with(at, None, out);
    }

    fn write_with(&self, at: usize, meta: Option<(&str, RawValue<'_>)>, out: &mut Vec<u8>) {
        let mut document = DocumentWriter::begin(out);
        let (first, rest) = self.columns.split_at(self.meta_place);
        let append = |document: &mut DocumentWriter<'_>, columns: &[(&str, Column<'_>)]| {
            for (name, column) in columns {
                if let Some(value) = column.get(at) {
                    document.append(name, value);
                }
            }
        };
        append(&mut document, first);
        if let Some((name, meta)) = meta {
            document.append(name, meta);
        }
        append(&mut document, rest);
        document.finish();
    }
}
