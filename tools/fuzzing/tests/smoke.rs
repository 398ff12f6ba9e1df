//! Every target on the inputs that are checked in, on its examples, and on mutations of both.
//!
//! `FUZZ_SEED=7 FUZZ_MUTATIONS=100000 cargo test --release -p pando-fuzzing --test
//! smoke` goes further. A failure prints the input as a line for the target's file in `corpus`; put there, it
//! is tried first.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pando_fuzzing::corpus;
use pando_fuzzing::mutator::Mutator;
use pando_fuzzing::targets::{ALL, Target};

/// Unless told otherwise: some seconds for all targets together.
const SEED: u64 = 0x7061_6e64;

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")),
        Err(_) => default,
    }
}

fn smoke(name: &str, mutations: u64) {
    let target = ALL.iter().find(|target| target.name == name).expect("the target is in the list");
    let mut corpus = corpus::inputs(name).expect("the target has inputs");
    let examples = (target.examples)();
    assert!(!examples.is_empty(), "there is something sound to begin from");
    corpus.extend(examples);
    corpus.iter().for_each(|input| try_one(target, input));
    let mutator = Mutator::new(&corpus, number("FUZZ_SEED", SEED));
    for _ in 0..number("FUZZ_MUTATIONS", mutations) {
        try_one(target, &mutator.next_input());
    }
}

fn try_one(target: &Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        panic!("add to {}:\n{}", corpus::path_of(target.name).display(), corpus::to_hex(input));
    }
}

macro_rules! smoke {
    ($($target:ident: $mutations:literal,)*) => {
        $(
            #[test]
            fn $target() {
                smoke(stringify!($target), $mutations);
            }
        )*

        #[test]
        fn every_target_is_tried() {
            let names: Vec<&str> = ALL.iter().map(|target| target.name).collect();
            assert_eq!([$(stringify!($target)),*].as_slice(), names);
        }
    };
}

smoke! {
    betree_blocks: 20_000,
    betree_replay: 300,
    catalog_entry: 20_000,
    certificate_names: 20_000,
    collation: 2_000,
    dates: 5_000,
    document_validate: 20_000,
    encryption_keys: 1_000,
    extended_json: 20_000,
    filter: 5_000,
    geometry: 5_000,
    keyorder_decode: 20_000,
    keyorder_order: 5_000,
    patterns: 2_000,
    pipeline: 2_000,
    projection: 5_000,
    role_documents: 20_000,
    sasl_messages: 5_000,
    schema: 5_000,
    text_search: 2_000,
    update: 5_000,
    wire_message: 5_000,
}
