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

fn texts(pager: &mut Pager) -> Vec<String> {
    pager.screen(KEYS).iter().map(ToString::to_string).collect()
}

#[test]
fn the_end_is_shown_first_and_stays_in_view() {
    let mut pager = pager(20);
    assert_eq!(texts(&mut pager)[..4], ["line 8", "", "line 9", ""]);
    pager.add(Entry::Note("more".to_owned()));
    assert_eq!(texts(&mut pager)[..4], ["line 9", "", "more", ""]);
    press(&mut pager, "g");
    pager.add(Entry::Note("even more".to_owned()));
    assert_eq!(texts(&mut pager)[0], "line 0");
    press(&mut pager, "G");
    assert_eq!(texts(&mut pager)[2], "even more");
    assert_eq!(press(&mut pager, "q"), PagerNext::Close);
}

#[test]
fn a_search_finds_the_next_and_the_previous_line_and_begins_again_at_the_end() {
    let mut pager = pager(200);
    press(&mut pager, "g/LINE 5\r");
    assert!(texts(&mut pager)[4].contains("`line 5`: n N"), "{:?}", texts(&mut pager));
    assert!(texts(&mut pager).contains(&"line 5".to_owned()));
    press(&mut pager, "n");
    assert!(texts(&mut pager).contains(&"line 50".to_owned()), "{:?}", texts(&mut pager));
    press(&mut pager, "NN");
    assert!(texts(&mut pager).contains(&"line 59".to_owned()), "{:?}", texts(&mut pager));
    press(&mut pager, "/nowhere\r");
    assert!(texts(&mut pager)[4].contains("`nowhere` is not here"));
    assert_eq!(press(&mut pager, "/x\x1b"), PagerNext::Stay, "Esc leaves the search only");
}

#[test]
fn what_is_found_is_marked() {
    let mut pager = pager(20);
    press(&mut pager, "/9\r");
    let screen = pager.screen(KEYS);
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
    let texts = texts(&mut pager);
    assert_eq!(texts.len(), 4);
    assert!(pager.screen(KEYS).iter().all(|line| line.width() <= 10), "{texts:?}");
}

#[test]
fn only_what_is_shown_is_formatted_at_every_length() {
    let note = |line| Entry::Note(format!("line {line}"));
    let mut pager = Pager::new("work".to_owned(), (0..100_000).map(note).collect(), SIZE);
    let formatted = |pager: &Pager| pager.formatted.entries.len();
    assert_eq!(texts(&mut pager)[..4], ["line 99998", "", "line 99999", ""]);
    press(&mut pager, "g");
    assert_eq!(texts(&mut pager)[0], "line 0");
    assert!(texts(&mut pager)[4].contains(" 0%"), "{:?}", texts(&mut pager));
    // A word that is in one entry alone.
    press(&mut pager, "/line 77777\r");
    assert!(texts(&mut pager).contains(&"line 77777".to_owned()));
    assert!(texts(&mut pager)[4].contains(" 77%"), "{:?}", texts(&mut pager));
    pager.resize(Size { columns: 40, rows: 5 });
    assert!(texts(&mut pager).contains(&"line 77777".to_owned()));
    press(&mut pager, "G");
    assert_eq!(texts(&mut pager)[2], "line 99999");
    assert!(formatted(&pager) < 100, "{}", formatted(&pager));
}

#[test]
fn scrolling_shows_every_line_once_in_both_directions() {
    let long = |entry| {
        let lines: Vec<String> = (0..7).map(|line| format!("{entry}.{line}\n")).collect();
        Entry::Note(lines.concat())
    };
    let mut pager = Pager::new(String::new(), (0..20).map(long).collect(), SIZE);
    press(&mut pager, "g");
    let mut down = vec![texts(&mut pager)[0].clone()];
    while down.last().is_some_and(|line| line != "19.4") {
        press(&mut pager, "j");
        down.push(texts(&mut pager)[0].clone());
    }
    let expected: Vec<String> = (0..20)
        .flat_map(|entry| {
            let lines = (0..7).map(move |line| format!("{entry}.{line}"));
            lines.chain([String::new()]).collect::<Vec<_>>()
        })
        .take(down.len())
        .collect();
    assert_eq!(down, expected);
    press(&mut pager, "G");
    let mut up = vec![texts(&mut pager)[0].clone()];
    while up.last().is_some_and(|line| line != "0.0") {
        press(&mut pager, "k");
        up.push(texts(&mut pager)[0].clone());
    }
    up.reverse();
    assert_eq!(up[..], expected[..up.len()]);
}
