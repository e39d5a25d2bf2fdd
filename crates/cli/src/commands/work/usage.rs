//! `antiphon usage`: spend by day, model, agent or key, also while a server runs.

mod at_server;

use antiphon_api::{UsageBy, UsageReport, UsageRow};
use antiphon_core::TokenUsage;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_project::environment::Environment;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::{usage_days, usage_report};
use antiphon_view::display::escaped;
use chrono::NaiveDate;
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Show tokens, model calls and cost; of this month by default (see docs/budget.md).
#[derive(Debug, Args)]
#[command(after_help = "\
Days are days of UTC. Cost is computed with today's prices; `?` marks models without a known price.

Examples:
  antiphon usage
  antiphon usage --by model,agent
  antiphon usage --from 2026-11-01 --to 2026-11-15 --by day,payer
  antiphon usage --by model --json | jq '.totals.cost_nano_usd'")]
pub(crate) struct UsageOf {
    /// The first day; the first of this month when absent.
    #[arg(long, value_name = "DAY", value_parser = day_of)]
    from: Option<NaiveDate>,
    /// The last day; today when absent.
    #[arg(long, value_name = "DAY", value_parser = day_of)]
    to: Option<NaiveDate>,
    /// Group by `day`, `model`, `agent`, `payer`, separated by commas.
    #[arg(long, value_name = "WHAT", default_value = "day")]
    by: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl UsageOf {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let days = usage_days(self.from, self.to, SystemClock.now()).map_err(Failure::usage)?;
        let by =
            UsageBy::parse(&self.by).map_err(|error| Failure::usage(format!("--by: {error}")))?;
        let project = Project::find_existing(environment)?;
        let books = project.reader(Models::new(project.settings(environment)?))?;
        let report = usage_report(&books, days, &by).await?;
        terminal::print(&if self.json { terminal::json(&report)? } else { table(&report, &by) });
        Ok(())
    }
}

/// Parses a day.
fn day_of(text: &str) -> Result<NaiveDate, String> {
    text.parse().map_err(|_| "a day as YEAR-MONTH-DAY, such as `2026-11-01`".to_owned())
}

fn table(report: &UsageReport, by: &[UsageBy]) -> String {
    if report.rows.is_empty() {
        return format!("nothing was spent from {} to {}\n", report.from, report.to);
    }
    let mut lines = Vec::new();
    let mut head: Vec<String> = by.iter().map(|by| by.as_str().to_uppercase()).collect();
    head.extend(["CALLS", "READ", "CACHED", "WRITTEN", "COST"].map(str::to_owned));
    lines.push(head);
    lines.extend(report.rows.iter().map(|row| line(row, by.iter().map(|by| named(row, *by)))));
    let total = by.iter().enumerate().map(|(index, _)| match index {
        0 => "total".to_owned(),
        _ => String::new(),
    });
    lines.push(line(&report.totals, total));
    terminal::table(&lines)
}

fn line(row: &UsageRow, names: impl Iterator<Item = String>) -> Vec<String> {
    let tokens = TokenUsage::from(row.usage);
    let mut line: Vec<String> = names.collect();
    line.extend([
        row.calls.to_string(),
        tokens.prompt_tokens.to_string(),
        row.usage.cache_read_tokens.unwrap_or_default().to_string(),
        tokens.completion_tokens.to_string(),
        match (row.cost_nano_usd, row.unpriced_calls) {
            (None, _) => "?".to_owned(),
            (Some(cost), 0) => cost.to_string(),
            (Some(cost), _) => format!("{cost} + ?"),
        },
    ]);
    line
}

fn named(row: &UsageRow, by: UsageBy) -> String {
    let text = |text: &Option<String>| escaped(text.as_deref().unwrap_or_default()).into_owned();
    match by {
        UsageBy::Day => row.day.map(|day| day.to_string()).unwrap_or_default(),
        UsageBy::Model => text(&row.model),
        UsageBy::Agent => text(&row.agent),
        UsageBy::Payer => row.payer.as_ref().map_or("owner".to_owned(), |id| format!("key {id}")),
    }
}
