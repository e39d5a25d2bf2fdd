//! One file becomes one agent, or a fault with its line. Pure: what the file leads to is read by the
//! caller.

use std::path::Path;

use antiphon_core::{AgentDefinition, AgentName, DESCRIPTION_BYTES_MAX};

use crate::fields;
use crate::markdown::Markdown;
use crate::problem::Fault;
use crate::yaml;

/// Reads a file beside an agent's, by a path that leads down; says why when it cannot.
pub type Beside<'a> = dyn FnMut(&Path) -> Result<Vec<u8>, String> + 'a;

/// The agent of the file `STEM.md` that holds these bytes.
pub fn parse(stem: &str, bytes: &[u8], beside: &mut Beside<'_>) -> Result<AgentDefinition, Fault> {
    let name = AgentName::parse(stem)
        .map_err(|error| Fault::new(1, format!("the file's name is the agent's: {error}")))?;
    if name.as_str() != stem {
        return Err(Fault::new(1, "the file's name begins or ends with a blank"));
    }
    let markdown = Markdown::read(bytes)?;
    let mut agent = match &markdown.front {
        Some(front) => fields::read(name, &yaml::read(front, 2)?, beside)?,
        None => {
            let description = first_words(markdown.context()?)
                .ok_or_else(|| Fault::new(1, "there are no words: say what the agent is for"))?;
            AgentDefinition { description, ..AgentDefinition::new(name, "") }
        }
    };
    markdown.context()?.clone_into(&mut agent.context);
    Ok(agent)
}

/// The first line that says something, without the marks of a heading.
fn first_words(body: &str) -> Option<String> {
    let mut lines = body.lines().map(|line| line.trim().trim_start_matches('#').trim());
    let line = lines.find(|line| !line.is_empty())?;
    Some(line[..line.floor_char_boundary(DESCRIPTION_BYTES_MAX)].to_owned())
}
