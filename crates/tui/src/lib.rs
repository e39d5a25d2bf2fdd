//! The terminal program: a prompt over a project's agents, with everything at work beneath it.
//!
//! It is a process of the project like every other one: it owns the journal or is a client of the owner, through
//! [`AttachedTask`](antiphon_process::AttachedTask), and everything it shows comes from the journal. Finished blocks are
//! written as plain lines into the terminal's own scrollback; only the rows at the lower end are drawn again.
//!
//! | module           | holds                                                                             |
//! |------------------|-----------------------------------------------------------------------------------|
//! | `program/`       | the loop: keys, events and deltas in, lines and orders out                        |
//! | `prompt/`        | `composer`, the editor of the prompt, which key does what, history, completions and lists |
//! | `transcript/`    | a watched task as lines: answers, thinking, output of calls; `document`, the whole of it |
//! | `styled_text/`   | markdown, highlighted code and wrapped lines                                      |
//! | `asked_question/`| the question on the screen, and when a key may answer it                          |
//! | `board/`         | the tree of everything at work                                                    |
//! | `screen/`        | the terminal: its mode, the rows that are drawn again, and `pager`, over everything else |
//!
//! Modules are used by their own names, without the folder: `crate::composer`.
//!
//! Commands that show one task use two parts of it: `line_input` (what a person types) and `markdown_writer` (formatted
//! answers above live rows).

mod asked_question;
mod board;
mod program;
mod prompt;
mod screen;
mod styled_text;
mod transcript;

use prompt::{
    choice, command, completion, composer, history, keymap, line_input, project_files, prompt_entry,
};
use screen::{hang_up, inline_screen, notification, pager, terminal_mode};
use styled_text::{highlight, markdown, markdown_writer, sgr, wrap};
use transcript::{answer, call_output, document, thinking};

pub use keymap::Keymap;
pub use line_input::{LineInput, Typed, TypedLine};
pub use markdown_writer::{AnswerStyle, LiveRows, LiveTerminal};
pub use notification::NotificationSequence;
pub use program::{Asks, ProgramOptions, StartWith, TaskWork, run};
pub use prompt_entry::{ExpandPrompt, PromptEntry};
pub use terminal_mode::reset_after_kill;
