//! Changes of the user's settings file. Comments and order are kept, and the whole file is checked before it is
//! written, readable by its owner alone.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_private_file::{Durability, lock_within, open_lock_at, parent_of, write_atomic};
use toml_edit::{DocumentMut, Item, Key, Table, TableLike, Value};

use super::keys::is_secret;
use super::{UserSettings, parse, path, read, without_secrets};
use crate::environment::Environment;
use crate::error::ProjectError;

/// Beside the settings file: held while it is written.
const LOCK_FILE: &str = ".config.lock";

/// How long another command that writes is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The user's settings file while it is changed. Nothing is written before [`SettingsEdit::save`].
pub struct SettingsEdit {
    path: PathBuf,
    /// The text that the file had.
    before: String,
    document: DocumentMut,
    environment: Environment,
}

/// A setting and its value, as the file has it; a secret is `***`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    /// The names of the tables and of the setting, joined by dots.
    pub key: String,
    /// The value, as TOML.
    pub value: String,
}

impl ShownSetting {
    /// The setting as a line of TOML.
    pub fn line(&self) -> String {
        format!("{} = {}\n", self.key, self.value)
    }
}

impl SettingsEdit {
    /// Reads the file, or begins a new one.
    pub fn open(environment: &Environment) -> Result<Self, ProjectError> {
        let path = path(environment);
        let text = match fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(_) | Ok(_) => read(&path, environment)?,
        };
        let text = text.unwrap_or_default();
        // Its errors name line and column, and never show the line.
        parse::<toml::Table>(&path, &text)?;
        let document = text.parse().map_err(|_| {
            ProjectError::InvalidInput(format!("{}: cannot be changed", path.display()))
        })?;
        Ok(Self { path, before: text, document, environment: environment.clone() })
    }

    /// Path of the file, also when there is none yet.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A setting as TOML, or a table of settings; secrets are `***`. `None` when it is not set.
    pub fn get(&self, key: &str) -> Result<Option<String>, ProjectError> {
        let keys = parse_key(key)?;
        let mut item = self.document.as_item();
        for key in &keys {
            match item.get(key.get()) {
                Some(found) => item = found,
                None => return Ok(None),
            }
        }
        let path: Vec<&str> = keys.iter().map(Key::get).collect();
        let mut lines = Vec::new();
        collect(&path, item, &mut lines);
        if let [only] = lines.as_slice()
            && only.key == joined(&path)
        {
            return Ok(Some(only.value.clone()));
        }
        Ok(Some(lines.iter().map(ShownSetting::line).collect::<Vec<_>>().concat()))
    }

    /// Every setting of the file, in its order; secrets are `***`.
    pub fn all(&self) -> Vec<ShownSetting> {
        let mut lines = Vec::new();
        collect(&[], self.document.as_item(), &mut lines);
        lines
    }

    /// Sets a value: TOML, or else a text.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ProjectError> {
        let keys = parse_key(key)?;
        let text = || Value::from(value);
        let parsed: Value = value.trim().parse().unwrap_or_else(|_| text());
        if parsed.is_str() {
            return self.put(&keys, parsed);
        }
        // `123` may be meant as a text.
        let before = self.document.clone();
        self.put(&keys, parsed)?;
        let Err(error) = self.check() else { return Ok(()) };
        self.document = before;
        let before = self.document.clone();
        self.put(&keys, text())?;
        if self.check().is_ok() {
            return Ok(());
        }
        self.document = before;
        Err(error)
    }

    /// Sets a text.
    pub fn set_text(&mut self, key: &[&str], value: &str) -> Result<(), ProjectError> {
        let keys: Vec<Key> = key.iter().map(|&name| Key::new(name)).collect();
        self.put(&keys, Value::from(value))
    }

    /// Sets a list of texts.
    pub fn set_list(&mut self, key: &[&str], values: &[String]) -> Result<(), ProjectError> {
        let keys: Vec<Key> = key.iter().map(|&name| Key::new(name)).collect();
        self.put(&keys, Value::Array(values.iter().map(String::as_str).collect()))
    }

    /// Sets a value of JSON: an object becomes a table.
    pub(crate) fn set_json(
        &mut self,
        key: &[&str],
        value: &serde_json::Value,
    ) -> Result<(), ProjectError> {
        if let serde_json::Value::Object(fields) = value {
            for (name, value) in fields {
                let key: Vec<&str> = key.iter().copied().chain([name.as_str()]).collect();
                self.set_json(&key, value)?;
            }
            return Ok(());
        }
        let refuse = || {
            let key = joined(key);
            ProjectError::InvalidInput(format!("`{key}` has a value that no setting can have"))
        };
        let value = from_json(value).ok_or_else(refuse)?;
        let keys: Vec<Key> = key.iter().map(|&name| Key::new(name)).collect();
        self.put(&keys, value)
    }

    fn put(&mut self, keys: &[Key], mut value: Value) -> Result<(), ProjectError> {
        let Some((last, parents)) = keys.split_last() else {
            return Err(ProjectError::InvalidInput("a setting needs a name".to_owned()));
        };
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for key in parents {
            let item = table.entry(key.get()).or_insert_with(|| {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            });
            table = item.as_table_like_mut().ok_or_else(|| {
                ProjectError::InvalidInput(format!("`{}` is a value, not a table", key.get()))
            })?;
        }
        match table.get_mut(last.get()) {
            Some(Item::Value(old)) => {
                *value.decor_mut() = old.decor().clone();
                *old = value;
            }
            Some(Item::Table(_) | Item::ArrayOfTables(_)) if !value.is_inline_table() => {
                return Err(ProjectError::InvalidInput(format!(
                    "`{}` is a table: name one of its settings",
                    last.get()
                )));
            }
            Some(Item::Table(_) | Item::ArrayOfTables(_) | Item::None) | None => {
                table.insert(last.get(), Item::Value(value));
            }
        }
        Ok(())
    }

    /// Removes a setting, or a table of settings. Returns whether it was there.
    pub fn unset(&mut self, key: &str) -> Result<bool, ProjectError> {
        Ok(self.remove(&parse_key(key)?))
    }

    /// Removes a table of settings. Returns whether it was there.
    pub fn remove_table(&mut self, key: &[&str]) -> bool {
        self.remove(&key.iter().map(|&name| Key::new(name)).collect::<Vec<_>>())
    }

    fn remove(&mut self, keys: &[Key]) -> bool {
        let Some((last, parents)) = keys.split_last() else { return false };
        let mut table: &mut dyn TableLike = self.document.as_table_mut();
        for key in parents {
            match table.get_mut(key.get()).and_then(Item::as_table_like_mut) {
                Some(found) => table = found,
                None => return false,
            }
        }
        table.remove(last.get()).is_some()
    }

    /// Checks the whole file, as it would be read.
    pub fn check(&self) -> Result<(), ProjectError> {
        let text = self.document.to_string();
        UserSettings::of(self.path.clone(), Some(&text), None, &self.environment).map(drop)
    }

    /// Checks and writes the file, unless it was changed meanwhile. A symbolic link at its path is followed.
    pub fn save(&self) -> Result<(), ProjectError> {
        self.check()?;
        let _lock = lock(&self.path)?;
        let now = fs::read_to_string(&self.path).unwrap_or_default();
        if now != self.before {
            return Err(ProjectError::InvalidInput(format!(
                "{} was changed meanwhile, and nothing was written: try again",
                self.path.display()
            )));
        }
        save_text(&self.path, &self.document.to_string())
    }
}

