//! Parses the text of metrics strictly.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_telemetry::Metrics;

/// All samples by name and labels.
pub(crate) struct Samples {
    pub(crate) values: BTreeMap<String, f64>,
    pub(crate) types: BTreeMap<String, String>,
}

/// Parses what a scraper would read. Panics at any deviation from the format.
pub(crate) fn samples(metrics: &Metrics) -> Samples {
    let text = metrics.render();
    let mut found = Samples { values: BTreeMap::new(), types: BTreeMap::new() };
    let mut helped = BTreeSet::new();
    let body = text.strip_suffix("# EOF\n").unwrap();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name.to_owned()), "{name} has two helps");
            assert!(help.ends_with('.') && !help.ends_with(".."), "{help}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(found.types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name}");
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name.ends_with(&format!("_{unit}")), "{name} is not in {unit}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let known = found.types.keys().any(|family| belongs(name, family));
            assert!(known, "{name} has no type");
            let value = value.parse().unwrap();
            assert!(
                found.values.insert(series.to_owned(), value).is_none(),
                "{series} is there twice"
            );
        }
    }
    found
}

fn belongs(name: &str, family: &str) -> bool {
    let rest = name.strip_prefix(family);
    rest.is_some_and(|rest| ["", "_total", "_bucket", "_sum", "_count"].contains(&rest))
}

/// All samples that are not zero, without buckets: `NAME{LABELS} VALUE`.
pub(crate) fn lines(metrics: &Metrics) -> Vec<String> {
    let samples = samples(metrics).values.into_iter();
    samples
        .filter(|(series, value)| value.abs() > 0.0 && !series.contains("_bucket{"))
        .map(|(series, value)| format!("{series} {value}"))
        .collect()
}

/// The samples of one name.
pub(crate) fn lines_of(metrics: &Metrics, name: &str) -> Vec<String> {
    let of = |line: &String| line.split(['{', ' ']).next() == Some(name);
    lines(metrics).into_iter().filter(of).collect()
}

/// One value as text; 0 when it is absent.
pub(crate) fn value(metrics: &Metrics, series: &str) -> String {
    samples(metrics).values.get(series).copied().unwrap_or_default().to_string()
}
