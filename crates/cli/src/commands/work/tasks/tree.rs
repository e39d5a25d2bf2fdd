//! `antiphon tasks tree`: one task and its descendants, as they are now.

use std::io::IsTerminal;

use antiphon_core::PriceTable;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_process::TreeReader;
use antiphon_view::{Collapse, Colors, LastColumn, TaskTree, TreeDrawing, TreeNode, shown_tasks};

use crate::failure::Failure;
use crate::terminal;

/// Siblings that are shown by default; the others are counted.
pub(super) const COLLAPSE_DEFAULT: Collapse = Collapse::Beyond(12);

/// Width of a tree when standard output is not a terminal.
const WIDTH: usize = 120;

/// Prints the tree of a task.
pub(super) async fn show(
    mut reader: TreeReader,
    task: &str,
    prices: &PriceTable,
    collapse: Collapse,
    last_column: LastColumn,
) -> Result<(), Failure> {
    let mut tree = reader.tree(task).await?;
    let shown = shown_tasks(&tree, collapse);
    reader.read_details(&mut tree, shown).await?;
    print(&lines(&tree, prices, collapse, last_column))
}

/// Prints the tree of a task as JSON.
pub(super) async fn print_json(
    mut reader: TreeReader,
    task: &str,
    prices: &PriceTable,
) -> Result<(), Failure> {
    let mut tree = reader.tree(task).await?;
    let all = 0..tree.tasks().len();
    reader.read_details(&mut tree, all).await?;
    terminal::print(&terminal::json(&TreeNode::of_tree(&tree, prices))?);
    Ok(())
}

/// A tree as lines for standard output.
pub(super) fn lines(
    tree: &TaskTree,
    prices: &PriceTable,
    collapse: Collapse,
    last_column: LastColumn,
) -> Vec<String> {
    let on_terminal = std::io::stdout().is_terminal();
    let drawing = TreeDrawing {
        prices,
        now: SystemClock.now(),
        width: if on_terminal { terminal::width() } else { WIDTH },
        collapse,
        last_column,
        colors: if on_terminal { terminal::stderr_colors() } else { Colors::Off },
    };
    drawing.lines(tree)
}

/// Prints lines that have no control characters but colors.
pub(super) fn print(lines: &[String]) -> Result<(), Failure> {
    terminal::write(&(lines.join("\n") + "\n"))
}
