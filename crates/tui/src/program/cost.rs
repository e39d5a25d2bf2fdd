//! What a conversation has spent.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{PriceTable, SessionId, TaskSummary, Usage};
use antiphon_project::error::ProjectError;
use antiphon_runtime::Orchestrator;
use antiphon_view::text::count;
use antiphon_view::{TaskTree, usage_text};

use super::Program;
use super::lookups::Found;

/// Tasks of a conversation that are counted. Of more, the newest are.
const TASKS_MAX: NonZeroUsize = NonZeroUsize::new(200).unwrap();

/// Agents of the first task of a conversation that began with messages of another one.
const COPIES: [&str; 2] = ["fork", "import"];

impl Program<'_, '_> {
    pub(super) fn show_cost(&mut self) {
        let Some((session, _)) = self.conversation.session.clone() else {
            return self.note("nothing was asked yet");
        };
        let reader = self.connection().reader().clone();
        let prices = self.options.prices.clone();
        self.look_up(async move {
            match spent(&reader, session, &prices).await {
                Ok(text) => Found::Note(text),
                Err(error) => Found::Error(error.to_string()),
            }
        });
    }
}

/// What the tasks of a conversation and every task below them have spent, and which tasks that are.
async fn spent(
    reader: &Orchestrator,
    session: SessionId,
    prices: &PriceTable,
) -> Result<String, ProjectError> {
    let query = TaskQuery { which: TaskSelector::Session(session), limit: TASKS_MAX };
    let own = reader.tasks(query).await?;
    let mut total: BTreeMap<String, Usage> = BTreeMap::new();
    let mut below = 0;
    for task in &own {
        add(&mut total, task);
        let all = reader.tasks(TaskTree::query(&task.root)).await?;
        let Some(tree) = TaskTree::new(&task.task_id, all) else { continue };
        for descendant in tree.tasks().iter().skip(1) {
            add(&mut total, &descendant.summary);
            below += 1;
        }
    }
    let tasks = count(own.len() as u64, "task");
    let tasks = if own.len() == TASKS_MAX.get() { format!("the newest {tasks}") } else { tasks };
    let below = if below == 0 { String::new() } else { format!(", and {below} below them") };
    let is_copy = own.iter().any(|task| COPIES.contains(&task.agent.as_str()));
    let original =
        if is_copy { ". The conversation that this one is a copy of is not counted" } else { "" };
    Ok(format!(
        "  {}: {tasks} of this conversation{below}, up to the last complete answer of each{original}",
        usage_text(&total, prices)
    ))
}

fn add(total: &mut BTreeMap<String, Usage>, task: &TaskSummary) {
    for (model, usage) in &task.spent {
        *total.entry(model.clone()).or_default() += *usage;
    }
}
