//! Memory sharing: the consumers that count against the memory limit, and the rest that directories and pages
//! get.
//!
//! | what counts | its part of the limit |
//! |---|---|
//! | write buffers | their budget, a quarter unless set |
//! | write sets of transactions in memory | their budget |
//! | indexes and filters of spilled write sets | what they take: a few percent of the spilled bytes |
//! | resident inner nodes and filters ([`crate::memory::ResidentLimit`]) | 40 % |
//! | intents: who updates which key | what the live snapshots need |
//! | gaps between pages ([`crate::memory::page_memory`]) | a sixteenth of the pages at most |
//! | working memory of flushes and loads, waiting cursors, index builds | see [`crate::memory::MemoryAccounts`] |
//! | directories of leaves, pages of runs, pages of leaves | all that these leave ([`crate::cache`]) |
//!
//! Some memory is beside the limit:
//! - pooled objects ([`crate::memory::ObjectPool`]): buffers of 16 to 64 KiB for as many reads as were under
//!   way at once, four of up to 2 MiB, 16 contexts of 96 KB;
//! - the read queues of flush threads, up to 2 MiB each;
//! - pages that a reader holds after the cache has dropped them;
//! - gaps between pages beyond that sixteenth, where many pages have gone and few have come;
//! - memory that the allocator keeps for a moment.

use std::sync::Arc;

use pando_storage::{HeldMemory, SpillSpace};

use super::write_buffers::WriteBuffers;
use crate::commit_order::Visibility;
use crate::memory::{LENT_BYTES_MIN, ResidentLimit, page_memory};
use crate::options::live_options::LiveOptions;
use crate::tree::registry::TreeRegistry;
use crate::tree::tree_blocks::Blocks;

/// See the module's head.
pub(crate) struct MemorySharing {
    pub(crate) options: Arc<LiveOptions>,
    pub(crate) blocks: Arc<Blocks>,
    pub(crate) trees: Arc<TreeRegistry>,
    pub(crate) visibility: Arc<Visibility>,
    pub(crate) buffers: Arc<WriteBuffers>,
    /// The place for writes of transactions that are too large for memory.
    pub(crate) spill: Arc<SpillSpace>,
    pub(crate) resident: ResidentLimit,
}

impl MemorySharing {
    /// Shares the limit out anew. Background work calls it once a second.
    pub(crate) fn share_out(&self) {
        page_memory::settle();
        self.blocks.accounts.update_peak();
        self.resident.enforce(self.trees.in_order(), self.options.cache_bytes);
        self.blocks.cache().rebalance(self.bytes_beside_pages() as u64);
    }

    /// Shrinks the page cache at once, if the other consumers have grown much since memory was last shared
    /// out.
    pub(crate) fn note_change(&self) {
        self.blocks.cache().note_outside_bytes(self.bytes_beside_pages() as u64);
    }

    /// Bytes that count against the limit and are neither pages nor directories.
    pub(crate) fn bytes_beside_pages(&self) -> usize {
        let spill = self.spill.figures();
        let transactions = spill.memory_bytes.saturating_add(spill.layer_memory_bytes);
        let transactions = usize::try_from(transactions).unwrap_or(usize::MAX);
        [
            self.buffers.bytes(),
            self.blocks.index_memory.bytes(),
            self.resident.node_bytes(),
            self.visibility.intents.memory(),
            page_memory::unused_bytes_of_store(
                self.blocks.cache().decoded_bytes() + self.blocks.cache().compressed_bytes(),
            ),
            self.blocks.scan_prefetch.memory_bytes(),
            self.blocks.accounts.bytes(),
        ]
        .into_iter()
        .fold(transactions, usize::saturating_add)
    }

    /// Lends memory to a caller: the wanted bytes, as far as the part of the limit for lent memory leaves
    /// them. The page cache makes room for a large loan at once.
    pub(crate) fn lend(&self, wanted: usize) -> HeldMemory {
        let lent = self.blocks.accounts.lend(wanted, self.options.cache_bytes as usize);
        if lent.bytes() >= LENT_BYTES_MIN {
            self.note_change();
        }
        lent
    }
}

#[cfg(test)]
mod tests;