/// Keeps other commands from writing the file until the returned lock is dropped.
fn lock(path: &Path) -> Result<File, ProjectError> {
    let refuse = |reason: String| {
        ProjectError::InvalidInput(format!("cannot write {}: {reason}", path.display()))
    };
    let folder = parent_of(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .and_then(|()| open_lock_at(File::open(folder)?, LOCK_FILE))
        .map_err(|error| refuse(error.to_string()))
        .and_then(|file| {
            let locked = lock_within(&file, LOCK_WAIT);
            locked.map(|()| file).map_err(|error| refuse(error.to_string()))
        })
}

/// Checks a whole text and writes it as the user's settings.
pub fn save_settings(environment: &Environment, text: &str) -> Result<(), ProjectError> {
    let path = path(environment);
    UserSettings::of(path.clone(), Some(text), None, environment)?;
    save_text(&path, text)
}

fn save_text(path: &Path, text: &str) -> Result<(), ProjectError> {
    let refuse = |error: std::io::Error| {
        ProjectError::InvalidInput(format!("cannot write {}: {error}", path.display()))
    };
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = target.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refuse)?;
    }
    write_atomic(&target, text.as_bytes(), Durability::Synced).map_err(refuse)
}

fn parse_key(key: &str) -> Result<Vec<Key>, ProjectError> {
    Key::parse(key).map_err(|_| {
        ProjectError::InvalidInput(format!(
            "`{key}` names no setting: join names with dots, and quote a name that has a dot, as in \
             models.\"openai/gpt-4.1\".context_tokens"
        ))
    })
}

