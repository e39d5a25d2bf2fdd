//! One file that something is to be done about.

use std::ffi::OsString;
use std::sync::Arc;

use antiphon_core::Command;

use crate::drawer::Drawer;
use crate::name::RequestName;
use crate::orders::{Order, Wait};
use crate::response::{Response, ResponseError, To};
use crate::stamp::Stamp;

/// Which file: of which folder, of whom, and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileKey {
    pub(crate) base: usize,
    pub(crate) requester: Arc<str>,
    pub(crate) file: OsString,
}

/// One file that something is to be done about.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) key: FileKey,
    pub(crate) drawer: Arc<Drawer>,
    pub(crate) name: RequestName,
    /// The state of the file that was read.
    pub(crate) stamp: Stamp,
    /// How much memory it takes.
    pub(crate) bytes: usize,
    pub(crate) id: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) work: Work,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Work {
    /// Carry it out, and answer.
    Act {
        order: Order,
        /// Which order it is, whenever it comes.
        key: String,
    },
    /// Answer that it is no request, and set it aside.
    SetAside(ResponseError),
    /// It was answered so: set it aside there.
    Move { place: String, error: ResponseError },
    /// It had another name when it was answered with this.
    Adopt { response: Box<Response>, old: String },
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was answered.
    Answered,
    /// It was answered, and set aside.
    SetAside,
    /// It is gone, or another: there is nothing to answer.
    Withdrawn,
    /// It could not be answered now.
    Left,
}

impl Job {
    /// Jobs of the same lane are done one after the other, in order.
    pub(crate) fn lane(&self) -> Option<String> {
        let Work::Act { order, .. } = &self.work else { return None };
        match order {
            Order::Control(
                Command::SpawnAgent { name, .. }
                | Command::StopAgent { name }
                | Command::UpdateAgentContext { name, .. },
            ) => Some(format!("agent {name}")),
            Order::Send { to, .. } => Some(format!("agent {to}")),
            Order::Invoke { agent, .. } => agent.as_ref().map(|agent| format!("agent {agent}")),
            Order::Cancel { task_id } => Some(format!("task {task_id}")),
        }
    }

    /// Whether it may take as long as a task. Such a one keeps its turn and holds up nobody: how
    /// else could its agent be stopped?
    pub(crate) fn waits(&self) -> bool {
        matches!(&self.work, Work::Act { order: Order::Invoke { wait: Wait::ForResult, .. }, .. })
    }

    /// What a response to it begins with.
    pub(crate) fn to(&self) -> To {
        To {
            request: self.name.shown.clone(),
            id: self.id.clone(),
            digest: self.digest.clone(),
            file: self.digest.as_ref().map(|_| self.stamp.mark.text()),
        }
    }
}
