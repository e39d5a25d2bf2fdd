//! The prompt, limits, schema and files of a new task, from the arguments and standard input. All of it is
//! checked before anything is recorded.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use antiphon_core::{RawJson, TaskLimits};
use antiphon_project::environment::Environment;
use antiphon_project::models::Route;
use antiphon_project::project::Project;
use antiphon_project::prompt_commands;
use antiphon_project::settings::UserSettings;
use antiphon_project::{blocks_json, prompt_with_files, saved_session};

use super::{Order, Run, amounts, piped_text};
use crate::commands::sessions;
use crate::failure::Failure;
use crate::terminal;

/// Largest prompt on standard input, in bytes.
pub(super) const PROMPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Largest schema of a result, in bytes.
const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;

impl Run {
    /// The arguments of a new task; `None` when a task is resumed.
    pub(super) fn order(&self, environment: &Environment) -> Result<Option<Order>, Failure> {
        if self.resume.is_some() {
            return Ok(None);
        }
        let prompt = self.prompt()?;
        Ok(Some(Order {
            blocks: self.blocks(&prompt, environment)?,
            prompt,
            agent: None,
            model: None,
            limits: self.limits()?,
            output_schema: self.schema()?,
            route: self.route(environment)?,
        }))
    }

    /// Whether the prompt comes from standard input alone.
    pub(super) fn reads_prompt(&self) -> bool {
        self.command.is_none() && matches!(self.prompt.as_deref(), Some("-") | None)
    }

    /// Puts the prompt of the command in place of its arguments, and what is piped behind it.
    pub(super) fn put_command(
        &self,
        order: Option<&mut Order>,
        environment: &Environment,
        project: &Project,
        settings: &UserSettings,
    ) -> Result<(), Failure> {
        let (Some(name), Some(order)) = (&self.command, order) else { return Ok(()) };
        let arguments: Vec<String> = self.prompt.iter().chain(&self.arguments).cloned().collect();
        let expanded = prompt_commands::expand(project, settings, name, &arguments)?;
        let piped = &order.prompt;
        order.prompt = if piped.trim().is_empty() {
            expanded.prompt
        } else {
            format!("{}\n\n{piped}", expanded.prompt)
        };
        order.agent = expanded.agent.filter(|_| self.system.is_none() && self.session.is_none());
        order.model = expanded.model;
        order.blocks = self.blocks(&order.prompt, environment)?;
        Ok(())
    }

    fn prompt(&self) -> Result<String, Failure> {
        if self.command.is_some() {
            return piped_text::read();
        }
        let prompt = match self.prompt.as_deref() {
            Some("-") | None => read_stdin()?,
            Some(prompt) => prompt.to_owned(),
        };
        if prompt.trim().is_empty() {
            return Err(Failure::usage("the prompt is empty: give one as an argument or on stdin"));
        }
        if matches!(self.prompt.as_deref(), Some("-") | None) {
            return Ok(prompt);
        }
        let piped = piped_text::read()?;
        Ok(if piped.trim().is_empty() { prompt } else { format!("{prompt}\n\n{piped}") })
    }

    /// The prompt with the images that it or the arguments name.
    fn blocks(&self, prompt: &str, environment: &Environment) -> Result<Option<RawJson>, Failure> {
        let current = environment.current_dir()?;
        // What the user typed names images; a pipe and the file of a command do not.
        let typed =
            self.prompt.iter().chain(&self.arguments).cloned().collect::<Vec<_>>().join(" ");
        let blocks =
            prompt_with_files(prompt, &typed, current, &self.image).map_err(Failure::usage)?;
        Ok(blocks.map(blocks_json).transpose()?)
    }

    fn limits(&self) -> Result<TaskLimits, Failure> {
        let cost_nano_usd_max = self.budget_usd.map(amounts::nano_usd).transpose()?;
        Ok(TaskLimits {
            turns_max: Some(self.max_turns),
            answer_tokens_max: self.max_tokens,
            cost_nano_usd_max,
            wall_clock_s_max: self.max_seconds,
            depth_max: self.max_depth,
            fan_out_max: self.max_fan_out,
            tasks_max: self.max_tasks,
            ..TaskLimits::default()
        })
    }

    fn schema(&self) -> Result<Option<RawJson>, Failure> {
        let Some(path) = &self.output_schema else { return Ok(None) };
        let refuse = |reason: String| Failure::usage(format!("{}: {reason}", path.display()));
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
        file.take(SCHEMA_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|error| refuse(error.to_string()))?;
        if text.len() as u64 > SCHEMA_BYTES_MAX {
            return Err(refuse(format!("it has more than {SCHEMA_BYTES_MAX} bytes")));
        }
        let schema = RawJson::parse(&text).map_err(|error| refuse(error.to_string()))?;
        antiphon_runtime::check_schema(&schema).map_err(refuse)?;
        Ok(Some(schema))
    }

    fn route(&self, environment: &Environment) -> Result<Route, Failure> {
        let session = self.session.as_deref().filter(|name| sessions::is_file(name));
        let save = session.map(PathBuf::from).or_else(|| self.save.clone());
        if let Some(save) = &self.save {
            saved_session::check_replaceable(save)?;
        }
        let route = Route {
            script: self.script.clone(),
            record: self.record.clone(),
            replay: self.replay.clone(),
            retries: self.retries,
            save,
            began: None,
            process: None,
        };
        Ok(route.absolute(environment)?)
    }
}

fn read_stdin() -> Result<String, Failure> {
    terminal::check_readable("the prompt")?;
    if std::io::stdin().is_terminal() {
        terminal::note("antiphon: reading the prompt from the terminal, end it with Ctrl-D\n");
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(PROMPT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read the prompt: {error}")))?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "the prompt is too long: {PROMPT_BYTES_MAX} bytes at most"
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("the prompt is not UTF-8"))
}
