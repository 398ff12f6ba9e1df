//! Filling an empty tree: entries in order, pulled by the engine.

use std::marker::PhantomData;

use crate::StorageError;

/// What [`Engine::load`](crate::Engine::load) leaves to a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadDurability {
    /// Nothing: what was loaded survives any crash.
    Durable,
    /// All of it: the tree is for this process only.
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
    /// What an iterator of keys and values gives.
    pub fn new(entries: I) -> IteratorEntries<'e, I> {
        IteratorEntries { entries, _borrowed: PhantomData }
    }
}

impl<'e, I: Iterator<Item = (&'e [u8], &'e [u8])>> SortedEntries for IteratorEntries<'e, I> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, StorageError> {
        Ok(self.entries.next())
    }
}
