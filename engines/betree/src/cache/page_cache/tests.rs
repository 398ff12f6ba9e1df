//! The limit is kept and used with all sizes of pages and shards.

use super::*;
use crate::base::Codec;
use crate::cache::toy::{ToyCache, ToyPage};

fn key(number: u64) -> BlockKey {
    BlockKey { address: number * 8, checksum: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
}

fn page(bytes: usize) -> ToyPage {
    ToyPage::new(0, bytes)
}

/// Reads pages for the first time, ten times as many as the limit holds.
fn read_through(cache: &ToyCache, limit: u64, page_bytes: usize) {
    let page = page(page_bytes - 100);
    let payload = vec![7; page_bytes / 2];
    for number in 0..10 * limit / page_bytes as u64 {
        match cache.tier_for_read(page_bytes) {
            Tier::Decoded => cache.insert_decoded(key(number), page.clone()),
            Tier::Compressed => cache.insert_compressed(key(number), StoredPage::used(Codec::Lz4, &payload)),
        }
    }
}

#[test]
fn memory_is_used_whatever_the_size_of_pages() {
    for (limit, page_bytes) in [
        (100 << 20, 16 << 10),
        (8 << 20, 16 << 10),
        (2 << 20, 16 << 10),
        (64 << 20, 900 << 10),
        (64 << 20, 2 << 20),
        (1 << 20, 1 << 10),
    ] {
        let cache = ToyCache::new(limit, 16 << 10);
        read_through(&cache, limit, page_bytes);
        let used = cache.decoded_bytes() + cache.compressed_bytes();
        assert!(used <= limit, "{used} of {limit}");
        assert!(used >= limit / 10 * 6, "{used} of {limit} with pages of {page_bytes}");
        assert!(cache.compressed_bytes() > cache.decoded_bytes(), "most is compressed at first");
    }
}

#[test]
fn with_less_than_half_of_the_limit_all_pages_go_and_with_more_as_many_as_are_too_many() {
    let limit = 8 << 20;
    let cache = ToyCache::new(limit, 16 << 10);
    read_through(&cache, limit, 16 << 10);
    let used = || cache.decoded_bytes() + cache.compressed_bytes();
    cache.change_limit(limit / 4 * 3);
    cache.rebalance(0);
    assert!((limit / 10 * 4..=limit / 4 * 3).contains(&used()), "{} bytes", used());
    cache.change_limit(limit / 4);
    assert_eq!((used(), cache.pages()), (0, (0, 0)));
    cache.rebalance(0);
    read_through(&cache, limit, 16 << 10);
    assert!((1..=limit / 4).contains(&used()), "{} bytes", used());
}

#[test]
fn a_page_that_is_too_large_for_the_decoded_tier_stays_compressed() {
    let cache = ToyCache::new(64 << 20, 16 << 10);
    let bytes = 3 << 20;
    assert_eq!(cache.tier_for_read(bytes), Tier::Compressed);
    cache.insert_compressed(key(1), StoredPage::used(Codec::Lz4, &vec![7; bytes / 4]));
    for _ in 0..5 {
        let found = cache.compressed(&key(1), bytes).expect("it stays");
        if found.promotion == Promotion::Keep {
            cache.promote(key(1), page(bytes - 100));
        }
    }
    assert_eq!(cache.tier_of(&key(1)), Some(Tier::Compressed));
}

#[test]
fn a_page_that_is_used_again_is_decoded_and_takes_its_room_once() {
    let cache = ToyCache::new(64 << 20, 16 << 10);
    cache.insert_compressed(key(1), StoredPage::awaited(Codec::Lz4, &[7; 5_000]));
    let first = cache.compressed(&key(1), 16_000).expect("it was just put there");
    assert_eq!(
        (first.promotion, cache.compressed_hits.get()),
        (Promotion::No, 0),
        "the first use is the miss"
    );
    let second = cache.compressed(&key(1), 16_000).expect("it is still there");
    assert_eq!((second.promotion, cache.compressed_hits.get()), (Promotion::Keep, 1));
    cache.promote(key(1), page(15_900));
    assert_eq!(cache.pages(), (1, 0));
}

#[test]
fn buffers_take_their_memory_from_both_tiers() {
    let limit = 64 << 20;
    let cache = ToyCache::new(limit, 16 << 10);
    read_through(&cache, limit, 16 << 10);
    cache.rebalance(limit / 2);
    let used = cache.decoded_bytes() + cache.compressed_bytes();
    assert!(used <= limit / 2, "{used}");
}

#[test]
fn pages_of_leaves_do_not_drive_out_those_of_runs() {
    let limit = 4 << 20;
    let cache = ToyCache::new(limit, 16 << 10);
    let of_run = |number: u64| BlockKey { address: key(number).address | RUN_PAGE, ..key(number) };
    let count = limit / 8 / (4 << 10);
    for number in 0..count {
        cache.insert_compressed(of_run(number), StoredPage::used(Codec::Lz4, &[7; 4 << 10]));
    }
    cache.rebalance(0);
    read_through(&cache, limit, 16 << 10);
    let kept = (0..count).filter(|number| cache.tier_of(&of_run(*number)).is_some()).count();
    assert_eq!(kept as u64, count);
    let leaves = 10 * limit / (16 << 10);
    let left = (0..leaves).filter(|number| cache.tier_of(&key(*number)).is_some()).count() as u64;
    assert!(left < leaves / 2, "{left} of {leaves} pages of leaves are left");
    cache.forget(&of_run(0));
    assert!(cache.tier_of(&of_run(0)).is_none());
    let used = cache.decoded_bytes() + cache.compressed_bytes();
    assert!(used <= limit, "{used} of {limit}");
}

#[test]
fn outside_bytes_take_their_room_from_pages_at_once() {
    let limit = 64 << 20;
    let cache = ToyCache::new(limit, 16 << 10);
    read_through(&cache, limit, 16 << 10);
    let of_run = |number: u64| BlockKey { address: key(number).address | RUN_PAGE, ..key(number) };
    for number in 0..limit / 4 / (4 << 10) {
        cache.insert_compressed(of_run(number), StoredPage::used(Codec::Lz4, &[7; 4 << 10]));
        let used = cache.decoded_bytes() + cache.compressed_bytes();
        assert!(used <= limit + limit / 32, "{used} of {limit} after {number}");
    }
    assert!(cache.run_bytes() > limit / 5, "{}", cache.run_bytes());
    cache.note_outside_bytes(limit / 64);
    let before = cache.decoded_bytes() + cache.compressed_bytes();
    cache.note_outside_bytes(limit / 2);
    let used = cache.decoded_bytes() + cache.compressed_bytes();
    assert!(used < before && used <= limit / 2 + limit / 32, "{used} of half of {limit}");
}

#[test]
fn no_decoded_page_goes_for_another_while_memory_lies_unused() {
    let limit = 64 << 20;
    let cache = ToyCache::new(limit, 16 << 10);
    let mut number = 0;
    while cache.tier_for_read(16 << 10) == Tier::Decoded {
        number += 1;
        cache.insert_decoded(key(number), page((16 << 10) - 100));
    }
    let wanted = StoredPage::used(Codec::Lz4, &[7; 4 << 10]);
    (0..4).for_each(|_| {
        wanted.note_use();
    });
    cache.insert_compressed(key(0), wanted);
    let found = cache.compressed(&key(0), 16 << 10).expect("it was just put there");
    assert_eq!(found.promotion, Promotion::No, "what went for it would be nowhere else");
    while cache.has_unused() {
        number += 1;
        cache.insert_compressed(key(number), StoredPage::used(Codec::Lz4, &[7; 4 << 10]));
    }
    let found = cache.compressed(&key(0), 16 << 10).expect("there was room for all");
    assert_eq!(found.promotion, Promotion::Keep);
}
