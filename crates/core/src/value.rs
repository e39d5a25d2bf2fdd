//! Small values that are checked when they are made.
//!
//! | file        | subject                            |
//! |-------------|------------------------------------|
//! | `id`        | identifiers                        |
//! | `name`      | names that users choose            |
//! | `model_ref` | names of models, `PROVIDER/MODEL`  |
//! | `raw_json`  | JSON kept as the text that arrived |

pub(crate) mod id;
pub(crate) mod model_ref;
pub(crate) mod name;
pub(crate) mod raw_json;
