//! `antiphon tasks watch`: a tree of tasks as it goes on, until the task at its top has ended.
//!
//! Another process does the work, so the journal is looked at a few times a second. On a terminal the
//! tree is drawn again in place when something changed, and stays when it is over; elsewhere, or as
//! JSON, there is one line per task that changed. Ctrl-C ends the watching, not the work.

pub(in crate::commands) mod canvas;

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use antiphon_core::PriceTable;
use antiphon_core::port::{Clock, SystemClock};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use super::drawing::{Fold, State, Telling, shown};
use super::tree;
use super::tree_reader::TreeReader;
use crate::failure::Failure;
use crate::screen::elapsed;
use crate::watch::{Family, Member, Sum};
use canvas::Canvas;

/// How often the journal is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// How a tree is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Drawn in place on a terminal, else a line per change.
    Text(Fold),
    /// A JSON object per change.
    Json,
}

/// Watches the tree of a task.
pub(super) async fn watch(
    mut reader: TreeReader,
    task: &str,
    prices: &PriceTable,
    form: Form,
) -> Result<(), Failure> {
    let mut family = reader.family(task).await?;
    let mut view = match form {
        Form::Json => View::Json,
        Form::Text(fold) if std::io::stdout().is_terminal() => View::Drawn(Canvas::new(), fold),
        Form::Text(_) => View::Lines(HashMap::new()),
    };
    let cannot = |error| Failure::failed(format!("cannot listen for Ctrl-C: {error}"));
    let mut interrupts = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut changed: Vec<usize> = (0..family.members().len()).collect();
    loop {
        view.show(&reader, &mut family, prices, &changed).await?;
        if family.top().summary.status.is_terminal() {
            return view.end(&reader, &mut family, prices).await;
        }
        tokio::select! {
            _ = interrupts.recv() => return Err(Failure::interrupted()),
            _ = looks.tick() => {}
        }
        changed = reader.news(&mut family).await?;
    }
}

/// What a person or a program sees.
enum View {
    Drawn(Canvas, Fold),
    /// What was last told of each task that has not ended.
    Lines(HashMap<usize, String>),
    Json,
}

impl View {
    async fn show(
        &mut self,
        reader: &TreeReader,
        family: &mut Family,
        prices: &PriceTable,
        changed: &[usize],
    ) -> Result<(), Failure> {
        match self {
            Self::Drawn(canvas, fold) => {
                let fold = Canvas::fitting(family, *fold);
                let members = shown(family, fold);
                reader.learn(family, members).await?;
                canvas.draw(tree::lines(family, prices, fold, Telling::Words))
            }
            Self::Lines(told) => {
                reader.learn(family, changed.iter().copied()).await?;
                for &index in changed {
                    let member = &family.members()[index];
                    let line = line(member, prices);
                    if told.get(&index) != Some(&line) {
                        print(&stamped(&line))?;
                    }
                    if member.summary.status.is_terminal() {
                        told.remove(&index);
                    } else {
                        told.insert(index, line);
                    }
                }
                Ok(())
            }
            Self::Json => {
                reader.learn(family, changed.iter().copied()).await?;
                changed.iter().try_for_each(|index| {
                    print(&json(&tree::row(&family.members()[*index], prices))?)
                })
            }
        }
    }

    /// The top has ended: on a terminal the whole tree stays.
    async fn end(
        self,
        reader: &TreeReader,
        family: &mut Family,
        prices: &PriceTable,
    ) -> Result<(), Failure> {
        match self {
            Self::Drawn(mut canvas, fold) => {
                let members = shown(family, fold);
                reader.learn(family, members).await?;
                canvas.wipe()?;
                tree::print(&tree::lines(family, prices, fold, Telling::Words))
            }
            Self::Lines(_) | Self::Json => Ok(()),
        }
    }
}

/// `researcher (0199…) ✓ completed 1204 tokens $0.0123 12 places found`.
fn line(member: &Member, prices: &PriceTable) -> String {
    let task = &member.summary;
    let (state, own) = (State::of(member), Sum::of(task, prices));
    let cost = own.cost.map_or(String::new(), |cost| format!(" {cost}"));
    let time = task.ended_at.map(|end| (end - task.created_at).to_std().unwrap_or_default());
    let time = time.map_or(String::new(), |time| format!(" {}", elapsed(time)));
    let output = member.output().map_or(String::new(), |output| format!(" {output}"));
    let text = format!(
        "{} ({}) {} {}{time} {} tokens{cost}{output}",
        task.agent,
        task.task_id,
        state.sign(),
        state.word(),
        own.tokens(),
    );
    antiphon_core::visible(&text).replace(['\n', '\r'], " ")
}

fn stamped(line: &str) -> String {
    format!("{} {line}", SystemClock.now().format("%H:%M:%S"))
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::failed(error.to_string()))
}

fn print(line: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let printed = writeln!(out, "{line}").and_then(|()| out.flush());
    printed.map_err(|error| Failure::unwritable(&error))
}
