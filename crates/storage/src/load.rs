//! Bulk loads: entries in order, pulled by the engine into an empty tree.

use std::marker::PhantomData;

use crate::error::StorageError;

/// Whether a load survives a crash, see [`Engine::load`](crate::Engine::load).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadDurability {
    /// It survives any crash.
    Durable,
    /// It need not: the tree is for this process only.
    Scratch,
}

/// Entries in strictly ascending order of their keys. An error ends the load and comes out of it as it is.
pub trait SortedEntries {
    /// The next key and value; `None` at the end.
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError>;
}

/// The entries of an iterator.
pub struct IteratorEntries<'e, I> {
    entries: I,
    _borrowed: PhantomData<&'e [u8]>,
}

impl<'e, I: Iterator<Item = (&'e [u8], &'e [u8])>> IteratorEntries<'e, I> {
    /// The entries of an iterator over keys and values.
    pub fn new(entries: I) -> IteratorEntries<'e, I> {
        IteratorEntries { entries, _borrowed: PhantomData }
    }
}

impl<'e, I: Iterator<Item = (&'e [u8], &'e [u8])>> SortedEntries for IteratorEntries<'e, I> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        Ok(self.entries.next())
    }
}
