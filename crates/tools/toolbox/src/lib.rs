//! All tools of an agent as one executor.
//!
//! A [`Toolbox`] combines single tools ([`ToolHandler`]) and other executors (shell, MCP servers).
//! It bounds the text of every result, stores longer results in an [`OutputStore`], removes known
//! secrets, and escapes characters that hide text. [`RedactingTools`] removes secrets from progress
//! and errors too.
//!
//! The crate also has what tools are written with: [`definition()`] and [`arguments`] (JSON Schema out,
//! typed arguments in), [`blocking()`] (file work off the async threads), [`paging`] (numbered lines of a
//! text, by range), and [`PlainText`] (terminal output without escape sequences).

mod blocking;
mod definition;
mod handler;
mod output_store;
pub mod paging;
mod plain_text;
mod redacting;
mod toolbox;

pub use blocking::{StopFlag, Stopped, blocking};
pub use definition::{arguments, at_least_one, count, definition};
pub use handler::{RESULT_BYTES_MAX, ToolHandler};
pub use output_store::{OutputStore, STORED_RESULT_BYTES_MAX, STORED_TASK_BYTES_MAX};
pub use plain_text::{LINE_CHARS_MAX as PLAIN_LINE_CHARS_MAX, PlainText};
pub use redacting::RedactingTools;
pub use toolbox::{Toolbox, ToolboxError};
