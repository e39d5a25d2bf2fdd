//! Calls and their arguments.

use antiphon_core::port::{Cancel, ToolError};
use antiphon_core::{Tool, ToolResult};

use serde_json::{Map, Value};

use super::listing::unlisted;
use super::tool_fixture::ToolFixture;
use crate::suite::{During, Outcome, ensure, equal, quote};

pub(super) async fn a_tool_that_is_not_listed_is_unknown(fixture: ToolFixture) -> Outcome {
    for name in unlisted(&fixture) {
        let answer = fixture.call(&name, "{}", Cancel::never()).await?;
        let expected = Err(ToolError::Unknown { name: name.clone() });
        equal(&format!("a call of `{name}`"), &answer, &expected)?;
    }
    Ok(())
}

pub(super) async fn arguments_that_are_no_object_are_invalid(fixture: ToolFixture) -> Outcome {
    for tool in fixture.executor.tools() {
        let name = &tool.name;
        for arguments in ["null", "[]", "[{}]", "\"{}\"", "1", "true"] {
            let answer = fixture.call(name, arguments, Cancel::never()).await?;
            invalid(name, arguments, &answer)?;
        }
    }
    Ok(())
}

pub(super) async fn bad_arguments_are_invalid(fixture: ToolFixture) -> Outcome {
    for tool in fixture.executor.tools() {
        let name = &tool.name;
        let Some(arguments) = &fixture.example_of(name)?.bad else {
            ensure!(
                !has_parameters(&tool),
                "`{name}` has parameters, but the fixture has no bad arguments for it"
            );
            continue;
        };
        let answer = fixture.call(name, arguments, Cancel::never()).await?;
        invalid(name, arguments, &answer)?;
    }
    Ok(())
}

pub(super) async fn good_arguments_run(fixture: ToolFixture) -> Outcome {
    for tool in fixture.executor.tools() {
        let name = &tool.name;
        let example = fixture.example_of(name)?;
        ensure!(example.acceptable().is_some(), "the fixture has no good arguments for `{name}`");
        let Some(arguments) = &example.good else {
            continue;
        };
        let answer = fixture.call(name, arguments, Cancel::never()).await?;
        let result = answer.during(&format!("`{name}` with {arguments}"))?;
        ensure!(
            !result.is_error,
            "`{name}` with {arguments} ran and failed: {}",
            quote(&result.content)
        );
    }
    Ok(())
}

pub(super) async fn a_tool_that_ran_and_failed_is_a_result(fixture: ToolFixture) -> Outcome {
    for (name, arguments) in fixture.failing()? {
        let answer = fixture.call(&name, &arguments, Cancel::never()).await?;
        ensure!(
            matches!(&answer, Ok(result) if result.is_error),
            "`{name}` with {arguments} runs and fails, but the answer is {}",
            quote(&answer)
        );
    }
    Ok(())
}

fn has_parameters(tool: &Tool) -> bool {
    let schema: Map<String, Value> = tool.parameters.to().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| !properties.is_empty())
}

fn invalid(name: &str, arguments: &str, answer: &Result<ToolResult, ToolError>) -> Outcome {
    ensure!(
        matches!(answer, Err(ToolError::InvalidArguments { tool, .. }) if tool == name),
        "`{name}` with {arguments} is not invalid, but {}",
        quote(answer)
    );
    Ok(())
}
