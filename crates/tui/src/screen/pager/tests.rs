use super::*;

const SIZE: Size = Size { columns: 80, rows: 5 };

fn pager(lines: usize) -> Pager {
    let note = |line| Entry::Note(format!("line {line}"));
    Pager::new("work".to_owned(), (0..lines / 2).map(note).collect(), SIZE)
}

fn press(pager: &mut Pager, keys: &str) -> PagerNext {
    let mut next = PagerNext::Stay;
    for c in keys.chars() {
        let code = match c {
            '\r' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            other => KeyCode::Char(other),
        };
        next = pager.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    next
}

fn texts(pager: &Pager) -> Vec<String> {
    pager.screen().iter().map(ToString::to_string).collect()
}

#[test]
fn the_end_is_shown_first_and_stays_in_view() {
    let mut pager = pager(20);
    assert_eq!(texts(&pager)[..4], ["line 8", "", "line 9", ""]);
    pager.add(Entry::Note("more".to_owned()));
    assert_eq!(texts(&pager)[..4], ["line 9", "", "more", ""]);
    press(&mut pager, "g");
    pager.add(Entry::Note("even more".to_owned()));
    assert_eq!(texts(&pager)[0], "line 0");
    press(&mut pager, "G");
    assert_eq!(texts(&pager)[2], "even more");
    assert_eq!(press(&mut pager, "q"), PagerNext::Close);
}

#[test]
fn a_search_finds_the_next_and_the_previous_line_and_begins_again_at_the_end() {
    let mut pager = pager(200);
    press(&mut pager, "g/LINE 5\r");
    assert!(texts(&pager)[4].contains("`LINE 5` 1 of 11"), "{:?}", texts(&pager));
    assert!(texts(&pager).contains(&"line 5".to_owned()));
    press(&mut pager, "n");
    assert!(texts(&pager).contains(&"line 50".to_owned()), "{:?}", texts(&pager));
    press(&mut pager, "NN");
    assert!(texts(&pager).contains(&"line 59".to_owned()), "{:?}", texts(&pager));
    press(&mut pager, "/nowhere\r");
    assert!(texts(&pager)[4].contains("`nowhere` is not here"));
    assert_eq!(press(&mut pager, "/x\x1b"), PagerNext::Stay, "Esc leaves the search only");
}

#[test]
fn what_is_found_is_marked() {
    let mut pager = pager(20);
    press(&mut pager, "/9\r");
    let screen = pager.screen();
    let marked: Vec<&str> = screen[..4]
        .iter()
        .flat_map(|line| &line.spans)
        .filter(|span| span.style.add_modifier.contains(Modifier::REVERSED))
        .map(|span| span.content.as_ref())
        .collect();
    assert_eq!(marked, ["9"]);
}

#[test]
fn another_width_breaks_the_lines_anew() {
    let entries = vec![Entry::Note("one two three four five".to_owned())];
    let mut pager = Pager::new(String::new(), entries, SIZE);
    pager.resize(Size { columns: 10, rows: 4 });
    let texts = texts(&pager);
    assert_eq!(texts.len(), 4);
    assert!(pager.screen().iter().all(|line| line.width() <= 10), "{texts:?}");
}
