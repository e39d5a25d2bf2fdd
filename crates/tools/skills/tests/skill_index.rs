//! The list of skills that a model is told.

use antiphon_skills::{INDEX_BYTES_MAX, index};

fn many(count: usize, about: usize) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("skill-{n:04}"), "x".repeat(about))).collect()
}

#[test]
fn the_list_is_bounded_and_in_order() {
    assert_eq!(index(&[("a".to_owned(), "A\nb".to_owned())]), "- a: A b");
    for (count, about) in [(1, 10_000), (30, 1000), (60, 100), (500, 50), (10_000, 1)] {
        let text = index(&many(count, about));
        assert!(text.len() <= INDEX_BYTES_MAX, "{count}: {}", text.len());
        assert!(text.starts_with("- skill-0000"), "{text}");
    }
    assert_eq!(index(&many(30, 1000)).lines().count(), 30);
    assert!(index(&many(500, 50)).ends_with(" more"));
}
