//! The engine `memory` keeps every promise of the storage contract.

use std::sync::Arc;

use pando_environment::Environment;
use pando_memory::MemoryEngine;

pando_conformance::engine_conformance!(memory, |_| Arc::new(MemoryEngine::new(&Environment::real())));
