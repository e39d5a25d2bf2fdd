//! The session file that a conversation is saved to, when somebody asked for one. Only a session file
//! is ever replaced by one.

use std::path::Path;

use antiphon_core::Session;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_runtime::TaskState;

use crate::failure::Failure;
use crate::route::Route;

/// The conversation as a session file, also when it broke off.
pub(crate) fn save(state: &TaskState) -> Result<(), Failure> {
    let route = Route::of(state.created.route.as_ref()).map_err(Failure::failed)?;
    let Some(path) = route.save else { return Ok(()) };
    // What the journal names is not believed: only a session file is replaced by one.
    check(&path)?;
    let now = SystemClock.now();
    let session = Session {
        id: state.created.session_id.clone(),
        system_prompt: state.created.system_prompt.clone(),
        created_at: state.messages().first().map_or(now, |first| first.timestamp()),
        updated_at: now,
        messages: state.messages().to_vec(),
    };
    antiphon_session_file::save(&path, &session).map_err(|e| Failure::failed(e.to_string()))
}

/// Only a session file is replaced by one; anything else there is somebody's own.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(about) if about.is_file() && antiphon_session_file::load(path).is_ok() => Ok(()),
        Ok(_) => Err(Failure::usage(format!(
            "{} is there and is no session file: name another file to save to",
            path.display()
        ))),
        Err(error) => Err(Failure::usage(format!("cannot use {}: {error}", path.display()))),
    }
}
