//! Delivers a notification: on the desktop, to a program, to an address. Each way is tried once, for a limited time, and
//! none hinders another.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use antiphon_outbound::pinned_client;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::process::Command;
use url::Url;

use super::Notification;
use crate::environment::Environment;
use crate::settings::NotifyConfig;

/// How long a way may take.
const WAIT: Duration = Duration::from_secs(10);

/// Variables that a program gets, if they are set: what it needs to reach the desktop. No key is among them.
const VARIABLES: [&str; 10] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "TMUX",
];

pub(super) struct Delivery {
    desktop: bool,
    command: Vec<String>,
    url: Option<Url>,
    token: Option<SecretString>,
    variables: BTreeMap<OsString, OsString>,
    folder: PathBuf,
}

impl Delivery {
    pub(super) fn new(config: &NotifyConfig, environment: &Environment) -> Self {
        let mut variables = environment.variables.clone();
        variables.retain(|name, _| VARIABLES.iter().any(|known| name == known));
        let token = config.token_env.as_ref().and_then(|name| environment.text(name));
        Self {
            desktop: config.desktop,
            command: config.command.clone(),
            url: config.url.as_ref().and_then(|url| Url::parse(url).ok()),
            token: token.map(SecretString::from),
            variables,
            // Not the project: a program may run what it finds in its folder.
            folder: environment.home().unwrap_or_else(|| PathBuf::from("/")),
        }
    }

    pub(super) async fn deliver(&self, notification: &Notification) {
        let (title, text) = (&notification.title, &notification.text);
        let desktop = async {
            // A body may hold markup.
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let words = ["notify-send", "--app-name=Antiphon", "--", title, &text];
            if self.desktop { self.run(&words, notification).await } else { Ok(()) }
        };
        let command = async {
            let words: Vec<&str> = self.command.iter().map(String::as_str).collect();
            if words.is_empty() { Ok(()) } else { self.run(&words, notification).await }
        };
        let (desktop, command, posted) = tokio::join!(desktop, command, self.post(notification));
        for (way, done) in [("desktop", desktop), ("command", command), ("url", posted)] {
            if let Err(reason) = done {
                tracing::warn!(way, reason, "a notification was not delivered");
            }
        }
    }

    async fn run(&self, words: &[&str], notification: &Notification) -> Result<(), String> {
        let [program, arguments @ ..] = words else { return Ok(()) };
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(&self.variables).current_dir(&self.folder);
        command.env("ANTIPHON_NOTIFY_TITLE", &notification.title);
        command.env("ANTIPHON_NOTIFY_TEXT", &notification.text);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.kill_on_drop(true);
        let ended = tokio::time::timeout(WAIT, command.status()).await;
        let ended = ended.map_err(|_| format!("it did not end within {} s", WAIT.as_secs()))?;
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(error) => Err(format!("{program}: {error}")),
        }
    }

    /// The address may be a secret: no error names it.
    async fn post(&self, notification: &Notification) -> Result<(), String> {
        let Some(url) = &self.url else { return Ok(()) };
        let posted = async {
            // The user named the host: any address of it is meant.
            let client = pinned_client(url, |_, _| true).await;
            let client = client.map_err(|_| "the host cannot be resolved".to_owned())?;
            // A header has ASCII alone.
            let title: String = notification.title.chars().filter(char::is_ascii).collect();
            let mut request =
                client.post(url.clone()).header("Title", title).body(notification.text.clone());
            if let Some(token) = &self.token {
                request = request.bearer_auth(token.expose_secret());
            }
            let answer = request.send().await.map_err(|error| error.without_url().to_string())?;
            if answer.status().is_success() { Ok(()) } else { Err(answer.status().to_string()) }
        };
        let posted = tokio::time::timeout(WAIT, posted).await;
        posted.map_err(|_| format!("no answer within {} s", WAIT.as_secs()))?
    }
}
