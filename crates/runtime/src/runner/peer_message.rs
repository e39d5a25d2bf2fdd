//! Messages to a task that a peer runs. Such a message is accepted when the peer has it, or it is refused: nothing is
//! queued here that the peer may not get. The peer records each message once, however often it is sent.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    Append, Expected, IdempotencyKey, JournalError, RemoteError, RemoteTask,
};
use antiphon_core::{MessageAppended, MessageQueued, TaskId};

use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::supervise;
use crate::task::state::TaskState;

/// How long a message waits until the peer has created the task.
const CREATION_WAIT: Duration = Duration::from_secs(3);

/// How long the peer may take to accept a message.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Sends a message to a task on a peer. The key makes a repeated call harmless, also after the task has ended.
pub(crate) async fn send(
    services: &Arc<Services>,
    task_id: &TaskId,
    message: &MessageQueued,
    key: IdempotencyKey,
) -> Result<(), OrchestratorError> {
    let state = created_there(services, task_id).await?;
    let runner = state.created.runner.as_ref();
    let peer = runner.and_then(|runner| runner.peer()).unwrap_or_default().to_owned();
    let unavailable = |reason: String| OrchestratorError::PeerUnavailable {
        task_id: task_id.clone(),
        peer: peer.clone(),
        reason,
    };
    let known = runner.and_then(|config| Some((services.deps.runner(&config.kind)?, config)));
    let Some((runner, config)) = known else {
        return Err(unavailable("only `antiphon serve` can reach it".to_owned()));
    };
    let Some(relayed) = &state.relayed else {
        return Err(unavailable("it has not started the task yet".to_owned()));
    };
    let task =
        RemoteTask { config: &config.config, task_id, remote_task_id: Some(&relayed.task_id) };
    let sent = tokio::time::timeout(ANSWER_WAIT, runner.send_remote(task, message)).await;
    match sent {
        Ok(Ok(())) => {
            let relays = runner.relays_messages();
            note_sent(services, state, key, (!relays).then_some(message)).await?;
            // The peer answers: a task that waited for it goes on.
            supervise::start(services, task_id);
            Ok(())
        }
        Ok(Err(RemoteError::Ended)) => Err(OrchestratorError::PeerRefused {
            task_id: task_id.clone(),
            peer,
            reason: "the task has ended there".to_owned(),
        }),
        Ok(Err(RemoteError::Refused { reason })) => {
            Err(OrchestratorError::PeerRefused { task_id: task_id.clone(), peer, reason })
        }
        Ok(Err(RemoteError::Unavailable { reason })) => Err(unavailable(reason)),
        Err(_) => Err(unavailable("it does not answer in time".to_owned())),
    }
}

/// The task, as soon as the peer has created it. After a while also without that.
async fn created_there(
    services: &Services,
    task_id: &TaskId,
) -> Result<TaskState, OrchestratorError> {
    let patience = tokio::time::sleep(CREATION_WAIT);
    let mut patience = std::pin::pin!(patience);
    loop {
        // Subscribes before it reads, so that no event is missed.
        let mut updates = services.notifier.subscribe(Some(task_id));
        updates.borrow_and_update();
        let state = services.reader.load_without_messages(task_id).await?;
        if state.status.is_terminal() {
            let (task_id, status) = (task_id.clone(), state.status);
            return Err(OrchestratorError::Ended { task_id, status });
        }
        if state.relayed.is_some() || services.background.stop.is_cancelled() {
            return Ok(state);
        }
        tokio::select! {
            _ = updates.changed() => {}
            () = &mut patience => return Ok(state),
        }
    }
}

/// Records the key of a message that the peer has, and the message if the peer does not tell of it.
async fn note_sent(
    services: &Arc<Services>,
    mut state: TaskState,
    key: IdempotencyKey,
    message: Option<&MessageQueued>,
) -> Result<(), OrchestratorError> {
    loop {
        let Some(relayed) = state.relayed.clone() else { return Ok(()) };
        let at = services.deps.clock.now();
        let message = message.map(|message| MessageAppended::new(message.user_message(at)).into());
        let append = Append {
            task_id: state.task_id.clone(),
            expected: Expected::At(state.seq),
            at,
            events: [relayed.into()].into_iter().chain(message).collect(),
            key: Some(key.clone()),
        };
        match services.append(append).await {
            // It ended after the peer had accepted the message.
            Ok(_) | Err(JournalError::Ended { .. }) => return Ok(()),
            Err(JournalError::Stale { .. }) => {
                state = services.reader.load_without_messages(&state.task_id).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
