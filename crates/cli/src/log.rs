//! What the program says of itself, on standard error: warnings, or what `ANTIPHON_LOG` asks for. Never
//! what people or models wrote, and no secret.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// What is logged when nobody asks for more. `rmcp` warns of what is none of ours to mend.
const QUIET: &str = "warn,rmcp=error";

/// Libraries that write down whole headers when they are asked for everything.
const NEVER_LOUDER: [&str; 1] = ["h2=info"];

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object in each line.
    Json,
}

/// Begins to log.
pub(crate) fn begin(format: LogFormat) {
    let wanted = std::env::var("ANTIPHON_LOG").ok().filter(|wanted| !wanted.trim().is_empty());
    let filter = EnvFilter::builder().parse_lossy(wanted.as_deref().unwrap_or(QUIET));
    let quieter = NEVER_LOUDER.iter().filter_map(|directive| directive.parse().ok());
    let filter = quieter.fold(filter, EnvFilter::add_directive);
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
