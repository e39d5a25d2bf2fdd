//! Commands that begin with a slash.

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    New,
    Model,
    Plan,
    Permissions,
    Agent,
    Agents,
    Budget,
    Doctor,
    Sessions,
    Tasks,
    Resume,
    Pause,
    Cancel,
    Approvals,
    Fork,
    Name,
    Compact,
    Detach,
    Diff,
    Cost,
    Export,
    Transcript,
    Mcp,
    Keys,
    Theme,
    Vi,
    Quit,
}

/// A command as it is typed and listed.
pub(crate) struct CommandEntry {
    pub(crate) command: Command,
    pub(crate) name: &'static str,
    /// What stands behind it; empty when nothing does.
    pub(crate) argument: &'static str,
    pub(crate) help: &'static str,
}

const fn entry(
    command: Command,
    name: &'static str,
    argument: &'static str,
    help: &'static str,
) -> CommandEntry {
    CommandEntry { command, name, argument, help }
}

/// All commands, in the order in which they are listed.
pub(crate) const COMMANDS: [CommandEntry; 28] = [
    entry(Command::Help, "help", "", "Show keys and commands"),
    entry(Command::New, "new", "", "Begin a new conversation"),
    entry(
        Command::Sessions,
        "sessions",
        "[TEXT]",
        "Continue another conversation, or one with this text",
    ),
    entry(Command::Fork, "fork", "", "Continue a copy of this conversation"),
    entry(Command::Name, "name", "[NAME]", "Name this conversation; alone, take its name away"),
    entry(
        Command::Compact,
        "compact",
        "",
        "Replace the conversation by a summary, which makes room",
    ),
    entry(Command::Model, "model", "[PROVIDER/MODEL]", "Choose the model of the next task"),
    entry(Command::Plan, "plan", "", "The next task plans first, or does not (Shift-Tab)"),
    entry(
        Command::Permissions,
        "permissions",
        "[MODE]",
        "Show the rules, or set the mode of the next tasks",
    ),
    entry(Command::Agent, "agent", "[NAME]", "Choose the agent of the next conversation"),
    entry(Command::Agents, "agents", "", "List the agents, and files of agents that are not valid"),
    entry(Command::Tasks, "tasks", "", "Watch another task that is at work"),
    entry(Command::Resume, "resume", "", "Resume the interrupted task, or choose one"),
    entry(Command::Pause, "pause", "", "Pause the task after its current step"),
    entry(Command::Cancel, "cancel", "", "Cancel the task and every task below it"),
    entry(Command::Detach, "detach", "", "Quit, and let the task go on without this terminal"),
    entry(Command::Approvals, "approvals", "", "Show the pending question again"),
    entry(Command::Diff, "diff", "", "Show what changed in the git work tree"),
    entry(Command::Cost, "cost", "", "Show what the tasks of this conversation have spent"),
    entry(Command::Budget, "budget", "", "Show spend and limits of this day and this month"),
    entry(Command::Doctor, "doctor", "", "Check models, sandbox, MCP servers and settings"),
    entry(Command::Export, "export", "[FILE]", "Save the conversation as a session file"),
    entry(Command::Transcript, "transcript", "", "Show the whole transcript, with search (Ctrl-T)"),
    entry(Command::Mcp, "mcp", "", "List the MCP servers, their tools and errors"),
    entry(Command::Keys, "keys", "", "List the keys that can be changed"),
    entry(Command::Theme, "theme", "[NAME]", "Choose colors: terminal, light, dark or mono"),
    entry(Command::Vi, "vi", "", "Turn the keys of vi in the prompt on or off"),
    entry(Command::Quit, "quit", "", "Quit (Ctrl-D)"),
];

/// The command of a prompt and what stands behind it. `Err` names the word that is no command.
pub(crate) fn parse(prompt: &str) -> Option<Result<(Command, &str), &str>> {
    let typed = prompt.strip_prefix('/')?;
    // A path is no command.
    if typed.starts_with('/')
        || typed.split_whitespace().next().is_some_and(|word| word.contains('/'))
    {
        return None;
    }
    let (name, argument) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let found = COMMANDS.iter().find(|entry| entry.name == name);
    Some(match found {
        Some(entry) => Ok((entry.command, argument.trim())),
        None => Err(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_a_name_and_an_argument() {
        assert_eq!(parse("/model a/b "), Some(Ok((Command::Model, "a/b"))));
        assert_eq!(parse("/quit"), Some(Ok((Command::Quit, ""))));
        assert_eq!(parse("/nothing x"), Some(Err("nothing")));
    }

    #[test]
    fn a_path_and_plain_text_are_no_commands() {
        assert_eq!(parse("/etc/hosts is what?"), None);
        assert_eq!(parse("hello /quit"), None);
        assert_eq!(parse("// a comment"), None);
    }
}
