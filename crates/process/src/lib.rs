//! How a process takes part in a project: as the owner of its journal, or as a client of the owner.
//!
//! Whichever process first needs the journal holds its lock and serves the project's socket; every other one is a
//! client of it. When the owner ends, a client takes its place. A front end asks [`Connection`] or [`AttachedTask`]
//! and gets the same answer in either case. Nothing here reads the environment, parses arguments or prints.
//!
//! | module            | holds                                                                             |
//! |-------------------|-----------------------------------------------------------------------------------|
//! | [`Ownership`]     | whether this process is the owner or a client                                     |
//! | [`Connection`]    | where a command runs: in this process, or through a server                        |
//! | [`ProjectAccess`] | the project of a command: in a folder, or at the server that the user named       |
//! | [`Owner`]         | this process as the owner: it runs tasks and serves the project's socket          |
//! | [`AttachedTask`]  | the task of this process, wherever it runs, also when the owner ends meanwhile    |
//! | [`RemainingTasks`] | tasks of other processes that go on here when this one is done                  |
//! | [`ResumedTasks`]  | interrupted tasks that are resumed, wherever they run                             |
//! | [`Participant`]   | this process until it ends, with any number of tasks                              |
//! | [`ControlRequest`] | a control request of this process, executed by the owner or here                 |
//! | [`TaskStream`]    | events and deltas of a task, wherever it runs                                     |
//! | [`WatchedTask`]   | a task that a front end shows: what to show next, approvals, what the user types   |
//! | [`TreeReader`]    | a tree of tasks and its changes, read beside the process that runs them           |

mod attached_task;
mod connection;
mod control_request;
mod owner;
mod owner_change;
mod participant;
mod remaining_tasks;
mod resumed_tasks;
mod server_task;
mod socket_file;
mod task_stream;
mod tree_reader;
mod watched_task;

pub use attached_task::{AttachedTask, NextOwner, OwnTask};
pub use connection::{
    AcceptedInteraction, Connection, FoundInteraction, InboxTarget, OutgoingInteraction, Ownership,
    PeerCancellation, ProjectAccess, ProjectServer, ReadingTime, ReceiptKind, RejectedInteraction,
    RequestAnswer, Reservation, SendOutcome, Twice,
};
pub use control_request::ControlRequest;
pub use owner::{Owner, keys, token};
pub use owner_change::OwnerChange;
pub use participant::{FollowedTask, Participant};
pub use remaining_tasks::RemainingTasks;
pub use resumed_tasks::{ResumedEnd, ResumedTasks};
pub use socket_file::{SOCKET, SocketFile, bind};
pub use task_stream::{TaskStream, TaskStreamEnd, TaskStreamItem};
pub use tree_reader::TreeReader;
pub use watched_task::{FailedInterrupt, WatchChange, WatchResult, WatchedItem, WatchedTask};
