//! Text as styled lines: markdown, code with its syntax colored, and lines of a given width.

pub(crate) mod highlight;
pub(crate) mod markdown;
pub(crate) mod markdown_writer;
pub(crate) mod sgr;
pub(crate) mod wrap;
