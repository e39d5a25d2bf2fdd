//! The list of an agent as rows above the prompt.

use antiphon_core::{TodoItem, TodoStatus};
use antiphon_view::text::{columns, fit};
use antiphon_view::{Colors, todo_lines};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Line;

use crate::sgr;
use crate::wrap::wrap;

/// Columns of the sign before an item, with the blanks around it.
const SIGN_COLUMNS: usize = 6;

/// At most `rows_max` rows: what the agent does now, what comes next, then what is done. More items are counted.
pub(crate) fn lines(items: &[TodoItem], width: usize, rows_max: usize) -> Vec<Line<'static>> {
    let mut ordered: Vec<&TodoItem> = items.iter().collect();
    ordered.sort_by_key(|item| match item.status {
        TodoStatus::InProgress => 0,
        TodoStatus::Pending => 1,
        TodoStatus::Done => 2,
    });
    let shown = if ordered.len() > rows_max { rows_max.saturating_sub(1) } else { ordered.len() };
    let fitting = |item: &&TodoItem| {
        let text = item.text.split_whitespace().collect::<Vec<_>>().join(" ");
        TodoItem { text: fit(&text, width.saturating_sub(SIGN_COLUMNS)), ..(*item).clone() }
    };
    let fitting: Vec<TodoItem> = ordered.iter().take(shown).map(fitting).collect();
    let row = |text: &String| wrap(&sgr::decode(&format!("  {text}")), width, 0).into_iter().next();
    let mut rows: Vec<Line<'static>> =
        todo_lines(&fitting, Colors::On).iter().filter_map(row).collect();
    if shown < items.len() && rows_max > 0 {
        let done = items.iter().filter(|item| item.status == TodoStatus::Done).count();
        let left = items.len() - shown;
        let more = format!("  … {left} more, {done} of {} done", items.len());
        let dim = Style::new().add_modifier(Modifier::DIM);
        rows.push(Line::styled(fit(&more, columns(&more).min(width)), dim));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str, status: TodoStatus) -> TodoItem {
        TodoItem { text: text.to_owned(), status }
    }

    fn rows(items: &[TodoItem], width: usize, rows_max: usize) -> Vec<String> {
        lines(items, width, rows_max).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_the_agent_does_now_is_first_and_what_does_not_fit_is_counted() {
        let items = [
            item("read", TodoStatus::Done),
            item("write the parser", TodoStatus::InProgress),
            item("test", TodoStatus::Pending),
        ];
        assert_eq!(rows(&items, 80, 6), ["  [~] write the parser", "  [ ] test", "  [x] read"]);
        assert_eq!(rows(&items, 80, 2), ["  [~] write the parser", "  … 2 more, 1 of 3 done"]);
        assert_eq!(rows(&items, 12, 1), ["  … 3 more,…"]);
        assert_eq!(rows(&items, 12, 3)[0], "  [~] write…");
        assert_eq!(rows(&items, 12, 0), Vec::<String>::new());
        assert_eq!(rows(&[], 80, 6), Vec::<String>::new());
    }
}
