//! A server that works on this project, found through `.antiphon/`, and what a command asks of it.
//!
//! Nothing that lies in the folder is believed by itself. The journal has to be owned by the process
//! that `server.json` names, that process has to be this user's, both papers have to be private files,
//! and the place has to be the loopback or the socket in the folder; only then is the token sent. What a
//! dead server left is ignored. A server that goes away in the middle is an error that says where to look.

mod answer;
mod door;
mod following;
mod inbox;
mod owner;
mod papers;
mod sessions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{RandomIds, SystemClock};
use antiphon_core::{
    ApprovalId, Cost, Decision, ErrorResponse, HandlingMode, ModelRef, PriceTable, Provider,
    RawJson, TaskId,
};
use antiphon_runtime::{
    Allowance, BudgetStatus, Models, NoTools, OpenGate, Orchestrator, RuntimeDeps, Settings,
};
use antiphon_sqlite::SqliteJournal;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, Url, redirect};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use door::{BY, Door};
pub(crate) use following::Lost;
pub(crate) use inbox::{Answer, Letter, Rejected, Taken, Told, Word};
use papers::{Notice, Place};

use crate::failure::{Exit, Failure};
use crate::project::Project;

/// How long a server on this machine may take to accept a connection and to say that it is there.
const GREETING_WAIT: Duration = Duration::from_secs(2);

/// How long it may take to answer: longer than it takes to give up itself.
const ANSWER_WAIT: Duration = Duration::from_secs(75);

/// How long it is asked to wait for a task at a time.
const REST_WAIT_S: u32 = 25;

/// A server that works on this project.
pub(crate) struct Served {
    place: Place,
    client: Client,
    /// What it has to be shown.
    token: HeaderValue,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Served({})", self.place)
    }
}

/// What a task is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// End.
    Cancel,
    /// Rest.
    Pause,
    /// Go on.
    Resume,
}

#[derive(Serialize)]
struct SayingWire<'a> {
    text: &'a str,
    mode: HandlingMode,
}

#[derive(Serialize)]
struct DecidingWire<'a> {
    decision: Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
}

#[derive(Serialize)]
struct AllowingWire<'a> {
    usd: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
}

#[expect(clippy::cast_precision_loss, reason = "at most 10^15, which is exact")]
fn dollars(cost: Cost) -> f64 {
    cost.nano_usd as f64 / 1e9
}

#[derive(Deserialize)]
struct RestingWire {
    rests: bool,
}

impl Served {
    /// The server that owns the project's journal, if one does and answers. Papers that it could
    /// not have written are an error.
    pub(crate) async fn find(project: &Project) -> Result<Option<Self>, Failure> {
        let Some(notice) = notice(project)? else { return Ok(None) };
        let token = papers::token(&project.folder())?;
        let client = client(&notice.place)?;
        let served = Self { place: notice.place, client, token };
        Ok(served.is_there().await.then_some(served))
    }

    /// The server that has taken the journal before this process could, or why `failure` stays one.
    pub(crate) async fn instead(project: &Project, failure: Failure) -> Result<Self, Failure> {
        if failure.exit != Exit::Unavailable {
            return Err(failure);
        }
        Self::find(project).await?.ok_or_else(|| busy(project).unwrap_or(failure))
    }

    /// An orchestrator that looks and changes nothing, beside the server.
    pub(crate) fn books(project: &Project) -> Result<Orchestrator, Failure> {
        let journal = SqliteJournal::open_read_only(&project.journal_path())?;
        Ok(Orchestrator::record_only(RuntimeDeps {
            journal: Arc::new(journal),
            prices: Arc::new(PriceTable::default()),
            models: Arc::new(NoModels),
            tools: Arc::new(NoTools),
            gate: Arc::new(OpenGate),
            agents: None,
            runners: Vec::new(),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            settings: Settings::default(),
        }))
    }

    /// Tells a task what to do. When this returns, the journal has it.
    pub(crate) async fn order(&self, task_id: &TaskId, order: Order) -> Result<(), Failure> {
        let verb = match order {
            Order::Cancel => "cancel",
            Order::Pause => "pause",
            Order::Resume => "resume",
        };
        let request =
            self.request(Method::POST, self.at(&["v1", "tasks", task_id.as_str(), verb])?);
        self.send(request).await.map(drop)
    }

    /// Says something to a task.
    pub(crate) async fn say(
        &self,
        task_id: &TaskId,
        text: &str,
        mode: HandlingMode,
    ) -> Result<(), Failure> {
        let url = self.at(&["v1", "tasks", task_id.as_str(), "messages"])?;
        let request = self.request(Method::POST, url);
        self.send(json(request, &SayingWire { text, mode })?).await.map(drop)
    }

    /// Answers an approval.
    pub(crate) async fn decide(
        &self,
        approval_id: &ApprovalId,
        decision: Decision,
        comment: Option<&str>,
    ) -> Result<(), Failure> {
        let url = self.at(&["v1", "approvals", approval_id.as_str()])?;
        let request = self.request(Method::POST, url);
        self.send(json(request, &DecidingWire { decision, comment })?).await.map(drop)
    }

