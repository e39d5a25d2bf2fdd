//! HTML to markdown, for a model to read: headings, paragraphs, lists, links, code and tables.
//!
//! The tags are read in order and no tree is built: however tags are nested, time and memory are linear, and
//! nothing recurses. What has no text (scripts, styles, drawings) is left out.

use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};
use url::Url;

/// Deepest list that is indented.
const LIST_DEPTH_MAX: usize = 8;

/// Longest target of a link, in bytes; longer ones are left out.
const TARGET_BYTES_MAX: usize = 500;

/// Elements whose content is no text of the page.
const SKIPPED: [&str; 8] =
    ["script", "style", "noscript", "template", "svg", "iframe", "object", "head"];

/// Elements that begin on a new paragraph.
const BLOCKS: [&str; 22] = [
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "footer",
    "nav",
    "aside",
    "table",
    "ul",
    "ol",
    "dl",
    "form",
    "fieldset",
    "figure",
    "figcaption",
    "address",
    "details",
    "summary",
    "blockquote",
    "body",
];

/// The text of an HTML page as markdown. Relative links are resolved from `base`.
pub(crate) fn markdown(html: &str, base: &Url) -> String {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut writer = Writer::new(base);
    for token in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Ok(Token::StartTag(tag)) => writer.start(&tag),
            Ok(Token::EndTag(tag)) => writer.end(&text_of(&tag.name)),
            Ok(Token::String(text)) => writer.text(&text_of(&text.value)),
            Ok(Token::Comment(_) | Token::Doctype(_) | Token::Error(_)) => {}
            Err(never) => match never {},
        }
    }
    writer.finish()
}

fn text_of(bytes: &HtmlString) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Writer<'a> {
    base: &'a Url,
    out: String,
    /// Line breaks that are due before the next text.
    breaks: usize,
    /// A space is due before the next text.
    space: bool,
    /// The element whose content is left out, and how many of its name are open.
    skipping: Option<(String, usize)>,
    in_title: bool,
    title: String,
    /// Open `pre` elements.
    pre: usize,
    /// Numbers of the open lists; absent for one with bullets.
    lists: Vec<Option<u32>>,
    /// Target of the open link, and where its text begins.
    link: Option<(String, usize)>,
}

impl<'a> Writer<'a> {
    fn new(base: &'a Url) -> Self {
        Self {
            base,
            out: String::new(),
            breaks: 0,
            space: false,
            skipping: None,
            in_title: false,
            title: String::new(),
            pre: 0,
            lists: Vec::new(),
            link: None,
        }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = text_of(&tag.name);
        if name == "title" {
            self.in_title = self.title.is_empty();
            return;
        }
        // Pages leave the end of `head` out.
        if name == "body" {
            self.skipping = None;
        }
        if let Some((skipped, depth)) = &mut self.skipping {
            *depth += usize::from(*skipped == name && !tag.self_closing);
            return;
        }
        if SKIPPED.contains(&name.as_str()) {
            if !tag.self_closing {
                self.skipping = Some((name, 1));
            }
            return;
        }
        match name.as_str() {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.mark(&format!("{} ", "#".repeat(level)));
            }
            "hr" => {
                self.block(2);
                self.mark("---");
                self.block(2);
            }
            "ul" => self.list(None),
            "ol" => self.list(Some(0)),
            "li" => self.item(),
            "pre" => {
                self.block(2);
                self.mark("```\n");
                self.pre += 1;
            }
            "code" if self.pre == 0 => self.mark("`"),
            "strong" | "b" => self.mark("**"),
            "br" | "tr" | "dt" | "dd" | "option" => self.block(1),
            "td" | "th" => self.mark("| "),
            "a" => self.open_link(tag),
            "img" => self.image(tag),
            block if BLOCKS.contains(&block) => self.block(2),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if name == "title" {
            self.in_title = false;
            return;
        }
        if let Some((skipped, depth)) = &mut self.skipping {
            if skipped.as_str() == name {
                *depth -= 1;
            }
            if *depth == 0 {
                self.skipping = None;
            }
            return;
        }
        match name {
            "ul" | "ol" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            "pre" if self.pre > 0 => {
                self.pre -= 1;
                if self.pre == 0 {
                    if !self.out.ends_with('\n') {
                        self.out.push('\n');
                    }
                    self.out.push_str("```");
                }
                self.block(2);
            }
            "code" if self.pre == 0 => self.out.push('`'),
            "strong" | "b" => self.out.push_str("**"),
            "td" | "th" => self.space = true,
            "a" => self.close_link(),
            "li" | "tr" | "dt" | "dd" => self.block(1),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.block(2),
            block if BLOCKS.contains(&block) => self.block(2),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.push_str(text);
            return;
        }
        if self.skipping.is_some() {
            return;
        }
        if self.pre > 0 {
            self.flush();
            self.out.push_str(text);
            return;
        }
        let mut words = text.split_ascii_whitespace().peekable();
        self.space |= text.starts_with(|c: char| c.is_ascii_whitespace());
        let has_words = words.peek().is_some();
        for (index, word) in words.enumerate() {
            self.space |= index > 0;
            self.flush();
            self.out.push_str(word);
        }
        self.space |= has_words && text.ends_with(|c: char| c.is_ascii_whitespace());
    }

