//! Patterns of file names.
//!
//! A pattern without `/` is matched against names, in every folder; one with `/` against the path
//! from where the search begins. `*` and `?` stay within a name, `**` goes through folders.
//! `!pattern` excludes. A pattern with `..`, or with a syntax error, is rejected with the position.

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use super::path::{as_path, is_within};

/// Most patterns in one call.
pub(crate) const GLOBS_MAX: usize = 32;

/// Longest pattern.
pub(crate) const GLOB_BYTES_MAX: usize = 1000;

/// Patterns of which one has to match, and patterns of which none may.
#[derive(Debug)]
pub(crate) struct Globs {
    include: Option<GlobSet>,
    exclude: GlobSet,
    /// The folder that contains every possible match.
    within: Vec<u8>,
}

impl Globs {
    /// Reads patterns. An error says what is wrong, where, and what to do.
    pub(crate) fn parse(patterns: &[String]) -> Result<Self, String> {
        if patterns.len() > GLOBS_MAX {
            return Err(format!("{} patterns are more than {GLOBS_MAX}", patterns.len()));
        }
        let (mut include, mut exclude) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let mut included = Vec::new();
        for pattern in patterns {
            match pattern.strip_prefix('!') {
                Some(left_out) => {
                    exclude.add(glob(left_out.strip_suffix('/').unwrap_or(left_out), pattern)?);
                }
                None => {
                    let everything_in = if pattern.ends_with('/') { "**" } else { "" };
                    let whole = format!("{pattern}{everything_in}");
                    include.add(glob(&whole, pattern)?);
                    included.push(whole);
                }
            }
        }
        let build = |set: GlobSetBuilder| {
            set.build()
                .map_err(|_| "the pattern is too deep or too large: write it simpler".to_owned())
        };
        let within = match &*included {
            [pattern] => fixed_folder(pattern),
            _ => Vec::new(),
        };
        let include = (!included.is_empty()).then(|| build(include)).transpose()?;
        Ok(Self { include, exclude: build(exclude)?, within })
    }

    /// Whether the file at `path` matches.
    pub(crate) fn keep(&self, path: &[u8]) -> bool {
        if self.include.is_none() && self.exclude.is_empty() {
            return true;
        }
        let candidate = Candidate::new(as_path(path));
        self.include.as_ref().is_none_or(|include| include.is_match_candidate(&candidate))
            && !self.exclude.is_match_candidate(&candidate)
    }

    /// Whether a file in `folder` may match.
    pub(crate) fn enter(&self, folder: &[u8]) -> bool {
        (is_within(folder, &self.within) || is_within(&self.within, folder))
            && (folder.is_empty() || !self.exclude.is_match(as_path(folder)))
    }
}

/// `text` is the pattern, `written` its original form for errors.
fn glob(text: &str, written: &str) -> Result<globset::Glob, String> {
    let refuse = |reason: &str| Err(format!("the pattern `{}` {reason}", written.escape_debug()));
    if text.is_empty() {
        return refuse("is empty: `**` means every file");
    }
    if written.len() > GLOB_BYTES_MAX {
        return Err(format!("a pattern is longer than {GLOB_BYTES_MAX} bytes"));
    }
    if let Some(place) = written.chars().position(|character| character == '\0') {
        return refuse(&format!("has a NUL at character {}", place + 1));
    }
    if text.starts_with('/') {
        return refuse(
            "begins with `/`: patterns are relative, begin with the first folder's name, or with \
             `**/`, and give the folder to search as `path`",
        );
    }
    if text.split(['/', '{', ',', '}']).any(|part| part == "..") {
        return refuse("climbs with `..`: give the folder to search as `path` instead");
    }
    let text = text.strip_prefix("./").unwrap_or(text);
    let anywhere = if text.contains('/') { text.to_owned() } else { format!("**/{text}") };
    GlobBuilder::new(&anywhere).literal_separator(true).backslash_escape(true).build().or_else(
        |error| match syntax_error(written) {
            Some((place, what)) => refuse(&format!("is broken at character {}: {what}", place + 1)),
            None => refuse(&format!("is broken: {}", error.kind())),
        },
    )
}

/// What is wrong with a pattern, and at which character. The matcher's own errors do not say
/// where.
fn syntax_error(pattern: &str) -> Option<(usize, &'static str)> {
    let characters: Vec<char> = pattern.chars().collect();
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(character) = characters.get(at) {
        match character {
            '\\' if at + 1 == characters.len() => return Some((at, "`\\` escapes nothing")),
            '\\' => at += 1,
            '[' => match class(&characters, at) {
                Ok(end) => at = end,
                Err(syntax_error) => return Some(syntax_error),
            },
            '{' => open.push(at),
            '}' if open.pop().is_none() => {
                return Some((at, "`}` closes nothing; write `\\}` for the character"));
            }
            _ => {}
        }
        at += 1;
    }
    open.first().map(|at| (*at, "`{` is not closed; write `\\{` for the character"))
}

