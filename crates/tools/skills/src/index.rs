//! The list of skills that a model is told.

use antiphon_core::visible;

/// Longest list, in bytes. Names come before descriptions: a model can load a skill whose description is cut.
pub const INDEX_BYTES_MAX: usize = 2048;

/// Shortest description that is worth its bytes.
const DESCRIPTION_BYTES_MIN: usize = 20;

/// The skills, one a line, in the given order. When all descriptions do not fit, each is cut to the same length; when
/// all names do not fit, the last line says how many are left out.
pub fn index(skills: &[(String, String)]) -> String {
    let lines: Vec<(String, String)> = skills
        .iter()
        .map(|(name, about)| (visible(name), visible(about).replace(['\n', '\r'], " ")))
        .collect();
    let mut cut = INDEX_BYTES_MAX;
    while cut >= DESCRIPTION_BYTES_MIN {
        let text = listed(&lines, cut);
        if text.len() <= INDEX_BYTES_MAX {
            return text;
        }
        cut = cut * 3 / 4;
    }
    names_alone(&lines)
}

fn listed(lines: &[(String, String)], cut: usize) -> String {
    let line = |(name, about): &(String, String)| {
        let at = about.floor_char_boundary(cut);
        let more = if at < about.len() { "…" } else { "" };
        format!("- {name}: {}{more}", about[..at].trim_end())
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn names_alone(lines: &[(String, String)]) -> String {
    /// Room for the last line.
    const LAST: usize = 40;
    let mut text = String::new();
    for (index, (name, _)) in lines.iter().enumerate() {
        if text.len() + name.len() + 3 + LAST > INDEX_BYTES_MAX {
            text.push_str(&format_more(lines.len() - index));
            return text;
        }
        text.push_str("- ");
        text.push_str(name);
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn format_more(count: usize) -> String {
    format!("… and {count} more")
}
