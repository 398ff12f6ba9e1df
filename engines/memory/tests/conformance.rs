//! The engine `memory` keeps every promise of the storage contract, and so do the emulations on top of it.

use std::sync::Arc;

use pando_conformance::EmulatedEngine;
use pando_environment::Environment;
use pando_memory::MemoryEngine;

pando_conformance::engine_conformance!(memory, |_| Arc::new(MemoryEngine::new(&Environment::real())));

pando_conformance::engine_conformance!(emulations, |_| {
    EmulatedEngine::shared(Arc::new(MemoryEngine::new(&Environment::real())))
});
