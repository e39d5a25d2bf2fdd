//! The end of this process's part in a project.

use std::time::Duration;

use antiphon_process::AttachedTask;
use tokio::signal::unix::{SignalKind, signal};

use crate::remaining_work::RemainingWork;
use crate::terminal;

/// How often, and after which pauses, this process looks whether work goes on when its own task has ended.
const SETTLING_LOOKS: usize = 10;
const SETTLING_PAUSE: Duration = Duration::from_millis(2);

/// Ends the work of this process. Tasks of other processes that run here go on without its terminal, unless a
/// signal stops it.
pub(in crate::commands) async fn leave(
    attachment: AttachedTask<'_>,
    stops: bool,
    remaining_work: &mut RemainingWork,
) {
    if stops {
        attachment.stop().await;
        return;
    }
    // A task that has just ended gives up its slot.
    for _ in 0..SETTLING_LOOKS {
        if !attachment.works_for_others().await {
            break;
        }
        tokio::time::sleep(SETTLING_PAUSE).await;
    }
    let Some(remaining) = attachment.into_remaining().await else { return };
    if let Some(text) = remaining.left_behind_text() {
        terminal::note(&format!("{text}\n"));
    }
    let terminate = signal(SignalKind::terminate());
    remaining_work.set(async move {
        let stopped = async {
            match terminate {
                Ok(mut terminate) => drop(terminate.recv().await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            () = remaining.run() => {}
            () = stopped => std::process::exit(143),
        }
    });
}
