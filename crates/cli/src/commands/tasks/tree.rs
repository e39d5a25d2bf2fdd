//! `antiphon tasks tree`: one task and everything it dispatched, as it is now.

use std::io::{IsTerminal, Write};

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{Cost, PriceTable, TaskSummary, Usage};
use serde::Serialize;

use super::drawing::{Drawing, Fold, Telling, shown};
use super::tree_reader::TreeReader;
use crate::failure::Failure;
use crate::ink::Ink;
use crate::screen::terminal_width;
use crate::terminal;
use crate::watch::{Family, Member, Sum};

/// So many tasks side by side are shown; the others are counted.
pub(super) const USUAL: Fold = Fold::Beyond(12);

/// Levels of JSON below one another; readers of JSON have a limit, and this is below the usual one.
const LEVELS_MAX: usize = 50;

/// How wide a tree is drawn where there is no terminal.
const WIDTH: usize = 120;

/// Shows the tree of a task.
pub(super) async fn show(
    mut reader: TreeReader,
    task: &str,
    prices: &PriceTable,
    fold: Fold,
    telling: Telling,
) -> Result<(), Failure> {
    let mut family = reader.family(task).await?;
    let members = shown(&family, fold);
    reader.learn(&mut family, members).await?;
    print(&lines(&family, prices, fold, telling))
}

/// Prints the tree of a task as JSON.
pub(super) async fn print_json(
    mut reader: TreeReader,
    task: &str,
    prices: &PriceTable,
) -> Result<(), Failure> {
    let mut family = reader.family(task).await?;
    let all = 0..family.members().len();
    reader.learn(&mut family, all).await?;
    terminal::print(&terminal::json(&node(&family, &family.sums(prices), prices, 0, 0))?);
    Ok(())
}

/// A tree as it is drawn on standard output.
pub(super) fn lines(
    family: &Family,
    prices: &PriceTable,
    fold: Fold,
    telling: Telling,
) -> Vec<String> {
    let there = std::io::stdout().is_terminal();
    let drawing = Drawing {
        prices,
        now: SystemClock.now(),
        width: if there { terminal_width() } else { WIDTH },
        fold,
        telling,
        ink: there.then(Ink::for_stderr),
    };
    drawing.lines(family)
}

/// Prints lines that were made to be seen.
pub(super) fn print(lines: &[String]) -> Result<(), Failure> {
    let mut text = lines.join("\n");
    text.push('\n');
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| Failure::unwritable(&error))
}

/// A task in JSON.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    #[serde(flatten)]
    summary: &'a TaskSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    runner: Option<&'a str>,
    /// Who had it before, in order.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    handovers: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

/// A task in JSON, with those below it.
#[derive(Serialize)]
struct Node<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    tasks_total: usize,
    usage_total: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_total: Option<Cost>,
    children: Vec<Node<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    children_left_out: usize,
}

pub(super) fn row<'a>(member: &'a Member, prices: &PriceTable) -> Row<'a> {
    let own = Sum::of(&member.summary, prices);
    let detail = member.detail.as_ref();
    Row {
        summary: &member.summary,
        runner: detail.and_then(|detail| detail.runner.as_deref()),
        handovers: detail.map_or(&[], |detail| &detail.handovers),
        output: member.output(),
        usage: own.usage,
        cost: own.cost,
    }
}

fn node<'a>(
    family: &'a Family,
    sums: &[Sum],
    prices: &PriceTable,
    index: usize,
    level: usize,
) -> Node<'a> {
    let member = &family.members()[index];
    let (children, left_out) = if level + 1 < LEVELS_MAX {
        let child = |child: &usize| node(family, sums, prices, *child, level + 1);
        (member.children.iter().map(child).collect(), 0)
    } else {
        (Vec::new(), member.children.len())
    };
    let Sum { tasks, usage, cost } = sums[index];
    Node {
        row: row(member, prices),
        tasks_total: tasks,
        usage_total: usage,
        cost_total: cost,
        children,
        children_left_out: left_out,
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
