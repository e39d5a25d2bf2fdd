//! What the journal knows of one task.

use antiphon_core::port::TaskHead;
use antiphon_core::{
    AgentStatus, Approval, ApprovalRequested, ApprovalStatus, Event, EventBody, LiveAgent,
    MessageQueued, Position, Queued, Seq, TaskSummary,
};

#[derive(Debug)]
pub(super) struct Chapter {
    /// Positions of its events: that of seq `n` is at index `n - 1`.
    pub(super) positions: Vec<Position>,
    pub(super) summary: TaskSummary,
    /// Its last event that is more than an arrival.
    settled: Seq,
    /// Who works on it, until it ends.
    agent: Option<AgentStatus>,
    /// Each with where it was asked.
    pub(super) approvals: Vec<(Position, Approval)>,
    /// Each with where it arrived.
    pub(super) queued: Vec<(Position, Queued)>,
}

impl Chapter {
    /// A task whose creation is at `position`.
    pub(super) fn begin(position: Position, summary: TaskSummary) -> Self {
        Self {
            positions: vec![position],
            settled: summary.seq,
            summary,
            agent: None,
            approvals: Vec::new(),
            queued: Vec::new(),
        }
    }

    /// Adds what happened next.
    pub(super) fn add(&mut self, event: &Event) {
        let Event { position, at, body, .. } = event;
        self.positions.push(*position);
        self.summary.apply(body, *at);
        if !body.is_arrival() {
            self.settled = self.summary.seq;
        }
        match body {
            EventBody::StateChanged(change) => {
                self.agent = Some(LiveAgent::moved(self.agent.take(), change, *at));
            }
            EventBody::MessageQueued(message) => self.queue(event, message),
            EventBody::MessageAppended(appended) => {
                self.queued.retain(|(_, queued)| appended.queued != Some(queued.message.id));
            }
            EventBody::Replied(replied) => {
                self.queued.retain(|(_, queued)| queued.message.id != replied.in_reply_to);
            }
            EventBody::ApprovalDecided(decided) => {
                let asked = self.pending().find(|asked| asked.approval_id == decided.approval_id);
                if let Some(approval) = asked {
                    approval.decide(decided, *at);
                }
            }
            EventBody::StatusChanged(change) if change.status.is_terminal() => self.end(),
            EventBody::TaskCreated(_)
            | EventBody::StatusChanged(_)
            | EventBody::ApprovalRequested(_)
            | EventBody::ToolRefused(_)
            | EventBody::ToolRequested(_)
            | EventBody::Dispatched(_)
            | EventBody::Awaited(_)
            | EventBody::RequestSent(_)
            | EventBody::HandedOver(_)
            | EventBody::Relayed(_)
            | EventBody::ToolStarted(_)
            | EventBody::UsageRecorded(_)
            | EventBody::BudgetRaised(_)
            | EventBody::OutputRejected(_)
            | EventBody::Compacted(_) => {}
        }
    }

    /// Adds a question that nobody has asked before.
    pub(super) fn ask(&mut self, event: &Event, request: &ApprovalRequested) {
        let approval = Approval::asked(event.task_id.clone(), request, event.at);
        self.approvals.push((event.position, approval));
    }

    pub(super) fn head(&self) -> TaskHead {
        TaskHead { seq: self.summary.seq, settled: self.settled, ended: self.has_ended() }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.summary.status.is_terminal()
    }

    pub(super) fn agent(&self) -> Option<LiveAgent> {
        Some(LiveAgent {
            agent: self.summary.agent.clone(),
            task_id: self.summary.task_id.clone(),
            status: self.agent.clone()?,
        })
    }

    fn queue(&mut self, event: &Event, message: &MessageQueued) {
        self.queued.retain(|(_, waiting)| Some(waiting.message.id) != message.replaces);
        if self.queued.iter().any(|(_, waiting)| waiting.message.id == message.id) {
            return;
        }
        let queued = Queued {
            task_id: event.task_id.clone(),
            position: event.position,
            at: event.at,
            message: message.clone(),
        };
        self.queued.push((event.position, queued));
    }

    fn end(&mut self) {
        self.agent = None;
        self.queued.clear();
        for approval in self.pending() {
            approval.status = ApprovalStatus::Void;
        }
    }

    fn pending(&mut self) -> impl Iterator<Item = &mut Approval> {
        let approvals = self.approvals.iter_mut().map(|(_, approval)| approval);
        approvals.filter(|approval| approval.status == ApprovalStatus::Pending)
    }
}
