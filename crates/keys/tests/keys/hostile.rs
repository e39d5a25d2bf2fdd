//! A file that is damaged, exposed, somebody else's, or no file: nobody is let in, nothing is touched.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use antiphon_keys::{FILE_BYTES_MAX, KeyRing, Level, Refused, RingError};
use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use secrecy::SecretString;

use crate::world::{HOUR, World, enters, new_key};

fn chmod(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A ring with a key, and a server that knows it.
fn running() -> (World, KeyRing, SecretString) {
    let world = World::new();
    let (_, secret) = world.ring().create(new_key("a", Level::Write)).unwrap();
    let server = world.ring();
    assert_eq!(enters(&server, &secret), Ok(()));
    (world, server, secret)
}

/// Whatever asks gets the same error, until all is as before.
fn is_refused(world: &World, server: &KeyRing, secret: &SecretString) -> RingError {
    world.turn_clock(1);
    let error = server.list().unwrap_err();
    let unavailable = Refused::Unavailable { reason: error.to_string() };
    assert_eq!(enters(server, secret), Err(unavailable));
    assert_eq!(server.create(new_key("b", Level::Read)).unwrap_err(), error);
    assert_eq!(server.revoke("AAAAAAAA".parse().unwrap()).unwrap_err(), error);
    assert_eq!(server.rotate("AAAAAAAA".parse().unwrap(), HOUR).unwrap_err(), error);
    assert_eq!(KeyRing::open(world.path()).unwrap_err(), error);
    error
}

fn is_well_again(world: &World, server: &KeyRing, secret: &SecretString) {
    world.turn_clock(1);
    assert_eq!(enters(server, secret), Ok(()));
    server.create(new_key("b", Level::Read)).unwrap();
}

#[test]
fn a_damaged_file_lets_nobody_in_and_is_left_as_it_is() {
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
        (good.replace("\"version\":1", "\"version\":2"), "its version is 2, and only 1 is known"),
        (good.replace("\"version\":1,", ""), "missing field `version`"),
        (good.replace("\"write\"", "\"root\""), "keys[0].key.level: unknown variant `root`"),
        (good.replace("\"level\":\"write\",", ""), "missing field `level`"),
        (good.replace("\"level\"", "\"scope\":\"x\",\"level\""), "unknown field `scope`"),
        (good.replace("\"sha256\"", "\"sha512\""), "unknown field `sha512`"),
        (good.replace("\"sha256\":\"", "\"sha256\":\"A"), "a digest is 32 bytes in base64"),
        (good.replace("\"name\":\"a\"", "\"name\":\"a\\nb\""), "keys[0].key.name: a name may hold"),
        (good.replace("\"id\":\"", "\"id\":\"x"), "keys[0].key.id: a key's id has 8 letters"),
        (good.replace(line, &format!("{line},\n{line}")), "is in it twice"),
        (
            good.replace("\"write\"", "\"admin\",\"holder\":{\"agent\":\"x\"}"),
            "is an agent's, and may not be `admin`",
        ),
        (good.replace("\"level\"", "\"rate_per_minute\":0,\"level\""), "a rate limit is from 1"),
    ];
    for (text, told) in damaged {
        fs::write(world.path(), &text).unwrap();
        let error = is_refused(&world, &server, &secret);
        assert!(matches!(error, RingError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains(told), "{error}, not {told}");
        assert_eq!(world.text(), text);
    }
    fs::write(world.path(), good).unwrap();
    is_well_again(&world, &server, &secret);
}

#[test]
fn bytes_that_are_no_text_and_nesting_without_end_are_errors() {
    let (world, server, secret) = running();
    for text in [vec![0xff; 100], b"\0".repeat(100), b"[".repeat(1_000_000)] {
        fs::write(world.path(), text).unwrap();
        let error = is_refused(&world, &server, &secret);
        assert!(matches!(error, RingError::Malformed { .. }), "{error}");
    }
}

#[test]
fn a_digest_that_is_exchanged_lets_another_in_and_the_first_no_more() {
    let (world, server, secret) = running();
    let other = World::new();
    other.ring().create(new_key("x", Level::Write)).unwrap();
    let digest = |text: &str| {
        let (_, rest) = text.split_once("\"sha256\":\"").unwrap();
        rest[..43].to_owned()
    };
    let text = world.text().replace(&digest(&world.text()), &digest(&other.text()));
    fs::write(world.path(), text).unwrap();
    world.turn_clock(1);
    assert_eq!(enters(&server, &secret), Err(Refused::Unknown));
}

#[test]
fn a_file_that_others_can_get_at_lets_nobody_in_until_it_is_closed() {
    let (world, server, secret) = running();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666] {
        chmod(world.path(), mode);
        let error = is_refused(&world, &server, &secret);
        let path = world.path().display().to_string();
        assert_eq!(error, RingError::Exposed { path: path.clone(), mode, wanted: 0o600 });
        let told = format!(
            "others can get at `{path}` (mode {mode:04o}): look at what is in it, then run \
             `chmod 600 {path}`"
        );
        assert_eq!(error.to_string(), told);
    }
    chmod(world.path(), 0o600);
    is_well_again(&world, &server, &secret);
}

