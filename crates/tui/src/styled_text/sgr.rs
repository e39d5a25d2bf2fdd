//! Styled lines as text for a terminal, and text with colors of ours as styled lines.

use std::fmt::Write as _;

use antiphon_project::settings::Theme;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

/// A line with escape sequences. Its text holds no control characters.
pub(crate) fn encode(line: &Line<'_>, theme: Theme) -> String {
    let mut text = String::new();
    for span in &line.spans {
        let style = line.style.patch(span.style);
        let codes = codes(style, theme);
        if codes.is_empty() {
            text.push_str(&span.content);
        } else {
            // A write to a string does not fail.
            let _ = write!(text, "\x1b[{codes}m{}\x1b[0m", span.content);
        }
    }
    text
}

/// A line without styles.
pub(crate) fn plain(line: &Line<'_>) -> String {
    line.spans.iter().map(|span| span.content.as_ref()).collect()
}

/// A line of text whose only escape sequences are colors.
pub(crate) fn decode(text: &str) -> Line<'static> {
    let mut spans = Vec::new();
    let mut style = Style::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        if !before.is_empty() {
            spans.push(Span::styled(before.to_owned(), style));
        }
        let Some((codes, after)) = after.split_once('m') else {
            rest = after;
            break;
        };
        for code in codes.split(';') {
            style = apply(style, code);
        }
        rest = after;
    }
    if !rest.is_empty() {
        spans.push(Span::styled(rest.to_owned(), style));
    }
    Line::from(spans)
}

fn apply(style: Style, code: &str) -> Style {
    match code {
        "" | "0" => Style::new(),
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.add_modifier(Modifier::DIM),
        "31" => style.fg(Color::Red),
        "32" => style.fg(Color::Green),
        "33" => style.fg(Color::Yellow),
        "34" => style.fg(Color::Blue),
        "35" => style.fg(Color::Magenta),
        "36" => style.fg(Color::Cyan),
        _ => style,
    }
}

fn codes(style: Style, theme: Theme) -> String {
    let modifiers = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
        (Modifier::CROSSED_OUT, "9"),
    ];
    let mut codes: Vec<&str> = modifiers
        .into_iter()
        .filter(|(modifier, _)| style.add_modifier.contains(*modifier))
        .map(|(_, code)| code)
        .collect();
    codes.extend(style.fg.and_then(|color| foreground(color, theme)));
    codes.join(";")
}

/// A color in a theme: one of the sixteen that the terminal's own theme defines, or one of the 256 that are the same on
/// every terminal.
#[expect(clippy::wildcard_enum_match_arm, reason = "other colors are not used here")]
fn foreground(color: Color, theme: Theme) -> Option<&'static str> {
    let (terminal, light, dark) = match color {
        Color::Red => ("31", "38;5;124", "38;5;203"),
        Color::Green => ("32", "38;5;28", "38;5;114"),
        Color::Yellow => ("33", "38;5;130", "38;5;221"),
        Color::Blue => ("34", "38;5;25", "38;5;111"),
        Color::Magenta => ("35", "38;5;90", "38;5;177"),
        Color::Cyan => ("36", "38;5;30", "38;5;80"),
        Color::DarkGray => ("90", "38;5;242", "38;5;246"),
        _ => return None,
    };
    match theme {
        Theme::Terminal => Some(terminal),
        Theme::Light => Some(light),
        Theme::Dark => Some(dark),
        Theme::Mono => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_read_back_as_they_were_written() {
        let text = "plain \x1b[1;33mbold\x1b[0m and \x1b[2mdim\x1b[0m";
        assert_eq!(encode(&decode(text), Theme::Terminal), text);
    }

    #[test]
    fn a_theme_changes_colors_and_keeps_everything_else() {
        let line = decode("\x1b[1;31mno\x1b[0m");
        assert_eq!(encode(&line, Theme::Light), "\x1b[1;38;5;124mno\x1b[0m");
        assert_eq!(encode(&line, Theme::Dark), "\x1b[1;38;5;203mno\x1b[0m");
        assert_eq!(encode(&line, Theme::Mono), "\x1b[1mno\x1b[0m");
    }
}
