//! Bytes into a parser: the first byte, as a digit from `0` to `5`, says which; the rest is what
//! it reads. Every value that is read must survive being written, and the code after the parser
//! must accept it.

use std::fmt::Debug;

use antiphon_core::{
    ChatCompletionRequest, Command, Event, Interaction, Invocation, Message, OrchestratorRequest,
    SilentIntents, classify, render, sendable, visible,
};
use chrono::DateTime;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// In the order of the digits that select them.
const PARSERS: [fn(&[u8]); 6] = [message, event, invocation, interaction, control, chat];

pub(crate) fn parse(data: &[u8]) {
    if let Some((selector, json)) = data.split_first() {
        PARSERS[usize::from(*selector) % PARSERS.len()](json);
    }
}

fn message(json: &[u8]) {
    if let Some(message) = read::<Message>(json) {
        let sent = sendable(&[message.into()]);
        assert_eq!(sendable(&sent), sent);
    }
}

fn event(json: &[u8]) {
    if let Some(event) = read::<Event>(json) {
        assert!(event.body.event_type().len() > 1);
    }
}

fn invocation(json: &[u8]) {
    let Some(invocation) = read::<Invocation>(json) else { return };
    if let Ok(valid) = invocation.clone().validate() {
        assert!(!valid.get().targets.is_empty());
        assert_eq!(valid.into_inner(), invocation);
    }
}

fn interaction(json: &[u8]) {
    let Some(interaction) = read::<Interaction>(json) else { return };
    let text = render(&interaction);
    assert!(!text.contains(|c| ('\u{E0000}'..='\u{E0FFF}').contains(&c)));
    assert_eq!(visible(&visible(&text)), visible(&text));

    let silent: SilentIntents = ["ping"].into_iter().collect();
    let candidate = classify(interaction.clone(), &silent);
    assert_eq!(candidate.interaction.rendered_text, text);
    assert_eq!(classify(interaction, &silent), candidate);
}

fn control(json: &[u8]) {
    let Some(request) = read::<OrchestratorRequest>(json) else { return };
    let Ok(command) = request.validate() else { return };
    let fields = match command {
        Command::SpawnAgent { name, profile, context } => [Some(name), Some(profile), context],
        Command::StopAgent { name } => [Some(name), None, None],
        Command::UpdateAgentContext { name, context } => [Some(name), Some(context), None],
    };
    for field in fields.into_iter().flatten() {
        assert!(!field.is_empty() && field.trim() == field);
    }
}

fn chat(json: &[u8]) {
    let Some(chat) = read::<ChatCompletionRequest>(json) else { return };
    let now = DateTime::from_timestamp(1_737_367_200, 0).unwrap_or_default();
    let messages = chat.messages.len();
    if let Ok(request) = chat.into_request(now) {
        assert!(request.messages.len() <= messages);
        assert!(request.temperature.is_none_or(|t| (0.0..=2.0).contains(&t.get())));
    }
}

/// The value, if there is one, after it was written and read once more.
fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(json).ok()?;
    let text = serde_json::to_string(&value).expect("what was read can be written");
    let again: T = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(again, value);
    Some(value)
}
