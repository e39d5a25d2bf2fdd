//! `antiphon trust`: what this project brings, and whether it may take effect.

use antiphon_project::environment::{Environment, TrustPolicy};
use antiphon_project::project::Project;
use antiphon_project::trust::{ProjectTrust, TrustItem, TrustStatus, listed};
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Show what this project brings, and let it take effect (see docs/trust.md).
#[derive(Debug, Args)]
#[command(after_help = "\
A project's settings (.antiphon/antiphon.toml), its agents whose tools go beyond reading, and its request
folders have no effect until you trust them: they may have come with a clone. Files are trusted by their
content; changed content is asked about again. What you make with `antiphon` is trusted as made.

Examples:
  antiphon trust                 show everything, and ask
  antiphon trust --list          only show it
  antiphon trust --yes           trust everything as it is now
  antiphon trust --revoke        trust nothing in this project any more
  antiphon run --trust \"…\"       the same as --yes, for scripts and CI")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct Trust {
    /// Only show what the project brings.
    #[arg(long, conflicts_with_all = ["yes", "revoke"])]
    list: bool,

    /// Trust everything as it is now, without a question.
    #[arg(long, conflicts_with = "revoke")]
    yes: bool,

    /// Trust nothing in this project any more.
    #[arg(long)]
    revoke: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Trust {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let trust = Project::find(environment)?.trust();
        if self.revoke {
            trust.revoke()?;
            if !self.json {
                terminal::print("nothing in this project is trusted any more\n");
                return Ok(());
            }
        } else if self.yes || environment.trust_policy == TrustPolicy::TrustAll {
            trust.trust(&untrusted(&trust)?)?;
        } else if !self.list {
            let items = untrusted(&trust)?;
            if !items.is_empty() && !self.json {
                return ask(&trust, &items);
            }
        }
        self.print(&trust.items()?)
    }

    fn print(&self, items: &[TrustItem]) -> Result<(), Failure> {
        terminal::print(&if self.json {
            terminal::json(&items)?
        } else if items.is_empty() {
            "this project brings nothing that needs trust\n".to_owned()
        } else {
            format!("{}\n", listed(items))
        });
        Ok(())
    }
}

fn untrusted(trust: &ProjectTrust) -> Result<Vec<TrustItem>, Failure> {
    let mut items = trust.items()?;
    items.retain(|item| item.status != TrustStatus::Trusted);
    Ok(items)
}

fn ask(trust: &ProjectTrust, items: &[TrustItem]) -> Result<(), Failure> {
    terminal::print(&format!("{}\n", listed(items)));
    match terminal::ask("Trust them as they are now?") {
        Some(true) => {
            trust.trust(items)?;
            terminal::print("trusted\n");
            Ok(())
        }
        Some(false) => {
            trust.decline(items)?;
            terminal::print("not trusted: they stay without effect\n");
            Ok(())
        }
        None => Err(Failure::refused(
            "there is no terminal to ask on: read the files, then use `antiphon trust --yes`",
        )),
    }
}
