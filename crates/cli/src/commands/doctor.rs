//! `antiphon doctor`: what is configured, what answers, and what to do about the rest.

use std::num::NonZeroUsize;

use antiphon_core::port::{Journal as _, JournalError, TaskQuery, Which};
use clap::Args;
use serde::Serialize;

use crate::catalog;
use crate::config::{Config, Key, ProviderConfig};
use crate::failure::{Exit, Failure};
use crate::models::Models as Registry;
use crate::project::Project;
use crate::terminal;

/// Check the configuration, every provider in it, and the journal of this project.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 when everything that is configured answers, 4 when something does not.

Examples:
  antiphon doctor
  antiphon doctor --json | jq '.providers[] | select(.status == \"failed\")'")]
pub(crate) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    config: String,
    config_found: bool,
    default_model: String,
    prices: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<Journal>,
    providers: Vec<Row>,
}

/// What is known of this project's journal.
#[derive(Serialize)]
struct Journal {
    path: String,
    status: Status,
    detail: String,
}

#[derive(Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    address: String,
    status: Status,
    detail: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// It answers and takes the key.
    Ready,
    /// There is no key.
    NotConfigured,
    /// It is configured, but does not answer.
    Failed,
}

impl Doctor {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let registry = Registry::new(Config::load()?);
        let config = registry.config();
        let mut providers = vec![Row {
            name: "scripted".to_owned(),
            kind: "scripted",
            address: "built in".to_owned(),
            status: Status::Ready,
            detail: format!("offline; scripts: {}", antiphon_scripted::Script::BUILTIN.join(", ")),
        }];
        for (name, provider) in &config.providers {
            providers.push(check(name, provider, &registry).await?);
        }
        let journal = journal(&Project::here()?).await;
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            config: config.path.display().to_string(),
            config_found: config.found,
            default_model: config.default_model().to_string(),
            prices: config.prices.iter().count(),
            journal,
            providers,
        };
        terminal::print(&if self.json { terminal::json(&report)? } else { readable(&report) });
        let failed = report.providers.iter().filter(|row| row.status == Status::Failed);
        let failed = failed.map(|row| row.name.as_str());
        let journal = report.journal.iter().filter(|found| found.status == Status::Failed);
        let failed = failed.chain(journal.map(|_| "the journal"));
        match failed.collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            names => Err(Failure::unavailable(format!("not ready: {}", names.join(", ")))),
        }
    }
}

async fn check(name: &str, provider: &ProviderConfig, registry: &Registry) -> Result<Row, Failure> {
    let (status, detail) = match &provider.key {
        Key::Missing { variable } => (Status::NotConfigured, format!("set {variable} to use it")),
        Key::Set { .. } | Key::NotNeeded => {
            match catalog::models(provider, registry.transport()?).await {
                Ok(models) => (Status::Ready, format!("answers; models: {}", models.len())),
                Err(error) => (Status::Failed, error.to_string()),
            }
        }
    };
    Ok(Row {
        name: name.to_owned(),
        kind: provider.kind.as_str(),
        address: provider.base_url.clone(),
        status,
        detail,
    })
}

/// Opens the journal of this project, if it has one, and looks at every page of it.
async fn journal(project: &Project) -> Option<Journal> {
    if !project.has_journal() {
        return None;
    }
    let unfinished = TaskQuery { which: Which::Unfinished, limit: NonZeroUsize::MAX };
    let look = async {
        let journal = project.journal()?;
        let fault = |error: JournalError| Failure::unavailable(error.to_string());
        journal.verify().await.map_err(fault)?;
        let tasks = journal.tasks(unfinished).await.map_err(fault)?;
        Ok::<_, Failure>(format!("sound, {} unfinished tasks", tasks.len()))
    };
    let (status, detail) = match look.await {
        Ok(detail) => (Status::Ready, detail),
        // Somebody works with it: that is what it is for.
        Err(failure)
            if failure.exit == Exit::Unavailable && failure.to_string().contains("in use") =>
        {
            (Status::Ready, failure.to_string())
        }
        Err(failure) => (Status::Failed, failure.to_string()),
    };
    Some(Journal { path: project.journal_path().display().to_string(), status, detail })
}

fn readable(report: &Report) -> String {
    let found = if report.config_found { "" } else { " (not there, which is fine)" };
    let journal = report.journal.as_ref().map_or_else(
        || "none here yet".to_owned(),
        |journal| format!("{} ({})", journal.path, journal.detail),
    );
    let mut lines = vec![["", "PROVIDER", "WIRE", "ADDRESS", ""].map(str::to_owned)];
    lines.extend(report.providers.iter().map(|row| {
        let mark = match row.status {
            Status::Ready => "✓",
            Status::NotConfigured => "–",
            Status::Failed => "✗",
        };
        [
            mark.to_owned(),
            row.name.clone(),
            row.kind.to_owned(),
            row.address.clone(),
            row.detail.clone(),
        ]
    }));
    format!(
        "antiphon {}\nconfiguration  {}{found}\njournal        {journal}\ndefault model  {}\n\
         prices         {} models\n\n{}",
        report.version,
        report.config,
        report.default_model,
        report.prices,
        terminal::table(&lines)
    )
}
