//! Models that a policy allows. The name of a provider is the user's to choose, so a model is allowed at an
//! address: the one the policy names, or the one that is built in for the provider.

use antiphon_core::ModelRef;
use antiphon_model_transport::Endpoint;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::settings::built_in_address;

/// Provider of models without an address: they answer from a script.
const SCRIPTED: &str = "scripted";

/// Characters that a server may read as something else than a part of a model's name.
const SPECIAL: [char; 4] = ['%', '\\', '?', '#'];

/// An entry of `models`: a pattern, or a table with a pattern and an address.
pub(super) struct ModelEntry {
    model: String,
    base_url: Option<String>,
}

/// A model that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AllowedModel {
    provider: String,
    /// With `*`, which stands for any characters but `/`; a final `/*`, or `*` alone, for any at all.
    pattern: String,
    /// `None` for a provider without one.
    address: Option<String>,
}

impl AllowedModel {
    pub(super) fn of(entry: ModelEntry) -> Result<Self, String> {
        let ModelEntry { model: text, base_url } = entry;
        let named = ModelRef::parse(&text).map_err(|error| error.to_string())?;
        let provider = named.provider().to_owned();
        let address = match (base_url, provider.as_str()) {
            (None, SCRIPTED) => None,
            (Some(_), SCRIPTED) => return Err(format!("`{text}` has no `base_url`")),
            (Some(url), _) => {
                Some(normalized(&url).ok_or_else(|| format!("`{url}` is not an address"))?)
            }
            (None, provider) => Some(built_in_address(provider).and_then(normalized).ok_or_else(|| {
                format!(
                    "`{text}`: the provider `{provider}` has no built-in address; write {{ model = \"{text}\", \
                     base_url = \"https://…\" }}"
                )
            })?),
        };
        Ok(Self { provider, pattern: named.model().to_owned(), address })
    }

    fn names(&self, model: &ModelRef) -> bool {
        self.provider == model.provider() && matches(&self.pattern, model.model())
    }
}

/// Checks that one of `allowed` is this model at this address. The error says what is wrong.
pub(super) fn check(
    allowed: &[AllowedModel],
    model: &ModelRef,
    address: Option<&str>,
) -> Result<(), String> {
    let mut named = allowed.iter().filter(|allowed| allowed.names(model)).peekable();
    if named.peek().is_none() || !is_plain(model.model()) {
        return Err(format!("the model `{model}` is not allowed here"));
    }
    let address = address.filter(|_| model.provider() != SCRIPTED).and_then(normalized);
    if named.any(|allowed| allowed.address == address) {
        return Ok(());
    }
    let address = address.unwrap_or_else(|| "no address".to_owned());
    Err(format!(
        "the model `{model}` is not allowed at {address}, where the provider `{}` is configured",
        model.provider()
    ))
}

/// Checks that one of `allowed` is a model of this provider at this address.
pub(super) fn check_provider(
    allowed: &[AllowedModel],
    provider: &str,
    address: Option<&str>,
) -> Result<(), String> {
    let address = address.and_then(normalized);
    let fits = |allowed: &AllowedModel| allowed.provider == provider && allowed.address == address;
    if allowed.iter().any(fits) {
        return Ok(());
    }
    Err(format!("no model of `{provider}` is allowed here at this address"))
}

/// The same text for the same address; `None` when it is not one.
pub(super) fn normalized(url: &str) -> Option<String> {
    Endpoint::parse(url).ok().map(|url| url.to_string().trim_end_matches('/').to_owned())
}

