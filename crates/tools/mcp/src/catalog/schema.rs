//! The JSON Schema of a tool's arguments, as declared by a server.
//!
//! It yields two things: the schema for the model and its provider, which must describe an object
//! for every declaration of the server, and a validator that checks arguments before the server gets them.
//! A schema that is too large, too deep, refers to other documents or is invalid becomes "any
//! object" without a validator: the server then checks the arguments itself. A tool whose schema
//! cannot be repaired is rejected.

mod references;

use antiphon_core::{RawJson, visible};
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use references::References;

/// Largest schema, in bytes of JSON.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Deepest nesting of a schema.
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// Largest arguments that are checked here, in bytes. The server checks larger ones itself.
const CHECKED_BYTES_MAX: usize = 1024 * 1024;

/// Most backtracking steps of a pattern on one text. More count as no match.
const BACKTRACKS_MAX: usize = 100_000;

/// Longest argument name that every provider accepts.
const PROPERTY_BYTES_MAX: usize = 64;

/// Most reported violations per call.
const VIOLATIONS_MAX: usize = 5;

/// Longest reported violation, in characters.
const VIOLATION_CHARS_MAX: usize = 300;

/// A checked schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The schema for the model.
    pub(crate) shown: RawJson,
    /// Why `shown` differs from the declared schema.
    pub(crate) note: Option<String>,
    check: Option<Validator>,
}

impl Schema {
    /// Checks a declared schema. The error says why the tool is rejected.
    pub(crate) fn read(declared: &Map<String, Value>) -> Result<Self, String> {
        match declared.get("type") {
            None => {}
            Some(Value::String(kind)) if kind == "object" => {}
            Some(Value::Array(kinds)) if kinds.contains(&json!("object")) => {}
            Some(other) => return Err(format!("its arguments are not an object but {other}")),
        }
        match Self::parse(declared) {
            Ok(schema) => Ok(schema),
            Err(SchemaError::Tool(reason)) => Err(reason),
            Err(SchemaError::Schema(reason)) => Ok(Self::any_object(reason)),
        }
    }

    /// Describes how `arguments` violate the schema; `None` if they are valid.
    pub(crate) fn violation(&self, arguments: &RawJson) -> Option<String> {
        if !arguments.is_object() {
            return Some("the arguments must be a JSON object".to_owned());
        }
        let check = self.check.as_ref()?;
        if arguments.as_str().len() > CHECKED_BYTES_MAX {
            return None;
        }
        let value: Value = match arguments.to() {
            Ok(value) => value,
            Err(error) => return Some(error.to_string()),
        };
        let violations: Vec<String> = check
            .iter_errors(&value)
            .take(VIOLATIONS_MAX)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place =
                    if place.is_empty() { "arguments".to_owned() } else { format!("`{place}`") };
                let what: String = error.to_string().chars().take(VIOLATION_CHARS_MAX).collect();
                format!("{place}: {what}")
            })
            .collect();
        (!violations.is_empty()).then(|| violations.join("; "))
    }

    fn parse(declared: &Map<String, Value>) -> Result<Self, SchemaError> {
        let text = serde_json::to_string(declared)
            .map_err(|error| SchemaError::Schema(error.to_string()))?;
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(SchemaError::Schema(format!("it is larger than {SCHEMA_BYTES_MAX} bytes")));
        }
        let mut schema = declared.clone();
        // The validator selects the dialect itself and would try to load an unknown one.
        let dialect = schema.shift_remove("$schema");
        schema.insert("type".to_owned(), json!("object"));
        let mut value = Value::Object(schema);
        strip_hidden(&mut value, 0)?;
        References::of(&value)?;
        let check = compile(&value, dialect.as_ref())?;
        let shown = shown(value)?;
        Ok(Self { shown, note: None, check: Some(check) })
    }

    fn any_object(reason: String) -> Self {
        let shown = RawJson::of(&json!({"type": "object", "properties": {}}));
        Self {
            shown: shown.unwrap_or_else(|_| RawJson::empty_object()),
            note: Some(reason),
            check: None,
        }
    }
}

/// Why a schema cannot be used.
#[derive(Debug)]
enum SchemaError {
    /// The tool works without the schema.
    Schema(String),
    /// The tool is rejected.
    Tool(String),
}

