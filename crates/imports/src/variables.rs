//! `${NAME}` and `${NAME:-TEXT}` in texts that came with a project.
//!
//! A value of the user's environment leaves only if the user allows it for that variable, by name.

/// Why a text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// The user has not allowed the variable.
    #[error(
        "it asks for your variable `{name}`: if it may have it, add \"{name}\" to `mcp_json_env` in your \
         config.toml"
    )]
    NotAllowed {
        /// Name of the variable.
        name: String,
    },
    /// The variable is allowed and not set.
    #[error("the variable `{name}` is not set")]
    NotSet {
        /// Name of the variable.
        name: String,
    },
}

/// The text with values in place of variables. `value` is asked for a variable that may be given away: `Ok(None)` when
/// it is not set. A variable that may not be has its text behind `:-`, if there is one. A value is not read again.
pub fn expand(
    text: &str,
    value: impl Fn(&str) -> Result<Option<String>, VariableError>,
) -> Result<String, VariableError> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${") {
        expanded.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some(end) = inside.find('}') else {
            expanded.push_str(&rest[at..]);
            return Ok(expanded);
        };
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        let found = match (value(name), default) {
            (Ok(Some(value)), _) => value,
            (Ok(None) | Err(_), Some(default)) => default.to_owned(),
            (Ok(None), None) => return Err(VariableError::NotSet { name: name.to_owned() }),
            (Err(error), None) => return Err(error),
        };
        expanded.push_str(&found);
        rest = &inside[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}
