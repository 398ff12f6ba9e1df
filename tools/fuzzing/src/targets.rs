//! The targets, each a function of bytes. libFuzzer calls them with inputs that it finds, the smoke test with
//! inputs that it makes.

pub mod betree_blocks;
pub mod betree_replay;
pub mod catalog_entry;
pub mod certificate_names;
pub mod collation;
pub mod dates;
pub mod document_validate;
pub mod encryption_keys;
pub mod extended_json;
pub mod filter;
pub mod geometry;
pub mod keyorder_decode;
pub mod keyorder_order;
pub mod patterns;
pub mod pipeline;
pub mod projection;
pub mod role_documents;
pub mod sasl_messages;
pub mod schema;
pub mod text_search;
pub mod update;
pub mod wire_message;

use arbitrary::{Arbitrary, Unstructured};
use pando_environment::{Random, SeededRandom};

/// One of them.
pub struct Target {
    /// Its name, and that of its file of inputs in `corpus`.
    pub name: &'static str,
    /// Panics where something is wrong with what the product does with these bytes.
    pub run: fn(&[u8]),
    /// Inputs that are sound in the formats of today, to begin from.
    pub examples: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const ALL: &[Target] = &[
    Target {
        name: "betree_blocks",
        run: |bytes| betree_blocks::run(bytes),
        examples: betree_blocks::examples,
    },
    Target {
        name: "betree_replay",
        run: |bytes| betree_replay::run(bytes),
        examples: betree_replay::examples,
    },
    Target {
        name: "catalog_entry",
        run: |bytes| catalog_entry::run(bytes),
        examples: catalog_entry::examples,
    },
    Target {
        name: "certificate_names",
        run: |bytes| certificate_names::run(bytes),
        examples: certificate_names::examples,
    },
    Target { name: "collation", run: |bytes| grown(bytes, collation::run), examples: collation::examples },
    Target { name: "dates", run: |bytes| grown(bytes, dates::run), examples: dates::examples },
    Target {
        name: "document_validate",
        run: |bytes| document_validate::run(bytes),
        examples: document_validate::examples,
    },
    Target {
        name: "encryption_keys",
        run: |bytes| encryption_keys::run(bytes),
        examples: encryption_keys::examples,
    },
    Target {
        name: "extended_json",
        run: |bytes| grown(bytes, extended_json::run),
        examples: extended_json::examples,
    },
    Target { name: "filter", run: |bytes| grown(bytes, filter::run), examples: filter::examples },
    Target { name: "geometry", run: |bytes| grown(bytes, geometry::run), examples: geometry::examples },
    Target {
        name: "keyorder_decode",
        run: |bytes| keyorder_decode::run(bytes),
        examples: keyorder_decode::examples,
    },
    Target {
        name: "keyorder_order",
        run: |bytes| grown(bytes, keyorder_order::run),
        examples: keyorder_order::examples,
    },
    Target { name: "patterns", run: |bytes| grown(bytes, patterns::run), examples: patterns::examples },
    Target { name: "pipeline", run: |bytes| grown(bytes, pipeline::run), examples: pipeline::examples },
    Target { name: "projection", run: |bytes| grown(bytes, projection::run), examples: projection::examples },
    Target {
        name: "role_documents",
        run: |bytes| role_documents::run(bytes),
        examples: role_documents::examples,
    },
    Target {
        name: "sasl_messages",
        run: |bytes| sasl_messages::run(bytes),
        examples: sasl_messages::examples,
    },
    Target { name: "schema", run: |bytes| grown(bytes, schema::run), examples: schema::examples },
    Target {
        name: "text_search",
        run: |bytes| grown(bytes, text_search::run),
        examples: text_search::examples,
    },
    Target { name: "update", run: |bytes| grown(bytes, update::run), examples: update::examples },
    Target { name: "wire_message", run: |bytes| wire_message::run(bytes), examples: wire_message::examples },
];

/// Runs a target whose input is grown from the bytes, as libFuzzer grows it, so that both take the same
/// inputs.
fn grown<'b, I: Arbitrary<'b>>(bytes: &'b [u8], run: impl FnOnce(I)) {
    if let Ok(input) = I::arbitrary_take_rest(Unstructured::new(bytes)) {
        run(input);
    }
}

/// Inputs for targets that grow theirs.
fn by_chance() -> Vec<Vec<u8>> {
    let random = SeededRandom::new(0x6772_6f77);
    let mut inputs = vec![vec![0; 400]; 40];
    inputs.iter_mut().for_each(|input| random.fill(input));
    inputs
}
