//! `--help` of every command.

use crate::world::World;

/// Commands of a help text, without `help` itself.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with(' '));
    // A name stands at two blanks; the lines of its description stand further right.
    let named = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let listed = named.filter_map(|line| line.split_whitespace().next());
    listed.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn visit(world: &World, path: &[String], seen: &mut Vec<(Vec<String>, String)>) {
    let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = world.seen(&arguments, &[("COLUMNS", "100")]);
    assert_eq!(help.code, 0, "{path:?}: {}", help.err);
    for name in commands(&help.out) {
        visit(world, &[path, &[name]].concat(), seen);
    }
    seen.push((path.to_vec(), help.out));
}

#[test]
fn every_command_that_takes_arguments_has_examples() {
    let (world, mut all) = (World::new(), Vec::new());
    visit(&world, &[], &mut all);
    assert!(all.len() > 60, "{}", all.len());
    let own_arguments = |help: &str| {
        let usage =
            help.lines().find(|line| line.starts_with("Usage:")).unwrap_or_default().to_owned();
        usage.contains('<') || usage.matches('[').count() > 1
    };
    let bare: Vec<String> = all
        .iter()
        .filter(|(path, help)| {
            !path.is_empty() && own_arguments(help) && !help.contains("Examples:")
        })
        .map(|(path, _)| path.join(" "))
        .collect();
    assert!(bare.is_empty(), "without examples: {bare:?}");
}

#[test]
fn help_is_wrapped_to_the_width_of_the_terminal() {
    let (world, mut all) = (World::new(), Vec::new());
    visit(&world, &[], &mut all);
    for columns in [40, 80, 200] {
        for (path, _) in &all {
            let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
            arguments.push("--help");
            let help = world.seen(&arguments, &[("COLUMNS", &columns.to_string())]).out;
            // The usage and the examples are copied: they stay on their lines.
            let described = help.split("Examples:").next().unwrap();
            let lines = described.lines().filter(|line| !line.starts_with("Usage:"));
            for line in lines.filter(|line| line.split_whitespace().count() > 2) {
                assert!(line.chars().count() <= columns, "{columns}: {path:?}: {line}");
            }
        }
    }
}
