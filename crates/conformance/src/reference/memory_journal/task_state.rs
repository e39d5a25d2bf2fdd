//! State of one task.

use antiphon_core::port::TaskHead;
use antiphon_core::{
    AgentStatus, Approval, ApprovalRequested, ApprovalStatus, Event, EventBody, LiveAgent,
    MessageQueued, Position, QueuedMessage, Seq, TaskSummary,
};

#[derive(Debug)]
pub(super) struct TaskState {
    /// Positions of its events: the position of seq `n` is at index `n - 1`.
    pub(super) positions: Vec<Position>,
    pub(super) summary: TaskSummary,
    /// Seq of the last event that is not an arrival.
    settled: Seq,
    /// Its agent, until the task ends.
    agent: Option<AgentStatus>,
    /// Approvals, each with the position of its request.
    pub(super) approvals: Vec<(Position, Approval)>,
    /// Queued messages, each with its position.
    pub(super) queued: Vec<(Position, QueuedMessage)>,
}

impl TaskState {
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

    /// Applies the next event.
    pub(super) fn add(&mut self, event: &Event) {
        let Event { position, at, body, .. } = event;
        self.positions.push(*position);
        self.summary.apply(body, *at);
        if !body.is_arrival() {
            self.settled = self.summary.seq;
        }
        if let Some(id) = body.leaves_inbox() {
            self.queued.retain(|(_, queued)| queued.message.id != id);
        }
        self.agent = LiveAgent::after(self.agent.take(), body, *at);
        if let EventBody::MessageQueued(message) = body {
            self.queue(event, message);
        } else if let EventBody::ApprovalDecided(decided) = body {
            let pending = self.pending().find(|asked| asked.approval_id == decided.approval_id);
            if let Some(approval) = pending {
                approval.decide(decided, *at);
            }
        } else if body.ends_task() {
            self.end();
        }
    }

    /// Adds an approval.
    pub(super) fn ask(&mut self, event: &Event, request: &ApprovalRequested) {
        let approval = Approval::requested(event.task_id.clone(), request, event.at);
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
        if self.queued.iter().any(|(_, waiting)| waiting.message.id == message.id) {
            return;
        }
        let queued = QueuedMessage {
            task_id: event.task_id.clone(),
            position: event.position,
            at: event.at,
            message: message.clone(),
        };
        self.queued.push((event.position, queued));
    }

    fn end(&mut self) {
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
