//! The references within a schema: where they lead, and how much there is to check in the end.

use std::collections::HashMap;

use serde_json::Value;

use super::Fault;

/// Most steps a check may take for one value, with every reference followed. Without a limit, forty
/// lines of references to references take years.
const STEPS_MAX: u64 = 4096;

/// Follows the references of a schema to see how much there is to check.
pub(super) struct References<'a> {
    root: &'a Value,
    /// Steps of what a reference names; `None` while they are being counted.
    counted: HashMap<&'a str, Option<u64>>,
}

impl<'a> References<'a> {
    /// Follows all of them; an error is why the schema cannot be used.
    pub(super) fn of(root: &'a Value) -> Result<(), Fault> {
        let mut references = Self { root, counted: HashMap::new() };
        if references.steps(root)? > STEPS_MAX {
            return Err(Fault::Schema("checking it would take too long".to_owned()));
        }
        Ok(())
    }

    fn steps(&mut self, value: &'a Value) -> Result<u64, Fault> {
        match value {
            Value::Array(items) => self.sum(items),
            Value::Object(fields) => {
                let mut steps = 1_u64;
                for (name, field) in fields {
                    steps = steps.saturating_add(self.keyword(name, field)?);
                }
                Ok(steps)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(1),
        }
    }

    fn keyword(&mut self, name: &str, value: &'a Value) -> Result<u64, Fault> {
        match (name, value) {
            ("$ref", Value::String(target)) => self.follow(target),
            ("$dynamicRef" | "$recursiveRef" | "$id" | "id" | "$anchor", Value::String(_)) => {
                Err(Fault::Schema(format!("it uses `{name}`")))
            }
            // What is only named costs nothing until something refers to it, and values are no schemas.
            ("$defs" | "definitions" | "const" | "default" | "enum" | "examples", _) => Ok(1),
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(schemas)) => {
                self.sum(schemas.values())
            }
            _ => self.steps(value),
        }
    }

    fn sum(&mut self, values: impl IntoIterator<Item = &'a Value>) -> Result<u64, Fault> {
        let mut steps = 1_u64;
        for value in values {
            steps = steps.saturating_add(self.steps(value)?);
        }
        Ok(steps)
    }

    fn follow(&mut self, target: &'a str) -> Result<u64, Fault> {
        if let Some(counted) = self.counted.get(target) {
            // A schema that contains itself is followed as far as the arguments go.
            return Ok(counted.unwrap_or(1));
        }
        let place =
            target.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(found) = place.and_then(|pointer| self.root.pointer(pointer)) else {
            return Err(Fault::Schema("it refers to something that is not in it".to_owned()));
        };
        self.counted.insert(target, None);
        let steps = self.steps(found)?;
        self.counted.insert(target, Some(steps));
        Ok(steps)
    }
}
