//! Conversations: everything a model reads and writes.
//!
//! | file               | subject                                                |
//! |--------------------|--------------------------------------------------------|
//! | `message`          | messages and their blocks                              |
//! | `message_list`     | the messages of a conversation, shared with requests   |
//! | `request`          | one request to a model                                 |
//! | `environment_block` | the part of a system prompt that says where an agent works |
//! | `sampling`         | options of an answer: how the model samples and stops  |
//! | `stream`           | one answer as it arrives, and the message it becomes   |
//! | `tool`             | tools that a model may call                            |
//! | `usage`            | tokens of an answer, and why it ended                  |
//! | `session`          | conversations                                          |
//! | `sendable_history` | the part of a conversation that every provider accepts |
//! | `model_switch`     | a conversation continued by another model              |
//! | `chat`             | canonical chat: the plain-text form of other systems   |

pub(crate) mod chat;
pub(crate) mod environment_block;
pub mod message;
pub(crate) mod message_list;
pub(crate) mod model_switch;
pub(crate) mod request;
pub(crate) mod sampling;
pub(crate) mod sendable_history;
pub(crate) mod session;
pub mod stream;
pub(crate) mod tool;
pub(crate) mod usage;
