//! The model of the next task: chosen by name, or from the models of the providers that are configured.

use std::sync::Arc;

use antiphon_core::{ModelRef, Price};
use antiphon_project::models::{Models, list_models};
use antiphon_project::settings::Key;
use antiphon_view::display::escaped;
use antiphon_view::text::one_line;
use futures_util::future::join_all;

use super::lookups::Found;
use super::{Picked, Program};
use crate::choice::Choice;

/// Models that are listed. Of more, the first ones are.
const LISTED_MAX: usize = 5_000;

impl Program<'_, '_> {
    pub(super) fn choose_model(&mut self, argument: &str) {
        if !argument.is_empty() {
            return match ModelRef::parse(argument) {
                Ok(model) => self.set_model(model),
                Err(error) => self.error(&error.to_string()),
            };
        }
        let model = &self.options.model;
        let model = model.as_ref().map_or(self.options.default_model.clone(), ToString::to_string);
        self.note(&format!("{model}; asking the providers for their models …"));
        let models = Arc::clone(&self.options.models);
        self.look_up(listed(models));
    }

    pub(super) fn set_model(&mut self, model: ModelRef) {
        if let Err(error) = self.options.models.check(&model, &self.options.route) {
            return self.error(&error.to_string());
        }
        self.note(&format!("The next task uses {model}"));
        self.options.model = Some(model);
    }
}

/// The models of every provider that has a key or needs none, and those with a known price.
async fn listed(models: Arc<Models>) -> Found {
    let settings = models.settings();
    let transport = match models.transport() {
        Ok(transport) => transport,
        Err(error) => return Found::Error(error.to_string()),
    };
    let usable = settings.providers.iter().filter(|(name, provider)| {
        !matches!(provider.key, Key::Missing { .. })
            && settings.policy.check_provider(name, settings).is_ok()
    });
    let answers = usable
        .map(|(name, provider)| async move { (name, list_models(provider, transport).await) });
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for (name, answer) in join_all(answers).await {
        match answer {
            Ok(names) => found.extend(
                names.iter().filter_map(|model| ModelRef::parse(&format!("{name}/{model}")).ok()),
            ),
            Err(error) => {
                failures.push(escaped(&one_line(&format!("{name}: {error}"))).into_owned());
                let priced = settings.prices.iter().map(|(model, _)| model);
                found.extend(priced.filter(|model| model.provider() == name).cloned());
            }
        }
    }
    let scripts = settings.scripts.keys();
    found.extend(scripts.filter_map(|name| ModelRef::parse(&format!("scripted/{name}")).ok()));
    found.extend(settings.default_model().model().cloned());
    found.sort();
    found.dedup();
    let entries = found.into_iter().take(LISTED_MAX).map(|model| Choice {
        label: escaped(&model.to_string()).into_owned(),
        detail: price_text(settings.prices.price(&model)),
        value: Picked::Model(model),
    });
    Found::List { title: "Models", entries: entries.collect(), failures }
}

fn price_text(price: Option<Price>) -> String {
    price.map_or("price unknown".to_owned(), |price| {
        let (input, output): (f64, f64) = (price.input.into(), price.output.into());
        format!("${input} read, ${output} written, per million tokens")
    })
}
