//! The large commits that the log holds: from the first part of each until no image needs its records any
//! more.
//!
//! A large commit reaches the log in parts. Replay needs all of them or none, so a replay that would begin
//! among them begins at the first ([`LargeCommits::keep_whole`]). From its end record until it is visible a
//! large commit has the *turn*: one at a time.

use pando_environment::sync::atomic::{AtomicU64, Ordering};
use pando_environment::sync::{Mutex, MutexGuard, RwLock};
use pando_storage::{Intents, Lsn, TransactionId, TreeId};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct LargeCommits {
    /// The turn: held from the end record of a large commit to its publication.
    turn: Mutex<()>,
    logged: Mutex<Vec<Logged>>,
    /// Bytes of all in `logged`.
    bytes: AtomicU64,
    /// The transaction whose parts are being put into the buffers; 0 for none.
    applying: AtomicU64,
    /// Held shared by commits of blind merges, from their look at `applying` until they are in the buffers.
    merging: RwLock<()>,
}

#[derive(Debug)]
struct Logged {
    first: Lsn,
    /// The last record; `None` until it is appended.
    whole: Option<Lsn>,
    bytes: u64,
    /// An image has all of it; the one before may not.
    is_in_image: bool,
}

impl LargeCommits {
    /// The record after which replay has to begin, where it would begin after `from` otherwise.
    pub(crate) fn keep_whole(&self, from: Lsn) -> Lsn {
        let logged = self.logged.lock();
        let cut = logged.iter().filter(|one| one.whole.is_none_or(|whole| from < whole));
        cut.map(|one| Lsn::new(one.first.get() - 1)).fold(from, Lsn::min)
    }

    /// Notes that an image is durable from which replay begins behind this record.
    pub(crate) fn forget_before(&self, from: Lsn) {
        self.logged.lock().retain_mut(|one| {
            let is_in_image = one.whole.is_some_and(|whole| whole <= from);
            let is_kept = !(is_in_image && one.is_in_image);
            one.is_in_image = is_in_image;
            if !is_kept {
                self.bytes.fetch_sub(one.bytes, Ordering::Relaxed);
            }
            is_kept
        });
    }

    /// Bytes of large commits that the log has to keep.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until no large commit is between its end record and its publication, and takes the turn.
    pub(crate) fn exclude(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Keeps blind merges off the keys of a transaction, which has the turn, until the guard is dropped.
    /// Waits for those that are under way.
    pub(crate) fn keep_merges_off(&self, owner: TransactionId) -> MergesKeptOff<'_> {
        self.applying.store(owner.get(), Ordering::SeqCst);
        drop(self.merging.write());
        MergesKeptOff(self)
    }

    /// Runs `commit`, a commit of blind merges of these keys, once no large commit that has claimed one of
    /// them is under way.
    pub(crate) fn merge_beside<'w, T>(
        &self,
        intents: &Intents,
        keys: impl Iterator<Item = (TreeId, &'w [u8])> + Clone,
        commit: impl FnOnce() -> T,
    ) -> T {
        loop {
            let merging = self.merging.read();
            let is_claimed = match self.applying.load(Ordering::SeqCst) {
                0 => false,
                owner => {
                    let owner = TransactionId::new(owner);
                    keys.clone().any(|(tree, key)| intents.is_claimed_by(owner, tree, key))
                }
            };
            if !is_claimed {
                let outcome = commit();
                drop(merging);
                return outcome;
            }
            drop(merging);
            drop(self.exclude());
        }
    }

    pub(crate) fn begin(&self, first: Lsn) {
        self.logged.lock().push(Logged { first, whole: None, bytes: 0, is_in_image: false });
    }

    fn change(&self, first: Lsn, change: impl FnOnce(&mut Logged)) {
        let mut logged = self.logged.lock();
        let one = logged.iter_mut().find(|one| one.first == first);
        change(one.expect("a large commit is known from its first part on"));
    }

    pub(crate) fn add_bytes(&self, first: Lsn, bytes: u64) {
        self.change(first, |one| one.bytes += bytes);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_whole(&self, first: Lsn, whole: Lsn) {
        self.change(first, |one| one.whole = Some(whole));
    }

    /// Gives a large commit up before its end record: replay skips the parts.
    pub(crate) fn give_up(&self, first: Lsn) {
        let mut logged = self.logged.lock();
        if let Some(at) = logged.iter().position(|one| one.first == first) {
            self.bytes.fetch_sub(logged.remove(at).bytes, Ordering::Relaxed);
        }
    }
}

/// See [`LargeCommits::keep_merges_off`].
pub(crate) struct MergesKeptOff<'l>(&'l LargeCommits);

impl Drop for MergesKeptOff<'_> {
    fn drop(&mut self) {
        self.0.applying.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_begins_before_the_first_part_of_what_is_not_in_an_image_and_is_forgotten_two_images_later() {
        let large = LargeCommits::default();
        let lsn = Lsn::new;
        large.begin(lsn(10));
        large.begin(lsn(14));
        large.add_bytes(lsn(10), 700);
        large.add_bytes(lsn(14), 50);
        assert_eq!((large.keep_whole(lsn(5)), large.keep_whole(lsn(30))), (lsn(5), lsn(9)));
        large.set_whole(lsn(10), lsn(1_000));
        assert_eq!(large.keep_whole(lsn(1_000)), lsn(13), "the other has no end yet");
        large.give_up(lsn(14));
        assert_eq!((large.keep_whole(lsn(999)), large.keep_whole(lsn(1_000))), (lsn(9), lsn(1_000)));
        large.forget_before(lsn(9));
        assert_eq!(large.log_bytes(), 700);
        large.forget_before(lsn(1_000));
        assert_eq!(large.log_bytes(), 700, "the image before this one may be needed still");
        large.forget_before(lsn(1_001));
        assert_eq!((large.log_bytes(), large.logged.lock().len()), (0, 0));
    }
}
