//! Files that must not be used, and files that are meant to do harm.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_file_drop::{
    FileDropSettings, FolderTrust, PassCounts, RequestFolder, SettingsError, WhenAbsent,
    count_waiting, watch,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::world::{World, comparable, names, read, stop, stopped};

/// Another user.
const OTHER_USER: u32 = 65534;

/// One file is rejected with this message and code.
async fn is_rejected(world: &World, message: &str, code: &str) {
    let tally = world.pass().await;
    assert_eq!(tally, PassCounts { set_aside: 1, ..PassCounts::default() });
    let error = json!({"code": code, "message": message});
    let expected =
        json!({"request": "a.json", "ok": false, "error": error, "setAside": "rejected/a.json"});
    assert_eq!(world.comparable("a").await, expected);
    assert_eq!(world.names(), ["a.response.json", "rejected"]);
    assert_eq!(names(&world.path("rejected")), ["a.json", "a.json.reason.txt"]);
    assert_eq!(world.orders.calls(), 0);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Only root can change the owner of files.
fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

#[tokio::test]
async fn a_link_is_not_followed() {
    let world = World::new();
    let target = world.project().join("target.json");
    fs::write(&target, stop("a")).unwrap();
    symlink(&target, world.path("a.json")).unwrap();
    is_rejected(&world, "it is a link: put the file itself here", "FORBIDDEN").await;
    assert_eq!(fs::read_to_string(target).unwrap(), stop("a"));
}

#[tokio::test]
async fn a_pipe_does_not_block() {
    let world = World::new();
    mknodat(CWD, world.path("a.json"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    is_rejected(&world, "it is not a regular file: put a file here", "FORBIDDEN").await;
}

#[tokio::test]
async fn a_folder_is_not_a_request() {
    let world = World::new();
    fs::create_dir(world.path("a.json")).unwrap();
    fs::write(world.path("a.json").join("b.json"), stop("b")).unwrap();
    is_rejected(&world, "it is not a regular file: put a file here", "FORBIDDEN").await;
}

#[tokio::test]
async fn a_huge_file_is_not_read() {
    let world = World::new();
    let file = File::create(world.path("a.json")).unwrap();
    file.set_len(1 << 40).unwrap();
    is_rejected(&world, "a request may have 1048576 bytes at most", "INVALID_REQUEST").await;
}

#[tokio::test]
async fn a_file_of_the_largest_size_is_read() {
    let world = World::new();
    let mut request = stop("a").into_bytes();
    request.resize(antiphon_file_drop::REQUEST_BYTES_MAX, b' ');
    fs::write(world.path("a.json"), &request).unwrap();
    request.push(b' ');
    fs::write(world.path("b.json"), &request).unwrap();
    assert_eq!(
        world.pass().await,
        PassCounts { answered: 1, set_aside: 1, ..PassCounts::default() }
    );
    assert_eq!(world.orders.effects(), [stopped("a")]);
}

#[tokio::test]
async fn a_file_of_another_user_is_refused() {
    if !is_root() {
        return;
    }
    let world = World::new();
    fs::write(world.path("a.json"), stop("a")).unwrap();
    chown(world.path("a.json"), Some(OTHER_USER), None).unwrap();
    is_rejected(&world, "it belongs to user 65534, not to user 0: chown it", "FORBIDDEN").await;
}

#[tokio::test]
async fn a_file_that_others_can_write_to_is_refused() {
    for (mode, shown) in [(0o620, "0620"), (0o602, "0602"), (0o666, "0666")] {
        let world = World::new();
        fs::write(world.path("a.json"), stop("a")).unwrap();
        set_mode(&world.path("a.json"), mode);
        let message = format!("others may write to it (mode {shown}): `chmod go-w` it");
        is_rejected(&world, &message, "FORBIDDEN").await;
    }
}

#[tokio::test]
async fn a_file_that_others_can_only_read_is_accepted() {
    let world = World::new();
    fs::write(world.path("a.json"), stop("a")).unwrap();
    set_mode(&world.path("a.json"), 0o644);
    assert_eq!(world.pass().await.answered, 1);
}

#[tokio::test]
async fn a_mode_that_is_fixed_in_time_is_accepted() {
    let world = World::watched().await;
    let file = world.path("a.json");
    fs::write(&file, "").unwrap();
    set_mode(&file, 0o666);
    fs::write(&file, stop("a")).unwrap();
    world.drop("b.json", &stop("b"));
    world.response("b").await;
    assert_eq!(read(&world.path("a.response.json")), None);
    set_mode(&file, 0o600);
    assert_eq!(world.comparable("a").await["ok"], true);
}

#[tokio::test]
async fn a_link_with_the_name_of_the_response_is_replaced_and_not_followed() {
    let world = World::new();
    let target = world.project().join("target");
    fs::write(&target, "precious").unwrap();
    symlink(&target, world.path("a.response.json")).unwrap();
    fs::write(world.path("a.json"), stop("a")).unwrap();
    assert_eq!(world.pass().await.answered, 1);
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    assert!(fs::symlink_metadata(world.path("a.response.json")).unwrap().is_file());
    assert_eq!(world.comparable("a").await["ok"], true);
}

#[tokio::test]
async fn a_folder_with_the_name_of_the_response_is_moved_out_of_the_way() {
    let world = World::new();
    fs::create_dir(world.path("a.response.json")).unwrap();
    fs::write(world.path("a.response.json").join("x"), "").unwrap();
    fs::write(world.path("a.json"), stop("a")).unwrap();
    assert_eq!(world.pass().await.answered, 1);
    assert_eq!(world.comparable("a").await["ok"], true);
}

#[tokio::test]
async fn an_invalid_response_does_not_count_as_an_answer() {
    for planted in ["", "{}", "nonsense", r#"{"digest":"sha256:00"}"#] {
        let world = World::new();
        fs::write(world.path("a.response.json"), planted).unwrap();
        fs::write(world.path("a.json"), stop("a")).unwrap();
        assert_eq!(world.pass().await.answered, 1);
        assert_eq!(world.comparable("a").await["ok"], true);
    }
}

#[tokio::test]
async fn a_link_with_the_name_of_the_rejected_folder_is_not_followed() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), world.path("rejected")).unwrap();
    fs::write(world.path("a.json"), r#"{"action":"x"}"#).unwrap();
    assert_eq!(world.pass().await, PassCounts { answered: 1, ..PassCounts::default() });
    let error = json!({"code": "INVALID_REQUEST", "message": "unknown orchestrator action: x"});
    assert_eq!(
        world.comparable("a").await,
        json!({"request": "a.json", "ok": false, "error": error})
    );
    assert_eq!(names(outside.path()), Vec::<String>::new());
    assert_eq!(world.pass().await, PassCounts::default(), "it is answered");
}

#[tokio::test]
async fn a_response_cannot_name_a_target_outside_of_the_rejected_folder() {
    let world = World::new();
    fs::write(world.path("a.json"), r#"{"action":"x"}"#).unwrap();
    world.pass().await;
    let mut response: Value = serde_json::to_value(world.response("a").await).unwrap();
    response["setAside"] = "rejected/../../../../stolen.json".into();
    fs::write(world.path("a.response.json"), response.to_string()).unwrap();
    fs::write(world.path("a.json"), r#"{"action":"x"}"#).unwrap();
    world.pass().await;
    assert_eq!(names(world.project()), [".antiphon", ".ideai"]);
}

#[tokio::test]
async fn a_name_that_cannot_be_printed_is_answered_under_a_generated_name() {
    let world = World::new();
    let long = format!("{}.json", "x".repeat(200));
    let bad: [&[u8]; 4] =
        [b"\xff.json", b"a\nb.json", "a\u{200b}.json".as_bytes(), long.as_bytes()];
    for name in bad {
        fs::write(world.path("").join(OsStr::from_bytes(name)), stop("a")).unwrap();
    }
    assert_eq!(world.pass().await, PassCounts { set_aside: 4, ..PassCounts::default() });
    let names = world.names();
    assert_eq!(names.len(), 5, "{names:?}");
    for name in names.iter().filter(|name| *name != "rejected") {
        assert!(name.starts_with("unnamed-") && name.ends_with(".response.json"), "{name}");
        let response = read(&world.path(name)).unwrap();
        let aside = response.set_aside.clone().unwrap();
        assert_eq!(fs::read_to_string(world.path(&aside)).unwrap(), stop("a"));
        assert_eq!(response.error.unwrap().code, "INVALID_REQUEST");
    }
    assert_eq!(world.orders.calls(), 0);
}

#[tokio::test]
async fn a_duplicate_field_is_refused() {
    let world = World::new();
    let twice = r#"{"action":"stop_agent","name":"a","action":"spawn_agent","profile":"p"}"#;
    fs::write(world.path("a.json"), twice).unwrap();
    let message = "duplicate field `action` at line 1 column 42";
    is_rejected(&world, message, "INVALID_REQUEST").await;
    for (field, twice) in [
        ("name", r#"{"action":"stop_agent","name":"a","name":"b"}"#),
        ("context", r#"{"action":"update_agent_context","name":"a","context":"x","context":"y"}"#),
    ] {
        let world = World::new();
        fs::write(world.path("a.json"), twice).unwrap();
        let counts = PassCounts { set_aside: 1, ..PassCounts::default() };
        assert_eq!(world.pass().await, counts, "{field}");
        let error = world.comparable("a").await["error"].clone();
        assert_eq!(error["code"], "INVALID_REQUEST", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("duplicate field `{field}`")), "{message}");
        assert_eq!(world.orders.calls(), 0, "{field}");
    }
}

#[tokio::test]
async fn deep_nesting_does_not_overflow_the_stack() {
    let world = World::new();
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    let params = format!(r#"{{"action":"send","name":"a","intent":"i","params":{deep}}}"#);
    fs::write(world.path("params.json"), params).unwrap();
    let ignored = format!(r#"{{"action":"stop_agent","name":"a","ignored":{deep}}}"#);
    fs::write(world.path("ignored.json"), ignored).unwrap();
    let almost = format!("{}1{}", "[".repeat(110), "]".repeat(110));
    let almost = format!(r#"{{"action":"send","name":"a","intent":"i","params":{almost}}}"#);
    fs::write(world.path("almost.json"), almost).unwrap();
    world.pass().await;
    let reason = |answer: Value| answer["error"]["message"].as_str().unwrap().to_owned();
    let params = reason(world.comparable("params").await);
    assert!(params.starts_with("`params") && params.contains("recursion limit"), "{params:.200}");
    let almost = reason(world.comparable("almost").await);
    assert_eq!(almost, "`params`: JSON is nested deeper than 100 levels");
    assert_eq!(world.comparable("ignored").await["ok"], true);
}

/// Nothing in this folder is answered or changed.
async fn is_skipped(world: &World, folder: &Path) {
    let before = names(folder);
    assert_eq!(world.pass().await, PassCounts::default());
    assert_eq!(names(folder), before);
    assert_eq!(world.orders.calls(), 0);
}

#[tokio::test]
async fn a_requester_folder_that_is_a_link_is_skipped() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("a.json"), stop("a")).unwrap();
    symlink(outside.path(), world.requests().join("linked")).unwrap();
    is_skipped(&world, outside.path()).await;
}

#[tokio::test]
async fn requests_in_a_folder_that_others_can_write_to_are_told_so_until_its_mode_is_fixed() {
    for (root, mode) in [(0o755, 0o770), (0o755, 0o757), (0o700, 0o777)] {
        let world = World::new();
        set_mode(&world.requests(), root);
        fs::write(world.path("a.json"), stop("a")).unwrap();
        set_mode(&world.path(""), mode);
        let message = format!(
            "the folder of the requester: others may write to it (mode {mode:04o}): `chmod go-w` it, then drop the \
             request again"
        );
        is_rejected(&world, &message, "FORBIDDEN").await;
        set_mode(&world.path(""), 0o700);
        fs::write(world.path("b.json"), stop("b")).unwrap();
        assert_eq!(world.pass().await.answered, 1);
        assert_eq!(world.orders.effects(), [stopped("b")]);
    }
}

#[tokio::test]
async fn a_drop_with_any_usual_umask_is_answered_in_a_folder_that_is_private() {
    // The folder that this process created, then the requester's folder and file as umasks leave them.
    for (folder, file) in [(0o755, 0o644), (0o775, 0o664), (0o700, 0o600)] {
        let world = World::new();
        fs::remove_dir_all(world.project().join(".antiphon")).unwrap();
        world.pass().await;
        for requests in [world.requests(), world.project().join(".ideai/requests")] {
            let mode = fs::metadata(&requests).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, 0o700, "{requests:?}");
            let boss = requests.join("boss");
            fs::create_dir(&boss).unwrap();
            set_mode(&boss, folder);
            fs::write(boss.join("a.json"), stop("a")).unwrap();
            set_mode(&boss.join("a.json"), file);
            assert_eq!(world.pass().await.answered, 1, "{folder:o} {file:o}");
        }
    }
    // What every user may write is refused there, too.
    let world = World::new();
    set_mode(&world.requests(), 0o700);
    fs::write(world.path("a.json"), stop("a")).unwrap();
    set_mode(&world.path("a.json"), 0o666);
    let message = "others may write to it (mode 0666): `chmod go-w` it";
    is_rejected(&world, message, "FORBIDDEN").await;
}

#[tokio::test]
async fn a_file_that_may_not_be_read_is_answered_with_why() {
    if is_root() {
        // Root may read every file.
        return;
    }
    let world = World::new();
    fs::write(world.path("a.json"), stop("a")).unwrap();
    set_mode(&world.path("a.json"), 0o200);
    is_rejected(&world, "it cannot be read: `chmod u+r` it", "FORBIDDEN").await;
}

#[tokio::test]
async fn a_requester_folder_of_another_user_is_skipped() {
    if !is_root() {
        return;
    }
    let world = World::new();
    fs::write(world.path("a.json"), stop("a")).unwrap();
    chown(world.path(""), Some(OTHER_USER), None).unwrap();
    is_skipped(&world, &world.path("")).await;
}

#[tokio::test]
async fn a_requester_folder_with_an_invalid_name_is_skipped() {
    let world = World::new();
    for name in [" lead", "a\nb", "-rf", "a:b", ".hidden"] {
        let folder = world.requests().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("a.json"), stop("a")).unwrap();
        is_skipped(&world, &folder).await;
    }
}

#[tokio::test]
async fn the_folder_of_requests_is_created_private_or_made_private() {
    let world = World::new();
    fs::remove_dir_all(world.project().join(".antiphon")).unwrap();
    world.pass().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&world.requests()), 0o700);
    assert_eq!(mode(world.requests().parent().unwrap()), 0o700);
    set_mode(&world.requests(), 0o777);
    world.pass().await;
    assert_eq!(mode(&world.requests()), 0o700);
}

#[tokio::test]
async fn requests_in_a_folder_that_is_not_trusted_are_answered_with_a_refusal() {
    let mut world = World::new();
    let trusted = Arc::new(AtomicBool::new(false));
    let created = Arc::new(AtomicUsize::new(0));
    let (asked, told) = (Arc::clone(&trusted), Arc::clone(&created));
    world.settings.trust = FolderTrust::new(
        move |folder| folder.ends_with(".antiphon/requests") && asked.load(Ordering::SeqCst),
        move |folder, _| {
            told.fetch_add(usize::from(folder.ends_with(".antiphon/requests")), Ordering::SeqCst);
        },
    );
    fs::write(world.path("a.json"), stop("a")).unwrap();
    // A folder of a clone is never private. It is left as it is.
    set_mode(&world.requests(), 0o755);
    assert_eq!(world.pass().await.answered, 1);
    assert_eq!(world.orders.calls(), 0);
    let refused = comparable(read(&world.path("a.response.json")).unwrap());
    assert_eq!(refused["error"]["code"], "FORBIDDEN");
    assert!(
        refused["error"]["message"].as_str().unwrap().starts_with("refused: not trusted. "),
        "{refused}"
    );
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&world.requests()), 0o755);
    assert_eq!(count_waiting(&world.requests(), 9), 0);

    trusted.store(true, Ordering::SeqCst);
    fs::write(world.path("b.json"), stop("b")).unwrap();
    assert_eq!(count_waiting(&world.requests(), 9), 1);
    assert_eq!(world.pass().await.answered, 1);
    assert_eq!(world.orders.effects(), [stopped("b")], "what was refused stays refused");
    assert_eq!(mode(&world.requests()), 0o700);
    // A folder that this process creates is reported, so that it can be trusted.
    assert_eq!(created.load(Ordering::SeqCst), 0);
    fs::remove_dir_all(world.requests()).unwrap();
    world.pass().await;
    assert_eq!(created.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_folder_behind_a_link_is_skipped() {
    let world = World::new();
    let outside = tempfile::tempdir().unwrap();
    let boss = outside.path().join("requests/boss");
    fs::create_dir_all(&boss).unwrap();
    fs::write(boss.join("a.json"), stop("a")).unwrap();
    symlink(outside.path(), world.project().join(".ideai")).unwrap();
    is_skipped(&world, &boss).await;
}

#[tokio::test]
async fn a_folder_of_another_user_is_skipped() {
    if !is_root() {
        return;
    }
    let world = World::new();
    fs::write(world.path("a.json"), stop("a")).unwrap();
    chown(world.requests(), Some(OTHER_USER), None).unwrap();
    is_skipped(&world, &world.path("")).await;
}

#[tokio::test]
async fn only_files_of_the_configured_owner_are_used() {
    if !is_root() {
        return;
    }
    let mut world = World::new();
    world.settings.owner = OTHER_USER;
    fs::write(world.path("a.json"), stop("a")).unwrap();
    is_skipped(&world, &world.path("")).await;
    for path in [world.requests(), world.path("")] {
        chown(path, Some(OTHER_USER), None).unwrap();
    }
    fs::write(world.path("b.json"), stop("b")).unwrap();
    chown(world.path("b.json"), Some(OTHER_USER), None).unwrap();
    world.pass().await;
    assert_eq!(
        world.orders.effects(),
        [stopped("b")],
        "only the file of the other user is accepted, not root's"
    );
    let refused = comparable(read(&world.path("a.response.json")).unwrap());
    assert_eq!(refused["error"]["code"], "FORBIDDEN");
}

#[tokio::test]
async fn invalid_settings_are_refused() {
    let folder = |path: &str| RequestFolder { path: path.into(), absent: WhenAbsent::Create };
    let with = |folders| FileDropSettings { folders, ..FileDropSettings::default() };
    let wrong = |path: &str| SettingsError::Folder { path: path.into() };
    let cases = [
        (with(vec![folder("../x")]), wrong("../x")),
        (with(vec![folder("/x")]), wrong("/x")),
        (with(vec![folder("")]), wrong("")),
        (with(vec![folder("x"); 9]), SettingsError::Folders { found: 9 }),
        (
            FileDropSettings { settle: Duration::MAX, ..FileDropSettings::default() },
            SettingsError::TooLong { limit: "settle" },
        ),
        (
            FileDropSettings { orders_max: 0, ..FileDropSettings::default() },
            SettingsError::Zero { limit: "orders_max" },
        ),
    ];
    for (settings, expected) in cases {
        let world = World::new();
        let watched =
            watch(world.project(), settings, world.orders.clone(), CancellationToken::new()).await;
        assert_eq!(watched, Err(expected));
    }
}
