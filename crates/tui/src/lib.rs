//! The terminal program: a prompt over a project's agents, with everything at work beneath it.
//!
//! It is a process of the project like every other one: it owns the journal or is a client of the owner, through
//! [`AttachedTask`](antiphon_process::AttachedTask), and everything it shows comes from the journal. Finished blocks are
//! written as plain lines into the terminal's own scrollback; only the rows at the lower end are drawn again.
//!
//! | module          | holds                                                                             |
//! |-----------------|-----------------------------------------------------------------------------------|
//! | `program`       | the loop: keys, events and deltas in, lines and orders out                        |
//! | `inline_screen` | the rows that are drawn again, and the lines above them                           |
//! | `composer`      | the editor of the prompt; `history`, `completion`, `choice` and `command` serve it |
//! | `keymap`        | which key of the prompt does what                                                 |
//! | `transcript`    | a watched task as lines, with `call_output` and `todo_list`; `answer`, `thinking` and `markdown` format what the model writes |
//! | `document`      | a whole transcript, which `pager` shows over everything else                      |
//! | `asked_question`| the question on the screen, and when a key may answer it                          |
//! | `board`         | the tree of everything at work                                                    |
//! | `notification`  | what tells a person who looks at something else                                   |
//!
//! Commands that show one task use two parts of it: `line_input` (what a person types) and `markdown_writer` (formatted
//! answers above live rows).

mod answer;
mod asked_question;
mod board;
mod call_output;
mod choice;
mod command;
mod completion;
mod composer;
mod document;
mod hang_up;
mod highlight;
mod history;
mod inline_screen;
mod keymap;
mod line_input;
mod markdown;
mod markdown_writer;
mod notification;
mod pager;
mod program;
mod project_files;
mod prompt_entry;
mod sgr;
mod terminal_mode;
mod thinking;
mod todo_list;
mod transcript;
mod wrap;

pub use keymap::Keymap;
pub use line_input::{LineInput, Typed, TypedLine};
pub use markdown_writer::{AnswerStyle, LiveRows, LiveTerminal};
pub use notification::NotificationSequence;
pub use program::{Asks, ProgramOptions, StartWith, run};
pub use prompt_entry::{ExpandPrompt, PromptEntry};
pub use terminal_mode::reset_after_kill;
