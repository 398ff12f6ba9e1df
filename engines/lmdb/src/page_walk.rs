//! A walk over the pages of LMDB's table that trusts no byte of them.
//!
//! LMDB's pages have no checksums, and LMDB takes their offsets as they are: a damaged page can end the
//! process. So damage is looked for here, in the file and without LMDB. The pages of a snapshot are not
//! written over while it lives.
//!
//! # Layout of a page (LMDB 0.9, little-endian, 64 bits)
//! ```text
//! page number u64 | unused u16 | kind u16 | end of the offsets u16, start of the nodes u16 | offsets u16 …
//!                                         | or, in the first overflow page: number of pages u32
//! node: low u16 | high u16 | flags u16 | bytes of the key u16 | key | value
//! ```
//! In a branch page low, high and flags are the number of a child. In a leaf low and high are the bytes of
//! the value; with the flag [`IN_OVERFLOW`] the number of the value's first page stands in its place. The
//! first key of a branch page is empty.

use pando_environment::File;
use pando_storage::{ErrorKind, Operation, StorageError};

use crate::failure::{corrupt, environment_failed};

const PAGE_HEAD: usize = 16;
const NODE_HEAD: usize = 8;
const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;
/// Kinds that a page of the table never has: pages of metas, and those within values of several parts.
const OTHER_KINDS: u16 = 0x08 | 0x20 | 0x40;
const IN_OVERFLOW: u16 = 1;
/// LMDB's own limit of the depth.
const DEPTH_MAX: u16 = 32;
/// Bytes of a value that are read at once.
const PIECE_BYTES: u64 = 1 << 20;
const META_MAGIC: u32 = 0xBEEF_C0DE;
/// Where a meta page has the number of the transaction that made its state.
const META_NUMBER_AT: usize = 144;
const NO_PAGE: u64 = u64::MAX;
/// Problems after which a walk ends.
const PROBLEMS_MAX: usize = 100;

/// A state of the table, as a meta page describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableState {
    /// LMDB's number of the transaction that made it.
    pub(crate) number: u64,
    root: u64,
    depth: u16,
    pages: u64,
    page_bytes: usize,
}

impl TableState {
    /// The state of this number, or the newest one, in a copy of both meta pages.
    pub(crate) fn of_metas(metas: &[u8], number: Option<u64>) -> Option<TableState> {
        let states = metas.chunks_exact(metas.len() / 2).filter_map(TableState::of_meta);
        match number {
            Some(number) => states.into_iter().find(|state| state.number == number),
            None => states.max_by_key(|state| state.number),
        }
    }

    fn of_meta(meta: &[u8]) -> Option<TableState> {
        if u32_at(meta, PAGE_HEAD)? != META_MAGIC {
            return None;
        }
        Some(TableState {
            number: u64_at(meta, META_NUMBER_AT)?,
            root: u64_at(meta, 128)?,
            depth: u16_at(meta, 94)?,
            pages: u64_at(meta, 136)?.checked_add(1)?,
            page_bytes: usize::try_from(u32_at(meta, 40)?)
                .ok()
                .filter(|bytes| (256..=65_536).contains(bytes))?,
        })
    }
}

/// Gives the state in the meta pages of a copy this number. LMDB counts from one in a copy, and puts the
/// state into the second page. It looks for a state in the page that the last bit of its number names.
pub(crate) fn renumber(metas: &mut [u8], number: u64) {
    let (first, second) = metas.split_at_mut(metas.len() / 2);
    let place = if number.is_multiple_of(2) {
        first[PAGE_HEAD..].swap_with_slice(&mut second[PAGE_HEAD..]);
        first
    } else {
        second
    };
    place[META_NUMBER_AT..META_NUMBER_AT + 8].copy_from_slice(&number.to_le_bytes());
}

/// The walk: the trees that are wanted, and the sight of each of their entries.
pub(crate) struct PageWalk<'w> {
    pub(crate) file: &'w dyn File,
    pub(crate) state: TableState,
    /// Whether entries of some tree are wanted whose number is from the first to the second. Pages without
    /// wanted ones are left out.
    pub(crate) wants: &'w dyn Fn(u32, u32) -> bool,
    pub(crate) operation: Option<&'w Operation>,
    /// Is shown the key of each entry, with its tree's number before it, the bytes of its value, and the
    /// value if it lies in the leaf.
    pub(crate) see: &'w mut dyn FnMut(&[u8], u64, Option<&[u8]>),
}

/// The findings of a walk.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The damaged pages: the number of the tree that the keys before belong to, and a sentence.
    pub(crate) problems: Vec<(u32, String)>,
}

/// A page to be visited.
#[derive(Clone)]
struct Visit {
    page: u64,
    depth: u16,
    /// Its keys are at least this one.
    lower: Vec<u8>,
    /// Its keys are below this one.
    upper: Option<Vec<u8>>,
}

