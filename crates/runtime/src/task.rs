//! One task: its state, the decision about its next action, and the loop that performs it.
//!
//! Every decision follows from recorded events, so an interrupted task continues by reading them and deciding
//! again. Events are written before the action they announce is performed.
//!
//! | file               | subject                                               |
//! |--------------------|-------------------------------------------------------|
//! | `state`            | the state of a task, folded from its events           |
//! | `decide`           | which action comes next; pure                         |
//! | `step`             | the loop: decide, record, act                         |
//! | `flush`            | writes the events of a run; merges with other writers |
//! | `ask_model`        | calls the model                                       |
//! | `call_tools`       | runs tool calls, through gate and approvals           |
//! | `interrupted_call` | whether an interrupted call runs again                |
//! | `tools`            | which tools a task may use; runs one call             |
//! | `output`           | the result and its schema                             |
//! | `compact`          | shortens a conversation                               |
//! | `conversation`     | the messages, and which the model still reads         |
//! | `limits`           | limits of a task and its tree                         |
//! | `new_task`         | a task to be accepted                                 |
//! | `create`           | records an accepted task and starts it                |
//! | `supervise`        | starts runs, restarts after faults                    |
//! | `run_slots`        | which tasks run, and the queue for slots              |
//! | `reader`           | rebuilds tasks from the journal                       |
//! | `state_cache`      | states kept in memory between runs                    |
//! | `approval`         | decisions about approvals                             |
//! | `deadlines`        | what happens when its time is over                    |
//! | `cancel`           | cancels tasks and descendants                         |
//! | `wait`             | waits until a task ends or is suspended               |
//! | `attached`         | tasks that end with their client                      |

pub(crate) mod approval;
pub(crate) mod ask_model;
pub(crate) mod attached;
pub(crate) mod call_tools;
pub(crate) mod cancel;
pub(crate) mod compact;
pub(crate) mod conversation;
pub(crate) mod create;
pub(crate) mod deadlines;
pub(crate) mod decide;
pub(crate) mod flush;
pub(crate) mod interrupted_call;
pub(crate) mod limits;
pub(crate) mod new_task;
pub(crate) mod output;
pub(crate) mod reader;
pub(crate) mod run_slots;
pub(crate) mod state;
pub(crate) mod state_cache;
pub(crate) mod step;
pub(crate) mod supervise;
pub(crate) mod tools;
pub(crate) mod wait;
