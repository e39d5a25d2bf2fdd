//! The list of an executor's tools.

use std::collections::HashSet;

use antiphon_core::port::Cancel;
use serde_json::{Map, Value};

use super::tool_fixture::ToolFixture;
use crate::suite::{During, Outcome, ensure, equal, quote};

/// Longest name that every provider accepts, in bytes.
const NAME_BYTES_MAX: usize = 64;

pub(super) async fn the_list_is_the_same_each_time(fixture: ToolFixture) -> Outcome {
    let first = fixture.executor.tools();
    for example in &fixture.examples {
        equal("the list", &fixture.executor.tools(), &first)?;
        if let Some(arguments) = &example.good {
            let answer = fixture.call(&example.tool, arguments, Cancel::never()).await?;
            drop(answer);
        }
    }
    equal("the list after calls", &fixture.executor.tools(), &first)
}

pub(super) async fn names_are_unique_and_valid_for_every_provider(fixture: ToolFixture) -> Outcome {
    let mut seen = HashSet::new();
    for tool in fixture.executor.tools() {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        ensure!(
            (1..=NAME_BYTES_MAX).contains(&tool.name.len()) && tool.name.bytes().all(plain),
            "`{}` is no name: 1 to {NAME_BYTES_MAX} letters, digits, `_`, `-`",
            tool.name
        );
        ensure!(seen.insert(tool.name.clone()), "`{}` is listed twice", tool.name);
    }
    Ok(())
}

pub(super) async fn parameters_are_the_schema_of_an_object(fixture: ToolFixture) -> Outcome {
    for tool in fixture.executor.tools() {
        let name = &tool.name;
        let schema: Map<String, Value> =
            tool.parameters.to().during(&format!("the parameters of `{name}` are no object"))?;
        ensure!(
            schema.get("type") == Some(&Value::from("object")),
            "the parameters of `{name}` are not of type object: {}",
            quote(&schema)
        );
        let empty = Value::Object(Map::new());
        let properties = schema.get("properties").unwrap_or(&empty);
        ensure!(
            properties.is_object(),
            "the properties of `{name}` are no object: {}",
            quote(properties)
        );
        let required = schema.get("required").cloned().unwrap_or_default();
        for needed in required.as_array().into_iter().flatten() {
            ensure!(
                needed.as_str().is_some_and(|needed| properties.get(needed).is_some()),
                "`{name}` requires {needed}, which is none of its properties"
            );
        }
    }
    Ok(())
}

pub(super) async fn the_effect_of_each_tool_is_known(fixture: ToolFixture) -> Outcome {
    for tool in fixture.executor.tools() {
        ensure!(
            fixture.executor.effect(&tool.name).is_some(),
            "`{}` is listed, but its effect is not known",
            tool.name
        );
    }
    Ok(())
}

pub(super) async fn a_tool_that_is_not_listed_has_no_effect(fixture: ToolFixture) -> Outcome {
    for name in unlisted(&fixture) {
        let effect = fixture.executor.effect(&name);
        equal(&format!("the effect of `{name}`"), &effect, &None)?;
    }
    Ok(())
}

/// Names that are not tools, some of them close to one.
pub(super) fn unlisted(fixture: &ToolFixture) -> Vec<String> {
    let listed: HashSet<String> =
        fixture.executor.tools().iter().map(|tool| tool.name.clone()).collect();
    let close = listed
        .iter()
        .flat_map(|name| [format!("{name} "), format!("{name}_"), name.to_uppercase()]);
    ["", "no_such_tool"]
        .into_iter()
        .map(str::to_owned)
        .chain(close)
        .filter(|name| !listed.contains(name))
        .collect()
}
