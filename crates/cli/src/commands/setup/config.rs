//! `antiphon config`: shows and changes the user's settings.

use std::fmt::Write as _;
use std::process::Command;

use antiphon_project::environment::Environment;
use antiphon_project::settings::keys::{KEYS, documented, is_known, suggested_key};
use antiphon_project::settings::{SettingsEdit, ShownSetting, save_settings, settings_path};
use antiphon_view::display::escaped;
use clap::Subcommand;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::terminal;

/// Show and change your settings.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
The whole file is checked before it is written; comments stay, and keys are never printed. Every key is in docs/config.md.

Examples:
  antiphon config show
  antiphon config show --all
  antiphon config set model anthropic/claude-sonnet-5-5
  antiphon config get sandbox.network
  antiphon config unset model
  antiphon config edit")]
pub(crate) enum Config {
    /// Show what is set; secrets are shown as ***.
    #[command(after_help = "\
Examples:
  antiphon config show
  antiphon config show --json | jq .model")]
    Show {
        /// Show every key with what it does, also those that are not set.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one setting. Exit code 1 when it is not set.
    #[command(after_help = "\
Examples:
  antiphon config get model
  antiphon config get providers.openai
  antiphon config get 'models.\"openai/gpt-4.1\".context_tokens'")]
    Get {
        /// The setting, as `antiphon config show --all` names it.
        key: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Set a setting: a TOML value, or else a text.
    #[command(after_help = "\
Examples:
  antiphon config set model scripted/hello
  antiphon config set sandbox.network true
  antiphon config set permissions.allow '[\"bash(git status)\"]'")]
    Set {
        /// The setting, as `antiphon config show --all` names it.
        key: String,
        /// Its value.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a setting. Exit code 1 when it is not set.
    #[command(after_help = "\
Examples:
  antiphon config unset model")]
    Unset {
        /// The setting, as `antiphon config show --all` names it.
        key: String,
    },
    /// Edit the file in $VISUAL or $EDITOR. A file that is not valid is not taken over.
    #[command(after_help = "\
Examples:
  antiphon config edit
  EDITOR=nano antiphon config edit")]
    Edit,
    /// Print the path of the file.
    #[command(after_help = "\
Examples:
  antiphon config path
  cat \"$(antiphon config path)\"")]
    Path,
}

impl Config {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        if matches!(self, Self::Edit) {
            return edit(environment);
        }
        let mut settings = SettingsEdit::open(environment)?;
        match self {
            Self::Show { all: true, json: true } => terminal::print(&terminal::json(&KEYS)?),
            Self::Show { all: true, json: false } => terminal::print(&every_key(&settings)),
            Self::Show { all: false, json: true } => {
                terminal::print(&terminal::json(&as_json(&settings))?);
            }
            Self::Show { all: false, json: false } => {
                let lines: Vec<String> = settings.all().iter().map(ShownSetting::line).collect();
                terminal::print(&lines.concat());
            }
            Self::Get { key, json } => {
                let value = settings.get(&key)?.ok_or_else(|| not_set(&key))?;
                let text = if json {
                    terminal::json(&plain(&value))?
                } else {
                    format!("{}\n", unquoted(&value).trim_end())
                };
                terminal::print(&text);
            }
            Self::Set { key, value } => {
                check_known(&key)?;
                settings.set(&key, &value)?;
                settings.save()?;
            }
            Self::Unset { key } => {
                if !settings.unset(&key)? {
                    return Err(not_set(&key));
                }
                settings.save()?;
            }
            Self::Path => terminal::print(&format!("{}\n", settings.path().display())),
            Self::Edit => {}
        }
        Ok(())
    }
}

fn parts(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for letter in key.chars() {
        match letter {
            '"' | '\'' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            letter => parts.last_mut().into_iter().for_each(|part| part.push(letter)),
        }
    }
    parts
}

