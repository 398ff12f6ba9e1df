//! An ordered list of fields that owns its values.

use crate::value::{Copier, OnFault};
use crate::{DocumentError, DocumentWriter, RawDocument, RawDocumentBuf, Value};

/// Fields in their order. Lookups walk the list: documents have few fields.
///
/// `==` is identity of names, types and order; see [`Value`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    fields: Vec<(String, Value)>,
}

impl Document {
    /// The document without fields.
    pub const fn new() -> Self {
        Self { fields: Vec::new() }
    }

    /// An owned copy of raw bytes.
    ///
    /// # Errors
    /// Malformed bytes, or nesting deeper than [`NESTING_MAX`](crate::NESTING_MAX).
    pub fn from_raw(raw: &RawDocument) -> Result<Document, DocumentError> {
        Copier { on_fault: OnFault::Report }.document(raw, 0)
    }

    /// The document's bytes.
    pub fn to_raw(&self) -> RawDocumentBuf {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes);
        RawDocumentBuf::from_vec(bytes).expect("the writer has set length and terminator")
    }

    /// Appends the document's bytes to `out`; gives their number.
    pub fn write_to(&self, out: &mut Vec<u8>) -> usize {
        let mut writer = DocumentWriter::begin(out);
        self.write_fields(&mut writer);
        writer.finish()
    }

    /// The value of the first field with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|field| field.0 == name).map(|field| &field.1)
    }

    /// The value of the first field with this name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.fields.iter_mut().find(|field| field.0 == name).map(|field| &mut field.1)
    }

    /// The last field, its value to be changed.
    pub fn last_mut(&mut self) -> Option<(&str, &mut Value)> {
        self.fields.last_mut().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there is a field with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets a field: in its place if there is one with this name, else at the end. Gives the value that was
    /// there.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        match self.get_mut(&name) {
            Some(old) => Some(std::mem::replace(old, value)),
            None => {
                self.fields.push((name, value));
                None
            }
        }
    }

    /// Appends a field without looking for one with the same name.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.fields.push((name.into(), value.into()));
    }

    /// Takes the first field with this name out; the others keep their order.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let index = self.fields.iter().position(|field| field.0 == name)?;
        Some(self.fields.remove(index).1)
    }

    /// The fields in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> + Clone {
        self.fields.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The fields in their order, with values to be changed.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&str, &mut Value)> {
        self.fields.iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    /// The field names in their order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

impl IntoIterator for Document {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Document {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        Self { fields: fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

impl<N: Into<String>, V: Into<Value>> Extend<(N, V)> for Document {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, fields: I) {
        self.fields.extend(fields.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
}

impl From<&Document> for RawDocumentBuf {
    fn from(document: &Document) -> Self {
        document.to_raw()
    }
}
