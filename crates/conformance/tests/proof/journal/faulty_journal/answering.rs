//! Faults of answers: to requests, and to appends with a key.

use antiphon_core::port::{
    Append, Appended, IdempotencyKey, JournalError, JournalIndex, JournalLog,
};
use antiphon_core::{Event, EventBody, InteractionId, Replied};

use super::{Fault, FaultyJournal, is_end};

#[expect(clippy::wildcard_enum_match_arm, reason = "a fault is wrong in one respect")]
impl FaultyJournal {
    pub(super) async fn reply_wrongly(
        &self,
        request: InteractionId,
    ) -> Result<Option<Replied>, JournalError> {
        let events = self.events(None).await;
        let mut replies = events.iter().filter_map(|event| match &event.body {
            EventBody::Replied(replied) if replied.in_reply_to == request => Some((event, replied)),
            _ => None,
        });
        let mut finals = replies.clone().filter(|(_, replied)| replied.status.is_final());
        let of_the_same = |one: &Event, is: fn(&EventBody, InteractionId) -> bool| {
            events.iter().any(|event| event.task_id == one.task_id && is(&event.body, request))
        };
        let found = match self.fault {
            Fault::LetsTheLastReplyCount => finals.next_back(),
            Fault::TakesAcceptedForAnAnswer => replies.next(),
            Fault::FindsRepliesOfUnfinishedTasksOnly => {
                finals.find(|(event, _)| !of_the_same(event, |body, _| is_end(body)))
            }
            Fault::FindsRepliesWhereTheRequestCame => {
                finals.find(|(event, _)| of_the_same(event, is_arrival_of))
            }
            _ => return self.inner.reply(request).await,
        };
        Ok(found.map(|(_, replied)| replied.clone()))
    }

    pub(super) async fn answered_wrongly(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<Appended>, JournalError> {
        let known = self.answers.lock().unwrap().get(key).cloned();
        match (self.fault, self.inner.answered(key).await?) {
            (Fault::TellsTheNewestPlace, Some(first)) => {
                Ok(Some(Appended { deduplicated: true, ..self.pretended(&first.task_id).await }))
            }
            (Fault::AnswersForWhatItRefused, None) => known.transpose(),
            (Fault::LooksUpKeysTooEarly, None) => {
                let first = known.transpose()?;
                Ok(first.map(|first| Appended { deduplicated: true, ..first }))
            }
            (_, first) => Ok(first),
        }
    }

    pub(super) async fn remembering_refusals(
        &self,
        append: Append,
    ) -> Result<Appended, JournalError> {
        let (key, task_id) = (append.key.clone(), append.task_id.clone());
        let answer = self.inner.append(append).await;
        if let Some(key) = key
            && answer.is_err()
        {
            let pretended = self.pretended(&task_id).await;
            self.answers.lock().unwrap().insert(key, Ok(pretended));
        }
        answer
    }
}

fn is_arrival_of(body: &EventBody, request: InteractionId) -> bool {
    matches!(body, EventBody::MessageQueued(queued) if queued.id == request)
}
