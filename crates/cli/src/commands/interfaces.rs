//! Interfaces of this project for other programs, and the keys to them.

pub(crate) mod acp;
mod card_key;
pub(crate) mod keys;
pub(crate) mod mcp;
pub(crate) mod serve;
pub(crate) mod token;
