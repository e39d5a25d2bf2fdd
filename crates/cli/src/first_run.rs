//! The guided start: which model is used, when neither the user nor a key says so. Asked on a terminal only.

use std::io::IsTerminal;

use antiphon_core::ModelRef;
use antiphon_project::environment::Environment;
use antiphon_project::first_run::{
    KeyError, LocalServer, check_key, local_servers, provider_of_key, store_key, store_model,
    store_server,
};
use antiphon_project::settings::{DefaultModel, KeyModel, UserSettings, no_model};
use antiphon_view::display::escaped;

use crate::choice::choose;
use crate::failure::Failure;
use crate::hidden_input::HiddenInput;
use crate::terminal;

/// Most models of a local server that are listed.
const MODELS_SHOWN: usize = 8;

/// The model that answers from a script.
const OFFLINE: &str = "scripted/hello";

/// Providers whose keys can be pasted.
const PROVIDERS: [&str; 3] = ["anthropic", "openai", "gemini"];

/// Whether there is a user at a terminal to ask.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal()
        && terminal::is_in_foreground()
}

/// Makes sure that a task which names no model has one: asks the user, or fails and says what to do. Returns the
/// environment to go on with when the choice changed something, and names the model when a key chose it.
pub(crate) async fn choose_model(
    environment: &Environment,
    settings: &UserSettings,
) -> Result<Option<Environment>, Failure> {
    let default = settings.default_model();
    match &default {
        DefaultModel::Chosen(_) => {}
        DefaultModel::OfSeveralKeys { used, others } if can_ask() => {
            let model = choose_key(used, others)?;
            store_model(&model.to_string(), environment)?;
            note(&format!("stored in {}", settings.path.display()));
            return Ok(Some(environment.clone()));
        }
        DefaultModel::OfKey(_) | DefaultModel::OfSeveralKeys { .. } => {
            note(&default.note().unwrap_or_default());
        }
        DefaultModel::Absent if can_ask() => return guide(environment).await.map(Some),
        DefaultModel::Absent => return Err(no_model().into()),
    }
    Ok(None)
}

/// Asks for a key, a local server, or the script. Returns the environment with the choice.
pub(crate) async fn guide(environment: &Environment) -> Result<Environment, Failure> {
    terminal::note("Antiphon needs a model.\n\n");
    let servers = local_servers(environment).await;
    let mut choices = vec!["paste an API key of Anthropic, OpenAI or Gemini".to_owned()];
    choices.extend(servers.iter().map(described));
    choices.push(
        "answer from a script, offline, this time (`antiphon demo` shows a team at work)"
            .to_owned(),
    );
    let chosen = choose(&choices)?;
    let mut environment = environment.clone();
    match servers.get(chosen.wrapping_sub(1)) {
        Some(server) => add_server(server, &environment)?,
        None if chosen == 0 => add_key(&environment).await?,
        None => {
            environment.variables.insert("ANTIPHON_MODEL".into(), OFFLINE.into());
        }
    }
    Ok(environment)
}

fn described(server: &LocalServer) -> String {
    let address = server.base_url.trim_start_matches("http://").trim_end_matches("/v1");
    let shown: Vec<_> = server.models.iter().take(3).map(|name| escaped(name)).collect();
    let more = if server.models.len() > shown.len() { ", …" } else { "" };
    format!("{} at {address}: {}{more}", server.name, shown.join(", "))
}

/// Asks for one of several models whose keys are set.
fn choose_key(used: &KeyModel, others: &[KeyModel]) -> Result<ModelRef, Failure> {
    terminal::note("There are keys of several providers. Which model do you want by default?\n\n");
    let all: Vec<&KeyModel> = [used].into_iter().chain(others).collect();
    let choices: Vec<String> =
        all.iter().map(|it| format!("{} ({})", it.model, it.key_place())).collect();
    let chosen = choose(&choices)?;
    Ok(all.get(chosen).map_or_else(|| used.model.clone(), |it| it.model.clone()))
}

fn add_server(server: &LocalServer, environment: &Environment) -> Result<(), Failure> {
    let model = match server.models.as_slice() {
        [only] => only.clone(),
        several => {
            terminal::note(&format!("\nWhich model of {}?\n\n", server.name));
            let shown: Vec<String> =
                several.iter().take(MODELS_SHOWN).map(|name| escaped(name).into_owned()).collect();
            several[choose(&shown)?].clone()
        }
    };
    store_server(server, &model, environment)?;
    stored(environment, &format!("{}/{model}", server.provider))
}

/// Asks for a key until its provider accepts one. What is typed meanwhile is never shown.
async fn add_key(environment: &Environment) -> Result<(), Failure> {
    let mut hidden = HiddenInput::begin()?;
    loop {
        terminal::note("\nPaste the key (it is not shown): ");
        let key = hidden.read_line()?;
        let key = key.trim();
        if key.is_empty() {
            continue;
        }
        let provider = if let Some(provider) = provider_of_key(key) {
            provider
        } else {
            drop(hidden);
            terminal::note("Whose key is it?\n\n");
            let chosen = choose(&PROVIDERS.map(str::to_owned))?;
            hidden = HiddenInput::begin()?;
            PROVIDERS[chosen]
        };
        match store_checked(provider, key, environment).await {
            Ok(()) => return Ok(()),
            Err(error) => note(&format!("{error}. Nothing was stored; Ctrl-C ends")),
        }
    }
}

/// Stores a key that its provider accepts.
pub(crate) async fn store_checked(
    provider: &str,
    key: &str,
    environment: &Environment,
) -> Result<(), Failure> {
    terminal::note(&format!("asking {provider} …\n"));
    check_key(provider, key, environment).await.map_err(|error| match error {
        KeyError::Wrong(message) => Failure::usage(message),
        KeyError::Unknown(message) => Failure::unavailable(message),
    })?;
    store_key(provider, key, environment)?;
    let default = UserSettings::load(environment)?.default_model();
    let model = default.model().map(ToString::to_string).unwrap_or_default();
    stored(environment, &model)
}

fn stored(environment: &Environment, model: &str) -> Result<(), Failure> {
    let path = UserSettings::load(environment)?.path;
    note(&format!("stored in {}; tasks use {}", path.display(), escaped(model)));
    Ok(())
}

fn note(text: &str) {
    terminal::note(&format!("antiphon: {text}\n"));
}