fn compile(schema: &Value, dialect: Option<&Value>) -> Result<Validator, SchemaError> {
    let draft = match dialect.and_then(Value::as_str).unwrap_or_default() {
        uri if uri.contains("draft-04") => jsonschema::Draft::Draft4,
        uri if uri.contains("draft-06") => jsonschema::Draft::Draft6,
        uri if uri.contains("draft-07") => jsonschema::Draft::Draft7,
        uri if uri.contains("2019-09") => jsonschema::Draft::Draft201909,
        _ => jsonschema::Draft::Draft202012,
    };
    jsonschema::options()
        .with_draft(draft)
        .offline()
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX))
        .build(schema)
        .map_err(|error| {
            let what: String = error.to_string().chars().take(VIOLATION_CHARS_MAX).collect();
            SchemaError::Schema(format!("it is not a JSON Schema: {what}"))
        })
}

/// The schema without keywords for which a provider rejects the whole request.
fn shown(value: Value) -> Result<RawJson, SchemaError> {
    let Value::Object(mut schema) = value else {
        return Err(SchemaError::Schema("it is no object".to_owned()));
    };
    let properties = match schema.get("properties") {
        None => Map::new(),
        Some(Value::Object(properties)) => properties.clone(),
        Some(_) => return Err(SchemaError::Schema("its `properties` are no object".to_owned())),
    };
    for name in properties.keys() {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        if !(1..=PROPERTY_BYTES_MAX).contains(&name.len()) || !name.bytes().all(plain) {
            let name: String = name.escape_debug().take(PROPERTY_BYTES_MAX).collect();
            return Err(SchemaError::Tool(format!("it has an argument called `{name}`")));
        }
    }
    // The validator still checks alternatives between whole sets of arguments.
    for choice in ["anyOf", "oneOf", "allOf"] {
        schema.shift_remove(choice);
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
    }
    schema.entry("properties").or_insert_with(|| json!({}));
    RawJson::of(&schema).map_err(|error| SchemaError::Schema(error.to_string()))
}

