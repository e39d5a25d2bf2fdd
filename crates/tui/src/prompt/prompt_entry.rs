//! Commands that are prompts in files, as the program lists and sends them.

/// A command for the list behind a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptEntry {
    /// Its name, without the slash.
    pub name: String,
    /// What its arguments are; empty when its file does not say.
    pub hint: String,
    /// What it does.
    pub description: String,
}

/// The prompt of the command `name` for what is typed, with the slash: `None` when there is none, an error that says why
/// it cannot be used.
pub type ExpandPrompt = Box<dyn Fn(&str, &str) -> Option<Result<String, String>> + Send + Sync>;
