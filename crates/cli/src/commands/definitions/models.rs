//! `antiphon models`: models and their prices.

use antiphon_process::ProjectServer;
use antiphon_project::environment::Environment;
use antiphon_project::models::{KnownModel, ModelSource, Models as Registry, known_models};
use antiphon_project::settings::UserSettings;
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// List models: those of the configured providers, and those with a known price.
#[derive(Debug, Args)]
#[command(after_help = "\
With --server: the default model of that server and the models of its agents, with your own prices.

Examples:
  antiphon models
  antiphon models --provider local
  antiphon models --json | jq '.[] | select(.price == null)'")]
pub(crate) struct Models {
    /// Only models of this provider.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Do not ask the providers; list the models with known prices.
    #[arg(long)]
    offline: bool,

    /// Print a JSON list.
    #[arg(long)]
    json: bool,
}

impl Models {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let registry = Registry::new(UserSettings::load(environment)?);
        let config = registry.settings();
        if let Some(name) = self.provider.as_ref().filter(|n| !config.providers.contains_key(*n)) {
            return Err(Failure::usage(format!("there is no provider `{name}`")));
        }
        let source = if self.offline { ModelSource::Prices } else { ModelSource::Provider };
        let mut rows = Vec::new();
        for (name, provider) in &config.providers {
            if self.provider.as_ref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            let (known, error) = known_models(&registry, name, provider, source).await?;
            if let Some(error) = error {
                terminal::note(&format!("antiphon: {name}: {error}\n"));
            }
            rows.extend(known);
        }
        self.print(&rows)
    }

    /// The models that the server knows.
    pub(crate) async fn run_at(
        self,
        server: &ProjectServer,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let prices = UserSettings::load(environment)?.prices;
        let mut models = server.answer(server.client.models().await)?;
        models.retain(|model| self.provider.as_ref().is_none_or(|name| model.provider() == name));
        models.sort();
        let row = |model| KnownModel { configured: true, price: prices.price(&model), model };
        self.print(&models.into_iter().map(row).collect::<Vec<_>>())
    }

    fn print(&self, rows: &[KnownModel]) -> Result<(), Failure> {
        terminal::print(&if self.json { terminal::json(&rows)? } else { table(rows) });
        Ok(())
    }
}

fn table(rows: &[KnownModel]) -> String {
    if rows.is_empty() {
        return "No models are known. `antiphon doctor` says what to set.\n".to_owned();
    }
    let money = |price: Option<f64>| price.map_or("?".to_owned(), |usd| format!("{usd}"));
    let mut lines = vec![["MODEL", "INPUT", "OUTPUT", "CACHED", ""].map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        [
            row.model.to_string(),
            money(row.price.map(|price| price.input.into())),
            money(row.price.map(|price| price.output.into())),
            money(row.price.and_then(|price| price.cache_read).map(Into::into)),
            if row.configured { String::new() } else { "no key".to_owned() },
        ]
    }));
    format!("{}\nUS dollars per million tokens; `?` is not known.\n", terminal::table(&lines))
}