#[test]
fn a_folder_that_others_can_write_to_lets_nobody_in_until_it_is_closed() {
    let (world, server, secret) = running();
    for mode in [0o720, 0o702, 0o777, 0o1777] {
        chmod(world.folder(), mode);
        let path = world.folder().display().to_string();
        let exposed = RingError::Exposed { path, mode, wanted: 0o700 };
        assert_eq!(is_refused(&world, &server, &secret), exposed);
    }
    chmod(world.folder(), 0o755);
    is_well_again(&world, &server, &secret);
}

#[test]
fn what_belongs_to_somebody_else_is_not_used() {
    let (world, server, secret) = running();
    let is_foreign = |error: RingError| matches!(error, RingError::Foreign { .. });
    if !rustix::process::geteuid().is_root() {
        // Only root can give a file away; this one is root's.
        assert!(is_foreign(KeyRing::open("/keys.json").unwrap_err()));
        return;
    }
    for path in [world.path(), world.folder()] {
        chown(&path, Some(12_345), None).unwrap();
        let error = is_refused(&world, &server, &secret);
        let told = format!("`{}` belongs to user 12345, not to user 0", path.display());
        assert!(error.to_string().starts_with(&told), "{error}");
        assert!(is_foreign(error));
        chown(&path, Some(0), None).unwrap();
    }
    is_well_again(&world, &server, &secret);
}

/// Puts something where the file was.
type Put<'a> = &'a dyn Fn(&Path);

#[test]
fn what_is_no_regular_file_is_not_used_and_holds_nobody_up() {
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
    for (told, put) in put {
        put(&world.path());
        let began = Instant::now();
        let error = is_refused(&world, &server, &secret);
        assert!(began.elapsed() < Duration::from_secs(5));
        assert!(matches!(error, RingError::Unusable { .. }), "{error}");
        assert!(error.to_string().contains(told), "{error}, not {told}");
        fs::remove_file(world.path()).or_else(|_| fs::remove_dir(world.path())).unwrap();
    }
    fs::rename(&real, world.path()).unwrap();
    is_well_again(&world, &server, &secret);
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
fn nothing_is_written_through_links_beside_the_file() {
    let (world, server, _) = running();
    let outside = world.folder().with_file_name("outside");
    fs::write(&outside, "precious").unwrap();
    symlink(&outside, world.folder().join("keys.json.new")).unwrap();
    server.create(new_key("b", Level::Read)).unwrap();
    assert_eq!(world.names(), ["keys.json", "keys.json.lock"]);

    fs::remove_file(world.folder().join("keys.json.lock")).unwrap();
    symlink(&outside, world.folder().join("keys.json.lock")).unwrap();
    let error = server.create(new_key("c", Level::Read)).unwrap_err();
    assert!(matches!(error, RingError::Unusable { .. }), "{error}");
    assert_eq!(fs::read_to_string(outside).unwrap(), "precious");
    assert_eq!(server.list().unwrap().len(), 2);
}

#[test]
fn a_file_that_is_gone_is_a_ring_without_keys() {
    let (world, server, secret) = running();
    fs::remove_file(world.path()).unwrap();
    world.turn_clock(1);
    assert_eq!(enters(&server, &secret), Err(Refused::Unknown));
    fs::remove_dir_all(world.folder()).unwrap();
    assert_eq!(server.list(), Ok(vec![]));
    let (_, secret) = server.create(new_key("b", Level::Read)).unwrap();
    assert_eq!(enters(&world.ring(), &secret), Ok(()));
}

#[test]
fn a_path_that_names_no_file_or_whose_folder_cannot_be_made_is_an_error() {
    let world = World::new();
    for path in ["/", "..", ""] {
        let error = KeyRing::open(path).unwrap_err();
        assert!(matches!(error, RingError::Unusable { .. }), "{path}: {error}");
    }
    let deep = KeyRing::open(world.folder().join("a/b/keys.json")).unwrap();
    let error = deep.create(new_key("a", Level::Read)).unwrap_err();
    assert!(matches!(error, RingError::Unusable { .. }), "{error}");
}

#[test]
fn who_holds_the_lock_too_long_is_told_of_and_meanwhile_everybody_is_let_in() {
    let (world, server, secret) = running();
    let lock = File::open(world.folder().join("keys.json.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.create(new_key("b", Level::Read)));
        while !waiting.is_finished() {
            world.turn_clock(1);
            assert_eq!(enters(&server, &secret), Ok(()));
        }
        let busy = RingError::Busy { path: world.path().display().to_string() };
        assert_eq!(waiting.join().unwrap().unwrap_err(), busy);
    });
    assert!(began.elapsed() >= antiphon_keys::LOCK_WAIT);
    drop(lock);
    server.create(new_key("b", Level::Read)).unwrap();
}
