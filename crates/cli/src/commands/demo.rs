//! `antiphon demo`: the offline tour. A server of its own, a team of agents in a scratch project, a
//! question, a message, a `kill -9`, and what comes back.
//!
//! Whatever happens, no process of it is left: not after an error, not after Ctrl-C. The folder is kept,
//! unless it was asked to be removed.

mod cues;
mod ending;
mod keys;
mod proof;
mod scratch;
mod server;
mod show;
mod stage;
mod streams;
mod telling;
mod trial;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use antiphon_core::ModelRef;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Exit, Failure};
use crate::models::{Models, Route};
use crate::watch::Tone;
use antiphon_project::environment::Environment;
use antiphon_project::settings::UserSettings;
use ending::Ending;
use keys::Keys;
use proof::Proof;
use scratch::Scratch;
use server::Server;
use show::{Played, Show};
use trial::Trial;
use view::View;

/// The model of the script.
const SCRIPTED: &str = "scripted/team";

/// How long somebody has to read what is to come.
const OPENING: Duration = Duration::from_millis(2500);

/// See a team of agents at work, killed in the middle and going on: offline, in half a minute.
#[derive(Debug, Args)]
#[command(after_help = "\
A server is started in a folder of its own. A lead and three agents mend a small project there: one asks
for permission, one is steered, and the server is killed with SIGKILL and started again. Without --model
their words come from a script; everything else is real. The folder is kept, and its path printed.

Examples:
  antiphon demo
  antiphon demo --model anthropic/claude-sonnet-4-5
  antiphon demo --fast --rm
  antiphon demo --fast --json | jq -c 'select(.type == \"summary\")'")]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(crate) struct Demo {
    /// Who answers, as PROVIDER/MODEL; a script when absent.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<ModelRef>,

    /// Where to work: a folder that is empty or not there yet. A new one in the folder for temporary
    /// files when absent.
    #[arg(long, value_name = "DIR", visible_alias = "keep")]
    dir: Option<PathBuf>,

    /// Remove the folder at the end.
    #[arg(long)]
    rm: bool,

    /// No pauses, and a script that speaks fast.
    #[arg(long)]
    fast: bool,

    /// Ask nobody: the demo answers what is asked.
    #[arg(long)]
    yes: bool,

    /// Print JSON: an object on each line, the last with everything that came out.
    #[arg(long)]
    json: bool,
}

/// Who speaks.
#[derive(Debug)]
enum Cast {
    /// A script that comes with the demo.
    Script(ModelRef),
    /// A model of the user's.
    Model(ModelRef),
}

impl Cast {
    fn is_scripted(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    fn model(&self) -> &ModelRef {
        match self {
            Self::Script(model) | Self::Model(model) => model,
        }
    }
}

/// For whom it is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speed {
    /// Somebody who reads.
    Readable,
    /// A program.
    Fast,
}

/// What becomes of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Kept,
    Removed,
}

