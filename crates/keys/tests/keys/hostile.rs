//! A key file that is damaged, exposed, foreign or not a regular file: every key is refused and nothing is
//! changed.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use antiphon_keys::{FILE_BYTES_MAX, KeyRefusal, KeyRing, KeyRingError, Level};
use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use secrecy::SecretString;

use crate::world::{HOUR, World, accepts, new_key};

fn chmod(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A ring with a key, and a second ring that has read it.
fn running() -> (World, KeyRing, SecretString) {
    let world = World::new();
    let (_, secret) = world.ring().create(new_key("a", Level::Write)).unwrap();
    let server = world.ring();
    assert_eq!(accepts(&server, &secret), Ok(()));
    (world, server, secret)
}

/// Every operation returns the same error.
fn is_refused(world: &World, server: &KeyRing, secret: &SecretString) -> KeyRingError {
    world.advance_clock(1);
    let error = server.list().unwrap_err();
    let unavailable = KeyRefusal::Unavailable { reason: error.to_string() };
    assert_eq!(accepts(server, secret), Err(unavailable));
    assert_eq!(server.create(new_key("b", Level::Read)).unwrap_err(), error);
    assert_eq!(server.revoke("AAAAAAAA".parse().unwrap()).unwrap_err(), error);
    assert_eq!(server.rotate("AAAAAAAA".parse().unwrap(), HOUR).unwrap_err(), error);
    assert_eq!(KeyRing::open(world.path()).unwrap_err(), error);
    error
}

fn recovers(world: &World, server: &KeyRing, secret: &SecretString) {
    world.advance_clock(1);
    assert_eq!(accepts(server, secret), Ok(()));
    server.create(new_key("b", Level::Read)).unwrap();
}

#[test]
fn a_damaged_file_refuses_every_key_and_is_not_changed() {
    let (world, server, secret) = running();
    let good = world.text();
    let line = good.lines().nth(1).unwrap();
    let damaged = [
        (String::new(), "EOF while parsing a value at line 1 column 0"),
        ("null".to_owned(), "invalid type: null"),
        (good[..good.len() - 4].to_owned(), "EOF while parsing"),
        (good[..good.len() / 2].to_owned(), "EOF while parsing"),
        (format!("{good}x"), "trailing characters"),
        (format!("{good}{good}"), "trailing characters"),
        (
            good.replace("\"version\":1", "\"version\":2"),
            "its version is 2, and this program supports only 1",
        ),
        (good.replace("\"version\":1,", ""), "missing field `version`"),
        (good.replace("\"write\"", "\"root\""), "keys[0].key.level: unknown variant `root`"),
        (good.replace("\"level\":\"write\",", ""), "missing field `level`"),
        (good.replace("\"level\"", "\"realm\":\"x\",\"level\""), "unknown field `realm`"),
        (
            good.replace("\"level\"", "\"scope\":\"x\",\"level\""),
            "keys[0].key.scope: unknown variant `x`, expected `all` or `own`",
        ),
        (good.replace("\"sha256\"", "\"sha512\""), "unknown field `sha512`"),
        (good.replace("\"sha256\":\"", "\"sha256\":\"A"), "a digest is 32 bytes in base64"),
        (good.replace("\"name\":\"a\"", "\"name\":\"a\\nb\""), "keys[0].key.name: a name may hold"),
        (good.replace("\"id\":\"", "\"id\":\"x"), "keys[0].key.id: a key's id has 8 letters"),
        (good.replace(line, &format!("{line},\n{line}")), "appears twice"),
        (
            good.replace("\"write\"", "\"admin\",\"holder\":{\"agent\":\"x\"}"),
            "belongs to an agent and may not be `admin`",
        ),
        (good.replace("\"level\"", "\"rate_per_minute\":0,\"level\""), "a rate limit is from 1"),
    ];
    for (text, expected) in damaged {
        fs::write(world.path(), &text).unwrap();
        let error = is_refused(&world, &server, &secret);
        assert!(matches!(error, KeyRingError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}, not {expected}");
        assert_eq!(world.text(), text);
    }
    fs::write(world.path(), good).unwrap();
    recovers(&world, &server, &secret);
}

#[test]
fn invalid_text_and_unbounded_nesting_are_errors() {
    let (world, server, secret) = running();
    for text in [vec![0xff; 100], b"\0".repeat(100), b"[".repeat(1_000_000)] {
        fs::write(world.path(), text).unwrap();
        let error = is_refused(&world, &server, &secret);
        assert!(matches!(error, KeyRingError::Malformed { .. }), "{error}");
    }
}

#[test]
fn replacing_a_digest_invalidates_the_old_secret() {
    let (world, server, secret) = running();
    let other = World::new();
    other.ring().create(new_key("x", Level::Write)).unwrap();
    let digest = |text: &str| {
        let (_, rest) = text.split_once("\"sha256\":\"").unwrap();
        rest[..43].to_owned()
    };
    let text = world.text().replace(&digest(&world.text()), &digest(&other.text()));
    fs::write(world.path(), text).unwrap();
    world.advance_clock(1);
    assert_eq!(accepts(&server, &secret), Err(KeyRefusal::Unknown));
}

#[test]
fn a_file_that_other_users_can_access_refuses_every_key_until_its_mode_is_fixed() {
    let (world, server, secret) = running();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666] {
        chmod(world.path(), mode);
        let error = is_refused(&world, &server, &secret);
        let path = world.path().display().to_string();
        assert_eq!(error, KeyRingError::Exposed { path: path.clone(), mode, wanted: 0o600 });
        let expected = format!(
            "other users can access `{path}` (mode {mode:04o}): check its content, then run \
             `chmod 600 {path}`"
        );
        assert_eq!(error.to_string(), expected);
    }
    chmod(world.path(), 0o600);
    recovers(&world, &server, &secret);
}

#[test]
fn a_folder_that_other_users_can_write_to_refuses_every_key_until_its_mode_is_fixed() {
    let (world, server, secret) = running();
    for mode in [0o720, 0o702, 0o777, 0o1777] {
        chmod(world.folder(), mode);
        let path = world.folder().display().to_string();
        let exposed = KeyRingError::Exposed { path, mode, wanted: 0o700 };
        assert_eq!(is_refused(&world, &server, &secret), exposed);
    }
    chmod(world.folder(), 0o755);
    recovers(&world, &server, &secret);
}

#[test]
fn files_of_another_user_are_not_used() {
    let (world, server, secret) = running();
    let is_foreign = |error: KeyRingError| matches!(error, KeyRingError::Foreign { .. });
    if !rustix::process::geteuid().is_root() {
        // Only root can change an owner; this folder belongs to root.
        assert!(is_foreign(KeyRing::open("/keys.json").unwrap_err()));
        return;
    }
    for path in [world.path(), world.folder()] {
        chown(&path, Some(12_345), None).unwrap();
        let error = is_refused(&world, &server, &secret);
        let expected = format!("`{}` belongs to user 12345, not to user 0", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(is_foreign(error));
        chown(&path, Some(0), None).unwrap();
    }
    recovers(&world, &server, &secret);
}

/// Creates something at the path of the file.
type Put<'a> = &'a dyn Fn(&Path);

#[test]
fn anything_but_a_regular_file_is_refused_and_does_not_block() {
    let (world, server, secret) = running();
    let real = world.folder().join("real.json");
    fs::rename(world.path(), &real).unwrap();
    let put: [(&str, Put<'_>); 5] = [
        ("it is a link", &|path| symlink(&real, path).unwrap()),
        ("it is a link", &|path| symlink("nowhere", path).unwrap()),
        ("it is not a regular file", &|path| fs::create_dir(path).unwrap()),
        ("it is not a regular file", &|path| {
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }),
        ("it has more than 8388608 bytes", &|path| {
            File::create(path).unwrap().set_len(1 << 40).unwrap();
            chmod(path, 0o600);
        }),
    ];
    for (expected, put) in put {
        put(&world.path());
        let started = Instant::now();
        let error = is_refused(&world, &server, &secret);
        assert!(started.elapsed() < Duration::from_secs(5));
        assert!(matches!(error, KeyRingError::Unusable { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}, not {expected}");
        fs::remove_file(world.path()).or_else(|_| fs::remove_dir(world.path())).unwrap();
    }
    fs::rename(&real, world.path()).unwrap();
    recovers(&world, &server, &secret);
    assert_eq!(FILE_BYTES_MAX, 8_388_608);
}

#[test]
fn a_folder_that_is_a_link_is_not_used() {
    let (world, server, secret) = running();
    let real = world.folder().with_file_name("real");
    fs::rename(world.folder(), &real).unwrap();
    symlink(&real, world.folder()).unwrap();
    let error = is_refused(&world, &server, &secret);
    assert!(error.to_string().ends_with("it is a link, or no folder"), "{error}");
}

#[test]
fn no_write_follows_a_link() {
    let (world, server, _) = running();
    let outside = world.folder().with_file_name("outside");
    fs::write(&outside, "precious").unwrap();
    symlink(&outside, world.folder().join("keys.json.new")).unwrap();
    server.create(new_key("b", Level::Read)).unwrap();
    assert_eq!(world.names(), ["keys.json", "keys.json.lock"]);

    fs::remove_file(world.folder().join("keys.json.lock")).unwrap();
    symlink(&outside, world.folder().join("keys.json.lock")).unwrap();
    let error = server.create(new_key("c", Level::Read)).unwrap_err();
    assert!(matches!(error, KeyRingError::Unusable { .. }), "{error}");
    assert_eq!(fs::read_to_string(outside).unwrap(), "precious");
    assert_eq!(server.list().unwrap().len(), 2);
}

#[test]
fn a_file_that_is_gone_is_a_ring_without_keys() {
    let (world, server, secret) = running();
    fs::remove_file(world.path()).unwrap();
    world.advance_clock(1);
    assert_eq!(accepts(&server, &secret), Err(KeyRefusal::Unknown));
    fs::remove_dir_all(world.folder()).unwrap();
    assert_eq!(server.list(), Ok(vec![]));
    let (_, secret) = server.create(new_key("b", Level::Read)).unwrap();
    assert_eq!(accepts(&world.ring(), &secret), Ok(()));
}

#[test]
fn a_path_without_a_file_name_or_with_a_missing_parent_is_an_error() {
    let world = World::new();
    for path in ["/", "..", ""] {
        let error = KeyRing::open(path).unwrap_err();
        assert!(matches!(error, KeyRingError::Unusable { .. }), "{path}: {error}");
    }
    let deep = KeyRing::open(world.folder().join("a/b/keys.json")).unwrap();
    let error = deep.create(new_key("a", Level::Read)).unwrap_err();
    assert!(matches!(error, KeyRingError::Unusable { .. }), "{error}");
}

#[test]
fn a_lock_held_too_long_is_an_error_and_checks_continue_meanwhile() {
    let (world, server, secret) = running();
    let lock = File::open(world.folder().join("keys.json.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let started = Instant::now();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.create(new_key("b", Level::Read)));
        while !waiting.is_finished() {
            world.advance_clock(1);
            assert_eq!(accepts(&server, &secret), Ok(()));
        }
        let busy = KeyRingError::Busy { path: world.path().display().to_string() };
        assert_eq!(waiting.join().unwrap().unwrap_err(), busy);
    });
    assert!(started.elapsed() >= antiphon_keys::LOCK_WAIT);
    drop(lock);
    server.create(new_key("b", Level::Read)).unwrap();
}
