//! Resolves the references within a schema and bounds the work of the validator.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;

/// Most steps of a check for one value, with every reference followed. Without a limit, forty lines
/// of references to references take years.
const STEPS_MAX: u64 = 4096;

/// Counts the steps of a check by following all references.
pub(super) struct References<'a> {
    root: &'a Value,
    /// Steps per reference; `None` while they are being counted.
    counted: HashMap<&'a str, Option<u64>>,
}

impl<'a> References<'a> {
    /// Follows all references. The error says why the schema cannot be used.
    pub(super) fn of(root: &'a Value) -> Result<(), SchemaError> {
        let mut references = Self { root, counted: HashMap::new() };
        if references.steps(root)? > STEPS_MAX {
            return Err(SchemaError::Schema("checking it would take too long".to_owned()));
        }
        Ok(())
    }

    fn steps(&mut self, value: &'a Value) -> Result<u64, SchemaError> {
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

    fn keyword(&mut self, name: &str, value: &'a Value) -> Result<u64, SchemaError> {
        match (name, value) {
            ("$ref", Value::String(target)) => self.follow(target),
            ("$dynamicRef" | "$recursiveRef" | "$id" | "id" | "$anchor", Value::String(_)) => {
                Err(SchemaError::Schema(format!("it uses `{name}`")))
            }
            // Definitions cost nothing until a reference uses them, and values are not schemas.
            ("$defs" | "definitions" | "const" | "default" | "enum" | "examples", _) => Ok(1),
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(schemas)) => {
                self.sum(schemas.values())
            }
            _ => self.steps(value),
        }
    }

    fn sum(&mut self, values: impl IntoIterator<Item = &'a Value>) -> Result<u64, SchemaError> {
        let mut steps = 1_u64;
        for value in values {
            steps = steps.saturating_add(self.steps(value)?);
        }
        Ok(steps)
    }

    fn follow(&mut self, target: &'a str) -> Result<u64, SchemaError> {
        if let Some(counted) = self.counted.get(target) {
            // A recursive schema is followed only as deep as the arguments are.
            return Ok(counted.unwrap_or(1));
        }
        let place =
            target.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let Some(found) = place.and_then(|pointer| self.root.pointer(pointer)) else {
            return Err(SchemaError::Schema("it refers to something that is not in it".to_owned()));
        };
        self.counted.insert(target, None);
        let steps = self.steps(found)?;
        self.counted.insert(target, Some(steps));
        Ok(steps)
    }
}