impl PageWalk<'_> {
    /// Visits all pages in the order of their keys. Damage is no error: the rest is walked all the same.
    pub(crate) fn run(&mut self) -> Result<Walked, StorageError> {
        let mut walked = Walked::default();
        let mut visits = Vec::new();
        if self.state.root != NO_PAGE {
            visits.push(Visit { page: self.state.root, depth: 1, lower: Vec::new(), upper: None });
        }
        while let Some(visit) = visits.pop() {
            self.operation.map_or(Ok(()), Operation::check_now)?;
            match self.visit(&visit) {
                // The first child is to be visited first.
                Ok(children) => visits.extend(children.into_iter().rev()),
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    walked.problems.push((tree_of(&visit.lower), format!("page {}: {error}", visit.page)));
                    if walked.problems.len() == PROBLEMS_MAX {
                        return Ok(walked);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(walked)
    }

    /// Checks a page; shows its entries, or gives the children that have wanted ones.
    fn visit(&mut self, visit: &Visit) -> Result<Vec<Visit>, StorageError> {
        let bytes = self.read_page(visit.page)?;
        let kind = u16_at(&bytes, 10).unwrap_or(0);
        let expected = if visit.depth < self.state.depth { BRANCH } else { LEAF };
        if kind & (BRANCH | LEAF | OVERFLOW) != expected || kind & OTHER_KINDS != 0 {
            return Err(corrupt(format!("its kind is {kind:#06x} at depth {}", visit.depth)));
        }
        if visit.depth > DEPTH_MAX {
            return Err(corrupt("the tree is too deep"));
        }
        let nodes = Nodes::of(&bytes).ok_or_else(|| corrupt("its offsets lie outside of it"))?;
        if expected == BRANCH {
            self.children(visit, &nodes)
        } else {
            self.entries(visit, &nodes).map(|()| Vec::new())
        }
    }

    fn read_page(&self, page: u64) -> Result<Vec<u8>, StorageError> {
        if page < 2 || page >= self.state.pages {
            return Err(corrupt(format!("the file has pages 2 to {}", self.state.pages - 1)));
        }
        let mut bytes = vec![0; self.state.page_bytes];
        self.file.read_exact_at(&mut bytes, page * self.state.page_bytes as u64).map_err(
            |error| match error.is_past_end() {
                true => corrupt("the file ends before it"),
                false => environment_failed("cannot read LMDB's file", error),
            },
        )?;
        match u64_at(&bytes, 0) {
            Some(number) if number == page => Ok(bytes),
            number => Err(corrupt(format!("it says to be page {}", number.unwrap_or(0)))),
        }
    }

    fn children(&self, visit: &Visit, nodes: &Nodes<'_>) -> Result<Vec<Visit>, StorageError> {
        let outside = || corrupt("a node lies outside of it");
        let mut children: Vec<Visit> = Vec::new();
        for at in 0..nodes.count() {
            let node = nodes.node(at).ok_or_else(outside)?;
            let key = node.key().ok_or_else(outside)?;
            // The first key stands for everything below the second.
            let lower = if at == 0 { visit.lower.clone() } else { key.to_vec() };
            if let Some(before) = children.last_mut() {
                // The first child may begin where the page does, and not before.
                if before.lower >= lower && !(at == 1 && before.lower == lower) {
                    return Err(corrupt("its keys do not ascend"));
                }
                before.upper = Some(lower.clone());
            }
            children.push(Visit {
                page: node.child(),
                depth: visit.depth + 1,
                lower,
                upper: visit.upper.clone(),
            });
        }
        if children.len() < 2 {
            return Err(corrupt("a branch page has fewer than two children"));
        }
        if let (Some(last), Some(upper)) = (children.last(), &visit.upper)
            && last.lower >= *upper
        {
            return Err(corrupt("its keys reach beyond its place"));
        }
        children.retain(|child| {
            let last = child.upper.as_deref().map_or(u32::MAX, tree_of);
            (self.wants)(tree_of(&child.lower), last)
        });
        Ok(children)
    }

    fn entries(&mut self, visit: &Visit, nodes: &Nodes<'_>) -> Result<(), StorageError> {
        let outside = || corrupt("an entry lies outside of it");
        let mut last: Option<&[u8]> = None;
        for at in 0..nodes.count() {
            let node = nodes.node(at).ok_or_else(outside)?;
            let key = node.key().ok_or_else(outside)?;
            let is_in_place = key >= visit.lower.as_slice()
                && visit.upper.as_deref().is_none_or(|upper| key < upper)
                && last.is_none_or(|last| last < key);
            if !is_in_place {
                return Err(corrupt("its keys do not ascend, or belong elsewhere"));
            }
            last = Some(key);
            if !(self.wants)(tree_of(key), tree_of(key)) {
                continue;
            }
            let value = if node.is_in_overflow() {
                let first = node.overflow_page().ok_or_else(outside)?;
                self.read_value(first, node.value_bytes())?;
                None
            } else {
                Some(node.value().ok_or_else(outside)?)
            };
            (self.see)(key, node.value_bytes(), value);
        }
        Ok(())
    }

    /// Reads a value that has pages of its own.
    fn read_value(&self, first: u64, bytes: u64) -> Result<(), StorageError> {
        let failed = |why: String| corrupt(format!("a value on page {first}: {why}"));
        let head = self.read_page(first).map_err(|error| match error.kind() {
            ErrorKind::Corrupt => failed(error.to_string()),
            _ => error,
        })?;
        let page_bytes = self.state.page_bytes as u64;
        let pages = (PAGE_HEAD as u64 + bytes).div_ceil(page_bytes);
        let kind = u16_at(&head, 10).unwrap_or(0);
        let has_pages = u64::from(u32_at(&head, 12).unwrap_or(0));
        if kind & (BRANCH | LEAF | OVERFLOW) != OVERFLOW || has_pages < pages {
            return Err(failed(format!("it has kind {kind:#06x} and {has_pages} pages for {bytes} bytes")));
        }
        if first.checked_add(pages).is_none_or(|end| end > self.state.pages) {
            return Err(failed("it reaches beyond the file".to_owned()));
        }
        let (mut at, end) = (first * page_bytes, (first + pages) * page_bytes);
        let mut piece = vec![0; (end - at).min(PIECE_BYTES) as usize];
        while at < end {
            piece.truncate((end - at) as usize);
            self.file
                .read_exact_at(&mut piece, at)
                .map_err(|error| environment_failed("cannot read a value in LMDB's file", error))?;
            at += piece.len() as u64;
        }
        Ok(())
    }
}

/// The nodes of a page whose offsets lie within it.
struct Nodes<'p> {
    page: &'p [u8],
    offsets_end: usize,
    nodes_start: usize,
}

impl<'p> Nodes<'p> {
    fn of(page: &'p [u8]) -> Option<Nodes<'p>> {
        let (offsets_end, nodes_start) = (usize::from(u16_at(page, 12)?), usize::from(u16_at(page, 14)?));
        // A page of 64 KiB has 0 for its end.
        let nodes_start = if nodes_start == 0 { page.len() } else { nodes_start };
        let is_sound = PAGE_HEAD <= offsets_end && offsets_end <= nodes_start && nodes_start <= page.len();
        is_sound.then_some(Nodes { page, offsets_end, nodes_start })
    }

    fn count(&self) -> usize {
        (self.offsets_end - PAGE_HEAD) / 2
    }

    fn node(&self, at: usize) -> Option<Node<'p>> {
        let offset = usize::from(u16_at(self.page, PAGE_HEAD + 2 * at)?);
        (offset >= self.nodes_start).then_some(())?;
        let bytes = self.page.get(offset..)?;
        (bytes.len() >= NODE_HEAD).then_some(Node { bytes })
    }
}

/// A node, and the bytes behind it in its page.
#[derive(Clone, Copy)]
struct Node<'p> {
    bytes: &'p [u8],
}

