//! Lists of hosts with a name, for rules.

/// Presets by name, each with its hosts. `registries` is all the others together.
///
/// The hosts serve packages and their indexes. None of them serves repositories or accepts pages of
/// users, but a host that accepts packages accepts data.
pub const PRESETS: [(&str, &[&str]); 10] = [
    ("alpine", &["dl-cdn.alpinelinux.org"]),
    ("crates", &["crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org"]),
    (
        "debian",
        &["deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com"],
    ),
    ("go", &["proxy.golang.org", "sum.golang.org"]),
    (
        "maven",
        &[
            "repo.maven.apache.org",
            "repo1.maven.org",
            "plugins.gradle.org",
            "services.gradle.org",
            "dl.google.com",
        ],
    ),
    ("npm", &["registry.npmjs.org", "registry.yarnpkg.com"]),
    ("nuget", &["api.nuget.org"]),
    ("packagist", &["packagist.org", "repo.packagist.org"]),
    ("pypi", &["pypi.org", "files.pythonhosted.org"]),
    ("rubygems", &["rubygems.org", "index.rubygems.org"]),
];

/// The name of all presets together.
const ALL: &str = "registries";

/// The hosts of a preset; `None` if there is none of that name.
pub(crate) fn preset(name: &str) -> Option<Vec<&'static str>> {
    let chosen = PRESETS.iter().filter(|(preset, _)| name == ALL || name == *preset);
    let hosts: Vec<_> = chosen.flat_map(|(_, hosts)| hosts.iter().copied()).collect();
    (!hosts.is_empty()).then_some(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_lists_every_preset() {
        let guide = include_str!("../../../../docs/sandbox.md");
        for (name, hosts) in PRESETS {
            let row = guide.lines().find(|line| line.starts_with(&format!("| `{name}` ")));
            let row = row.and_then(|row| row.split('|').nth(2));
            assert_eq!(row.map(str::trim), Some(hosts.join(", ").as_str()), "{name}");
        }
        assert!(guide.contains(&format!("| `{ALL}` |")));
    }
}
