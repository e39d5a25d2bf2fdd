//! Whether arguments without a command mean the terminal program.

use std::ffi::OsString;

use clap::{Args, Command};

use super::{Chat, has_terminal};
use crate::project_args::ProjectArgs;
use crate::server_args::ServerArgs;

/// What an argument that begins with `-` is.
enum OptionKind {
    /// The next argument is its value.
    WithValue,
    /// It is complete.
    Alone,
    /// It is none of the program's: help, or a mistake.
    Unknown,
}

/// Whether the arguments mean the terminal program: there are none and a person is at the terminal, or there are
/// options of it alone, or a prompt: an argument with a blank, which no command has, or one behind `--`.
pub(crate) fn is_meant(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1);
    let Some(first) = arguments.get(1) else { return has_terminal() };
    if !first.as_encoded_bytes().starts_with(b"-") {
        return is_prompt(first);
    }
    let known = Chat::augment_args(ServerArgs::augment_args(ProjectArgs::augment_args(
        Command::new(super::NAME),
    )));
    while let Some(word) = words.next() {
        if word == "--" {
            return true;
        }
        if !word.as_encoded_bytes().starts_with(b"-") {
            return is_prompt(word);
        }
        match kind(&known, word) {
            OptionKind::WithValue => drop(words.next()),
            OptionKind::Alone => {}
            OptionKind::Unknown => return false,
        }
    }
    true
}

/// Whether an argument is a prompt rather than a command that does not exist.
fn is_prompt(word: &OsString) -> bool {
    word.to_str().is_some_and(|word| word.contains(char::is_whitespace))
}

fn kind(known: &Command, word: &OsString) -> OptionKind {
    let Some(word) = word.to_str() else { return OptionKind::Unknown };
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let is_named = |option: &&clap::Arg| {
        let long = option.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
        let short = option.get_short().is_some_and(|short| {
            name.strip_prefix('-').is_some_and(|rest| rest == short.encode_utf8(&mut [0; 4]))
        });
        long || short
    };
    match known.get_arguments().find(is_named) {
        None => OptionKind::Unknown,
        Some(option) if option.get_action().takes_values() && value.is_none() => {
            OptionKind::WithValue
        }
        Some(_) => OptionKind::Alone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(arguments: &[&str]) -> bool {
        let arguments = std::iter::once("antiphon").chain(arguments.iter().copied());
        is_meant(&arguments.map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_the_program_alone_and_a_prompt_mean_it() {
        assert!(means(&["-c"]));
        assert!(means(&["--model", "a/b", "--trust"]));
        assert!(means(&["--state", "run", "--agent=reviewer"]));
        assert!(means(&["what is this?"]));
        assert!(means(&["--plan", "fix the test"]));
        assert!(means(&["--", "run"]));
    }

    #[test]
    fn commands_help_and_unknown_words_do_not_mean_it() {
        assert!(!means(&["run", "what is this?"]));
        assert!(!means(&["--state", "d", "tasks", "list"]));
        assert!(!means(&["--help"]));
        assert!(!means(&["-V"]));
        assert!(!means(&["taks"]));
        assert!(!means(&["--json"]));
    }
}
