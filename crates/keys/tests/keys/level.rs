//! Permission levels.

use antiphon_keys::Level;

#[test]
fn each_level_includes_the_levels_before_it_and_no_more() {
    let table: Vec<(Level, [bool; 3])> = Level::ALL
        .into_iter()
        .map(|level| (level, Level::ALL.map(|needed| level.allows(needed))))
        .collect();
    assert_eq!(
        table,
        [
            (Level::Read, [true, false, false]),
            (Level::Write, [true, true, false]),
            (Level::Admin, [true, true, true]),
        ]
    );
}

#[test]
fn a_level_is_one_of_three_words() {
    for level in Level::ALL {
        assert_eq!(level.to_string().parse(), Ok(level));
        assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{level}\""));
    }
    for word in ["", "Admin", "root", "write "] {
        let error = word.parse::<Level>().unwrap_err();
        assert_eq!(error.to_string(), "a level is `read`, `write` or `admin`");
    }
}
