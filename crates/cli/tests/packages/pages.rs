//! Manual pages, as `man` formats them.

use crate::world::{World, done};

#[test]
fn pages_are_formatted_without_a_warning() {
    let world = World::new(&["tarball"]);
    let pages = world.unpacked().join("share/man/man1");
    let shown = done(
        world.command("man").args(["-l"]).arg(pages.join("antiphon-run.1")).env("MANWIDTH", "100"),
    );
    for part in [
        "ANTIPHON-RUN(1)",
        "--budget-usd",
        "Trust what the project brings",
        "EXAMPLES",
        "ANTIPHON_MODEL",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let found = crate::world::files(&pages);
    assert!(found.len() > 60, "{}", found.len());
    let mut groff = world.command("groff");
    let output = groff.args(["-ww", "-man", "-Tutf8", "-z"]).args(&found).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let mut mandoc = world.command("mandoc");
    let output = mandoc.args(["-T", "lint", "-W", "warning"]).args(&found).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // A page has no date: the same source makes the same page.
    let lines = said.lines().filter(|line| !line.contains("missing date"));
    assert_eq!(lines.collect::<Vec<_>>(), Vec::<&str>::new());
}
