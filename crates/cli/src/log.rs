//! The log on standard error: warnings, or what `ANTIPHON_LOG` selects. It never holds messages, answers of
//! models or secrets.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// The filter without `ANTIPHON_LOG`. Warnings of `rmcp` concern other servers, not this program.
const FILTER_DEFAULT: &str = "warn,rmcp=error";

/// Libraries that log whole headers, with secrets, at finer levels.
const LEVEL_CAPS: [&str; 1] = ["h2=info"];

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging. `wanted` is the value of `ANTIPHON_LOG`.
pub(crate) fn start(format: LogFormat, wanted: Option<String>) {
    let filter = EnvFilter::builder().parse_lossy(wanted.as_deref().unwrap_or(FILTER_DEFAULT));
    let caps = LEVEL_CAPS.iter().filter_map(|directive| directive.parse().ok());
    let filter = caps.fold(filter, EnvFilter::add_directive);
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let ansi = std::io::stderr().is_terminal();
    match (format, wanted) {
        (LogFormat::Json, _) => log.with_ansi(false).json().flatten_event(true).init(),
        (LogFormat::Text, Some(_)) => log.with_ansi(ansi).init(),
        (LogFormat::Text, None) => {
            log.with_ansi(ansi).without_time().with_target(false).compact().init();
        }
    }
}
