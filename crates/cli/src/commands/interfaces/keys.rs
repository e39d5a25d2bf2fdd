//! `antiphon keys`: API keys of a server, and the key of its agent cards. A secret is printed once and stored nowhere.

use std::str::FromStr;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{AgentName, SpendWindow};
use antiphon_keys::{
    Key, KeyHolder, KeyId, KeyIdError, KeyName, KeyScope, KeyStatus, Level, NewKey, RateLimit,
    SpendLimits,
};
use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::settings::spend_limit;
use antiphon_view::display::escaped;
use chrono::{DateTime, TimeDelta, Utc};
use clap::Subcommand;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use super::card_key;
use crate::failure::Failure;
use crate::terminal;

/// Create, list, rotate and revoke API keys; print the key of agent cards (see docs/keys.md).
#[derive(Debug, Subcommand)]
#[command(after_help = "\
The level of a key: `read` reads, `write` creates and cancels work, `admin` also decides approvals. A
running server applies a change within a second.

Examples:
  antiphon keys new --name dashboard
  KEY=$(antiphon keys new --name nightly --level write --expires 30d --rate 60/min)
  antiphon keys list
  antiphon keys rotate tR7xQ2pL --grace 1h
  antiphon keys revoke tR7xQ2pL
  antiphon keys card > jwks.json")]
pub(crate) enum Keys {
    /// Create a key. Standard output gets only the key; it is not shown again.
    #[command(after_help = "\
Examples:
  antiphon keys new --name dashboard
  antiphon keys new --name nightly --level write --expires 30d --rate 60/min
  antiphon keys new --name ci --level write --daily-usd 2 --monthly-usd 20
  antiphon keys new --name ada --level write --scope own
  antiphon keys new --name helper --agent reviewer --level write --json | jq -r .secret")]
    New {
        /// Name of the key.
        #[arg(long, value_name = "TEXT")]
        name: KeyName,
        /// Level: `read`, `write` or `admin`.
        #[arg(long, default_value = "read")]
        level: Level,
        /// Whose work the key sees over the native API: `all`, or its `own` alone. Responses, A2A and MCP show each key
        /// its own alone.
        #[arg(long, default_value = "all")]
        scope: KeyScope,
        /// Lifetime, such as `30d` or `12h`; unlimited when absent.
        #[arg(long, value_name = "TIME", value_parser = lifetime)]
        expires: Option<humantime::Duration>,
        /// Most requests, such as `60/min`; 600 per minute when absent.
        #[arg(long, value_name = "N/min")]
        rate: Option<Rate>,
        /// Spend limit per UTC day, in US dollars.
        #[arg(long, value_name = "USD")]
        daily_usd: Option<f64>,
        /// Spend limit per UTC month, in US dollars.
        #[arg(long, value_name = "USD")]
        monthly_usd: Option<f64>,
        /// Agent that holds the key: such a key cannot decide approvals.
        #[arg(long, value_name = "NAME")]
        agent: Option<AgentName>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List keys, the oldest first. Secrets are never listed.
    #[command(after_help = "\
Examples:
  antiphon keys list
  antiphon keys list --json | jq -r '.[] | select(.status == \"active\") | .id'")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give a key a new secret. The old one is refused at once, or after --grace.
    #[command(after_help = "\
Examples:
  antiphon keys rotate tR7xQ2pL
  antiphon keys rotate tR7xQ2pL --grace 1h")]
    Rotate {
        /// Id of the key: the middle part of `ak_ID_SECRET`.
        id: String,
        /// How much longer the old secret works; 30 days at most.
        #[arg(long, value_name = "TIME", default_value = "0s")]
        grace: humantime::Duration,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key. It cannot be allowed again.
    #[command(after_help = "\
Examples:
  antiphon keys revoke tR7xQ2pL")]
    Revoke {
        /// Id of the key: the middle part of `ak_ID_SECRET`.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    Card(card_key::CardKeyOf),
}

impl Keys {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find(environment)?;
        match self {
            Self::Card(_) => card_key::CardKeyOf::run(&project),
            Self::New {
                name,
                level,
                scope,
                expires,
                rate,
                daily_usd,
                monthly_usd,
                agent,
                json,
            } => {
                let new = NewKey {
                    name,
                    level,
                    scope,
                    holder: agent.map_or(KeyHolder::Person, KeyHolder::Agent),
                    expires_at: expires.map(|time| until(time.into())).transpose()?,
                    rate_per_minute: rate.map(|Rate(limit)| limit),
                    spend: SpendLimits {
                        daily_nano_usd_max: spend_limit("--daily-usd", daily_usd)?,
                        monthly_nano_usd_max: spend_limit("--monthly-usd", monthly_usd)?,
                    },
                };
                project.ensure_journal()?;
                let (key, secret) = project.keys()?.create(new)?;
                print_key(&key, &secret, json)
            }
            Self::List { json } => list(&project.keys()?.list()?, json),
            Self::Rotate { id, grace, json } => {
                let (key, secret) = project.keys()?.rotate(parse(&id)?, grace.into())?;
                print_key(&key, &secret, json)
            }
            Self::Revoke { id, json } => {
                let key = project.keys()?.revoke(parse(&id)?)?;
                terminal::print(&if json {
                    terminal::json(&row(&key, None))?
                } else {
                    format!("{} is revoked: a server refuses it within a second\n", named(&key))
                });
                Ok(())
            }
        }
    }
}

/// A rate such as `60/min`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(RateLimit);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("/min").unwrap_or(text);
        let number: u32 = number.parse().map_err(|_| "write it as `60/min`".to_owned())?;
        RateLimit::per_minute(number).map(Self).map_err(|error| error.to_string())
    }
}