impl<'p> Node<'p> {
    fn half(self, at: usize) -> u64 {
        u64::from(u16_at(self.bytes, at).unwrap_or(0))
    }

    fn key_bytes(self) -> usize {
        self.half(6) as usize
    }

    fn key(self) -> Option<&'p [u8]> {
        self.bytes.get(NODE_HEAD..NODE_HEAD + self.key_bytes())
    }

    fn child(self) -> u64 {
        self.half(0) | self.half(2) << 16 | self.half(4) << 32
    }

    fn value_bytes(self) -> u64 {
        self.half(0) | self.half(2) << 16
    }

    fn is_in_overflow(self) -> bool {
        self.half(4) & u64::from(IN_OVERFLOW) != 0
    }

    fn value(self) -> Option<&'p [u8]> {
        let from = NODE_HEAD + self.key_bytes();
        self.bytes.get(from..from.checked_add(usize::try_from(self.value_bytes()).ok()?)?)
    }

    fn overflow_page(self) -> Option<u64> {
        u64_at(self.bytes, NODE_HEAD + self.key_bytes())
    }
}

/// The number of a key's tree; that of a shorter key as if zeroes followed.
fn tree_of(key: &[u8]) -> u32 {
    let mut number = [0; 4];
    let bytes = key.len().min(4);
    number[..bytes].copy_from_slice(&key[..bytes]);
    u32::from_be_bytes(number)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}
