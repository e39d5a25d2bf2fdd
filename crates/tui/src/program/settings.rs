//! What the user sees and presses: the theme, the keys, vi, and the MCP servers that are configured.

use antiphon_project::checks::{McpServerTools, mcp_server_tools};
use antiphon_project::settings::Theme;
use antiphon_view::display::escaped;
use antiphon_view::text::{count, one_line};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::Program;
use super::lookups::Found;
use crate::composer::Vi;
use crate::inline_screen::Styles;
use crate::wrap::wrap;

/// Columns of the keys in their list.
const KEYS_COLUMNS: usize = 30;

impl Program<'_, '_> {
    /// Draws everything from now on in another theme.
    pub(super) fn choose_theme(&mut self, name: &str) {
        let found = Theme::ALL.into_iter().find(|(_, known)| *known == name);
        let Some((theme, name)) = found else {
            let names = Theme::ALL.map(|(_, name)| name).join(", ");
            return self.note(&format!("Choose a theme: /theme with one of {names}"));
        };
        if !self.options.colors {
            return self.note("Colors are off here: see NO_COLOR and TERM");
        }
        self.screen.set_styles(Styles::In(theme));
        let path = antiphon_view::display::escaped_path(&self.options.models.settings().path);
        self.note(&format!(
            "The theme is {name} from now on. To keep it: [tui] theme = \"{name}\" in {path}"
        ));
    }

    /// Turns the keys of vi on or off.
    pub(super) fn toggle_vi(&mut self) {
        self.vi = match self.vi.take() {
            Some(_) => None,
            None => Some(Vi::default()),
        };
        let path = antiphon_view::display::escaped_path(&self.options.models.settings().path);
        let text = match &self.vi {
            Some(_) => {
                format!("The prompt has the keys of vi. To keep it so: [tui] vi = true in {path}")
            }
            None => "The prompt has its usual keys".to_owned(),
        };
        self.note(&text);
    }

    /// Lists the keys that can be changed.
    pub(super) fn list_keys(&mut self) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut lines = Vec::new();
        for (keys, name, help) in self.options.keymap.rows() {
            let keys = format!("  {keys:<KEYS_COLUMNS$} ");
            let row = vec![Span::styled(keys, bold), Span::raw(format!("{name}: {help}"))];
            lines.extend(wrap(&Line::from(row), self.width(), 4));
        }
        let path = antiphon_view::display::escaped_path(&self.options.models.settings().path);
        let text = format!("  Others: [tui.keys] in {path}, as in transcript = \"f5\"");
        lines.extend(wrap(&Line::raw(text), self.width(), 4));
        lines.push(Line::default());
        self.add_lines(lines);
    }

    /// Lists the MCP servers, with their tools and errors.
    pub(super) fn list_mcp(&mut self) {
        if self.options.models.settings().mcp.0.is_empty() {
            return self.note("no MCP server is configured: see docs/mcp.md");
        }
        self.note("Starting the MCP servers for their tools …");
        let (models, project) =
            (std::sync::Arc::clone(&self.options.models), self.options.project.clone());
        let width = self.width();
        self.look_up(async move {
            let servers = mcp_server_tools(&project, models.settings()).await;
            Found::Lines(servers.iter().flat_map(|server| server_lines(server, width)).collect())
        });
    }
}

fn server_lines(server: &McpServerTools, width: usize) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = vec![
        Span::styled(format!("  {}", escaped(&server.name)), bold),
        Span::raw(format!(" · {}", count(server.tools.len() as u64, "tool"))),
    ];
    let mut lines = wrap(&Line::from(title), width, 4);
    if let Some(error) = &server.error {
        let error = Line::styled(format!("    ✗ {}", one_line(error)), Style::new().fg(Color::Red));
        lines.extend(wrap(&error, width, 6));
    }
    if !server.tools.is_empty() {
        let names = escaped(&server.tools.join(" ")).into_owned();
        lines.extend(wrap(&Line::raw(format!("    {names}")), width, 4));
    }
    lines
}
