//! `antiphon tasks watch`: a tree of tasks while it changes, until the task at its top has ended.
//!
//! Another process runs the tasks, here or at a server. On a terminal the tree is drawn again in
//! place when a task changed, and stays on the screen at the end; elsewhere, or as JSON, each change of
//! a task is one line. Ctrl-C ends the watching and not the tasks.

use std::collections::HashMap;
use std::io::{IsTerminal, Stdout};

use antiphon_core::PriceTable;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_process::TreeReader;
use antiphon_view::{Canvas, Collapse, LastColumn, TaskRow, TaskTree, change_line, shown_tasks};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::tree;
use crate::failure::Failure;
use crate::terminal;

/// Numbers of shown siblings that are tried, until the tree fits on the terminal.
const SIBLINGS_SHOWN: [usize; 5] = [12, 6, 3, 1, 0];

/// How a tree is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeFormat {
    /// Drawn in place on a terminal, else a line per change.
    Text(Collapse),
    /// A JSON object per change.
    Json,
}

/// Watches the tree of a task.
pub(super) async fn watch(
    mut reader: TreeReader,
    task: &str,
    prices: &PriceTable,
    format: TreeFormat,
) -> Result<(), Failure> {
    let mut tree = reader.tree(task).await?;
    let stdout = std::io::stdout();
    let mut output = match format {
        TreeFormat::Json => Output::Json,
        TreeFormat::Text(collapse) if stdout.is_terminal() => {
            Output::Drawn(Canvas::new(stdout), collapse)
        }
        TreeFormat::Text(_) => Output::Lines(HashMap::new()),
    };
    let cannot = |error| Failure::failed(format!("cannot listen for Ctrl-C: {error}"));
    let mut interrupts = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut changed: Vec<usize> = (0..tree.tasks().len()).collect();
    loop {
        output.show(&reader, &mut tree, prices, &changed).await?;
        if tree.top().summary.status.is_terminal() {
            return output.finish(&reader, &mut tree, prices).await;
        }
        changed = tokio::select! {
            _ = interrupts.recv() => return Err(Failure::interrupted()),
            changed = reader.changes(&mut tree) => changed?,
        };
    }
}

/// Where changes are shown.
enum Output {
    Drawn(Canvas<Stdout>, Collapse),
    /// The last line of each task that has not ended.
    Lines(HashMap<usize, String>),
    Json,
}

impl Output {
    async fn show(
        &mut self,
        reader: &TreeReader,
        tree: &mut TaskTree,
        prices: &PriceTable,
        changed: &[usize],
    ) -> Result<(), Failure> {
        match self {
            Self::Drawn(canvas, collapse) => {
                let rows = terminal::rows();
                let collapse = fitting(tree, *collapse, rows);
                let shown = shown_tasks(tree, collapse);
                reader.read_details(tree, shown).await?;
                let lines = tree::lines(tree, prices, collapse, LastColumn::Output);
                canvas.draw(lines, rows).map_err(|error| Failure::unwritable(&error))
            }
            Self::Lines(last_lines) => {
                reader.read_details(tree, changed.iter().copied()).await?;
                for &index in changed {
                    let task = &tree.tasks()[index];
                    let line = change_line(task, prices);
                    if last_lines.get(&index) != Some(&line) {
                        terminal::write(&stamped(&line))?;
                    }
                    if task.summary.status.is_terminal() {
                        last_lines.remove(&index);
                    } else {
                        last_lines.insert(index, line);
                    }
                }
                Ok(())
            }
            Self::Json => {
                reader.read_details(tree, changed.iter().copied()).await?;
                changed.iter().try_for_each(|index| {
                    terminal::write(&json_line(&TaskRow::new(&tree.tasks()[*index], prices))?)
                })
            }
        }
    }

    /// The top has ended. On a terminal the whole tree stays on the screen.
    async fn finish(
        self,
        reader: &TreeReader,
        tree: &mut TaskTree,
        prices: &PriceTable,
    ) -> Result<(), Failure> {
        match self {
            Self::Drawn(mut canvas, collapse) => {
                let shown = shown_tasks(tree, collapse);
                reader.read_details(tree, shown).await?;
                canvas.erase().map_err(|error| Failure::unwritable(&error))?;
                tree::print(&tree::lines(tree, prices, collapse, LastColumn::Output))
            }
            Self::Lines(_) | Self::Json => Ok(()),
        }
    }
}

/// The collapse that shows as much of a tree as fits in these rows, and no more than `most` does.
fn fitting(tree: &TaskTree, most: Collapse, rows: usize) -> Collapse {
    // At most a line of totals below each task, and two at the end.
    let fits = |collapse: &Collapse| 2 * shown_tasks(tree, *collapse).len() + 2 < rows;
    let shows_no_more = |collapse: &Collapse| match (most, collapse) {
        (Collapse::Beyond(most), Collapse::Beyond(least)) => least <= &most,
        (Collapse::Never, _) | (_, Collapse::Never) => true,
    };
    let smaller = SIBLINGS_SHOWN.map(Collapse::Beyond);
    let mut tried = [most].into_iter().chain(smaller.into_iter().filter(shows_no_more));
    tried.find(fits).unwrap_or(Collapse::Beyond(0))
}

fn stamped(line: &str) -> String {
    format!("{} {line}\n", SystemClock.now().format("%H:%M:%S"))
}

fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(terminal::stdout_destination().json(&text).into_owned() + "\n")
}
