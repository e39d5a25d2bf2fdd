//! Parses one agent file into a definition, or a fault with its line. Pure: the caller reads the files that
//! it refers to.

use std::path::Path;

use antiphon_core::{AgentDefinition, AgentName, DESCRIPTION_BYTES_MAX};

use crate::fields;
use crate::markdown::Markdown;
use crate::problem::AgentFileError;
use crate::yaml;

/// Reads a file that an agent file refers to, by a path below its folder. The error says why it cannot.
pub type ReadReferenced<'a> = dyn FnMut(&Path) -> Result<Vec<u8>, String> + 'a;

/// Parses the bytes of the file `STEM.md`.
pub fn parse(
    stem: &str,
    bytes: &[u8],
    read_referenced: &mut ReadReferenced<'_>,
) -> Result<AgentDefinition, AgentFileError> {
    let name = AgentName::parse(stem).map_err(|error| {
        AgentFileError::new(1, format!("the file's name is the agent's: {error}"))
    })?;
    if name.as_str() != stem {
        return Err(AgentFileError::new(1, "the file's name begins or ends with a blank"));
    }
    let markdown = Markdown::read(bytes)?;
    let mut agent = match &markdown.front {
        Some(front) => fields::read(name, &yaml::read(front, 2)?, read_referenced)?,
        None => {
            let description = first_line(markdown.context()?).ok_or_else(|| {
                AgentFileError::new(1, "the file is blank: describe what the agent does")
            })?;
            AgentDefinition { description, ..AgentDefinition::new(name, "") }
        }
    };
    markdown.context()?.clone_into(&mut agent.context);
    Ok(agent)
}

/// The first line that is not blank, without the marks of a heading.
fn first_line(body: &str) -> Option<String> {
    let mut lines = body.lines().map(|line| line.trim().trim_start_matches('#').trim());
    let line = lines.find(|line| !line.is_empty())?;
    Some(line[..line.floor_char_boundary(DESCRIPTION_BYTES_MAX)].to_owned())
}
