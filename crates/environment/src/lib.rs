//! The only door to clock, randomness, files and threads: real, simulated or faulty.
//!
//! Everything in Pando that is subject to chance comes through an [`Environment`]: the time, a random number,
//! the answer of a disk, the thread that runs first. The real environment talks to the operating system. The
//! simulated one keeps a disk in memory that can lose power between any two calls, runs background work only
//! when a test says so, and draws every choice from one seed. A failure is replayed by its seed.
//!
//! # Terms
//! - *Direct* access bypasses the kernel's page cache (`O_DIRECT`): buffers, offsets and lengths are then
//!   multiples of [`File::alignment`]. *Buffered* access goes through the page cache, and knows no alignment.
//! - A *task* is background work cut in *steps*: a thread runs them in reality, a seeded scheduler in a
//!   simulation.
//! - A *crash* is a loss of power: data that no sync covered may survive, vanish or tear, sector by sector. A
//!   *kill* is the death of the process: all data that reached the kernel survives.
//!
//! # Rules
//! - Only this crate opens files, reads clocks, draws random numbers or starts threads for the engine.
//! - A directory operation (create, rename, remove) is durable only after [`FileSystem::sync_dir`] of its
//!   folder, file content only after [`File::sync_data`].
//! - A failed sync is never retried: the kernel may have dropped the data, and a second sync would then lie.
#![warn(missing_docs)]

mod aligned_buffer;
#[cfg(feature = "mimalloc")]
pub mod allocator;
mod clock;
mod error;
mod files;
mod machine_figures;
mod missed_read;
mod prefetch;
mod process_figures;
mod random;
mod read_queue;
mod read_together;
mod real;
pub mod simulated;
pub mod sync;
mod tasks;

use std::sync::Arc;

pub use aligned_buffer::{AlignedBuffer, MEMORY_ALIGNMENT};
pub use clock::{Clock, MockClock, Monotonic, WallTime};
pub use error::{EnvironmentError, FREE_SPACE, Operation, is_out_of_files};
pub use files::{Access, DeviceSpace, File, FileSystem, FolderIdentity, FolderLock, OpenMode};
pub use machine_figures::{MachineFigures, machine_figures};
pub use missed_read::MissedRead;
pub use prefetch::prefetch;
pub use process_figures::{ProcessFigures, process_figures};
pub use random::{Random, SeededRandom, split_mix};
pub use read_queue::{QUEUED_READ_BYTES_MAX, ReadQueue};
pub use read_together::{ReadRange, read_together};
pub use simulated::SimulatedDisk;
pub use tasks::{Spawner, Step, SteppedTasks, Task, TaskWaker, Work};

/// The four doors, shared and cheap to clone.
#[derive(Clone)]
pub struct Environment {
    files: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    spawner: Arc<dyn Spawner>,
}

impl Environment {
    /// The operating system's files, clock, randomness and threads.
    pub fn real() -> Environment {
        Environment {
            files: Arc::new(real::RealFileSystem),
            clock: Arc::new(clock::RealClock::new()),
            random: Arc::new(random::OsRandom::new()),
            spawner: Arc::new(tasks::ThreadSpawner),
        }
    }

    /// A disk in memory, a clock that moves when told, and tasks that run when told; every choice follows
    /// from `seed`.
    pub fn simulated(seed: u64) -> Simulation {
        let disk = SimulatedDisk::new(seed);
        let clock = Arc::new(MockClock::new());
        let tasks = SteppedTasks::new(seed ^ 0x7461_736b, Arc::clone(&clock));
        let environment = Environment {
            files: Arc::clone(&disk) as Arc<dyn FileSystem>,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            random: Arc::new(SeededRandom::new(seed ^ 0x7261_6e64)),
            spawner: Arc::clone(&tasks) as Arc<dyn Spawner>,
        };
        Simulation { environment, disk, clock, tasks }
    }

    /// As [`simulated`](Environment::simulated), but tasks have threads, those of the schedule that is
    /// explored.
    #[cfg(shuttle)]
    pub fn scheduled(seed: u64) -> Simulation {
        let mut simulation = Environment::simulated(seed);
        simulation.environment.spawner = Arc::new(tasks::ThreadSpawner);
        simulation
    }

    /// An environment of the given parts, for tests that mix real and simulated ones.
    pub fn of_parts(
        files: Arc<dyn FileSystem>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        spawner: Arc<dyn Spawner>,
    ) -> Environment {
        Environment { files, clock, random, spawner }
    }

    /// The door to files.
    pub fn files(&self) -> &Arc<dyn FileSystem> {
        &self.files
    }

    /// The door to time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The door to chance.
    pub fn random(&self) -> &Arc<dyn Random> {
        &self.random
    }

    /// The door to background work.
    pub fn spawner(&self) -> &Arc<dyn Spawner> {
        &self.spawner
    }
}

/// A simulated environment with the handles by which a test steers it.
pub struct Simulation {
    /// The environment that the tested code gets.
    pub environment: Environment,
    /// The disk behind [`Environment::files`].
    pub disk: Arc<SimulatedDisk>,
    /// The clock behind [`Environment::clock`].
    pub clock: Arc<MockClock>,
    /// The scheduler behind [`Environment::spawner`].
    pub tasks: Arc<SteppedTasks>,
}