    /// Lets more be spent.
    pub(crate) async fn allow(&self, allowance: &Allowance) -> Result<BudgetStatus, Failure> {
        let wire = AllowingWire {
            usd: dollars(Cost { nano_usd: allowance.by_nano_usd }),
            key_id: allowance.payer.as_deref(),
            comment: allowance.comment.as_deref(),
        };
        let request = self.request(Method::POST, self.at(&["v1", "budget", "allow"])?);
        let response = self.send(json(request, &wire)?).await?;
        self.read(response).await
    }

    /// Waits until a task has ended, or until nothing of it goes on without somebody.
    pub(crate) async fn rest(&self, task_id: &TaskId) -> Result<(), Failure> {
        let mut url = self.at(&["v1", "tasks", task_id.as_str(), "rest"])?;
        url.query_pairs_mut().append_pair("wait_s", &REST_WAIT_S.to_string());
        loop {
            let response = self.send(self.request(Method::GET, url.clone())).await?;
            let resting: RestingWire = self.read(response).await?;
            if resting.rests {
                return Ok(());
            }
        }
    }

    /// Whether it says that it is there. It is not shown the token for that.
    async fn is_there(&self) -> bool {
        let Ok(url) = self.at(&["health", "live"]) else { return false };
        let asked = self.client.get(url).timeout(GREETING_WAIT).send().await;
        asked.is_ok_and(|response| response.status().is_success())
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url);
        request.header(AUTHORIZATION, self.token.clone()).timeout(ANSWER_WAIT)
    }

    /// An answer that is a success, or what it means.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        self.ask(request).await?.map_err(|error| answer::failure(&self.place, error))
    }

    /// An answer, or what the server says is wrong.
    async fn ask(
        &self,
        request: RequestBuilder,
    ) -> Result<Result<Response, ErrorResponse>, Failure> {
        let response =
            request.send().await.map_err(|error| self.lost(&answer::innermost(&error)))?;
        if response.status().is_success() {
            return Ok(Ok(response));
        }
        self.read(response).await.map(Err)
    }

    /// What an answer holds.
    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failure> {
        let body = answer::body(response).await.map_err(|cause| self.lost(&cause))?;
        serde_json::from_slice(&body).map_err(|_| self.strange())
    }

    /// The address of something of the server. What a name has in it stays within it.
    fn at(&self, path: &[&str]) -> Result<Url, Failure> {
        let host = match &self.place {
            Place::Address(address) => address.to_string(),
            Place::Socket(_) => "localhost".to_owned(),
        };
        let mut url = Url::parse(&format!("http://{host}")).map_err(|_| self.strange())?;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Ok(url)
    }

    fn lost(&self, cause: &str) -> Failure {
        Failure::unavailable(format!(
            "the server at {} went away ({cause}): see how far it got with `antiphon tasks list`, and \
             start it again",
            self.place
        ))
    }

    fn strange(&self) -> Failure {
        Failure::unavailable(format!(
            "the server at {} answers in another language: is it of this version?",
            self.place
        ))
    }
}

/// Nobody to ask: whoever only looks asks nobody.
struct NoModels;

impl Models for NoModels {
    fn provider(
        &self,
        model: &ModelRef,
        _: &[ModelRef],
        _: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        Err(format!("the server asks {model}"))
    }

    fn window_tokens(&self, _: &ModelRef) -> Option<u64> {
        None
    }
}

/// What the owner of the journal says of itself, if it is a server of this user.
fn notice(project: &Project) -> Result<Option<Notice>, Failure> {
    let Some(owner) = owner::of(&project.journal_path()) else { return Ok(None) };
    // The folder may be a link, or somebody else's.
    project.prepare()?;
    let notice = Notice::read(&project.folder())?;
    Ok(notice.filter(|notice| notice.pid == owner && owner::is_ours(owner)))
}

/// Why nothing can be asked of whoever owns the journal, if anybody does.
fn busy(project: &Project) -> Option<Failure> {
    let owner = owner::of(&project.journal_path())?;
    Some(match notice(project) {
        Err(failure) => failure,
        Ok(Some(notice)) => Failure::unavailable(format!(
            "the server at {} (process {owner}) does not answer: it may be about to end; try again, or \
             end it",
            notice.place
        )),
        Ok(None) => Failure::unavailable(format!(
            "process {owner} works on the tasks of this project, and no server says that it takes \
             orders: wait for it, or end it. `antiphon serve` would take this while it works"
        )),
    })
}

fn client(place: &Place) -> Result<Client, Failure> {
    // Fails when one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = match place {
        Place::Address(_) => Client::builder(),
        Place::Socket(path) => Client::builder().unix_socket(path.as_path()),
    };
    builder
        .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(GREETING_WAIT)
        // A redirect would carry the token to whoever it names.
        .redirect(redirect::Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        // The system's certificates are many, and nobody asks for one.
        .tls_certs_only([])
        .build()
        .map_err(|error| Failure::failed(format!("no server can be asked: {error}")))
}

fn json(request: RequestBuilder, value: &impl Serialize) -> Result<RequestBuilder, Failure> {
    let body = serde_json::to_vec(value)
        .map_err(|error| Failure::failed(format!("it cannot be sent: {error}")))?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(body))
}
