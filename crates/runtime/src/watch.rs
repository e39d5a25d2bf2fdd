//! Followers of the journal and watchers of live deltas. No writer waits for any of them.
//!
//! | file               | subject                                      |
//! |--------------------|----------------------------------------------|
//! | `follower`         | reads events in order and waits for new ones |
//! | `notifier`         | notifies followers of recorded events        |
//! | `recent_events`    | the latest events of followed tasks          |
//! | `serialized`       | an event or a delta with its JSON            |
//! | `delta`            | live deltas, not stored                      |
//! | `delta_watchers`   | who gets which deltas                        |
//! | `live_answer`      | the beginning of an answer in progress       |

pub(crate) mod delta;
pub(crate) mod delta_watchers;
pub(crate) mod follower;
pub(crate) mod live_answer;
pub(crate) mod notifier;
pub(crate) mod recent_events;
pub(crate) mod serialized;