/// Whether a name is one that no server reads as a path to another model.
fn is_plain(name: &str) -> bool {
    !name.contains(SPECIAL) && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn matches(pattern: &str, name: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let Some(head) = pattern.strip_suffix("/*") else { return matches_part(pattern, name) };
    let parts = head.split('/').count();
    let end = name.match_indices('/').nth(parts - 1).map(|(at, _)| at);
    end.is_some_and(|end| matches_part(head, &name[..end]))
}

/// `*` stands for any characters but `/`.
fn matches_part(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(head) else { return false };
    let end = name.find('/').unwrap_or(name.len());
    (0..=end).filter(|at| name.is_char_boundary(*at)).any(|at| matches_part(rest, &name[at..]))
}

impl<'de> Deserialize<'de> for ModelEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

/// The table form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    model: String,
    base_url: Option<String>,
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = ModelEntry;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PROVIDER/MODEL, as a text or a table with `model` and `base_url`")
    }

    fn visit_str<E>(self, model: &str) -> Result<ModelEntry, E> {
        Ok(ModelEntry { model: model.to_owned(), base_url: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelEntry, A::Error> {
        let Table { model, base_url } = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ModelEntry { model, base_url })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(model: &str, base_url: Option<&str>) -> AllowedModel {
        let base_url = base_url.map(str::to_owned);
        AllowedModel::of(ModelEntry { model: model.to_owned(), base_url }).unwrap()
    }

    fn allows(pattern: &str, model: &str) -> bool {
        let at = Some("https://llm.example.com/v1");
        check(&[allowed(pattern, at)], &ModelRef::parse(model).unwrap(), at).is_ok()
    }

    #[test]
    fn a_star_stays_in_its_part_except_at_the_end() {
        for (pattern, model) in [
            ("corp/*", "corp/a"),
            ("corp/*", "corp/org/a:b"),
            ("corp/a-*", "corp/a-1"),
            ("corp/*-mini", "corp/a-mini"),
            ("corp/org/*", "corp/org/a"),
            ("corp/o*/*", "corp/org/a"),
            ("corp/a", "corp/a"),
        ] {
            assert!(allows(pattern, model), "{pattern} {model}");
        }
        for (pattern, model) in [
            ("corp/a-*", "corp/a-1/b"),
            ("corp/a-*", "corp/b-1"),
            ("corp/a", "corp/ab"),
            ("corp/a", "other/a"),
            ("corp/org/*", "corp/org"),
            ("corp/org/*", "corp/organ/a"),
            ("corp/a*", "corp/a/../b"),
            ("corp/*", "corp/../b"),
            ("corp/*", "corp/a/./b"),
            ("corp/*", "corp/a%2f..%2fb"),
            ("corp/*", "corp/a?b"),
            ("corp/*", "corp/a\\b"),
            ("corp/*", "corp/a#b"),
            ("corp/a", "CORP/a"),
        ] {
            assert!(!allows(pattern, model), "{pattern} {model}");
        }
    }

    #[test]
    fn the_address_is_part_of_the_model() {
        let model = ModelRef::parse("anthropic/claude").unwrap();
        let built_in = allowed("anthropic/*", None);
        let at = |allowed: &AllowedModel, url: &str| {
            check(std::slice::from_ref(allowed), &model, Some(url)).is_ok()
        };
        assert!(at(&built_in, "https://api.anthropic.com"));
        assert!(at(&built_in, "https://API.anthropic.com:443/"));
        for other in [
            "http://api.anthropic.com",
            "https://api.anthropic.com.evil.org",
            "https://api.anthropic.com:444",
            "https://api.anthropic.com/v2",
            "https://a@api.anthropic.com",
            "http://127.0.0.1:1",
            "nonsense",
        ] {
            assert!(!at(&built_in, other), "{other}");
        }
        let gateway = allowed("anthropic/*", Some("https://llm.example.com/"));
        assert!(
            at(&gateway, "https://llm.example.com") && !at(&gateway, "https://api.anthropic.com")
        );
        assert!(check(&[built_in], &model, None).is_err());
    }

    #[test]
    fn an_entry_that_pins_no_address_is_refused() {
        let read = |model: &str, url: Option<&str>| {
            AllowedModel::of(ModelEntry {
                model: model.to_owned(),
                base_url: url.map(str::to_owned),
            })
        };
        assert!(read("corp/*", None).unwrap_err().contains("no built-in address"));
        assert!(read("*/*", None).is_err() && read("*", None).is_err() && read("x", None).is_err());
        assert!(read("corp/*", Some("nonsense")).is_err());
        assert!(read("scripted/*", Some("https://a.org")).is_err());
        let scripted = read("scripted/*", None).unwrap();
        assert!(check(&[scripted], &ModelRef::parse("scripted/hello").unwrap(), None).is_ok());
    }
}
