//! Following changes of files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use antiphon_agent_files::{AgentCatalog, ChangeDetection, Changes, Folder};
use antiphon_core::port::Agents;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{agent, catalog};

/// How long a change may take to be reported.
const REPORT_TIMEOUT: Duration = Duration::from_secs(20);

/// A watched catalog.
struct World {
    folder: TempDir,
    catalog: Arc<AgentCatalog>,
    reported: mpsc::Receiver<Changes>,
    stop: CancellationToken,
    watching: JoinSet<()>,
}

impl World {
    /// Begins with what `prepare` puts there, in the folder `agents`.
    fn new(detection: ChangeDetection, prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        let catalog = Arc::new(catalog(vec![Folder::project(folder.path().join("agents"))]));
        let (sender, reported) = mpsc::channel(100);
        let (stop, mut watching) = (CancellationToken::new(), JoinSet::new());
        let watch = catalog.clone().watch(detection, stop.clone(), move |changes: &Changes| {
            sender.try_send(changes.clone()).unwrap();
        });
        watching.spawn(watch);
        Self { folder, catalog, reported, stop, watching }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    /// Waits until an agent has this description.
    async fn until(&mut self, name: &str, description: Option<&str>) {
        let reported = async {
            while self.description(name).as_deref() != description {
                self.reported.recv().await.unwrap();
            }
        };
        let arrived = tokio::time::timeout(REPORT_TIMEOUT, reported).await.is_ok();
        assert!(arrived, "{name} is {:?}, not {description:?}", self.catalog.find(name));
    }

    /// Waits until so many things are wrong.
    async fn until_wrong(&mut self, problems: usize) {
        let reported = async {
            while self.catalog.problems().len() != problems {
                self.reported.recv().await.unwrap();
            }
        };
        let arrived = tokio::time::timeout(REPORT_TIMEOUT, reported).await.is_ok();
        assert!(arrived, "{:?}", self.catalog.problems());
    }

    fn description(&self, name: &str) -> Option<String> {
        self.catalog.find(name).map(|agent| agent.description.clone())
    }

    async fn end(mut self) {
        self.stop.cancel();
        self.watching.join_next().await.unwrap().unwrap();
    }
}

fn with_folder(world: &Path) {
    fs::create_dir(world.join("agents")).unwrap();
}

async fn follows_a_file(detection: ChangeDetection) {
    let mut world = World::new(detection, with_folder);
    world.write("agents/a.md", &agent("created"));
    world.until("a", Some("created")).await;
    world.write("agents/a.md", &agent("changed"));
    world.until("a", Some("changed")).await;
    world.write("agents/a.md", "---\nbroken");
    world.until_wrong(1).await;
    assert_eq!(world.description("a").as_deref(), Some("changed"));
    world.write("agents/a.md", &agent("fixed"));
    world.until("a", Some("fixed")).await;
    world.until_wrong(0).await;
    fs::remove_file(world.path("agents/a.md")).unwrap();
    world.until("a", None).await;
    world.end().await;
}

#[tokio::test]
async fn a_file_is_followed_as_it_is_created_changed_broken_fixed_and_deleted() {
    follows_a_file(ChangeDetection::Events).await;
}

#[tokio::test]
async fn a_file_is_followed_by_polling() {
    follows_a_file(ChangeDetection::Polling).await;
}

#[tokio::test]
async fn what_an_editor_moves_into_place_is_read() {
    let mut world = World::new(ChangeDetection::Events, |world| {
        with_folder(world);
        fs::write(world.join("agents/a.md"), agent("old")).unwrap();
    });
    world.until("a", Some("old")).await;
    // Beside it and over it, as most editors do.
    world.write("agents/.a.md.swp", &agent("new"));
    fs::rename(world.path("agents/.a.md.swp"), world.path("agents/a.md")).unwrap();
    world.until("a", Some("new")).await;
    // The old one aside first, as vi does.
    fs::rename(world.path("agents/a.md"), world.path("agents/a.md~")).unwrap();
    world.write("agents/a.md", &agent("newer"));
    world.until("a", Some("newer")).await;
    // Under another name.
    fs::rename(world.path("agents/a.md"), world.path("agents/b.md")).unwrap();
    world.until("a", None).await;
    world.until("b", Some("newer")).await;
    // In from elsewhere.
    world.write("c.md", &agent("from elsewhere"));
    fs::rename(world.path("c.md"), world.path("agents/c.md")).unwrap();
    world.until("c", Some("from elsewhere")).await;
    world.end().await;
}

#[tokio::test]
async fn a_folder_is_followed_when_it_comes_goes_and_is_replaced() {
    let mut world = World::new(ChangeDetection::Events, |_| {});
    with_folder(world.folder.path());
    world.write("agents/a.md", &agent("one"));
    world.until("a", Some("one")).await;
    world.write("agents/a.md", &agent("two"));
    world.until("a", Some("two")).await;
    fs::remove_dir_all(world.path("agents")).unwrap();
    world.until("a", None).await;
    with_folder(world.folder.path());
    world.write("agents/a.md", &agent("three"));
    world.until("a", Some("three")).await;
    fs::create_dir(world.path("other")).unwrap();
    world.write("other/a.md", &agent("four"));
    fs::rename(world.path("agents"), world.path("aside")).unwrap();
    fs::rename(world.path("other"), world.path("agents")).unwrap();
    world.until("a", Some("four")).await;
    world.write("agents/a.md", &agent("five"));
    world.until("a", Some("five")).await;
    world.end().await;
}

#[tokio::test]
async fn a_schema_in_another_folder_is_followed() {
    let mut world = World::new(ChangeDetection::Events, |world| {
        fs::create_dir_all(world.join("agents/schemas")).unwrap();
        let text = "---\ndescription: d\noutput_schema: schemas/s.json\n---\nb";
        fs::write(world.join("agents/a.md"), text).unwrap();
    });
    world.until_wrong(1).await;
    world.write("agents/schemas/s.json", "{}");
    world.until("a", Some("d")).await;
    world.write("agents/schemas/s.json", "{");
    world.until_wrong(1).await;
    assert!(world.description("a").is_some());
    world.end().await;
}

#[tokio::test]
async fn reading_a_file_is_no_change() {
    let mut world = World::new(ChangeDetection::Events, |world| {
        with_folder(world);
        fs::write(world.join("agents/a.md"), agent("a")).unwrap();
    });
    for name in ["b", "c"] {
        world.write("ready.md", &agent(name));
        fs::rename(world.path("ready.md"), world.path(&format!("agents/{name}.md"))).unwrap();
        let changes =
            tokio::time::timeout(REPORT_TIMEOUT, world.reported.recv()).await.unwrap().unwrap();
        assert_eq!(changes, Changes { added: vec![name.to_owned()], ..Changes::default() });
        for _ in 0..100 {
            fs::read(world.path("agents/a.md")).unwrap();
        }
    }
    world.end().await;
}

#[tokio::test]
async fn watching_ends_when_it_is_stopped() {
    for detection in [ChangeDetection::Events, ChangeDetection::Polling] {
        let world = World::new(detection, with_folder);
        tokio::time::timeout(REPORT_TIMEOUT, world.end()).await.unwrap();
    }
}
