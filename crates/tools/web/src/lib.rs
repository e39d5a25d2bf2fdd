//! The tool `web_fetch`: the text of one page.
//!
//! | case                                                | outcome                                            |
//! |-----------------------------------------------------|----------------------------------------------------|
//! | a host that no rule and no approval allows          | refused, and no packet is sent                     |
//! | a name that resolves to an address that is not allowed | refused, and no packet is sent                  |
//! | a redirect                                          | followed by hand, at most [`REDIRECTS_MAX`], each checked as the first |
//! | more than [`PAGE_BYTES_MAX`] bytes                  | the beginning, and a note                          |
//! | slower than [`TIME_MAX`]                            | an error                                           |
//! | a compressed or binary body                         | an error that names it                             |
//! | HTML                                                | markdown; its tags are read once, in order, so that time and memory are linear |
//!
//! What a page says is data: the result begins with a line that says so, and the toolbox escapes characters that hide
//! text and stores what is too long.

mod download;
mod fetch;
mod markdown;
mod page_text;

pub use download::{PAGE_BYTES_MAX, REDIRECTS_MAX, TIME_MAX};
pub use fetch::WebFetchTool;
