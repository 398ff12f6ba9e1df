//! Schedules of readers of a small cache beside those who fill it, change its limit and share it out again.

use std::sync::Arc;

use pando_environment::sync::{explore, thread};

use super::*;
use crate::base::Codec;
use crate::cache::toy::{ToyCache, ToyPage};

const PAGE_BYTES: usize = 4 << 10;
const LIMIT: u64 = 256 << 10;

fn key(number: u64) -> BlockKey {
    BlockKey { address: number * 8, checksum: number }
}

fn page(number: u64) -> ToyPage {
    ToyPage::new(number, PAGE_BYTES - 100)
}

/// A lookup: in the decoded tier, in the compressed tier, or as a miss that is read and kept.
fn read(cache: &ToyCache, number: u64) {
    let key = key(number);
    if let Some(page) = cache.decoded(&key) {
        assert_eq!(page.number(), number);
    } else if let Some(found) = cache.compressed(&key, PAGE_BYTES) {
        if found.promotion == Promotion::Keep {
            cache.promote(key, page(number));
        }
    } else {
        cache.misses.add(1);
        match cache.tier_for_read(PAGE_BYTES) {
            Tier::Decoded => cache.insert_decoded(key, page(number)),
            Tier::Compressed => {
                cache.insert_compressed(key, StoredPage::used(Codec::Lz4, &vec![7; PAGE_BYTES / 2]));
            }
        }
    }
}

#[test]
fn the_bytes_in_use_are_those_of_what_is_there_whatever_is_read_and_forgotten_at_once() {
    explore(300, || {
        let cache = Arc::new(ToyCache::new(LIMIT, PAGE_BYTES));
        let readers: Vec<_> = (0..3_u64)
            .map(|reader| {
                let cache = Arc::clone(&cache);
                thread::spawn(move || {
                    for at in 0..60 {
                        read(&cache, (at * (reader + 1)) % 40);
                        if at % 7 == reader {
                            cache.forget(&key(at % 40));
                        }
                    }
                })
            })
            .collect();
        // A reader that finds no room shares the limit out again, perhaps while the background does so.
        let other = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || (0..3).for_each(|_| cache.rebalance(0)))
        };
        for limit in [LIMIT / 2, LIMIT] {
            cache.change_limit(limit);
            cache.rebalance(limit / 4);
        }
        other.join().expect("it does not panic");
        readers.into_iter().for_each(|reader| reader.join().expect("it does not panic"));
        cache.rebalance(0);
        let used = cache.decoded_bytes() + cache.compressed_bytes();
        assert!(used <= LIMIT, "{used} bytes of {LIMIT}");
        let hits = cache.decoded_hits.get() + cache.compressed_hits.get();
        assert!(hits + cache.misses.get() <= 180, "each read is counted once");
        (0..40).for_each(|number| cache.forget(&key(number)));
        assert_eq!((cache.decoded_bytes(), cache.compressed_bytes(), cache.pages()), (0, 0, (0, 0)));
    });
}
