//! Compiles search patterns.
//!
//! The engine takes linear time for every pattern. Compiling a pattern takes memory, so its size is
//! limited. An error says what is wrong, where, and what to do.

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ast;

use super::Case;

/// Longest pattern.
pub(crate) const PATTERN_BYTES_MAX: usize = 10_000;

/// Most memory of a compiled pattern.
pub(crate) const COMPILED_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Most additional memory of a search, per thread.
const CACHE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Deepest nesting of groups.
const NESTING_MAX: u32 = 100;

/// How to interpret a pattern.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PatternOptions {
    pub(crate) literal: bool,
    pub(crate) case: Case,
    pub(crate) multiline: bool,
}

/// Compiles a pattern; an error is a sentence for the model.
pub(crate) fn compile(pattern: &str, options: PatternOptions) -> Result<RegexMatcher, String> {
    if pattern.is_empty() {
        return Err("it is empty and would match every line: `read` shows a whole file, `glob` \
                    lists files"
            .to_owned());
    }
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!(
            "it is longer than {PATTERN_BYTES_MAX} bytes: search for a part of it"
        ));
    }
    if !options.literal {
        check_syntax(pattern)?;
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_smart(options.case == Case::Smart)
        .case_insensitive(options.case == Case::Insensitive)
        .fixed_strings(options.literal)
        .multi_line(true)
        .crlf(true)
        .ban_byte(Some(0))
        .nest_limit(NESTING_MAX)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(CACHE_BYTES_MAX);
    if options.multiline {
        builder.line_terminator(None);
    }
    builder.build(pattern).map_err(|error| explain(&error))
}

fn check_syntax(pattern: &str) -> Result<(), String> {
    let parser = || ast::parse::ParserBuilder::new().nest_limit(NESTING_MAX).build();
    let Err(error) = parser().parse(pattern) else {
        return Ok(());
    };
    let at = error.span().start;
    let line = if at.line > 1 { format!(" of line {}", at.line) } else { String::new() };
    let place = format!("{} at character {}{line}", error.kind(), at.column);
    let kind = error.kind();
    let advice = if matches!(kind, ast::ErrorKind::UnsupportedLookAround) {
        "this engine has no look-around: match more, and choose among the lines found"
    } else if matches!(kind, ast::ErrorKind::UnsupportedBackreference) {
        "this engine has no backreferences: write out what repeats"
    } else if matches!(kind, ast::ErrorKind::NestLimitExceeded(_)) {
        "nest fewer groups"
    } else {
        "escape it with `\\`, or pass `literal: true` to search for the text as it is"
    };
    Err(format!("{place}; {advice}"))
}

fn explain(error: &grep_regex::Error) -> String {
    let text = error.to_string();
    match error.kind() {
        ErrorKind::NotAllowed(_) => {
            return "it holds an end of line, which no line has: pass `multiline: true`".to_owned();
        }
        ErrorKind::Banned(_) => {
            return "it holds a NUL, which no text has: binary files are not searched".to_owned();
        }
        ErrorKind::Regex(_) | ErrorKind::InvalidLineTerminator(_) | _ => {}
    }
    if text.contains("size limit") {
        let mib = COMPILED_BYTES_MAX / 1024 / 1024;
        return format!("it takes more than {mib} MiB when compiled: repeat less, or fewer things");
    }
    // For example an unknown class. The lines before the last only draw the position.
    let last = text.lines().last().unwrap_or_default();
    let reason = last.strip_prefix("error: ").unwrap_or(last);
    format!("{reason}; or pass `literal: true` to search for the text as it is")
}
