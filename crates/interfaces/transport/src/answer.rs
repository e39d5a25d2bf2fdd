//! Answers of tasks to the clients of chat-like interfaces: OpenAI's chat and responses, Anthropic's messages.
//!
//! | file               | holds                                                                      |
//! |--------------------|----------------------------------------------------------------------------|
//! | `conversation`     | the conversation that a client sends, built message by message             |
//! | `answer_task`      | the task of a request, and what `model` names                              |
//! | `answer_agents`    | the agents that `model` may name                                           |
//! | `started_answer`   | creates the task, and says what a disconnect does to it                    |
//! | `answer_watcher`   | watches the task: its text, thinking, steps and end                        |
//! | `answer_part`      | what a watcher yields                                                      |
//! | `answer_state`     | what is known of the answer, by deltas and by the journal                  |
//! | `answer_blocks`    | the blocks of an answer, as they begin, grow and end                       |
//! | `carried_thought`  | thinking that a client carries to its next request                         |
//! | `answer_reply`     | the response: whole, or streamed                                           |
//! | `answer_error`     | why there is no answer                                                     |
//!
//! An interface reads its own wire into an [`AnswerRequest`], and writes the answer with an [`AnswerFormat`].

mod answer_agents;
mod answer_blocks;
mod answer_error;
mod answer_part;
mod answer_reply;
mod answer_state;
mod answer_task;
mod answer_watcher;
mod carried_thought;
mod conversation;
mod started_answer;

pub use answer_agents::AnswerAgents;
pub use answer_blocks::{AnswerBlock, AnswerBlocks, BlockEvent, BlockKind};
pub use answer_error::{AnswerError, QUOTA};
pub use answer_part::{AnswerEnd, AnswerPart, FinishReason, FinishedStep, ModelAway, StepPart};
pub use answer_reply::{AnswerFormat, AnswerReply, StreamLine};
pub use answer_task::{
    AnswerRequest, AnswerStorage, AnswerTarget, MissingModel, PreviousConversation, known_models,
    model_not_found, target,
};
pub use answer_watcher::AnswerWatcher;
pub use carried_thought::CarriedThought;
pub use conversation::{AssistantPart, Conversation, ConversationBuilder, OpenCalls, image};
pub use started_answer::{Continuation, CreationLock, StartedAnswer};
