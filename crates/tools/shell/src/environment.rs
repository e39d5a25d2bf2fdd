//! The environment of commands: variables named here or by the user, and no others. It never
//! contains keys of providers, variables that load code into programs, or variables that make
//! programs ask for input.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Passed to commands unchanged, as is `LC_…`.
const PASSED_THROUGH: [&str; 7] = ["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "TZ", "USER"];

/// Never passed to commands, even if the user names them.
const REFUSED: [&str; 10] = [
    "ANTHROPIC_API_KEY",
    "BASHOPTS",
    "BASH_ENV",
    "ENV",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "LD_AUDIT",
    "LD_PRELOAD",
    "OPENAI_API_KEY",
    "SHELLOPTS",
];

/// Set for every command: there is no person to read a pager, answer a question or see colors.
const SET: [(&str, &str); 13] = [
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("GH_PROMPT_DISABLED", "1"),
    ("GIT_EDITOR", "true"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("PIP_NO_INPUT", "1"),
    ("PYTHONUNBUFFERED", "1"),
    ("SHELL", "/bin/bash"),
    ("TERM", "dumb"),
];

/// The environment variables of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

/// The user named a variable that commands may not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the variable `{name}` cannot be given to commands: it holds a key, or changes what every \
     program does. Remove it from the list"
)]
pub struct EnvironmentError {
    /// Name of the variable.
    pub name: String,
}

impl Environment {
    /// Selects from `all`, the environment of this process. `named` are further variables that the
    /// user wants commands to have, `secret` are the names of variables that contain keys.
    pub fn choose(
        all: impl IntoIterator<Item = (OsString, OsString)>,
        named: &[String],
        secret: &[String],
    ) -> Result<Self, EnvironmentError> {
        let is_refused = |name: &&String| {
            REFUSED.contains(&name.as_str())
                || secret.contains(name)
                || name.starts_with("ANTIPHON_")
                || name.starts_with("BASH_FUNC_")
        };
        if let Some(name) = named.iter().find(is_refused) {
            return Err(EnvironmentError { name: name.clone() });
        }
        let is_named = |name: &OsStr| named.iter().any(|wanted| name == wanted.as_str());
        let mut chosen: BTreeMap<OsString, OsString> =
            SET.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let taken = |(name, _): &(OsString, OsString)| is_usual(name) || is_named(name);
        chosen.extend(all.into_iter().filter(taken));
        keep_character_set_alone(&mut chosen);
        if !chosen.contains_key(OsStr::new("LANG")) {
            // Text is UTF-8. `LANG` would have every program load a dozen files for the rest of a locale.
            chosen.entry("LC_CTYPE".into()).or_insert_with(|| "C.UTF-8".into());
        }
        Ok(Self(chosen))
    }

    /// The selected variables.
    pub fn variables(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}

/// `C.UTF-8` says no more than that text is UTF-8, which `LC_CTYPE` alone says too. Under any other name every program
/// loads a dozen files for the rest of the locale when it starts.
fn keep_character_set_alone(chosen: &mut BTreeMap<OsString, OsString>) {
    let is_plain = |name: &str| {
        let value = chosen.get(OsStr::new(name)).and_then(|value| value.to_str());
        value.is_some_and(|value| value == "C.UTF-8" || value == "C.utf8")
    };
    let (all, lang) = (is_plain("LC_ALL"), is_plain("LANG"));
    let has = |name: &str| chosen.contains_key(OsStr::new(name));
    // With `LANGUAGE`, the messages of such a locale are translated.
    if has("LANGUAGE") || !(all || lang && !has("LC_ALL")) {
        return;
    }
    if all {
        // It has hidden them.
        chosen.retain(|name, _| name != "LANG" && !name.as_encoded_bytes().starts_with(b"LC_"));
    }
    chosen.remove(OsStr::new("LANG"));
    chosen.entry("LC_CTYPE".into()).or_insert_with(|| "C.UTF-8".into());
}

fn is_usual(name: &OsStr) -> bool {
    PASSED_THROUGH.iter().any(|usual| name == *usual) || name.as_encoded_bytes().starts_with(b"LC_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<(OsString, OsString)> {
        ["PATH", "LC_ALL", "TERM", "MY_TOOL", "ANTHROPIC_API_KEY", "LD_PRELOAD", "BASH_ENV"]
            .map(|name| (name.into(), format!("{name} of the user").into()))
            .into()
    }

    fn value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
        environment.0.get(OsStr::new(name)).and_then(|value| value.to_str())
    }

