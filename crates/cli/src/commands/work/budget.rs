//! `antiphon budget`: spend limits, and allowing more.

use antiphon_core::Cost;
use antiphon_keys::KeyId;
use antiphon_process::{Connection, ProjectAccess, ProjectServer, Twice};
use antiphon_project::environment::Environment;
use antiphon_runtime::{BudgetStatus, LimitRaise, ScopeStatus, WindowStatus};
use clap::Subcommand;

use crate::failure::Failure;
use crate::terminal;

/// Show spend and limits, and allow more (see docs/budget.md).
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A budget is set with `[budget] daily_usd` and `monthly_usd` in your configuration, and for a key with
`antiphon keys new --daily-usd`. When it is spent, tasks wait; they continue when the next day or month
of UTC begins, or when you allow more.

Examples:
  antiphon budget show
  antiphon budget allow 5
  antiphon budget allow 0.50 --key tR7xQ2pL --comment 'until Monday'")]
pub(crate) enum BudgetOf {
    /// Show spend and limits of this day and this month.
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Allow more spend for this day and this month. Waiting tasks continue.
    #[command(after_help = "\
Examples:
  antiphon budget allow 5
  antiphon budget allow 0.50 --comment 'until Monday'")]
    Allow {
        /// Amount in US dollars.
        #[arg(value_parser = amount_of)]
        usd: Cost,
        /// Id of the key that may spend it; the whole project when absent.
        #[arg(long, value_name = "ID")]
        key: Option<KeyId>,
        /// Reason, for the journal.
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl BudgetOf {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let access = ProjectAccess::of_folder(environment)?;
        match self {
            Self::Show { json } => show(&access.read()?.reader().budget().await?, json),
            Self::Allow { usd, key, comment, json } => {
                allow(&access, usd, key, comment, json).await
            }
        }
    }

    /// Runs the command through a server.
    pub(crate) async fn run_at(
        self,
        server: &ProjectServer,
        environment: &Environment,
    ) -> Result<(), Failure> {
        match self {
            Self::Show { json } => show(&server.answer(server.client.budget().await)?, json),
            Self::Allow { usd, key, comment, json } => {
                let access = ProjectAccess::of_server(server, environment);
                allow(&access, usd, key, comment, json).await
            }
        }
    }
}

fn show(status: &BudgetStatus, json: bool) -> Result<(), Failure> {
    terminal::print(&if json { terminal::json(status)? } else { table(status) });
    Ok(())
}

async fn allow(
    access: &ProjectAccess<'_>,
    amount: Cost,
    key: Option<KeyId>,
    comment: Option<String>,
    json: bool,
) -> Result<(), Failure> {
    let raise = LimitRaise {
        payer: key.map(String::from),
        by_nano_usd: amount.nano_usd,
        by: crate::DECIDER.to_owned(),
        comment,
        key: None,
    };
    let allow = async |connection: &Connection| connection.allow(raise.clone()).await;
    // An amount that is allowed twice is twice the amount.
    let (connection, status) = access.changed(Twice::IsTwice, allow).await?;
    if json {
        terminal::print(&terminal::json(&status)?);
    } else {
        terminal::print(&format!("{amount} more may be spent; {}\n", then(&connection)));
    }
    Ok(())
}

/// Parses an amount of US dollars.
fn amount_of(text: &str) -> Result<Cost, String> {
    let usd: Option<f64> = text.parse().ok();
    let nano_usd = usd.and_then(antiphon_project::nano_usd);
    let nano_usd = nano_usd
        .ok_or("an amount in US dollars from 0.000000001 to 1000000, such as `5` or `0.50`")?;
    Ok(Cost { nano_usd })
}

fn then(connection: &Connection) -> &'static str {
    match connection {
        Connection::Server(..) => "waiting tasks continue",
        Connection::Local(_) => "resume waiting tasks with `antiphon tasks resume`",
    }
}

fn table(status: &BudgetStatus) -> String {
    let head = ["BUDGET", "OF", "SPENT", "LIMIT", "ALLOWED BEYOND", "ENDS"];
    let mut lines = vec![head.map(str::to_owned)];
    for scope in std::iter::once(&status.total).chain(&status.keys) {
        lines.push(line(scope, "day", &scope.day));
        lines.push(line(scope, "month", &scope.month));
    }
    [terminal::table(&lines), unpriced(status), waiting(status)].concat()
}

fn unpriced(status: &BudgetStatus) -> String {
    match status.total.unpriced_calls {
        0 => String::new(),
        calls => {
            let calls = terminal::count(calls, "answer");
            format!(
                "not counted: {calls} this month from models without a price, or cut off before the tokens were known\n"
            )
        }
    }
}

fn waiting(status: &BudgetStatus) -> String {
    match status.waiting.len() as u64 {
        0 => String::new(),
        tasks => {
            let tasks = terminal::count(tasks, "task");
            format!("{tasks} waiting for budget: allow more with `antiphon budget allow`\n")
        }
    }
}

fn line(scope: &ScopeStatus, of: &str, window: &WindowStatus) -> [String; 6] {
    [
        scope.key_id.as_ref().map_or("total".to_owned(), |id| format!("key {id}")),
        of.to_owned(),
        window.spent_nano_usd.to_string(),
        window.limit_nano_usd.map_or("none".to_owned(), |limit| limit.to_string()),
        window.raised_nano_usd.to_string(),
        window.resets_at.format("%Y-%m-%d %H:%M").to_string(),
    ]
}
