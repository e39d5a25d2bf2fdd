//! The end of this process's part in a project.

use std::time::Duration;

use antiphon_process::AttachedTask;
use tokio::signal::unix::{SignalKind, signal};

use crate::remaining_work::RemainingWork;

/// How often, and after which pauses, this process looks whether work goes on when its own task has ended.
const SETTLING_LOOKS: usize = 10;
const SETTLING_PAUSE: Duration = Duration::from_millis(2);

/// Ends the work of this process. Calls of other processes' tasks that run here go on without its terminal, unless
/// a signal stops it.
pub(in crate::commands) async fn leave(
    attachment: AttachedTask<'_>,
    stops: bool,
    remaining_work: &mut RemainingWork,
) {
    let detached = attachment.detached().cloned();
    // A task that has just ended gives up its slot.
    for _ in 0..SETTLING_LOOKS {
        if stops || detached.is_some() || !attachment.works_for_others().await {
            break;
        }
        tokio::time::sleep(SETTLING_PAUSE).await;
    }
    let goes_on = !stops && (detached.is_some() || attachment.works_for_others().await);
    let Some(owner) = attachment.into_owner() else { return };
    if goes_on {
        let terminate = signal(SignalKind::terminate());
        remaining_work.set(async move {
            let stopped = async {
                match terminate {
                    Ok(mut terminate) => drop(terminate.recv().await),
                    Err(_) => std::future::pending().await,
                }
            };
            let work = async {
                if let Some(task_id) = &detached {
                    owner.rest(task_id).await;
                }
                owner.hand_over().await;
            };
            tokio::select! {
                () = work => {}
                () = stopped => std::process::exit(143),
            }
        });
    } else {
        owner.shutdown().await;
    }
}
