//! The text of a page: decoded, and markdown if it is HTML.

use antiphon_core::escaped;
use encoding_rs::{Encoding, UTF_8};

use crate::download::Download;
use crate::markdown::markdown;

/// How far into a page its own statement of its encoding is looked for, in bytes.
const META_BYTES_MAX: usize = 1024;

/// How far into a page a NUL byte is looked for, which text does not have.
const BINARY_BYTES_MAX: usize = 8192;

/// Types that are text though they do not begin with `text/`: these are parts of them.
const TEXT_TYPES: [&str; 8] =
    ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-sh", "x-www-form-urlencoded"];

/// The text of a page, or why it has none.
pub(crate) fn page_text(page: &Download) -> Result<String, String> {
    let kind = page.content_type.split(';').next().unwrap_or_default().trim();
    let begins = &page.body[..page.body.len().min(BINARY_BYTES_MAX)];
    let encoding = encoding(page);
    // In UTF-16 every other byte of a text can be a NUL.
    let has_nul = encoding.is_ascii_compatible() && begins.contains(&0);
    let is_text = kind.is_empty()
        || kind.starts_with("text/")
        || TEXT_TYPES.iter().any(|part| kind.contains(part));
    if !is_text || has_nul {
        let kind = if kind.is_empty() { "of an unknown type" } else { kind };
        return Err(format!(
            "the page is not text but {}, {} bytes: it is not shown",
            escaped(kind),
            page.body.len()
        ));
    }
    let (text, used, has_errors) = encoding.decode(&page.body);
    let is_html = kind.contains("html") || (kind.is_empty() && looks_like_html(&text));
    let mut shown = if is_html { markdown(&text, &page.url) } else { text.into_owned() };
    if has_errors {
        shown.extend(["\n\n[Some characters are not valid in ", used.name(), ".]"]);
    }
    Ok(shown)
}

/// The encoding that a page names in its header, or in its beginning; else UTF-8.
fn encoding(page: &Download) -> &'static Encoding {
    let begins = &page.body[..page.body.len().min(META_BYTES_MAX)];
    if let Some((encoding, _)) = Encoding::for_bom(begins) {
        return encoding;
    }
    let named = charset(&page.content_type)
        .or_else(|| charset(&String::from_utf8_lossy(begins).to_ascii_lowercase()));
    named.unwrap_or(UTF_8)
}

/// The encoding behind `charset=` in a text.
fn charset(text: &str) -> Option<&'static Encoding> {
    let (_, behind) = text.split_once("charset=")?;
    let label = behind.trim_start_matches(['"', '\'']);
    let end = label.find(['"', '\'', ';', ' ', '>', '/']).unwrap_or(label.len());
    Encoding::for_label(&label.as_bytes()[..end])
}

fn looks_like_html(text: &str) -> bool {
    let begin: String = text.trim_start().chars().take(15).collect::<String>().to_ascii_lowercase();
    begin.starts_with("<!doctype html") || begin.starts_with("<html")
}
