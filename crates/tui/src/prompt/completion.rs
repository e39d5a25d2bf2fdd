//! What can follow what is typed: commands behind a slash, files of the project behind an `@`.

use antiphon_view::display::escaped;

use crate::choice::{Choice, ChoiceList};
use crate::command::COMMANDS;
use crate::composer::Composer;
use crate::prompt_entry::PromptEntry;

/// Completions that are offered.
const OFFERED_MAX: usize = 50;

/// Replaces the word before the cursor.
pub(crate) type Completions = ChoiceList<String>;

/// The completions of what is typed; `None` when there are none.
pub(crate) fn completions(
    composer: &Composer,
    files: &[String],
    prompts: &[PromptEntry],
) -> Option<Completions> {
    let (start, word) = composer.word_before_cursor();
    if start == 0
        && let Some(typed) = word.strip_prefix('/')
    {
        let matching = COMMANDS.iter().filter(|entry| entry.name.starts_with(typed));
        let entries = matching.map(|entry| Choice {
            label: format!("/{} {}", entry.name, entry.argument).trim_end().to_owned(),
            detail: entry.help.to_owned(),
            value: format!("/{} ", entry.name),
        });
        let prompts = prompts.iter().filter(|prompt| prompt.name.starts_with(typed));
        let prompts = prompts.take(OFFERED_MAX).map(|prompt| Choice {
            label: escaped(format!("/{} {}", prompt.name, prompt.hint).trim_end()).into_owned(),
            detail: escaped(&prompt.description).into_owned(),
            value: format!("/{} ", prompt.name),
        });
        return ChoiceList::new("", entries.chain(prompts).collect());
    }
    let typed = word.strip_prefix('@')?.to_lowercase();
    let mut found: Vec<(u8, &String)> =
        files.iter().filter_map(|file| Some((rank(file, &typed)?, file))).collect();
    found.sort_by_key(|(rank, file)| (*rank, file.len(), (*file).clone()));
    let entries = found.into_iter().take(OFFERED_MAX).map(|(_, file)| Choice {
        label: escaped(file).into_owned(),
        detail: String::new(),
        value: format!("@{file} "),
    });
    ChoiceList::new("", entries.collect())
}

/// How well a file matches: its name begins with what is typed, its path contains it, or its characters in order.
fn rank(file: &str, typed: &str) -> Option<u8> {
    let path = file.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    if name.starts_with(typed) {
        return Some(0);
    }
    if path.contains(typed) {
        return Some(1);
    }
    let mut rest = path.chars();
    typed.chars().all(|wanted| rest.any(|c| c == wanted)).then_some(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(typed: &str, files: &[&str]) -> Vec<String> {
        let mut composer = Composer::default();
        composer.set(typed);
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let Some(mut found) = completions(&composer, &files, &[]) else { return Vec::new() };
        let mut labels = Vec::new();
        loop {
            let label = found.selected().unwrap().label.clone();
            if labels.contains(&label) {
                return labels;
            }
            labels.push(label);
            found.down();
        }
    }

    #[test]
    fn files_are_found_by_name_before_path() {
        let files = ["src/login/mod.rs", "login.rs", "docs/other.md"];
        assert_eq!(labels("look at @log", &files), ["login.rs", "src/login/mod.rs"]);
        assert_eq!(labels("@slr", &files), ["src/login/mod.rs"]);
    }

    #[test]
    fn commands_are_completed_at_the_beginning_only() {
        assert_eq!(labels("/mo", &[]), ["/model [PROVIDER/MODEL]"]);
        assert!(labels("see /mo", &[]).is_empty());
    }
}
