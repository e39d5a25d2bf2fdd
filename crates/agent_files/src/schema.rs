//! A schema of an agent's result or of the parameters of requests: inline, or in a file of its own.
//!
//! It must be a JSON Schema, an object, and no larger than [`SCHEMA_BYTES_MAX`].

use std::path::{Component, Path};

use antiphon_core::RawJson;

use crate::list::text;
use crate::parse::ReadReferenced;
use crate::problem::AgentFileError;
use crate::yaml::{Field, Value};

/// Largest schema in a file of its own, in bytes.
pub const SCHEMA_BYTES_MAX: usize = 256 * 1024;

pub(crate) fn read(
    field: &Field,
    read_referenced: &mut ReadReferenced<'_>,
) -> Result<RawJson, AgentFileError> {
    let refuse =
        |reason: String| AgentFileError::new(field.line, format!("`{}`: {reason}", field.name));
    let schema = match &field.value.value {
        Value::Map(_) => {
            RawJson::of(&field.value.to_json()?).map_err(|error| refuse(error.to_string()))?
        }
        Value::Text { .. } => {
            let path = text(&field.name, &field.value)?;
            let in_file = |reason: String| refuse(format!("{path}: {reason}"));
            let bytes = read_referenced(relative(path).map_err(refuse)?).map_err(in_file)?;
            if bytes.len() > SCHEMA_BYTES_MAX {
                return Err(in_file(format!("it has more than {SCHEMA_BYTES_MAX} bytes")));
            }
            let json =
                String::from_utf8(bytes).map_err(|_| in_file("it is not UTF-8".to_owned()))?;
            RawJson::parse(&json).map_err(|error| in_file(error.to_string()))?
        }
        Value::List(_) => return Err(refuse("write a schema, or the path of one".to_owned())),
    };
    if !schema.is_object() {
        return Err(refuse("a schema is an object".to_owned()));
    }
    let value = schema.to().map_err(|error| refuse(error.to_string()))?;
    jsonschema::validator_for(&value).map_err(|error| refuse(error.to_string()))?;
    Ok(schema)
}

/// A relative path without `..`. The caller that opens it must check for links.
fn relative(path: &str) -> Result<&Path, String> {
    let down = |part: Component<'_>| match part {
        Component::Normal(_) | Component::CurDir => true,
        Component::Prefix(_) | Component::RootDir | Component::ParentDir => false,
    };
    let found = Path::new(path);
    if path.is_empty() || !found.components().all(down) {
        return Err(format!("`{path}` must be a path beneath the folder of this file"));
    }
    Ok(found)
}
