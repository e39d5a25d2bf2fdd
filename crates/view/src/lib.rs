//! The display for people, as data and text: trees, transcripts, diffs, cost and status lines.
//!
//! Nothing here reads the environment or opens the terminal. Functions return values and strings, or
//! write to a writer of the caller; the width, the colors and the time are arguments. Text of models,
//! agents and tools is untrusted: everything that returns a line for a terminal escapes control and
//! invisible characters in it first, with [`display`].

mod approval;
mod approval_answer;
mod canvas;
mod colors;
pub mod conversation_text;
mod deferred;
mod descendants;
pub mod display;
mod failure_text;
mod note;
mod question;
mod result_text;
mod task_outcome;
mod task_words;
pub mod text;
mod transcript;
mod tree;
mod wording;

pub use approval::{ApprovalQuestion, call_argument_lines, call_lines, call_text, rule_text};
pub use approval_answer::{settles, typed_reply};
pub use canvas::Canvas;
pub use colors::Colors;
pub use deferred::DeferredOutput;
pub use descendants::Descendants;
pub use failure_text::{FailedTask, FailureKind, FailureReader, failure_text};
pub use note::{Note, Tone};
pub use question::{
    Extent, answer_text, answers_text, plan_lines, question_lines, question_text, todo_lines,
    todo_text,
};
pub use result_text::result_text;
pub use task_outcome::TaskOutcome;
pub use task_words::{peer_wait_text, status_word, task_title};
pub use transcript::{NotePlacement, Transcript, TranscriptFormat, TranscriptOptions};
pub use tree::{
    Collapse, DisplayStatus, LastColumn, TASKS_MAX, TaskDetail, TaskRow, TaskTree, TreeDrawing,
    TreeNode, TreeTask, TreeTotals, change_line, shown_tasks,
};
pub use wording::{
    cost_text, diff_lines, dispatch_text, outage_wait_text, tool_call_title, usage_text, waits_for,
};