/// Strips invisible characters from descriptions, where this is harmless. Anywhere else they are a
/// reason to reject the tool.
fn strip_hidden(value: &mut Value, depth: usize) -> Result<(), SchemaError> {
    if depth > SCHEMA_DEPTH_MAX {
        return Err(SchemaError::Schema(format!("it is deeper than {SCHEMA_DEPTH_MAX} levels")));
    }
    match value {
        Value::String(text) => check_visible(text),
        Value::Array(items) => items.iter_mut().try_for_each(|item| strip_hidden(item, depth + 1)),
        Value::Object(fields) => {
            fields.shift_remove("$comment");
            for (name, field) in fields.iter_mut() {
                check_visible(name)?;
                if let (Value::String(text), "description" | "title") = (&mut *field, name.as_str())
                {
                    *text = visible(text);
                }
                strip_hidden(field, depth + 1)?;
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn check_visible(text: &str) -> Result<(), SchemaError> {
    if visible(text).len() == text.len() {
        return Ok(());
    }
    Err(SchemaError::Tool("its schema hides characters that cannot be seen".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn read(declared: Value) -> Result<Schema, String> {
        Schema::read(declared.as_object().unwrap())
    }

    fn violation(schema: &Schema, arguments: &str) -> Option<String> {
        schema.violation(&RawJson::parse(arguments).unwrap())
    }

    #[test]
    fn a_good_schema_is_shown_as_it_is_and_says_which_field_is_wrong() {
        let schema = read(json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            },
            "required": ["city"],
        }))
        .unwrap();
        assert_eq!(schema.note, None);
        assert_eq!(
            schema.shown.to::<Value>().unwrap()["properties"]["city"],
            json!({"type": "string"})
        );
        assert_eq!(violation(&schema, r#"{"city":"Ulm","days":[1,2]}"#), None);
        let wrong = violation(&schema, r#"{"days":[1,0]}"#).unwrap();
        assert!(wrong.contains("`/days/1`") && wrong.contains("\"city\""), "{wrong}");
        assert!(violation(&schema, "[]").is_some());
    }

    #[test]
    fn a_schema_without_a_type_or_properties_becomes_one_every_provider_takes() {
        for declared in [json!({}), json!({"type": ["object", "null"]}), json!({"type": "object"})]
        {
            let shown: Value = read(declared).unwrap().shown.to().unwrap();
            assert_eq!(shown, json!({"type": "object", "properties": {}}));
        }
    }

    #[test]
    fn arguments_that_are_no_object_mean_the_tool_is_refused() {
        for kind in [json!("string"), json!("array"), json!(["null"]), json!(7)] {
            assert!(read(json!({"type": kind})).is_err());
        }
    }

    #[test]
    fn what_makes_no_sense_is_shown_as_any_object_and_checks_nothing() {
        let mut deep = json!({"type": "object"});
        for _ in 0..100 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        let lies = [
            json!({"type": "object", "properties": 7}),
            json!({"type": "object", "properties": {"a": {"type": "no such type"}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}),
            json!({"type": "object", "$id": "https://example.com/me"}),
            json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
            json!({"type": "object", "description": "x".repeat(SCHEMA_BYTES_MAX)}),
            deep,
        ];
        for lie in lies {
            let schema = read(lie.clone()).unwrap();
            assert!(schema.note.is_some(), "{lie}");
            assert_eq!(
                schema.shown.to::<Value>().unwrap(),
                json!({"type": "object", "properties": {}})
            );
            assert_eq!(violation(&schema, r#"{"a":{"anything":[1]}}"#), None);
        }
    }

    #[test]
    fn references_within_the_schema_are_checked_also_when_it_contains_itself() {
        let tree = read(json!({
            "type": "object",
            "properties": {"child": {"$ref": "#"}, "name": {"$ref": "#/$defs/name"}},
            "$defs": {"name": {"type": "string"}},
            "additionalProperties": false,
        }))
        .unwrap();
        assert_eq!(tree.note, None);
        assert_eq!(violation(&tree, r#"{"child":{"child":{"name":"x"}}}"#), None);
        let wrong = violation(&tree, r#"{"child":{"child":{"name":1}}}"#).unwrap();
        assert!(wrong.contains("`/child/child/name`"), "{wrong}");
        for looping in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ] {
            assert_eq!(violation(&read(looping).unwrap(), r#"{"a":1}"#), None);
        }
    }

    #[test]
    fn references_that_multiply_are_not_followed() {
        let mut defs = Map::new();
        for i in 0..60 {
            let next = json!({"$ref": format!("#/$defs/a{}", i + 1)});
            defs.insert(format!("a{i}"), json!({"allOf": [next.clone(), next]}));
        }
        defs.insert("a60".to_owned(), json!({"type": "object"}));
        let start = Instant::now();
        let bomb = read(json!({"$ref": "#/$defs/a0", "$defs": defs})).unwrap();
        assert_eq!(violation(&bomb, "{}"), None);
        assert!(bomb.note.is_some() && start.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn examples_and_properties_may_look_like_keywords() {
        let schema = read(json!({"properties": {
            "id": {"type": "string", "examples": [{"id": "7", "$ref": "x"}], "default": {"$id": "y"}},
            "default": {"type": "integer"},
        }}))
        .unwrap();
        assert_eq!(schema.note, None);
        assert!(violation(&schema, r#"{"default":"seven"}"#).is_some());
        let hiding = json!({"properties": {"enum": {"$ref": "http://example.com/"}}});
        assert!(read(hiding).unwrap().note.is_some());
    }

    #[test]
    fn a_pattern_that_explodes_ends() {
        let schema =
            read(json!({"properties": {"a": {"type": "string", "pattern": "^(a+)+(?!b)$"}}}))
                .unwrap();
        let start = Instant::now();
        let long = format!(r#"{{"a":"{}!"}}"#, "a".repeat(5000));
        assert!(violation(&schema, &long).is_some());
        assert!(start.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn what_providers_refuse_is_not_shown_but_still_checked() {
        let schema = read(json!({
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "required": ["a", "ghost"],
            "anyOf": [{"required": ["b"]}, {"required": ["c"]}],
        }))
        .unwrap();
        let shown: Value = schema.shown.to().unwrap();
        assert_eq!(shown["required"], json!(["a"]));
        assert_eq!(shown.get("anyOf"), None);
        assert!(violation(&schema, r#"{"a":1,"ghost":1}"#).is_some());
        assert_eq!(violation(&schema, r#"{"a":1,"ghost":1,"b":1}"#), None);
        assert!(read(json!({"properties": {"spaced name": {}}})).is_err());
    }

    #[test]
    fn hidden_characters_are_stripped_from_descriptions_and_refused_elsewhere() {
        let hidden = "go\u{e0041}\u{200b}od";
        let schema = read(json!({
            "description": hidden,
            "properties": {"a": {"description": hidden, "type": "string"}},
        }))
        .unwrap();
        assert!(!schema.shown.as_str().contains('\u{200b}'));
        assert!(schema.shown.as_str().contains(r#""description":"good""#));
        for bad in [
            json!({"properties": {hidden: {}}}),
            json!({"properties": {"a": {"enum": [hidden]}}}),
            json!({"properties": {"a": {"default": {"x": hidden}}}}),
        ] {
            assert!(read(bad).is_err());
        }
    }
}