impl Demo {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let cast = self.cast(environment)?;
        let fault = |error| Failure::failed(format!("cannot hear signals: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
        let speed = if self.fast { Speed::Fast } else { Speed::Readable };
        let scratch = Scratch::make(self.dir.as_deref(), speed)?;
        let mut server = None;
        let mut view = View::new(self.json);
        let played = tokio::select! {
            played = self.play(environment, &cast, &scratch, speed, &mut view, &mut server) => played,
            _ = interrupt.recv() => Err(Failure::interrupted()),
            _ = terminate.recv() => Err(Failure::interrupted()),
        };
        // Nothing is drawn any more, and the cursor is there again.
        drop(view);
        if let Some(mut server) = server {
            server.end().await;
        }
        match (self.keep(), played) {
            (Keep::Removed, played) => scratch.remove().and(played),
            (Keep::Kept, Ok(())) => Ok(()),
            (Keep::Kept, Err(failure)) => Err(kept(failure, &scratch)),
        }
    }

    fn cast(&self, environment: &Environment) -> Result<Cast, Failure> {
        let Some(model) = &self.model else {
            let model = ModelRef::parse(SCRIPTED);
            return model.map(Cast::Script).map_err(|error| Failure::failed(error.to_string()));
        };
        // Whether it can be asked at all is known before anything is begun.
        Models::new(UserSettings::load(environment)?).provider(model, &Route::default())?;
        Ok(Cast::Model(model.clone()))
    }

    fn keep(&self) -> Keep {
        if self.rm { Keep::Removed } else { Keep::Kept }
    }

    async fn play(
        &self,
        environment: &Environment,
        cast: &Cast,
        scratch: &Scratch,
        speed: Speed,
        view: &mut View,
        place: &mut Option<Server>,
    ) -> Result<(), Failure> {
        let config = match cast {
            Cast::Script(_) => UserSettings::load_file(&scratch.config(), environment)?,
            Cast::Model(_) => UserSettings::load(environment)?,
        };
        opening(view, cast, scratch)?;
        let before = Trial::run(&scratch.project(), &config).await;
        red(view, &before)?;
        let server = place.insert(Server::start(scratch, cast).await?);
        let listens =
            format!("antiphon serve is process {} and listens on {}.", server.pid, server.url);
        view.say(Tone::Plain, &listens)?;
        if view.is_drawn() && speed == Speed::Readable {
            tokio::time::sleep(OPENING).await;
        }
        let keys = if self.yes || !view.is_drawn() { None } else { Keys::listen() };
        let prices = &config.prices;
        let played = Show { scratch, cast, speed, prices, view, keys, server }.play().await?;
        if let Some(server) = place {
            server.end().await;
        }
        self.end(cast, scratch, view, &played, &config).await
    }

    async fn end(
        &self,
        cast: &Cast,
        scratch: &Scratch,
        view: &mut View,
        played: &Played,
        config: &UserSettings,
    ) -> Result<(), Failure> {
        let trial = &Trial::run(&scratch.project(), config).await;
        let killed = played.killed.map(|(killed, _)| killed);
        let proof = &Proof::read(&scratch.project(), killed).await?;
        let keep = self.keep();
        let prices = &config.prices;
        Ending { scratch, cast, keep, prices, played, proof, trial }.tell(view)?;
        if !proof.holds() {
            let message = "the journal does not say what was promised: please report this";
            return Err(Failure::failed(message));
        }
        match trial {
            Ok(trial) if !trial.passed => Err(Failure::failed("the tests do not pass")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

fn opening(view: &mut View, cast: &Cast, scratch: &Scratch) -> Result<(), Failure> {
    view.heading("antiphon demo")?;
    view.say(
        Tone::Plain,
        "A lead and three agents mend a small project, and the server that runs them is killed.",
    )?;
    match cast {
        Cast::Script(_) => view.say(
            Tone::Plain,
            "The model is a script: its words were written beforehand (project/team.toml). The rest is \
             real: processes, tools, sandbox, journal, kill.",
        )?,
        Cast::Model(model) => view.say(
            Tone::Plain,
            &format!(
                "The model is {model}: what it does is up to it, and what it costs is yours. If it does \
                 not do something, the demo says so."
            ),
        )?,
    }
    view.say(Tone::Faint, &format!("{}", scratch.folder().display()))?;
    view.say(Tone::Plain, "")
}

/// The project as it is before anybody works on it.
fn red(view: &mut View, before: &Result<Trial, String>) -> Result<(), Failure> {
    match before {
        Ok(trial) => view.quote(&trial.lines())?,
        Err(reason) => {
            let without = format!(
                "There is no sandbox here, so commands are refused, and the agents do without: {reason}. \
                 `antiphon doctor` says more."
            );
            view.say(Tone::Bad, &without)?;
        }
    }
    view.say(Tone::Plain, "")
}

/// What to do with what is left.
fn kept(failure: Failure, scratch: &Scratch) -> Failure {
    let folder = scratch.root();
    let folder = folder.display();
    let message = match failure.exit {
        Exit::Interrupted => format!(
            "interrupted; no process is left. What was begun is kept: `cd {folder} && antiphon tasks tree`"
        ),
        Exit::Failed | Exit::Usage | Exit::Refused | Exit::Unavailable => {
            format!("{failure}\nlook for yourself in {folder}")
        }
    };
    Failure { message, ..failure }
}
