//! Faults of writing.

use antiphon_core::port::{
    APPEND_EVENTS_MAX, Append, Appended, Expected, IdempotencyKey, JournalError, JournalLog,
    KEY_BYTES_MAX,
};
use antiphon_core::{EventBody, Position, Seq, TaskCreated, TaskStatus};
use chrono::SubsecRound;

use super::{FaultyJournal, is_end};

type Answer = Result<Appended, JournalError>;

impl FaultyJournal {
    pub(super) async fn answering_with_the_first(&self, append: Append) -> Answer {
        let others = append.events.len().saturating_sub(1) as u64;
        let answer = self.inner.append(append).await?;
        if others < 2 {
            return Ok(answer);
        }
        Ok(Appended {
            position: Position(answer.position.0 - others),
            seq: Seq(answer.seq.0 - others),
            ..answer
        })
    }

    pub(super) async fn reversing(&self, mut append: Append) -> Answer {
        if append.events.len() > 3 {
            append.events[1..].reverse();
        }
        self.inner.append(append).await
    }

    pub(super) async fn writing_what_is_valid(&self, mut append: Append) -> Answer {
        let answer = self.inner.append(append.clone()).await;
        if answer.is_err() && append.events.len() > 2 && append.expected != Expected::NoTask {
            append.events.pop();
            self.inner.append(append).await?;
        }
        answer
    }

    pub(super) async fn letting_run_ahead(&self, mut append: Append) -> Answer {
        let actual = self.seq(&append.task_id).await;
        if let Expected::At(seq) = append.expected
            && actual > Seq(0)
            && seq > actual
        {
            append.expected = Expected::At(actual);
        }
        self.inner.append(append).await
    }

    pub(super) async fn creating_again(&self, append: Append) -> Answer {
        let expected = append.expected;
        match self.inner.append(append).await {
            Err(JournalError::Stale { task_id, .. }) if expected == Expected::NoTask => {
                Ok(self.pretended(&task_id).await)
            }
            answer => answer,
        }
    }

    pub(super) async fn calling_orphans_invalid(&self, append: Append) -> Answer {
        let place = matches!(append.expected, Expected::At(_));
        match self.inner.append(append).await {
            Err(JournalError::Stale { task_id, actual: Seq(0), .. }) if place => {
                Err(JournalError::Invalid { task_id, reason: "no such task".to_owned() })
            }
            answer => answer,
        }
    }

    pub(super) async fn accepting_nothing(&self, append: Append) -> Answer {
        if append.events.is_empty() {
            return Ok(self.pretended(&append.task_id).await);
        }
        self.inner.append(append).await
    }

    pub(super) async fn splitting(&self, mut append: Append) -> Answer {
        let most = append.events.len().min(APPEND_EVENTS_MAX);
        let rest = append.events.split_off(most);
        let first = self.inner.append(append.clone()).await?;
        if rest.is_empty() {
            return Ok(first);
        }
        let expected = Expected::At(first.seq);
        self.inner.append(Append { events: rest, expected, key: None, ..append }).await
    }

    pub(super) async fn cutting_keys(&self, mut append: Append) -> Answer {
        if let Some(IdempotencyKey(key)) = &mut append.key {
            key.truncate(KEY_BYTES_MAX);
        }
        self.inner.append(append).await
    }

    pub(super) async fn creating_what_is_missing(&self, mut append: Append) -> Answer {
        let begins = matches!(append.events.first(), Some(EventBody::TaskCreated(_)) | None);
        if append.expected == Expected::NoTask && !begins {
            let session_id = uuid::Uuid::from_u128(1).into();
            let created = TaskCreated::new("nobody", session_id);
            append.events.insert(0, created.into());
        }
        self.inner.append(append).await
    }

    pub(super) async fn ignoring_late_creations(&self, mut append: Append) -> Answer {
        let begins = matches!(append.events.first(), Some(EventBody::TaskCreated(_)));
        if matches!(append.expected, Expected::At(_)) && begins {
            append.events.remove(0);
        }
        self.inner.append(append).await
    }

    pub(super) async fn forgetting_ends(&self, append: Append) -> Answer {
        let expected = append.expected;
        match self.inner.append(append).await {
            Err(JournalError::Ended { task_id })
                if Expected::At(self.seq(&task_id).await) == expected =>
            {
                Ok(self.pretended(&task_id).await)
            }
            answer => answer,
        }
    }

    pub(super) async fn dropping_what_follows(&self, mut append: Append) -> Answer {
        if let Some(end) = append.events.iter().position(is_end) {
            append.events.truncate(end + 1);
        }
        self.inner.append(append).await
    }

    pub(super) async fn calling_ended_stale(&self, append: Append) -> Answer {
        let believed = append.expected;
        let actual = self.seq(&append.task_id).await;
        match (self.inner.append(append).await, believed) {
            (Err(JournalError::Ended { task_id }), Expected::At(expected))
                if actual != expected =>
            {
                Err(JournalError::Stale { task_id, expected, actual })
            }
            (answer, _) => answer,
        }
    }

    pub(super) async fn taking_a_pause_for_an_end(&self, append: Append) -> Answer {
        let last = self.last(&append.task_id).await.map(|event| event.body);
        if let Some(EventBody::StatusChanged(change)) = last
            && change.status == TaskStatus::InputRequired
        {
            return Err(JournalError::Ended { task_id: append.task_id });
        }
        self.inner.append(append).await
    }

    pub(super) async fn answering_with_the_newest(&self, append: Append) -> Answer {
        let answer = self.inner.append(append).await?;
        let last = self.last(&answer.task_id).await;
        if !answer.deduplicated || last.is_some_and(|event| is_end(&event.body)) {
            return Ok(answer);
        }
        Ok(Appended { deduplicated: true, ..self.pretended(&answer.task_id).await })
    }

    pub(super) async fn keeping_keys_per_task(&self, mut append: Append) -> Answer {
        if let (Expected::At(_), Some(IdempotencyKey(key))) = (append.expected, &mut append.key) {
            key.push_str(append.task_id.as_str());
        }
        self.inner.append(append).await
    }

    pub(super) async fn looking_at_the_end_first(&self, append: Append) -> Answer {
        let last = self.last(&append.task_id).await;
        if last.is_some_and(|event| is_end(&event.body)) {
            return Err(JournalError::Ended { task_id: append.task_id });
        }
        self.inner.append(append).await
    }

    pub(super) async fn using_up_keys(&self, append: Append) -> Answer {
        let Some(key) = append.key.clone() else {
            return self.inner.append(append).await;
        };
        let known = self.answers.lock().unwrap().get(&key).cloned();
        if let Some(refused) = known {
            return refused;
        }
        let answer = self.inner.append(append).await;
        if answer.is_err() {
            self.answers.lock().unwrap().insert(key, answer.clone());
        }
        answer
    }

    pub(super) async fn rounding_times(&self, mut append: Append) -> Answer {
        append.at = append.at.trunc_subsecs(6);
        self.inner.append(append).await
    }
}
