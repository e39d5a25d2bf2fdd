//! The log on standard error: warnings, or what `ANTIPHON_LOG` selects. It never holds messages, answers of
//! models or secrets.

use std::io::{self, IsTerminal, Write};

use antiphon_view::display::Destination;
use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// The filter without `ANTIPHON_LOG`. Warnings of `rmcp` concern other servers, not this program.
const FILTER_DEFAULT: &str = "warn,rmcp=error";

/// The same for a command that shows what happens on a status line: a line of the log would cut through it.
const FILTER_STATUS_LINE: &str = "error";

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

/// What a command shows besides its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogDetail {
    /// Its result.
    Usual,
    /// A status line with everything that a warning would say.
    OnStatusLine,
    /// Rows of the terminal that it draws again and again: a line of the log would go across them.
    InRows,
}

/// Starts logging. `wanted` is the value of `ANTIPHON_LOG`.
pub(crate) fn start(format: LogFormat, wanted: Option<String>, detail: LogDetail) {
    let default = match detail {
        // What concerns the user is in the rows.
        LogDetail::InRows if io::stderr().is_terminal() => return,
        LogDetail::OnStatusLine if io::stderr().is_terminal() => FILTER_STATUS_LINE,
        LogDetail::InRows | LogDetail::OnStatusLine | LogDetail::Usual => FILTER_DEFAULT,
    };
    let filter = EnvFilter::builder().parse_lossy(wanted.as_deref().unwrap_or(default));
    let caps = LEVEL_CAPS.iter().filter_map(|directive| directive.parse().ok());
    let filter = caps.fold(filter, EnvFilter::add_directive);
    let ansi = io::stderr().is_terminal();
    let lines = move || LogLines { format, destination: Destination::of(ansi) };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines);
    match (format, wanted) {
        (LogFormat::Json, _) => log.with_ansi(false).json().flatten_event(true).init(),
        (LogFormat::Text, Some(_)) => log.with_ansi(ansi).init(),
        (LogFormat::Text, None) => {
            log.with_ansi(ansi).without_time().with_target(false).compact().init();
        }
    }
}

/// Writes lines of the log to standard error. Each comes in one piece.
struct LogLines {
    format: LogFormat,
    destination: Destination,
}

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = match self.format {
            LogFormat::Text => self.destination.colored_text(&text),
            LogFormat::Json => self.destination.json(&text).into_owned(),
        };
        io::stderr().lock().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