fn joined(path: &[&str]) -> String {
    let keys = path.iter().map(|name| Key::new(*name).to_string());
    keys.collect::<Vec<_>>().join(".")
}

fn from_json(value: &serde_json::Value) -> Option<Value> {
    match value {
        serde_json::Value::Bool(value) => Some(Value::from(*value)),
        serde_json::Value::Number(number) => {
            number.as_i64().map(Value::from).or_else(|| number.as_f64().map(Value::from))
        }
        serde_json::Value::String(text) => Some(Value::from(text.as_str())),
        serde_json::Value::Array(items) => {
            let items: Option<toml_edit::Array> = items.iter().map(from_json).collect();
            items.map(Value::Array)
        }
        serde_json::Value::Null | serde_json::Value::Object(_) => None,
    }
}

fn collect(path: &[&str], item: &Item, lines: &mut Vec<ShownSetting>) {
    if let Some(table) = item.as_table_like() {
        for (name, item) in table.iter() {
            let path: Vec<&str> = path.iter().copied().chain([name]).collect();
            collect(&path, item, lines);
        }
        return;
    }
    let value = match item.as_value() {
        _ if is_secret(path) => "***".to_owned(),
        Some(value) => shown(value.clone().decorated("", "")).to_string(),
        None => return,
    };
    lines.push(ShownSetting { key: joined(path), value: value.trim().to_owned() });
}

/// A value without what may be secret in its addresses.
fn shown(value: Value) -> Value {
    let text = value.as_str().map(|text| (text, without_secrets(text)));
    if let Some((text, shown)) = text {
        return if text == shown { value } else { Value::from(shown) };
    }
    match value {
        Value::Array(mut array) => {
            array.iter_mut().for_each(|value| *value = shown(value.clone()));
            Value::Array(array)
        }
        value @ (Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::InlineTable(_)) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str) -> (tempfile::TempDir, Environment) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, text).unwrap();
        let variables = [("ANTIPHON_CONFIG".into(), path.into_os_string())].into();
        (folder, Environment { variables, ..Environment::default() })
    }

    #[test]
    fn a_change_keeps_comments_and_the_file_becomes_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let text = "# mine\nmodel = \"a/b\" # chosen\n\n[sandbox]\n# why\nnetwork = false\n";
        let (folder, environment) = edit(text);
        let mut settings = SettingsEdit::open(&environment).unwrap();
        settings.set("model", "scripted/hello").unwrap();
        settings.set("sandbox.network", "true").unwrap();
        settings.set("models.\"openai/gpt-4.1\".context_tokens", "1000").unwrap();
        settings.save().unwrap();
        let path = folder.path().join("config.toml");
        let written = fs::read_to_string(&path).unwrap();
        let start =
            "# mine\nmodel = \"scripted/hello\" # chosen\n\n[sandbox]\n# why\nnetwork = true\n";
        assert_eq!(
            written,
            format!("{start}\n[models.\"openai/gpt-4.1\"]\ncontext_tokens = 1000\n")
        );
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_would_not_be_read_is_not_written() {
        let (folder, environment) = edit("model = 'a/b'\n");
        let mut settings = SettingsEdit::open(&environment).unwrap();
        settings.set("sandbox.networks", "true").unwrap_err();
        settings.set("model", "no-slash").unwrap();
        settings.save().unwrap_err();
        let written = fs::read_to_string(folder.path().join("config.toml")).unwrap();
        assert_eq!(written, "model = 'a/b'\n");
    }

    #[test]
    fn secrets_are_not_shown() {
        let text = "[providers.openai]\napi_key = 'sk-x'\nbase_url = 'https://a:b@host/'\nkind = 'openai'\n\
                    [mcp.s]\ncommand = 'c'\nenv = { TOKEN = 'x' }\n";
        let (_folder, environment) = edit(text);
        let settings = SettingsEdit::open(&environment).unwrap();
        let shown: Vec<String> =
            settings.all().into_iter().map(|it| it.key + "=" + &it.value).collect();
        let all = shown.join("\n");
        assert!(all.contains("providers.openai.api_key=***"), "{all}");
        assert!(all.contains("mcp.s.env.TOKEN=***"), "{all}");
        assert!(!all.contains("sk-x") && !all.contains("a:b@"), "{all}");
        assert_eq!(settings.get("providers.openai.api_key").unwrap().unwrap(), "***");
    }
}