/// Not parsed by `clap`, whose errors quote the value: it may be a whole key.
fn lifetime(text: &str) -> Result<humantime::Duration, String> {
    text.parse().map_err(|_| "must be a time such as `30d` or `12h`".to_owned())
}

fn parse(id: &str) -> Result<KeyId, Failure> {
    id.parse().map_err(|error: KeyIdError| {
        Failure::usage(format!("{error}; `antiphon keys list` prints the ids"))
    })
}

fn until(time: std::time::Duration) -> Result<DateTime<Utc>, Failure> {
    let time = TimeDelta::from_std(time).ok();
    let until = time.and_then(|time| SystemClock.now().checked_add_signed(time));
    until.ok_or_else(|| Failure::usage("--expires: that is too far away"))
}

/// A key in JSON.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    key: &'a Key,
    status: KeyStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

fn row<'a>(key: &'a Key, secret: Option<&'a str>) -> Row<'a> {
    Row { key, status: key.status(SystemClock.now()), secret }
}

/// The one time that a secret is shown.
fn print_key(key: &Key, secret: &SecretString, json: bool) -> Result<(), Failure> {
    let secret = secret.expose_secret();
    if json {
        terminal::print(&terminal::json(&row(key, Some(secret)))?);
        return Ok(());
    }
    let until = key.expires_at.map_or("without an end".to_owned(), |at| format!("until {at}"));
    let old = key.old_secret_until.map(|at| format!("; the old secret works until {at}"));
    terminal::note(&format!(
        "{}, level {}, {until}{}. Keep it: it is not shown again.\n",
        named(key),
        key.level,
        old.unwrap_or_default()
    ));
    terminal::print(&format!("{secret}\n"));
    Ok(())
}

/// `$2.0000 a day, $20.0000 a month`.
fn budget(limits: &SpendLimits) -> String {
    let limit_text =
        |window: SpendWindow| Some(format!("{} a {}", limits.of(window)?, window.as_str()));
    let texts: Vec<String> = SpendWindow::ALL.into_iter().filter_map(limit_text).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

fn named(key: &Key) -> String {
    format!("the key `{}` ({})", escaped(key.name.as_str()), key.id)
}

fn list(keys: &[Key], json: bool) -> Result<(), Failure> {
    if json {
        let rows: Vec<Row<'_>> = keys.iter().map(|key| row(key, None)).collect();
        terminal::print(&terminal::json(&rows)?);
        return Ok(());
    }
    if keys.is_empty() {
        terminal::print("no keys here: create one with `antiphon keys new --name NAME`\n");
        return Ok(());
    }
    let now = SystemClock.now();
    let head = [
        "ID",
        "NAME",
        "LEVEL",
        "SCOPE",
        "HOLDER",
        "STATUS",
        "AGE",
        "EXPIRES",
        "PER MINUTE",
        "BUDGET",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(keys.iter().map(|key| {
        let expires = key.expires_at.map(|at| at.format("%Y-%m-%d %H:%M").to_string());
        [
            key.id.to_string(),
            escaped(key.name.as_str()).into_owned(),
            key.level.to_string(),
            key.scope.to_string(),
            match &key.holder {
                KeyHolder::Person => "person".to_owned(),
                KeyHolder::Agent(agent) => format!("agent {agent}"),
            },
            key.status(now).as_str().to_owned(),
            terminal::age(now - key.created_at),
            expires.unwrap_or_else(|| "never".to_owned()),
            key.rate_per_minute.map_or("the usual".to_owned(), |rate| rate.requests().to_string()),
            budget(&key.spend),
        ]
    }));
    terminal::print(&terminal::table(&lines));
    Ok(())
}
