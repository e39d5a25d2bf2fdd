//! Asking somebody at the terminal about calls, of the watched task and of every task below it, one
//! after the other. Where nobody is there, what is asked stays in the journal.

use antiphon_core::port::ApprovalSelector;
use antiphon_core::{Approval, Decision, Event, EventBody, visible};
use antiphon_runtime::{OrchestratorError, TaskState};

use super::note::{Note, Tone};
use super::{Next, Watching};
use crate::failure::Failure;
use crate::screen::cut;

/// Characters of a call's arguments that are shown when somebody is asked about it.
const ARGUMENTS_CHARS_MAX: usize = 2000;

impl Watching<'_> {
    /// The task ended, or nothing goes on without somebody.
    pub(super) async fn rested(&mut self, state: &TaskState) -> Result<Next, Failure> {
        // The follower sees the end.
        if state.status.is_terminal() {
            return Ok(Next::GoOn);
        }
        if self.watch.asking.is_some() {
            return Ok(Next::GoOn);
        }
        if self.pending().await?.is_empty() || !self.watch.keyboard.is_there() {
            return Ok(Next::Leave);
        }
        self.ask_next().await
    }

    /// Something that may be a question, or the end of one.
    pub(super) async fn mind(&mut self, event: &Event) -> Result<Next, Failure> {
        if let EventBody::ApprovalRequested(asked) = &event.body {
            if self.watch.keyboard.is_there() {
                return if self.watch.asking.is_some() {
                    Ok(Next::GoOn)
                } else {
                    self.ask_next().await
                };
            }
            if let Some(label) = self.below.label_of(&event.task_id)
                && !self.watch.screen.is_json()
            {
                let text = format!("  [{label}] asks about {}", cut(&visible(&asked.tool_name)));
                self.tell(Note { text, tone: Tone::Plain });
            }
            return Ok(Next::GoOn);
        }
        let decided = if let EventBody::ApprovalDecided(decided) = &event.body {
            Some(&decided.approval_id)
        } else {
            None
        };
        if decided.is_some() {
            self.watch_rest();
        }
        let over = self.watch.asking.as_ref().is_some_and(|asking| {
            decided == Some(&asking.approval_id)
                || (event.body.ends_task() && asking.task_id == event.task_id)
        });
        if !over {
            return Ok(Next::GoOn);
        }
        self.watch.asking = None;
        self.watch.screen.note("  no answer is needed any more");
        self.ask_next().await
    }

    /// What waits for an answer, of the task and of those below it, the oldest first.
    pub(super) async fn pending(&self) -> Result<Vec<Approval>, Failure> {
        let pending = self.watch.orchestrator.approvals(ApprovalSelector::Pending).await?;
        let ours = |approval: &Approval| {
            approval.task_id == *self.watch.task_id || self.below.contains(&approval.task_id)
        };
        Ok(pending.into_iter().filter(ours).collect())
    }

    /// Whose call it is: `researcher (task 0199…)`.
    pub(super) fn who(&self, approval: &Approval) -> String {
        let id = &approval.task_id;
        match self.below.label_of(id) {
            Some(label) => format!("{label} (task {id})"),
            None => format!("task {id}"),
        }
    }

    /// Asks about the next call that somebody has to be asked about.
    async fn ask_next(&mut self) -> Result<Next, Failure> {
        let mut pending = self.pending().await?.into_iter();
        self.watch.asking = pending.next();
        let Some(approval) = &self.watch.asking else {
            self.tell_held();
            return Ok(Next::GoOn);
        };
        let below = approval.task_id != *self.watch.task_id;
        let who = below.then(|| self.who(approval));
        let question = question(approval, who.as_deref(), pending.len());
        self.watch.screen.note(&question);
        Ok(Next::GoOn)
    }

    /// Somebody typed a line: an answer to what was asked, or something for the task to hear.
    pub(super) async fn hear(&mut self, line: Option<String>) -> Result<Next, Failure> {
        match (line, self.watch.asking.take()) {
            // Nobody is there any more: what was asked stays so.
            (None, Some(_)) => Ok(Next::Leave),
            (None, None) => Ok(Next::GoOn),
            (Some(line), Some(approval)) if line.trim().starts_with('/') => {
                self.watch.asking = Some(approval);
                self.steer(line.trim()).await
            }
            (Some(line), Some(approval)) => self.answer(line.trim(), approval).await,
            (Some(line), None) => self.steer(line.trim()).await,
        }
    }

    async fn answer(&mut self, line: &str, approval: Approval) -> Result<Next, Failure> {
        let (decision, comment) = match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => (Decision::AllowOnce, None),
            "t" | "task" => (Decision::AllowTask, None),
            "a" | "always" => (Decision::AllowAlways, None),
            "n" | "no" => (Decision::Deny, None),
            "" => {
                self.watch.asking = Some(approval);
                self.watch.screen.note("  y, t, a, or n");
                return Ok(Next::GoOn);
            }
            _ => (Decision::Deny, Some(line.to_owned())),
        };
        let by = "the terminal";
        let orchestrator = self.watch.orchestrator;
        match orchestrator.decide(&approval.approval_id, decision, by, comment).await {
            Ok(()) | Err(OrchestratorError::AlreadyDecided { .. }) => self.ask_next().await,
            Err(error @ OrchestratorError::RuleNotSaved { .. }) => {
                self.watch.screen.note(&format!("  {error}"));
                self.watch.asking = Some(approval);
                Ok(Next::GoOn)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What somebody is asked; `who` names a task below the one that is watched.
fn question(approval: &Approval, who: Option<&str>, more: usize) -> String {
    let who = who.map_or(String::new(), |who| format!("{} asks: ", visible(who)));
    let more = if more == 0 { String::new() } else { format!(" ({more} more after this)") };
    format!(
        "? {who}{} {}{more}\n  {}\n  allow? [y]es once, [t]his task, [a]lways: {}, [n]o, or no and why",
        visible(&approval.tool_name),
        visible(&shown(approval.arguments.as_str())),
        visible(&approval.reason),
        visible(&approval.rule.0),
    )
}

/// Arguments on one line, and how much of them is not shown: nobody should allow what they cannot
/// see.
fn shown(arguments: &str) -> String {
    let shown: String = arguments.chars().take(ARGUMENTS_CHARS_MAX).collect();
    let left = arguments.chars().count().saturating_sub(ARGUMENTS_CHARS_MAX);
    let shown = shown.replace(['\n', '\r'], " ");
    if left == 0 {
        return shown;
    }
    format!("{shown} … AND {left} MORE CHARACTERS: see `antiphon approvals list --json`")
}

#[cfg(test)]
mod tests;
