//! What the next tasks may do: their mode, and whether they plan first.

use antiphon_core::TaskAccess;
use antiphon_project::permission_overview::{mode_of, permission_lines, with_mode};
use antiphon_project::task_process::TaskProcess;
use antiphon_view::display::escaped;
use ratatui_core::text::Line;
use uuid::Uuid;

use super::{Program, ProgramOptions};
use crate::wrap::wrap;

impl Program<'_, '_> {
    /// The next task plans first, or does not.
    pub(super) fn toggle_plan(&mut self) {
        self.options.access = match self.options.access {
            TaskAccess::PlanFirst => TaskAccess::Permitted,
            TaskAccess::Permitted | TaskAccess::ReadOnly | TaskAccess::CompactOnly => {
                TaskAccess::PlanFirst
            }
        };
        self.note(match self.options.access {
            TaskAccess::PlanFirst => {
                "The next task plans first: it only reads until you accept its plan"
            }
            TaskAccess::Permitted | TaskAccess::ReadOnly | TaskAccess::CompactOnly => {
                "The next task does not plan first"
            }
        });
    }

    /// Shows the permissions of the next tasks, or sets their mode.
    pub(super) fn permissions(&mut self, mode: &str) {
        let process = self.options.route.process.clone().unwrap_or_default();
        let settings = self.options.models.settings();
        if mode.is_empty() {
            let lines = permission_lines(settings, &self.options.root, &process);
            return match lines {
                Ok(lines) => self.show_permissions(&lines),
                Err(error) => self.error(&error.to_string()),
            };
        }
        match with_mode(settings, &process, mode) {
            Ok(process) => {
                // What earlier tasks got under the id of before stays theirs.
                let process = TaskProcess { id: Some(Uuid::new_v4()), ..process };
                self.attachment.set_process(process.clone());
                self.options.route.process = Some(process);
                self.note(&format!("The next tasks have the mode {}", self.options.mode_name()));
                if self.open_task().is_some() {
                    self.note("The task that is open here keeps the mode it began with");
                }
            }
            Err(error) => self.error(&error.to_string()),
        }
    }

    fn show_permissions(&mut self, lines: &[String]) {
        let width = self.width();
        let mut shown = vec![Line::raw("Permissions of the next tasks")];
        for line in lines {
            shown.extend(wrap(&Line::raw(format!("  {}", escaped(line))), width, 11));
        }
        shown.extend(wrap(
            &Line::raw("  /permissions read-only, workspace or full sets the mode"),
            width,
            2,
        ));
        shown.push(Line::default());
        self.add_lines(shown);
    }
}

impl ProgramOptions {
    /// The mode of the next tasks.
    pub(super) fn mode_name(&self) -> String {
        let process = self.route.process.clone().unwrap_or_default();
        mode_of(self.models.settings(), &process).to_string()
    }
}
