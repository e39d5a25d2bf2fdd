//! The project: the folder somebody works in, and its `.antiphon`, which only its owner may read.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::port::{Agents, Journal, RandomIds, SystemClock};
use antiphon_keys::KeyRing;
use antiphon_private_file::create_folder;
use antiphon_runtime::{
    Budget, NoSpendLimits, Orchestrator, RuntimeConfig, RuntimeDeps, Settings, SpendLimitSource,
};
use antiphon_sqlite::{SqliteJournal, Sync};

use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::hands::Toolset;
use crate::models::Models;
use crate::orders::{drop_settings, set_aside_brought};
use crate::spend_limits::KeySpendLimits;
use crate::team::Team;

/// The folder that holds what Antiphon knows of a project.
const FOLDER: &str = ".antiphon";

/// The project that is worked on.
pub(crate) struct Project {
    /// The folder that is worked on.
    root: PathBuf,
    /// Where in it.
    here: PathBuf,
}

impl Project {
    /// The nearest folder from here upward that has an `.antiphon`, or else this one.
    pub(crate) fn here() -> Result<Self, Failure> {
        let here = std::env::current_dir()
            .map_err(|error| Failure::usage(format!("there is no current folder: {error}")))?;
        let is_known = |folder: &&Path| {
            fs::symlink_metadata(folder.join(FOLDER)).is_ok_and(|about| about.is_dir())
        };
        let known = here.ancestors().find(is_known).map(Path::to_owned);
        Ok(Self { root: known.unwrap_or_else(|| here.clone()), here })
    }

