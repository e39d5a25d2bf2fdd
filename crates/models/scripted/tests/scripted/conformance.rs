//! The conformance suite of providers, with scripts instead of a wire: a scenario becomes a reply.
//! Nothing is sent, and usage is reported only at the end.

mod draft;

use antiphon_conformance::provider::{
    Ending, Refusal, Scenario, Stage, StopWord, Unsupported, Wire, check,
};
use antiphon_core::Usage;
use async_trait::async_trait;

use crate::world::provider;
use draft::Draft;

#[tokio::test(start_paused = true)]
async fn the_provider_passes_the_conformance_suite() {
    let passed = check(&Scripts).await.expect("no violations");
    assert_eq!(
        passed.skipped_checks(),
        [
            "the_usage_of_an_interrupted_answer_is_kept",
            "nothing_is_sent_before_the_first_next",
            "an_answer_is_one_request",
            "dropping_an_answer_ends_its_request",
            "closing_an_answer_ends_its_request",
        ]
    );
}

struct Scripts;

#[async_trait]
impl Wire for Scripts {
    async fn play(&self, scenarios: &[Scenario]) -> Result<Stage, Unsupported> {
        let attempt = |(attempt, scenario): (u32, &Scenario)| {
            let reply = reply(scenario)?;
            Ok(format!("[[reply]]\nwhen = {{ attempt = {attempt} }}\n{reply}\n"))
        };
        let script = (1..).zip(scenarios).map(attempt).collect::<Result<String, _>>()?;
        Ok(Stage::new(provider(&script)))
    }
}

/// The fields of a reply, one per line.
fn reply(scenario: &Scenario) -> Result<String, Unsupported> {
    let mut draft = Draft::default();
    for step in &scenario.steps {
        draft.take(step)?;
    }
    let mut lines = vec![
        format!("chunk_chars = {}", draft.chunk_chars()),
        format!("interleave = {}", draft.calls_interleave()),
    ];
    let mut steps = draft.steps()?;
    match scenario.ending {
        Ending::Whole => {
            lines.extend(draft.usage.map(usage));
            lines.extend(draft.stop.map(stop));
        }
        Ending::Cut => steps.push("{ cut = true }".to_owned()),
        Ending::Stall => steps.push("{ stall = true }".to_owned()),
        Ending::Refused(refusal) => steps.push(format!("{{ error = {} }}", error(refusal))),
        Ending::Garbage => steps.push(r#"{ error = { kind = "protocol" } }"#.to_owned()),
    }
    if draft.usage.is_some() && scenario.ending != Ending::Whole {
        return Err(Unsupported::because("what it cost is sent at the end of an answer"));
    }
    lines.push(format!("steps = [\n{}\n]", steps.join(",\n")));
    Ok(lines.join("\n"))
}

fn usage(usage: Usage) -> String {
    let counts = [
        ("input_tokens", Some(usage.input_tokens)),
        ("output_tokens", Some(usage.output_tokens)),
        ("cache_read_tokens", usage.cache_read_tokens),
        ("cache_write_tokens", usage.cache_write_tokens),
    ];
    let given = counts.into_iter().filter_map(|(name, count)| Some(format!("{name} = {}", count?)));
    format!("usage = {{ {} }}", given.collect::<Vec<_>>().join(", "))
}

fn stop(word: StopWord) -> String {
    match word {
        StopWord::EndTurn => r#"stop = "end_turn""#,
        StopWord::Length => r#"stop = "length""#,
        StopWord::ToolUse => r#"stop = "tool_use""#,
        StopWord::Unheard => "stop = \"unknown\"\nraw_stop = \"weary\"",
    }
    .to_owned()
}

fn error(refusal: Refusal) -> String {
    let kind = match refusal {
        Refusal::InvalidRequest => "invalid_request",
        Refusal::ContextOverflow => "context_overflow",
        Refusal::Authentication => "authentication",
        Refusal::Permission => "permission",
        Refusal::NotFound => "not_found",
        Refusal::RateLimited { retry_after } => {
            let ms = retry_after.as_millis();
            return format!(r#"{{ kind = "rate_limited", retry_after_ms = {ms} }}"#);
        }
        Refusal::Overloaded => "overloaded",
        Refusal::Server => "server",
    };
    format!(r#"{{ kind = "{kind}" }}"#)
}
