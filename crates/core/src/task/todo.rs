//! The list of things to do that an agent keeps while it works. Each change replaces the whole list.

use serde::{Deserialize, Serialize};

/// Items of a list, at most.
pub const TODO_ITEMS_MAX: usize = 50;

/// Bytes of the text of an item, at most.
pub const TODO_TEXT_BYTES_MAX: usize = 400;

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TodoItem {
    /// What there is to do.
    pub text: String,
    /// How far it is. Absent: `pending`.
    #[serde(default)]
    pub status: TodoStatus,
}

/// How far a thing to do is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    #[default]
    Pending,
    /// At work on it.
    InProgress,
    /// Done.
    Done,
}

/// Why a list is refused. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TodoError {
    /// There are too many items.
    #[error("{count} items, at most {TODO_ITEMS_MAX} are possible: join or leave out some")]
    TooMany {
        /// Their number.
        count: usize,
    },
    /// A text is empty.
    #[error("the text of item {number} is empty: write it, or leave the item out")]
    Empty {
        /// Number of the item, from 1.
        number: usize,
    },
    /// A text is too long.
    #[error(
        "the text of item {number} has {bytes} bytes, at most {TODO_TEXT_BYTES_MAX} are possible: shorten it"
    )]
    TooLong {
        /// Number of the item, from 1.
        number: usize,
        /// Length of its text.
        bytes: usize,
    },
}

impl TodoItem {
    /// Checks the limits of a list.
    pub fn check(items: &[Self]) -> Result<(), TodoError> {
        if items.len() > TODO_ITEMS_MAX {
            return Err(TodoError::TooMany { count: items.len() });
        }
        for (number, item) in (1..).zip(items) {
            if item.text.trim().is_empty() {
                return Err(TodoError::Empty { number });
            }
            if item.text.len() > TODO_TEXT_BYTES_MAX {
                return Err(TodoError::TooLong { number, bytes: item.text.len() });
            }
        }
        Ok(())
    }
}
