//! The smallest correct implementation of each port, in memory: the executable specification.
//!
//! Where the documentation of a port leaves a question open, the model answers it and the suite checks
//! the answer. Each model is bounded; each bound documents what happens when it is reached.

mod any_history;
mod delegating_journal;
mod flat_vector_store;
mod held_journal;
mod memory_bus;
mod memory_journal;
mod model_tools;
mod scenario_provider;
mod unavailable_journal;
mod work_queue;

pub use any_history::{any_history, check_growing_histories};
pub use delegating_journal::{DelegatingJournal, JournalHooks};
pub use flat_vector_store::{FlatVectorStore, VECTORS_MAX};
pub use held_journal::{HeldAppends, HeldJournal};
pub use memory_bus::{LIVE_BACKLOG_MAX, MemoryBus, QUEUE_ITEMS_MAX, TOPICS_MAX};
pub use memory_journal::{EVENTS_MAX, MemoryJournal, PAGE_EVENTS_MAX};
pub use model_tools::ModelTools;
pub use scenario_provider::{ScenarioProvider, ScenarioWire};
pub use unavailable_journal::UnavailableJournal;
