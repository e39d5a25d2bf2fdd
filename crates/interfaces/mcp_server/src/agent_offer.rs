//! Agents under the names of tools. A name that is no tool name everywhere, or that another tool has, gets a hash.

use std::collections::BTreeSet;

use antiphon_core::AgentName;
use sha2::{Digest as _, Sha256};

use crate::tools::OWN_TOOLS;

/// Longest name of a tool that clients and models take.
const NAME_CHARS_MAX: usize = 64;

/// Hexadecimal digits of a hash in a name.
const HASH_CHARS: usize = 8;

/// An agent that a caller may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentOffer {
    /// Name of its tool and of its prompt.
    pub(crate) tool: String,
    pub(crate) name: AgentName,
    pub(crate) description: String,
}

/// The offers of agents with these names and descriptions.
pub(crate) fn offers(agents: impl IntoIterator<Item = (AgentName, String)>) -> Vec<AgentOffer> {
    let mut taken: BTreeSet<String> = OWN_TOOLS.iter().map(|tool| (*tool).to_owned()).collect();
    let offer = |(name, description): (AgentName, String)| {
        let plain = plain(name.as_str());
        let is_free = plain == name.as_str() && !taken.contains(&plain);
        let tool = if is_free { plain } else { hashed(&plain, name.as_str()) };
        let about = description.trim();
        let description =
            if about.is_empty() { format!("The agent {name}.") } else { about.to_owned() };
        taken.insert(tool.clone()).then_some(AgentOffer { tool, name, description })
    };
    agents.into_iter().filter_map(offer).collect()
}

fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).take(NAME_CHARS_MAX).collect()
}

fn hashed(plain: &str, name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let bytes = digest.iter().take(HASH_CHARS / 2);
    let hash = bytes.fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let kept: String = plain.chars().take(NAME_CHARS_MAX - HASH_CHARS - 1).collect();
    format!("{kept}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(agents: &[&str]) -> Vec<String> {
        let agents = agents.iter().map(|name| (AgentName::parse(name).unwrap(), String::new()));
        offers(agents).into_iter().map(|offer| offer.tool).collect()
    }

    #[test]
    fn an_agent_has_its_own_name_unless_that_is_no_tool_name_or_the_name_of_a_tool() {
        let offered = names(&["reviewer", "task_get", "Ünit tests", "a.b", "a_b"]);
        assert_eq!(offered[0], "reviewer");
        assert!(offered[1].starts_with("task_get_") && offered[1].len() == 17, "{offered:?}");
        assert!(offered[2].starts_with("_nit_tests_"), "{offered:?}");
        assert_ne!(offered[3], offered[4]);
        assert_eq!(offered[4], "a_b");
        assert!(names(&[&"long ".repeat(12)]).iter().all(|name| name.len() <= NAME_CHARS_MAX));
    }

    #[test]
    fn the_name_of_a_tool_does_not_depend_on_other_agents() {
        assert_eq!(names(&["task_get"])[0], names(&["other", "task_get"])[1]);
    }
}
