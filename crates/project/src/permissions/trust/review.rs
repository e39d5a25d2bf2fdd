//! Asks the user about what a project brings, once; without a user to ask, says what has no effect.

use antiphon_agent_files::version_of;
use antiphon_core::escaped;

use super::{ProjectTrust, TrustItem, TrustRecord, TrustStatus};
use crate::environment::{Environment, TrustPolicy};
use crate::error::{ProjectError, unusable};

impl ProjectTrust {
    /// Asks the user about everything in the project that is not trusted, unless the user declined exactly
    /// that before. Commands that run tasks call it first.
    pub fn review(&self, environment: &Environment) -> Result<(), ProjectError> {
        let mut items = self.items()?;
        items.retain(|item| item.status != TrustStatus::Trusted);
        if items.is_empty() {
            return Ok(());
        }
        if environment.trust_policy == TrustPolicy::TrustAll {
            return self.trust(&items);
        }
        if self.is_declined(&items)? {
            environment.warnings.report(&format!(
                "{} not trusted and without effect (`antiphon trust` shows what)",
                counted(items.len())
            ));
            return Ok(());
        }
        environment.warnings.report(&format!(
            "this project brings files that have no effect until you trust them:\n{}",
            listed(&items)
        ));
        match environment.questions.ask("Trust them as they are now?") {
            Some(true) => self.trust(&items),
            Some(false) => self.decline(&items),
            None => {
                environment.warnings.report(
                    "read them, then trust them with `antiphon trust` or, in scripts, with `--trust`",
                );
                Ok(())
            }
        }
    }

    /// Records that the user was asked about this and declined.
    pub fn decline(&self, items: &[TrustItem]) -> Result<(), ProjectError> {
        let declined = digest(items);
        self.update(|record| record.declined = Some(declined))
    }

    fn is_declined(&self, items: &[TrustItem]) -> Result<bool, ProjectError> {
        let record =
            TrustRecord::read(&self.state).map_err(|error| unusable(&self.state, &error))?;
        Ok(record.declined == Some(digest(items)))
    }
}

/// The files and folders, each with what it would do.
pub fn listed(items: &[TrustItem]) -> String {
    let lines = |item: &TrustItem| {
        let about = format!("{} ({}): {}", item.path, item.kind.as_str(), item.status.as_str());
        let mut lines = vec![format!("  {}", one_line(&about))];
        // All of them: what is not shown would be trusted unseen.
        lines.extend(item.effects.iter().map(|effect| format!("      {}", one_line(effect))));
        lines.join("\n")
    };
    items.iter().map(lines).collect::<Vec<_>>().join("\n")
}

/// On one line, with everything that is in it: what could hide a part of it is an escape.
fn one_line(text: &str) -> String {
    escaped(text).into_owned()
}

/// Names a set of files and folders in their present state.
fn digest(items: &[TrustItem]) -> String {
    let pins: Vec<_> = items.iter().map(|item| (&item.path, &item.pin)).collect();
    version_of(serde_json::to_string(&pins).unwrap_or_default().as_bytes())
}

fn counted(count: usize) -> String {
    if count == 1 {
        "1 file of this project is".to_owned()
    } else {
        format!("{count} files of this project are")
    }
}
