//! How bytes become messages, and messages bytes.
//!
//! | file     | subject                                       |
//! |----------|-----------------------------------------------|
//! | `stdio`  | a child process: one message per line         |
//! | `http`   | an HTTP server                                |
//! | `sse`    | server-sent events of an HTTP server          |
//! | `lines`  | lines up to a maximum length                  |
//! | `wire`   | encodes and decodes messages                  |
//! | `repair` | repairs messages that do not fit the protocol |

pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod repair;
pub(crate) mod sse;
pub(crate) mod stdio;
pub(crate) mod wire;
