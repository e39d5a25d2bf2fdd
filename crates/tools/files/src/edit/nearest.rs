//! Finds the text most similar to one that does not occur.

use std::fmt::Write;

use memchr::memmem;

use super::Edit;
use super::matching::line_of;

/// Bytes of a file that are searched.
const LOOKED_THROUGH_MAX: usize = 4 * 1024 * 1024;

/// Lines shown of the similar text.
const SHOWN_LINES_MAX: usize = 12;

/// Longest line that is shown whole, in characters.
const SHOWN_CHARS_MAX: usize = 300;

/// Advice for the model that shows the most similar text in `body`.
pub(super) fn nearest(body: &[u8], edit: &Edit) -> String {
    let new = edit.new.trim();
    if !new.is_empty()
        && let Some(at) = memmem::find(body, new.as_bytes())
    {
        let line = line_of(body, at);
        return format!(
            " But `new` is, at line {line}: the edit may have been made already. Read the file."
        );
    }
    let body = String::from_utf8_lossy(&body[..body.len().min(LOOKED_THROUGH_MAX)]);
    // The longest line is the most specific.
    let longest = edit.old.lines().enumerate().max_by_key(|(_, line)| line.trim().len());
    let Some((offset, wanted)) = longest else {
        return String::new();
    };
    let lines: Vec<&str> = body.lines().collect();
    let pairs = Pairs::of(wanted.trim());
    let best = lines.iter().enumerate().map(|(i, line)| (pairs.shared_with(line.trim()), i));
    let Some((_, at)) = best.filter(|(shared, _)| *shared >= 500).max_by_key(|(s, i)| (*s, !*i))
    else {
        return " Nothing in it is similar. Read the file, and give the text as it is there."
            .to_owned();
    };
    let first = at.saturating_sub(offset);
    let count = edit.old.lines().count().clamp(1, SHOWN_LINES_MAX);
    let mut text = " Most similar is this. Give the text as it is, without the numbers:".to_owned();
    for (i, line) in lines.iter().enumerate().skip(first).take(count) {
        let line: String = line.chars().take(SHOWN_CHARS_MAX).collect();
        // Writing to a string does not fail.
        let _ = write!(text, "\n{:>6}\t{line}", i + 1);
    }
    text
}

/// The pairs of neighboring bytes in a line.
struct Pairs {
    has: Vec<bool>,
    count: usize,
}

impl Pairs {
    fn of(line: &str) -> Self {
        let mut has = vec![false; 1 << 16];
        for pair in pairs(line) {
            has[pair] = true;
        }
        Self { has, count: pairs(line).count() }
    }

    /// How much of both lines is the same, in thousandths.
    fn shared_with(&self, line: &str) -> usize {
        let count = pairs(line).count();
        // Much longer or shorter lines cannot share half of what they have.
        if count == 0 || count > self.count * 3 || count * 3 < self.count {
            return 0;
        }
        let shared = pairs(line).filter(|pair| self.has[*pair]).count();
        1_000 * 2 * shared.min(self.count) / (count + self.count)
    }
}

fn pairs(line: &str) -> impl Iterator<Item = usize> + '_ {
    line.as_bytes().windows(2).map(|pair| usize::from(pair[0]) << 8 | usize::from(pair[1]))
}
