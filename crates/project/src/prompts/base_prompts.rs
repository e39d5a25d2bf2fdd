//! The system prompt of an agent without its own, for each family of models.
//!
//! The built-in ones are data (`data/prompts/`). A file `NAME.md` in the folder `prompts` beside the user's configuration
//! is added, or replaces the one of the same name. The longest name that the model's name begins with counts;
//! `default` is for the rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use antiphon_core::{ModelRef, visible};

use crate::environment::Warnings;
use crate::instruction_files;

/// The name of the prompt for all other models.
const DEFAULT: &str = "default";

/// The built-in prompts by name.
const BUILT_IN: [(&str, &str); 3] = [
    (DEFAULT, include_str!("../../data/prompts/default.md")),
    ("gpt", include_str!("../../data/prompts/gpt.md")),
    ("gemini", include_str!("../../data/prompts/gemini.md")),
];

/// Most files of the user that are read.
const FILES_MAX: usize = 64;

/// The prompts by name.
#[derive(Debug, Clone)]
pub(crate) struct BasePrompts(BTreeMap<String, String>);

impl BasePrompts {
    /// Name of the folder with the user's own, beside the user's configuration.
    pub(crate) const FOLDER: &str = "prompts";

    /// The built-in prompts and those of `folder`, which may not exist.
    pub(crate) fn load(folder: &Path, warnings: &Warnings) -> Self {
        let built_in = BUILT_IN.iter();
        let mut prompts: BTreeMap<String, String> =
            built_in.map(|(name, text)| ((*name).to_owned(), text.trim().to_owned())).collect();
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).take(FILES_MAX) {
            let name = path.file_stem().and_then(|name| name.to_str());
            let Some(name) = name.filter(|_| path.extension().is_some_and(|it| it == "md")) else {
                continue;
            };
            match instruction_files::text_of(&path) {
                Some(text) => drop(prompts.insert(name.to_owned(), text)),
                None => warnings.report(&visible(&format!(
                    "{} is not used as a prompt: it is empty or cannot be read",
                    path.display()
                ))),
            }
        }
        Self(prompts)
    }

    /// The prompt for a model.
    pub(crate) fn of(&self, model: &ModelRef) -> &str {
        let model = model.model().rsplit('/').next().unwrap_or_default();
        let fits = self.0.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        let longest = fits.max_by_key(|(name, _)| name.len()).map(|(_, text)| text.as_str());
        longest.unwrap_or_else(|| self.default_text())
    }

    /// The prompt for models without one of their own.
    pub(crate) fn default_text(&self) -> &str {
        self.0.get(DEFAULT).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> ModelRef {
        ModelRef::parse(name).unwrap()
    }

    #[test]
    fn the_longest_name_counts_and_the_users_file_replaces_ours() {
        let folder = tempfile::tempdir().unwrap();
        let ours = BasePrompts::load(&folder.path().join("none"), &Warnings::default());
        assert_eq!(ours.of(&model("anthropic/claude-haiku-4-5")), ours.default_text());
        assert!(ours.of(&model("openrouter/openai/gpt-5")).contains("a plan is not a result"));
        for (name, text) in [("gpt.md", "Mine.\n"), ("gpt-5-mini.md", "Small."), ("x.txt", "No.")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        fs::write(folder.path().join("default.md"), " \n").unwrap();
        let prompts = BasePrompts::load(folder.path(), &Warnings::default());
        assert_eq!(prompts.of(&model("openai/gpt-5")), "Mine.");
        assert_eq!(prompts.of(&model("openai/gpt-5-mini-2026")), "Small.");
        assert_eq!(prompts.default_text(), ours.default_text(), "an empty file replaces nothing");
        assert_eq!(prompts.of(&model("x/x")), ours.default_text());
    }
}
