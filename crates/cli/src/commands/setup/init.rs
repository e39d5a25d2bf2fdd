//! `antiphon init`: a first model, and a first agent.

use std::io::Read as _;

use antiphon_core::{AgentName, ModelRef};
use antiphon_project::agent_files::new_agent_name;
use antiphon_project::environment::Environment;
use antiphon_project::first_run::{provider_of_key, store_model};
use antiphon_project::models::{Models, Route};
use antiphon_project::settings::UserSettings;
use clap::Args;

use crate::commands::agents::Agents;
use crate::failure::Failure;
use crate::{first_run, terminal};

/// Largest key on standard input.
const KEY_BYTES_MAX: u64 = 4096;

/// Set up a model, and perhaps a first agent.
#[derive(Debug, Args)]
#[command(after_help = "\
On a terminal it asks: for a key, which its provider checks before it is stored in your settings (readable by you alone), or for a server of models on this machine (llama.cpp, Ollama, LM Studio, vLLM). Without a terminal it takes options. `antiphon config` changes single settings.

Examples:
  antiphon init
  antiphon init --agent reviewer
  antiphon init --provider anthropic --key-stdin < key.txt
  antiphon init --model ollama/qwen3")]
pub(crate) struct Init {
    /// Provider of the key on standard input; recognized by the key when absent.
    #[arg(long, value_name = "NAME", requires = "key_stdin")]
    provider: Option<String>,

    /// Read a key from standard input, check it, and store it.
    #[arg(long)]
    key_stdin: bool,

    /// Store this model as the default of tasks, as PROVIDER/MODEL.
    #[arg(long)]
    model: Option<ModelRef>,

    /// Also create the file of an agent in this project, with every field explained.
    #[arg(long, value_name = "NAME", value_parser = new_agent_name)]
    agent: Option<AgentName>,
}

impl Init {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        if self.key_stdin {
            self.store_key(environment).await?;
        }
        if let Some(model) = &self.model {
            let settings = UserSettings::load(environment)?;
            let path = settings.path.display().to_string();
            Models::new(settings).provider(model, &Route::default())?;
            store_model(&model.to_string(), environment)?;
            terminal::note(&format!("antiphon: stored in {path}; tasks use {model}\n"));
        }
        let asks = !self.key_stdin && self.model.is_none();
        if asks && first_run::can_ask() {
            drop(first_run::guide(environment).await?);
        } else if asks && self.agent.is_none() {
            return Err(Failure::usage(
                "there is no terminal to ask at: give --key-stdin, --model PROVIDER/MODEL or --agent NAME",
            ));
        }
        let agent = match self.agent {
            None if asks => first_agent()?,
            agent => agent,
        };
        match agent {
            Some(name) => {
                let new = Agents::New { name, description: None, user: false, model: None };
                new.run(environment).await
            }
            None => Ok(()),
        }
    }

    async fn store_key(&self, environment: &Environment) -> Result<(), Failure> {
        let mut key = String::new();
        terminal::check_readable("the key")?;
        let read = std::io::stdin().take(KEY_BYTES_MAX).read_to_string(&mut key);
        read.map_err(|error| Failure::usage(format!("cannot read the key: {error}")))?;
        let key = key.trim();
        if key.is_empty() {
            return Err(Failure::usage("there is no key on standard input"));
        }
        let provider = self.provider.as_deref().or_else(|| provider_of_key(key));
        let provider = provider.ok_or_else(|| {
            Failure::usage("the key does not say whose it is: name the provider with --provider")
        })?;
        first_run::store_checked(provider, key, environment).await
    }
}

/// Asks whether the project gets a first agent.
fn first_agent() -> Result<Option<AgentName>, Failure> {
    if terminal::ask("create a first agent, `helper`, in .antiphon/agents?") != Some(true) {
        return Ok(None);
    }
    let name = new_agent_name("helper");
    name.map(Some).map_err(Failure::failed)
}