    #[test]
    fn only_known_or_named_variables_are_passed() {
        let chosen = Environment::choose(all(), &["MY_TOOL".to_owned()], &[]).unwrap();
        assert_eq!(value(&chosen, "PATH"), Some("PATH of the user"));
        assert_eq!(value(&chosen, "LC_ALL"), Some("LC_ALL of the user"));
        assert_eq!(value(&chosen, "MY_TOOL"), Some("MY_TOOL of the user"));
        assert_eq!(value(&chosen, "TERM"), Some("dumb"));
        for name in ["ANTHROPIC_API_KEY", "LD_PRELOAD", "BASH_ENV"] {
            assert_eq!(value(&chosen, name), None);
        }
    }

    #[test]
    fn text_is_utf_8_unless_the_user_has_a_language() {
        let of = |all: &[(&str, &str)]| {
            let all = all.iter().map(|(name, value)| (name.into(), value.into()));
            Environment::choose(all, &[], &[]).unwrap()
        };
        assert_eq!(value(&of(&[]), "LC_CTYPE"), Some("C.UTF-8"));
        assert_eq!(value(&of(&[]), "LANG"), None);
        let theirs = of(&[("LANG", "de_DE.UTF-8")]);
        assert_eq!(value(&theirs, "LANG"), Some("de_DE.UTF-8"));
        assert_eq!(value(&theirs, "LC_CTYPE"), None);
        assert_eq!(value(&of(&[("LC_CTYPE", "C")]), "LC_CTYPE"), Some("C"));
    }

    #[test]
    fn a_locale_that_is_only_a_character_set_is_given_as_one() {
        let of = |all: &[(&str, &str)]| {
            let all = all.iter().map(|(name, value)| (name.into(), value.into()));
            let chosen = Environment::choose(all, &[], &[]).unwrap();
            let locale = |(name, value): (&OsString, &OsString)| {
                let (name, value) = (name.to_str().unwrap(), value.to_str().unwrap());
                (name.starts_with("LC_") || name.starts_with("LANG"))
                    .then(|| format!("{name}={value}"))
            };
            chosen.variables().filter_map(locale).collect::<Vec<_>>()
        };
        assert_eq!(of(&[("LANG", "C.UTF-8")]), ["LC_CTYPE=C.UTF-8"]);
        assert_eq!(of(&[("LC_ALL", "C.utf8"), ("LC_TIME", "de_DE")]), ["LC_CTYPE=C.UTF-8"]);
        assert_eq!(
            of(&[("LANG", "C.UTF-8"), ("LC_TIME", "de_DE")]),
            ["LC_CTYPE=C.UTF-8", "LC_TIME=de_DE"]
        );
        let others =
            [[("LANG", "C.UTF-8"), ("LC_ALL", "de_DE")], [("LANG", "C.UTF-8"), ("LANGUAGE", "de")]];
        for other in others {
            assert_eq!(of(&other).len(), 2, "{other:?}");
        }
    }

    #[test]
    fn variables_with_keys_cannot_be_named() {
        let secret = ["MY_KEY".to_owned()];
        for name in ["OPENAI_API_KEY", "LD_PRELOAD", "ENV", "MY_KEY", "ANTIPHON_WORKER"] {
            let error = Environment::choose(all(), &[name.to_owned()], &secret).unwrap_err();
            assert_eq!(error.name, name);
        }
    }
}
