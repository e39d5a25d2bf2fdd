//! Parses a settings file. An error names line and column, and the field that was probably meant. The line itself
//! is left out: it may hold a key.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::ProjectError;

/// The version of the settings that this program writes and reads.
pub const CONFIG_VERSION: u32 = 1;

/// How alike two names have to be so that one is suggested for the other: 1 is the same.
const ALIKE: f64 = 0.7;

/// The part of a file that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: Option<u32>,
}

/// Parses the text of the settings file at `path`.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ProjectError> {
    // A newer file may have fields that are unknown here: the version says more than the first of them.
    if let Ok(Versioned { version: Some(version) }) = toml::from_str(text)
        && version > CONFIG_VERSION
    {
        return Err(ProjectError::InvalidInput(format!(
            "{}: written by a newer Antiphon (version {version}, this one reads {CONFIG_VERSION}): update \
             Antiphon, or name another file with ANTIPHON_CONFIG",
            path.display()
        )));
    }
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let hint = suggestion(error.message()).unwrap_or_default();
        ProjectError::InvalidInput(format!(
            "{}: line {line}, column {column}: {}{hint}",
            path.display(),
            error.message()
        ))
    })
}

/// What was probably meant by an unknown field: the most alike of the names that the message expects.
fn suggestion(message: &str) -> Option<String> {
    let rest = message
        .strip_prefix("unknown field `")
        .or_else(|| message.strip_prefix("unknown variant `"))?;
    let (found, expected) = rest.split_once('`')?;
    let names = expected.split('`').skip(1).step_by(2);
    let alike = names.map(|name| (strsim::jaro_winkler(found, name), name));
    let (score, name) = alike.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (score > ALIKE).then(|| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(rename = "base_url")]
        _base_url: Option<String>,
        #[serde(rename = "api_key")]
        _api_key: Option<String>,
        #[serde(rename = "version")]
        _version: Option<u32>,
    }

    fn error(text: &str) -> String {
        parse::<File>(Path::new("c.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn an_error_names_line_and_column_and_what_was_meant() {
        let unknown = error("\n  bas_url = 'x'\n");
        assert!(
            unknown.starts_with("c.toml: line 2, column 3: unknown field `bas_url`"),
            "{unknown}"
        );
        assert!(unknown.ends_with("did you mean `base_url`?"), "{unknown}");
        let far = error("lantern = 1\n");
        assert!(!far.contains("did you mean"), "{far}");
    }

    #[test]
    fn a_key_in_a_broken_line_is_not_shown() {
        let broken = error("api_key = 'sk-very-secret\n");
        assert!(broken.contains("line 1, column ") && !broken.contains("secret"), "{broken}");
    }

    #[test]
    fn a_newer_file_is_named_as_one() {
        let newer = error("version = 2\nlantern = 1\n");
        assert!(
            newer.contains("written by a newer Antiphon") && newer.contains("update"),
            "{newer}"
        );
        parse::<File>(Path::new("c.toml"), "version = 1\n").unwrap();
    }
}