    /// At least so many line breaks before what follows.
    fn block(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
        self.space = false;
    }

    /// Writes a sign of markdown, behind the breaks that are due.
    fn mark(&mut self, sign: &str) {
        self.flush();
        self.out.push_str(sign);
        self.space = false;
    }

    fn flush(&mut self) {
        if self.out.is_empty() || self.breaks > 0 {
            if !self.out.is_empty() {
                let there = self.out.bytes().rev().take_while(|byte| *byte == b'\n').count();
                self.out.extend(std::iter::repeat_n('\n', self.breaks.saturating_sub(there)));
            }
        } else if self.space && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        self.breaks = 0;
        self.space = false;
    }

    fn list(&mut self, numbered: Option<u32>) {
        self.block(if self.lists.is_empty() { 2 } else { 1 });
        self.lists.push(numbered);
    }

    fn item(&mut self) {
        self.block(1);
        let depth = self.lists.len().saturating_sub(1).min(LIST_DEPTH_MAX);
        let sign = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}. ", *number)
            }
            Some(None) | None => "- ".to_owned(),
        };
        self.mark(&format!("{}{sign}", "  ".repeat(depth)));
    }

    fn open_link(&mut self, tag: &StartTag<()>) {
        self.close_link();
        let Some(target) = tag.attributes.get(b"href".as_slice()) else { return };
        let Ok(target) = self.base.join(&text_of(&target.value)) else { return };
        let is_page = matches!(target.scheme(), "http" | "https");
        if !is_page || target.as_str().len() > TARGET_BYTES_MAX {
            return;
        }
        self.flush();
        self.link = Some((target.into(), self.out.len()));
        self.out.push('[');
    }

    fn close_link(&mut self) {
        let Some((target, from)) = self.link.take() else { return };
        if self.out[from..].trim() == "[" {
            self.out.truncate(from);
            return;
        }
        self.out.extend(["](", &target, ")"]);
    }

    /// The text that stands for an image.
    fn image(&mut self, tag: &StartTag<()>) {
        if let Some(text) = tag.attributes.get(b"alt".as_slice()) {
            let text = text_of(&text.value);
            self.text(text.trim());
        }
    }

    fn finish(mut self) -> String {
        self.close_link();
        if self.pre > 0 {
            self.out.push_str("\n```");
        }
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = self.out.trim();
        if title.is_empty() { text.to_owned() } else { format!("Title: {title}\n\n{text}") }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn of(html: &str) -> String {
        markdown(html, &Url::parse("https://example.com/docs/page").unwrap())
    }

    #[test]
    fn a_page_becomes_markdown() {
        let html = "<!doctype html><html><head><title>A  page</title><style>p{}</style></head><body>\
            <script>alert('<p>no</p>')</script><h1>Head</h1><p>Some <b>bold</b> text\n with <a href='../x?a=1&amp;b'>a link</a>.\
            <ul><li>one<li>two<ol><li>inner</ol></ul><pre><code>let x = 1;\n  y</code></pre>\
            <table><tr><td>a</td><td>b</td></tr></table><img src=x alt='A cat'>";
        assert_eq!(
            of(html),
            "Title: A page\n\n# Head\n\nSome **bold** text with [a link](https://example.com/x?a=1&b).\n\n- one\n- two\n  1. inner\n\n\
             ```\nlet x = 1;\n  y\n```\n\n| a | b\n\nA cat"
        );
    }

    #[test]
    fn hostile_nesting_takes_linear_time() {
        let deep = "<div><ul><b>".repeat(200_000) + "end";
        let formatting: Vec<String> = (0..100_000).map(|n| format!("<b a={n}><p>")).collect();
        let formatting = formatting.concat();
        let links = "<a href=x>".repeat(200_000);
        let begun = Instant::now();
        for html in [&deep, &formatting, &links] {
            of(html);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    }

    #[test]
    fn broken_html_still_has_its_text() {
        for (html, text) in [
            ("plain", "plain"),
            ("</p></ul></pre>a<br>b", "a\nb"),
            ("<p>a<script>x", "a"),
            ("<a href='javascript:x()'>click</a>", "click"),
            ("<pre>a", "```\na\n```"),
        ] {
            assert_eq!(of(html), text, "{html}");
        }
    }
}
