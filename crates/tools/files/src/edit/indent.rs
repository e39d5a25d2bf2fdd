//! Converts the indentation of a model to that of the file.

use super::tolerant::indent_of;

/// Pairs of indentations: what the model wrote and what the file has in the same line.
#[derive(Debug)]
pub(super) struct Indents<'a> {
    pairs: Vec<(&'a str, &'a str)>,
    /// The model left out the indentation of the first line, and only of that.
    begins_behind_first: bool,
    unit: Option<(&'a str, &'a str)>,
}

impl<'a> Indents<'a> {
    pub(super) fn between(model: &[&'a str], file: &[&'a str]) -> Self {
        let both = model.iter().zip(file);
        let mut pairs: Vec<(&str, &str)> = both
            .filter(|(model, _)| !model.trim().is_empty())
            .map(|(model, file)| (indent_of(model), indent_of(file)))
            .collect();
        let is_shifted = |shift: &str, pairs: &[(&str, &str)]| {
            pairs.iter().all(|(model, file)| file.strip_suffix(model) == Some(shift))
        };
        let begins_behind_first = match pairs.split_first() {
            Some((("", shift), [])) => !shift.is_empty(),
            Some((("", shift), others)) => !shift.is_empty() && !is_shifted(shift, others),
            Some(_) | None => false,
        };
        if begins_behind_first {
            pairs.remove(0);
        }
        let shift = pairs.first().and_then(|(model, file)| file.strip_suffix(model));
        let unit = match shift {
            Some(shift) if is_shifted(shift, &pairs) => None,
            Some(_) | None => step(&pairs).or_else(|| pairs.iter().copied().find(is_unit)),
        };
        Self { pairs, begins_behind_first, unit }
    }

    /// Whether the text begins behind the indentation of its first line.
    pub(super) fn begins_behind_first(&self) -> bool {
        self.begins_behind_first
    }

    /// A line of the model, indented as the file is.
    pub(super) fn applied_to(&self, line: &str) -> String {
        let indent = indent_of(line);
        format!("{}{}", self.of(indent), &line[indent.len()..])
    }

    fn of(&self, indent: &str) -> String {
        if let Some((_, file)) = self.pairs.iter().find(|(model, _)| *model == indent) {
            return (*file).to_owned();
        }
        let shorter = self.pairs.iter().filter(|(model, _)| indent.starts_with(model));
        if let Some((model, file)) = shorter.max_by_key(|(model, _)| model.len()) {
            return format!("{file}{}", self.converted(&indent[model.len()..]));
        }
        let longer = self.pairs.iter().filter(|(model, _)| model.starts_with(indent));
        if let Some((model, file)) = longer.min_by_key(|(model, _)| model.len()) {
            let less = self.converted(&model[indent.len()..]);
            return file.strip_suffix(less.as_str()).unwrap_or(indent).to_owned();
        }
        indent.to_owned()
    }

    /// More of an indentation, in the file's units.
    fn converted(&self, more: &str) -> String {
        let Some((model, file)) = self.unit else {
            return more.to_owned();
        };
        let (Some(kind), Some(file_kind)) = (model.chars().next(), file.chars().next()) else {
            return more.to_owned();
        };
        let width = more.len() * file.len();
        if more.chars().all(|c| c == kind) && width.is_multiple_of(model.len()) {
            file_kind.to_string().repeat(width / model.len())
        } else {
            more.to_owned()
        }
    }
}

/// What one step in is, where two lines show it.
fn step<'a>(pairs: &[(&'a str, &'a str)]) -> Option<(&'a str, &'a str)> {
    pairs.iter().find_map(|(model, file)| {
        pairs.iter().find_map(|(deeper_model, deeper_file)| {
            let step = (deeper_model.strip_prefix(model)?, deeper_file.strip_prefix(file)?);
            is_unit(&step).then_some(step)
        })
    })
}

/// Each of one kind of white space, so that more of one is more of the other.
fn is_unit((model, file): &(&str, &str)) -> bool {
    let of_one_kind = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|first| chars.all(|c| c == first))
    };
    of_one_kind(model) && of_one_kind(file)
}