/// Where the class that begins at `start` ends.
fn class(characters: &[char], start: usize) -> Result<usize, (usize, &'static str)> {
    let mut at = start + 1;
    if matches!(characters.get(at), Some('!' | '^')) {
        at += 1;
    }
    let first = at;
    while let Some(character) = characters.get(at) {
        match character {
            ']' if at > first => return Ok(at),
            '-' if at > first
                && characters
                    .get(at + 1)
                    .is_some_and(|to| *to != ']' && *to < characters[at - 1]) =>
            {
                return Err((at - 1, "this range is upside down"));
            }
            _ => at += 1,
        }
    }
    Err((start, "`[` is not closed; write `\\[` for the character"))
}

/// The folder that a pattern names before anything variable in it.
fn fixed_folder(pattern: &str) -> Vec<u8> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let variable = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    match pattern[..variable].rfind('/') {
        Some(end) => pattern.as_bytes()[..end].to_vec(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globs(patterns: &[&str]) -> Result<Globs, String> {
        Globs::parse(&patterns.iter().map(|&pattern| pattern.to_owned()).collect::<Vec<_>>())
    }

    fn keeps(patterns: &[&str], path: &str) -> bool {
        globs(patterns).unwrap().keep(path.as_bytes())
    }

    #[test]
    fn a_pattern_without_a_folder_is_matched_in_every_folder() {
        assert!(keeps(&["*.rs"], "lib.rs"));
        assert!(keeps(&["*.rs"], "src/deep/lib.rs"));
        assert!(!keeps(&["*.rs"], "lib.rs/notes.md"));
        assert!(keeps(&["src/*.rs"], "src/lib.rs"));
        assert!(!keeps(&["src/*.rs"], "src/deep/lib.rs"));
        assert!(!keeps(&["src/*.rs"], "other/src/lib.rs"));
        assert!(keeps(&["src/**/*.{rs,toml}"], "src/a/b/Cargo.toml"));
        assert!(keeps(&["src/"], "src/a/b"));
        assert!(keeps(&["./src/*"], "src/a"));
        assert!(keeps(&["**"], "a"));
        assert!(keeps(&["**"], "a/b"));
        assert!(keeps(&["{src/*.rs,*.toml}"], "src/lib.rs"));
        assert!(keeps(&["[ab]?.c", "*.h"], "x/y.h"));
    }

    #[test]
    fn what_is_left_out_wins() {
        assert!(keeps(&["!*.md"], "a.rs"));
        assert!(!keeps(&["!*.md"], "a.md"));
        assert!(!keeps(&["*.md", "!b*"], "x/b.md"));
        assert!(!globs(&["!target/"]).unwrap().enter(b"x/target"));
        assert!(!globs(&["!a/target"]).unwrap().enter(b"a/target"));
        assert!(globs(&["!a/target"]).unwrap().enter(b"target"));
    }

    #[test]
    fn only_folders_that_can_hold_a_match_are_entered() {
        let globs = globs(&["src/a/*.rs"]).unwrap();
        let entered = ["", "src", "src/a", "src/a/b", "src/ab", "srca", "lib"]
            .map(|folder| globs.enter(folder.as_bytes()));
        assert_eq!(entered, [true, true, true, true, false, false, false]);
    }

    #[test]
    fn a_broken_pattern_is_refused_with_the_place() {
        for (pattern, place) in [
            ("src/{a,b", "at character 5: `{` is not closed"),
            ("a}b", "at character 2: `}` closes nothing"),
            ("a[bc", "at character 2: `[` is not closed"),
            ("[z-a]", "at character 2: this range is upside down"),
            ("[]-a", "at character 1: `[` is not closed"),
            ("a\\", "at character 2: `\\` escapes nothing"),
            ("!{a", "at character 2: `{` is not closed"),
            ("{{a}", "at character 1: `{` is not closed"),
        ] {
            let error = globs(&[pattern]).unwrap_err();
            assert!(error.contains(place), "{pattern}: {error}");
        }
    }

    #[test]
    fn a_pattern_that_climbs_or_is_absolute_says_what_to_do() {
        for pattern in ["../*.rs", "a/../b", "{..,a}/b", "!../x", "/etc/*", "!/etc", "", "!"] {
            let error = globs(&[pattern]).unwrap_err();
            assert!(error.contains("`path`") || error.contains("`**`"), "{pattern}: {error}");
        }
        assert!(globs(&["a..b", "..."]).is_ok());
        assert!(globs(&[&"{".repeat(GLOB_BYTES_MAX + 1)]).is_err());
        let nested = format!("{}a{}", "{".repeat(499), "}".repeat(499));
        let _ = globs(&[&nested]);
    }
}
