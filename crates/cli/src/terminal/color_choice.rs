//! Whether output is colored, by the terminal and the variables of shells.

use std::io::IsTerminal as _;

use antiphon_view::Colors;

/// Colors for standard error: on a terminal, unless `NO_COLOR` is set, `CLICOLOR` is `0` or `TERM` is `dumb`;
/// always with `CLICOLOR_FORCE`, unless `NO_COLOR` is set.
pub(crate) fn stderr_colors() -> Colors {
    colors(std::io::stderr().is_terminal())
}

/// Colors for standard output, under the same conditions.
pub(crate) fn stdout_colors() -> Colors {
    colors(std::io::stdout().is_terminal())
}

fn colors(terminal: bool) -> Colors {
    let value = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if value("NO_COLOR").is_some() {
        return Colors::Off;
    }
    if value("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return Colors::On;
    }
    let refused = value("CLICOLOR").is_some_and(|value| value == "0");
    let dumb = value("TERM").is_some_and(|term| term == "dumb");
    if terminal && !refused && !dumb { Colors::On } else { Colors::Off }
}
