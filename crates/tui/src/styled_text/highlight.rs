//! Code with its syntax colored, in the sixteen colors that the user's theme defines.
//!
//! The syntaxes are read when the first code is shown, or by [`prepare`] while a model still thinks.

use std::sync::{LazyLock, Once};

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// Bytes of code that are colored. The rest is shown plain: coloring would delay keys.
const CODE_BYTES_MAX: usize = 128 * 1024;

/// Bytes of a line that are colored.
const LINE_BYTES_MAX: usize = 2 * 1024;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// What is colored, the most special first.
static STYLES: LazyLock<Vec<(Scope, Style)>> = LazyLock::new(|| {
    let color = |color| Style::new().fg(color);
    let styles = [
        ("comment", color(Color::DarkGray).add_modifier(Modifier::ITALIC)),
        ("constant.character.escape", color(Color::Magenta)),
        ("string", color(Color::Green)),
        ("constant.numeric", color(Color::Magenta)),
        ("constant.language", color(Color::Magenta)),
        ("keyword.operator", Style::new()),
        ("keyword", color(Color::Blue)),
        ("storage", color(Color::Blue)),
        ("entity.name.function", color(Color::Yellow)),
        ("variable.function", color(Color::Yellow)),
        ("support.function", color(Color::Yellow)),
        ("support.macro", color(Color::Yellow)),
        ("entity.name.tag", color(Color::Blue)),
        ("entity.other.attribute-name", color(Color::Cyan)),
        ("entity.name", color(Color::Cyan)),
        ("support.type", color(Color::Cyan)),
        ("support.class", color(Color::Cyan)),
        ("markup.inserted", color(Color::Green)),
        ("markup.deleted", color(Color::Red)),
    ];
    let scope = |(name, style)| Some((Scope::new(name).ok()?, style));
    styles.into_iter().filter_map(scope).collect()
});

/// Reads the syntaxes beside the caller, so that the first code does not wait for it.
pub(crate) fn prepare() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        std::thread::spawn(|| {
            LazyLock::force(&SYNTAXES);
            LazyLock::force(&STYLES);
        });
    });
}

/// Colors the lines of one piece of code, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Highlighter {
    /// Absent: the language is not known, or the code is too long.
    state: Option<(ParseState, ScopeStack)>,
    bytes: usize,
}

impl Highlighter {
    /// For code in a language that is named as behind a fence.
    pub(crate) fn new(language: &str) -> Self {
        let state = syntax(language).map(|syntax| (ParseState::new(syntax), ScopeStack::new()));
        Self { state, bytes: 0 }
    }

    /// The next line, without its line break.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Span<'static>> {
        self.bytes += line.len();
        let plain = || vec![Span::styled(line.to_owned(), Style::new().fg(Color::Cyan))];
        if self.bytes > CODE_BYTES_MAX {
            self.state = None;
        }
        let Some((state, scopes)) = &mut self.state else { return plain() };
        if line.len() > LINE_BYTES_MAX {
            return plain();
        }
        let Ok(changes) = state.parse_line(&format!("{line}\n"), &SYNTAXES) else {
            self.state = None;
            return plain();
        };
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut from = 0;
        for (at, change) in changes {
            push(&mut spans, line, from..at, style(scopes));
            from = at;
            if scopes.apply(&change).is_err() {
                break;
            }
        }
        push(&mut spans, line, from..line.len(), style(scopes));
        spans
    }
}

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    // ```rust,ignore and ```rust title="x"
    let name = language.split([',', ' ', '{', ':']).next().filter(|name| !name.is_empty())?;
    SYNTAXES.find_syntax_by_token(name)
}

fn push(spans: &mut Vec<Span<'static>>, line: &str, range: std::ops::Range<usize>, style: Style) {
    // The line break belongs to no span.
    let end = range.end.min(line.len());
    let Some(text) = line.get(range.start.min(end)..end).filter(|text| !text.is_empty()) else {
        return;
    };
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(text),
        Some(_) | None => spans.push(Span::styled(text.to_owned(), style)),
    }
}

/// The style of the innermost scope that has one.
fn style(scopes: &ScopeStack) -> Style {
    let styled = |scope: &Scope| {
        let found = STYLES.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope));
        found.map(|(_, style)| *style)
    };
    scopes.as_slice().iter().rev().find_map(styled).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(language: &str, code: &str) -> Vec<Vec<Span<'static>>> {
        let mut highlighter = Highlighter::new(language);
        code.lines().map(|line| highlighter.line(line)).collect()
    }

    fn color_of(language: &str, code: &str, text: &str) -> Option<Color> {
        let lines = lines(language, code);
        let span = lines.iter().flatten().find(|span| span.content.contains(text));
        span.unwrap_or_else(|| panic!("{text} in {lines:?}")).style.fg
    }

    #[test]
    fn words_strings_and_comments_have_their_colors() {
        let code = "// a note\nfn main() { let x = \"text\"; }";
        assert_eq!(color_of("rust,ignore", code, "a note"), Some(Color::DarkGray));
        assert_eq!(color_of("rs", code, "fn"), Some(Color::Blue));
        assert_eq!(color_of("rust", code, "text"), Some(Color::Green));
        assert_eq!(color_of("toml", "[a]\nb = 1", "1"), Some(Color::Magenta));
        assert_eq!(color_of("tsx", "const a = `x`;", "const"), Some(Color::Blue));
    }

    #[test]
    fn the_text_is_unchanged() {
        let code = "def f(x):\n\treturn \"日本\" # é\n\n\"\"\"open";
        let shown: Vec<String> = lines("python", code)
            .iter()
            .map(|line| line.iter().map(|span| span.content.as_ref()).collect())
            .collect();
        assert_eq!(shown.join("\n"), code);
    }

    #[test]
    fn unknown_languages_and_the_rest_of_long_code_are_plain() {
        assert_eq!(color_of("no-such-language", "fn", "fn"), Some(Color::Cyan));
        let mut highlighter = Highlighter::new("rust");
        let long = "x".repeat(CODE_BYTES_MAX);
        assert_eq!(highlighter.line(&long)[0].style.fg, Some(Color::Cyan));
        assert_eq!(highlighter.line("// note")[0].style.fg, Some(Color::Cyan));
    }
}
