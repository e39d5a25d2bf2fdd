//! Agents that call agents: child tasks, their results, and calls that wait.
//!
//! A dispatch is recorded with the ids of its children before any child exists; each child is created once.
//!
//! | file               | subject                                            |
//! |--------------------|----------------------------------------------------|
//! | `call_agent`       | the `call_agent` tool and its arguments            |
//! | `run_skill`        | the `run_skill` tool: a skill in a child           |
//! | `child_plan`       | from a target to the task it becomes               |
//! | `child_tools`      | the tools of a child, and which it does not get    |
//! | `dispatch_call`    | dispatches a call, joins its results               |
//! | `children`         | creates children, joins them after a restart       |
//! | `pending_call`     | what a call waits for, and when that is over; pure |
//! | `waiters`          | which task waits for which                         |
//! | `wake_parent`      | wakes the waiting tasks when a task ends           |
//! | `supervisor_tools` | tools to manage dispatched tasks                   |
//! | `external_tools`   | tools that a client runs                           |
//! | `refusal`          | why a call was refused                             |

pub(crate) mod call_agent;
pub(crate) mod child_plan;
pub(crate) mod child_tools;
pub(crate) mod children;
pub(crate) mod dispatch_call;
pub(crate) mod external_tools;
pub(crate) mod pending_call;
pub(crate) mod refusal;
pub(crate) mod run_skill;
pub(crate) mod supervisor_tools;
pub(crate) mod waiters;
pub(crate) mod wake_parent;
