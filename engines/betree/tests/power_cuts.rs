//! The engine `betree` on a simulated disk that loses power at any call.

use pando_betree::{Betree, Options};

pando_conformance::engine_power_cuts!(usual, |environment, folder| {
    let mut options = Options::default();
    options.log_budget_bytes = 4 << 20;
    Ok(Betree::open(environment, folder, options)?)
});

pando_conformance::engine_power_cuts!(tiny, |environment, folder| {
    let entries = [("pageSize", "256B"), ("leafSize", "2KB"), ("fanout", "4")];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut options = Options::default().with_entries(&entries).expect("the options are possible");
    options.cache_bytes = 64 << 10;
    options.log_budget_bytes = 1 << 20;
    options.partition_bytes = 2 << 10;
    Ok(Betree::open(environment, folder, options)?)
});
