//! Options of a session that the editor may choose: permission mode, agent and model. Modes are offered twice, since
//! some editors know only one of the two forms.

use antiphon_core::ModelRef;
use antiphon_permissions::PermissionMode;
use antiphon_view::display::escaped;
use antiphon_view::text::cut;
use serde_json::json;

use crate::schema::{
    Error, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOption, SessionMode, SessionModeState,
};
use crate::session::Session;

/// The value that means: no own choice.
const DEFAULT: &str = "default";

const MODES: [(PermissionMode, &str, &str); 3] = [
    (PermissionMode::ReadOnly, "Read only", "Read, and change nothing"),
    (
        PermissionMode::Workspace,
        "Workspace",
        "Work in the project, in a sandbox; ask about the rest",
    ),
    (PermissionMode::Full, "Full access", "Everything you may do, without a sandbox"),
];

/// The modes of a session, and the current one.
pub(crate) fn modes(session: &Session) -> SessionModeState {
    let mode = |(mode, name, about): (PermissionMode, &str, &str)| {
        SessionMode::new(mode.to_string(), name).description(about.to_owned())
    };
    SessionModeState::new(current_mode(session).to_string(), MODES.map(mode).to_vec())
}

pub(crate) fn current_mode(session: &Session) -> PermissionMode {
    session.choice().mode.unwrap_or_default()
}

/// The options of a session with their current values.
pub(crate) fn options(session: &Session) -> Vec<SessionConfigOption> {
    let choice = session.choice();
    let select = |value: String, name: String| SessionConfigSelectOption::new(value, name);
    let modes = MODES.map(|(mode, name, about)| {
        select(mode.to_string(), name.to_owned()).description(about.to_owned())
    });
    let current = current_mode(session).to_string();
    let permissions = SessionConfigOption::select("mode", "Permissions", current, modes.to_vec());
    let none = || select(DEFAULT.to_owned(), "Default".to_owned());
    let agents = session
        .agents
        .iter()
        .map(|(name, about)| select(name.clone(), name.clone()).description(cut(&escaped(about))));
    let agents = std::iter::once(none()).chain(agents).collect::<Vec<_>>();
    let agent = choice.agent.unwrap_or_else(|| DEFAULT.to_owned());
    let listed = session.models.iter().map(|model| select(model.to_string(), model.to_string()));
    let listed = std::iter::once(none()).chain(listed).collect::<Vec<_>>();
    let chosen = choice.model.map_or_else(|| DEFAULT.to_owned(), |model| model.to_string());
    vec![
        permissions.category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::select("model", "Model", chosen, listed)
            .category(SessionConfigOptionCategory::Model),
        SessionConfigOption::select("agent", "Agent", agent, agents)
            .description("Who works on the next prompts".to_owned()),
    ]
}

/// Changes one option.
pub(crate) fn set(
    session: &Session,
    name: &str,
    value: &SessionConfigOptionValue,
) -> Result<(), Error> {
    let value = value.as_value_id().ok_or_else(|| unknown("value", "(not a text)"))?;
    let value = &*value.0;
    match name {
        "mode" => set_mode(session, value),
        "model" => {
            let model = match value {
                DEFAULT => None,
                // Models that the settings do not list can be named, too.
                _ => Some(ModelRef::parse(value).map_err(|_| unknown("model", value))?),
            };
            session.choose(|choice| choice.model = model);
            Ok(())
        }
        "agent" => {
            let is_known = session.agents.iter().any(|(agent, _)| agent == value);
            if value != DEFAULT && !is_known {
                return Err(unknown("agent", value));
            }
            let agent = (value != DEFAULT).then(|| value.to_owned());
            session.choose(|choice| choice.agent = agent);
            Ok(())
        }
        _ => Err(unknown("option", name)),
    }
}

/// Changes the permission mode of the next tasks.
pub(crate) fn set_mode(session: &Session, value: &str) -> Result<(), Error> {
    let mode = MODES.iter().find(|(mode, ..)| mode.to_string() == value);
    let (mode, ..) = mode.ok_or_else(|| unknown("mode", value))?;
    session.choose(|choice| choice.mode = Some(*mode));
    Ok(())
}

fn unknown(what: &str, value: &str) -> Error {
    let reason = format!("there is no {what} `{}` here", escaped(value));
    Error::invalid_params().data(json!({ "details": reason }))
}
