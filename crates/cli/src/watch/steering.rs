//! Lines that the user types for the task: orders, and messages for the agent.

use antiphon_core::{HandlingMode, TaskId};
use antiphon_process::Connection;
use antiphon_project::error::ProjectError;

use super::{Next, WatchSession};
use crate::failure::Failure;

/// An order about the task. Given twice it has the effect of once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Cancel,
    Pause,
}

impl WatchSession<'_, '_> {
    pub(super) async fn steer(&mut self, line: &str) -> Result<Next, Failure> {
        match line {
            "" => {}
            "/cancel" => self.order(Order::Cancel).await,
            "/pause" => self.order(Order::Pause).await,
            _ if line.starts_with('/') => {
                self.watch.screen.note("Type /pause, /cancel, or a message for the agent");
            }
            _ => {
                let connection = self.watch.attachment.connection();
                let sent =
                    connection.send(self.watch.task_id, line.to_owned(), HandlingMode::Steer);
                match sent.await {
                    Ok(()) => {
                        self.watch.screen.note("Queued: the agent reads it after the current step");
                    }
                    // Too late: the end is about to be shown.
                    Err(_) if has_ended(connection, self.watch.task_id).await => {}
                    Err(error) => self.watch.screen.note(&error.to_string()),
                }
            }
        }
        Ok(Next::Continue)
    }

    async fn order(&mut self, order: Order) {
        let (connection, task_id) = (self.watch.attachment.connection(), self.watch.task_id);
        let given = match order {
            Order::Cancel => connection.cancel(task_id).await,
            Order::Pause => connection.pause(task_id).await,
        };
        match (given, order) {
            (Ok(()), Order::Pause) => {
                self.watch.screen.note("Queued: the task pauses after the current step");
            }
            (Ok(()), Order::Cancel) => {}
            (Err(_), _) if has_ended(connection, task_id).await => {}
            (Err(ProjectError::Unavailable(_)), _) if !self.watch.attachment.is_owner() => {
                self.unconfirmed = Some(order);
            }
            (Err(error), _) => self.watch.screen.note(&error.to_string()),
        }
    }

    /// Gives the next owner the order that the last one did not confirm, before the task goes on there.
    pub(super) async fn order_again(&mut self) -> Result<(), Failure> {
        if let Some(order) = self.unconfirmed.take() {
            self.watch.attachment.find_next_owner().await?;
            self.order(order).await;
        }
        Ok(())
    }
}

async fn has_ended(connection: &Connection, task_id: &TaskId) -> bool {
    connection.reader().task_alone(task_id).await.is_ok_and(|state| state.status.is_terminal())
}