/// Refuses a key that no part of the program reads.
fn check_known(key: &str) -> Result<(), Failure> {
    let parts = parts(key);
    if is_known(&parts.iter().map(String::as_str).collect::<Vec<_>>()) {
        return Ok(());
    }
    Err(unknown(key))
}

fn unknown(key: &str) -> Failure {
    let hint = suggested_key(key).map(|known| format!("; did you mean `{known}`?"));
    let hint = hint.unwrap_or_else(|| "; see `antiphon config show --all`".to_owned());
    Failure::usage(format!("there is no setting `{}`{hint}", escaped(key)))
}

fn not_set(key: &str) -> Failure {
    let parts = parts(key);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match documented(&parts) {
        Some(known) => {
            Failure::failed(format!("`{}` is not set. What it does: {}", escaped(key), known.about))
        }
        None if is_known(&parts) => Failure::failed(format!("`{}` is not set", escaped(key))),
        None => unknown(key),
    }
}

fn every_key(settings: &SettingsEdit) -> String {
    let mut text = String::new();
    for known in KEYS {
        let _ = writeln!(text, "{}  ({})\n    {}", known.key, known.takes, known.about);
    }
    format!("{text}\nThe file is {}.\n", settings.path().display())
}

/// A TOML value as it is without quotes, when it is a text.
fn unquoted(value: &str) -> String {
    plain(value).as_str().map_or_else(|| value.to_owned(), str::to_owned)
}

/// A TOML value as JSON; what is none, such as `***`, is a text.
fn plain(value: &str) -> Value {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {value}\n"));
    let value_of =
        |table: toml::Table| table.get("value").and_then(|it| serde_json::to_value(it).ok());
    if let Some(found) = parsed.ok().and_then(value_of) {
        return found;
    }
    // A table of settings: a line for each.
    match toml::from_str::<toml::Table>(&with_quoted_secrets(value)) {
        Ok(table) if !table.is_empty() => serde_json::to_value(table).unwrap_or(json!(value)),
        Ok(_) | Err(_) => json!(value),
    }
}

/// The lines of settings as TOML: `***` alone is none.
fn with_quoted_secrets(lines: &str) -> String {
    lines.replace("= ***\n", "= \"***\"\n")
}

fn as_json(settings: &SettingsEdit) -> Value {
    let lines: Vec<String> = settings.all().iter().map(ShownSetting::line).collect();
    let table = toml::from_str::<toml::Table>(&with_quoted_secrets(&lines.concat()));
    table.ok().and_then(|it| serde_json::to_value(it).ok()).unwrap_or(Value::Object(Map::new()))
}

/// Lets the user edit a copy, and takes it over when it is valid.
fn edit(environment: &Environment) -> Result<(), Failure> {
    let settings = SettingsEdit::open(environment);
    let path = match &settings {
        Ok(settings) => settings.path().to_owned(),
        // A broken file has to be edited, too.
        Err(_) => settings_path(environment),
    };
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let failed = |error: std::io::Error| Failure::failed(format!("cannot edit a copy: {error}"));
    // Readable by this user alone, as the file is.
    let copy = tempfile::Builder::new().suffix(".toml").tempfile().map_err(failed)?;
    std::fs::write(copy.path(), &text).map_err(failed)?;
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| environment.text(name));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    let ended = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(copy.path())
        .status()
        .map_err(failed)?;
    if !ended.success() {
        return Err(Failure::failed(format!("`{editor}` failed: nothing was changed")));
    }
    let edited = std::fs::read_to_string(copy.path()).map_err(failed)?;
    if edited == text {
        terminal::note("antiphon: nothing was changed\n");
        return Ok(());
    }
    match save_settings(environment, &edited) {
        Ok(()) => Ok(()),
        Err(error) => {
            let kept = copy.into_temp_path().keep();
            let kept = kept.map_or_else(
                |_| String::new(),
                |path| format!("; your text is in {}", path.display()),
            );
            Err(Failure::usage(format!("{error}; nothing was changed{kept}")))
        }
    }
}
