//! `antiphon import`: agents, commands and MCP servers of other programs as files and settings of Antiphon.

use antiphon_project::environment::Environment;
use antiphon_project::import::{ImportAction, ImportStatus, ImportTarget, ImportedFile, import};
use antiphon_project::project::Project;
use antiphon_view::display::escaped;
use antiphon_view::text::one_line;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::terminal;

/// Copy agents and commands of other programs into .antiphon, or with --user also MCP servers into your settings (see docs/import.md).
#[derive(Debug, Args)]
#[command(after_help = "\
Antiphon reads agents and commands where they are, once you trust them: you need this only to change them here. MCP
servers of ~/.claude.json and ~/.codex/config.toml are used only after an import with --user. Nothing is replaced. What is dropped or refused is listed with its reason.

Examples:
  antiphon import --dry-run
  antiphon import --from claude
  antiphon import --user --json | jq -r '.[] | select(.status == \"refused\") | .reason'")]
pub(crate) struct Import {
    /// The program whose files are copied.
    #[arg(long, value_enum, default_value_t = From::All)]
    from: From,

    /// Only say what would be written.
    #[arg(long)]
    dry_run: bool,

    /// Write into your configuration folder, for all projects, not into this project.
    #[arg(long)]
    user: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum From {
    Claude,
    Codex,
    Opencode,
    All,
}

impl From {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("claude"),
            Self::Codex => Some("codex"),
            Self::Opencode => Some("opencode"),
            Self::All => None,
        }
    }
}

impl Import {
    pub(crate) fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find(environment)?;
        let settings = project.settings(environment)?;
        let target = if self.user { ImportTarget::User } else { ImportTarget::Project };
        let action = if self.dry_run { ImportAction::DryRun } else { ImportAction::Write };
        let report = import(&project, &settings, self.from.name(), target, action)?;
        terminal::print(&if self.json { terminal::json(&report)? } else { listed(&report) });
        Ok(())
    }
}

fn listed(report: &[ImportedFile]) -> String {
    if report.is_empty() {
        return "no agents, commands or servers of other programs here\n".to_owned();
    }
    let mut text: String = report.iter().map(lines).collect();
    let count = |status| report.iter().filter(|file| file.status == status).count();
    let (written, refused) = (count(ImportStatus::Written), count(ImportStatus::Refused));
    let done = match count(ImportStatus::WouldWrite) {
        0 => format!("{written} written, {refused} refused\n"),
        would => format!("{would} would be written, {refused} refused\n"),
    };
    text.push_str(&done);
    if report.iter().any(|file| file.needs_trust && file.status == ImportStatus::Written) {
        text.push_str(
            "what came with this project has no effect until you trust it: `antiphon trust`\n",
        );
    }
    text
}

fn lines(file: &ImportedFile) -> String {
    let what = match (file.status, &file.target) {
        (ImportStatus::Written, Some(target)) => format!("written: {target}"),
        (ImportStatus::WouldWrite, Some(target)) => format!("would be written: {target}"),
        (ImportStatus::Written | ImportStatus::WouldWrite | ImportStatus::Refused, _) => {
            format!("refused: {}", file.reason.as_deref().unwrap_or_default())
        }
    };
    let shown = |text: &str| escaped(&one_line(text)).into_owned();
    let name = file.name.as_deref().filter(|_| file.kind == "MCP server");
    let name = name.map(|name| format!("`{}`, ", shown(name))).unwrap_or_default();
    let about = format!("{} ({name}{} of {})", shown(&file.source), file.kind, file.program);
    let mut lines = vec![about, format!("    {}", shown(&what))];
    lines.extend(file.effects.iter().map(|effect| format!("    {}", shown(effect))));
    lines.extend(file.dropped.iter().map(|line| format!("    not used: {}", shown(line))));
    lines.join("\n") + "\n"
}