    /// This very folder.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { here: root.clone(), root }
    }

    /// The same as [`Self::here`], if anything was ever done here.
    pub(crate) fn known() -> Result<Self, Failure> {
        let project = Self::here()?;
        if !project.has_journal() {
            return Err(Failure::usage("there are no tasks here: begin with `antiphon run`"));
        }
        Ok(project)
    }

    /// The folder that is worked on.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where somebody works in it.
    pub(crate) fn working_folder(&self) -> &Path {
        &self.here
    }

    /// The folder that holds what Antiphon knows of it.
    pub(crate) fn folder(&self) -> PathBuf {
        self.root.join(FOLDER)
    }

    /// Whether anything was ever done here.
    pub(crate) fn has_journal(&self) -> bool {
        self.journal_path().is_file()
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.folder().join("journal.db")
    }

    /// Makes the folder, if it is not there, and for its owner only.
    pub(crate) fn prepare(&self) -> Result<(), Failure> {
        let folder = self.folder();
        make_private(&folder)
            .map_err(|error| Failure::usage(format!("cannot use {}: {error}", folder.display())))
    }

    /// The project's journal, for this process alone.
    pub(crate) fn journal(&self) -> Result<SqliteJournal, Failure> {
        self.break_ground()?;
        SqliteJournal::open(&self.journal_path(), Sync::Full).map_err(Failure::from)
    }

    /// Makes the folder ready for a journal. What was in it before there was one may have come with a
    /// clone, and is not believed.
    pub(crate) fn break_ground(&self) -> Result<(), Failure> {
        self.refuse_brought_keys()?;
        self.prepare()?;
        if !self.has_journal() {
            self.forget_brought_token()?;
            set_aside_brought(self.root(), &drop_settings())?;
        }
        Ok(())
    }

    /// Makes sure that something was done here: from then on, what lies in the folder is ours.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        if !self.has_journal() {
            self.journal()?;
        }
        Ok(())
    }

    /// The project's keys.
    pub(crate) fn keys(&self) -> Result<KeyRing, Failure> {
        self.refuse_brought_keys()?;
        Ok(KeyRing::open(self.keys_path())?)
    }

    fn keys_path(&self) -> PathBuf {
        self.folder().join("keys.json")
    }

    /// Keys that were here before anything was done may have come with a clone: somebody knows them.
    fn refuse_brought_keys(&self) -> Result<(), Failure> {
        let path = self.keys_path();
        if self.has_journal() || fs::symlink_metadata(&path).is_err() {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "{} was here before anything was done in this folder: it may have come with it, and somebody \
             may know its keys. Remove it, and make keys of your own with `antiphon keys new`",
            path.display()
        )))
    }

    /// A token that was here before anything was done goes the same way: a server makes a new one.
    fn forget_brought_token(&self) -> Result<(), Failure> {
        let path = self.folder().join("token");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::refused(format!("cannot remove {}: {error}", path.display())))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// An orchestrator that works on the project's tasks.
    pub(crate) fn orchestrator(
        &self,
        models: Models,
        hands: Toolset,
        team: &Team,
    ) -> Result<Orchestrator, Failure> {
        let budget = self.budget(models.config());
        Ok(Orchestrator::new(RuntimeConfig { deps: self.world_of(models, hands, team)?, budget }))
    }

    /// An orchestrator that keeps the books and takes nothing up.
    pub(crate) fn keeper(&self, models: Models, hands: Toolset) -> Result<Orchestrator, Failure> {
        let (journal, budget) = (Arc::new(self.journal()?), self.budget(models.config()));
        Ok(Orchestrator::record_only(RuntimeConfig { deps: world(journal, models, hands), budget }))
    }

    /// The same, who knows the agents.
    pub(crate) fn keeper_of(
        &self,
        models: Models,
        hands: Toolset,
        team: &Team,
    ) -> Result<Orchestrator, Failure> {
        let budget = self.budget(models.config());
        Ok(Orchestrator::record_only(RuntimeConfig {
            deps: self.world_of(models, hands, team)?,
            budget,
        }))
    }

    /// What may be spent in it: in all, and by each who has a key.
    fn budget(&self, config: &Config) -> Budget {
        let spend_limits: Arc<dyn SpendLimitSource> = match self.keys() {
            Ok(ring) => Arc::new(KeySpendLimits(ring)),
            // Whoever needs keys says what is wrong with them.
            Err(_) => Arc::new(NoSpendLimits),
        };
        Budget { total: config.budget, spend_limits }
    }

    /// The same for a journal that is not the project's yet.
    pub(crate) fn keeper_at(path: &Path, models: Models) -> Result<Orchestrator, Failure> {
        let journal = Arc::new(SqliteJournal::open(path, Sync::Full)?);
        Ok(Orchestrator::record_only(world(journal, models, Toolset::none())))
    }

    fn world_of(
        &self,
        models: Models,
        hands: Toolset,
        team: &Team,
    ) -> Result<RuntimeDeps, Failure> {
        let journal = Arc::new(self.journal()?);
        let agents: Arc<dyn Agents> = Arc::clone(&team.agents) as _;
        let runners = team.runners.clone();
        Ok(RuntimeDeps { agents: Some(agents), runners, ..world(journal, models, hands) })
    }

    /// An orchestrator that looks and changes nothing, also while another process works.
    pub(crate) fn reader(&self, models: Models) -> Result<Orchestrator, Failure> {
        let journal: Arc<dyn Journal> = match self.journal() {
            Ok(journal) => Arc::new(journal),
            Err(failure) if failure.exit == Exit::Unavailable => {
                Arc::new(SqliteJournal::open_read_only(&self.journal_path())?)
            }
            Err(failure) => return Err(failure),
        };
        let budget = self.budget(models.config());
        Ok(Orchestrator::record_only(RuntimeConfig {
            deps: world(journal, models, Toolset::none()),
            budget,
        }))
    }
}

fn world(journal: Arc<dyn Journal>, models: Models, hands: Toolset) -> RuntimeDeps {
    RuntimeDeps {
        journal,
        prices: Arc::new(models.config().prices.clone()),
        models: Arc::new(models),
        tools: hands.tools,
        gate: hands.gate,
        agents: None,
        runners: Vec::new(),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RandomIds),
        settings: Settings { approvals: hands.asking, ..Settings::default() },
    }
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(folder).is_err() {
        DirBuilder::new().mode(0o700).create(folder)?;
        // Prompts and answers are nobody else's business.
        return fs::write(
            folder.join(".gitignore"),
            "journal.db*\nmcp-tools.json\nresults/\ntmp/\nworkers/\nterminals/\nrequests/\nschedules.json\n\
             server.json\nserver.sock\ntoken\nkeys.json*\n",
        );
    }
    // A link, or another user's folder, may come with a clone and lead anywhere.
    create_folder(folder)
}
