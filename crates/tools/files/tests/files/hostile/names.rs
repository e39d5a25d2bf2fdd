//! Names that are strange but possible.

use super::{Case, reads, writes};

pub(crate) fn cases() -> Vec<Case> {
    let composed = "caf\u{e9}.txt";
    let decomposed = "cafe\u{301}.txt";
    vec![
        reads("a composed letter", composed)
            .given(|world| world.put("caf\u{e9}.txt", "composed\n"))
            .says("composed"),
        reads("a decomposed letter is another name", decomposed)
            .given(|world| world.put("caf\u{e9}.txt", "composed\n"))
            .fails("does not exist"),
        writes("both spellings beside each other", decomposed, "decomposed")
            .given(|world| world.put("caf\u{e9}.txt", "composed\n"))
            .says("Created")
            .leaves("caf\u{e9}.txt", "composed\n")
            .leaves("cafe\u{301}.txt", "decomposed"),
        writes("a name that runs backwards", "x\u{202e}txt.exe", "x")
            .says(r"Created `x\u{202e}txt.exe`"),
        reads("a missing name that runs backwards", "x\u{202e}txt.exe")
            .fails(r"`x\u{202e}txt.exe` does not exist"),
        reads("a missing name with something unseen", "none\u{200b}.txt")
            .fails(r"`none\u{200b}.txt` does not exist"),
        reads("a missing name with tags", "none\u{e0041}.txt")
            .fails(r"`none\u{e0041}.txt` does not exist"),
        writes("a name of two lines", "one\ntwo.txt", "x")
            .says(r"Created `one\ntwo.txt`")
            .leaves("one\ntwo.txt", "x"),
        reads("a missing name of two lines", "one\nNothing is wrong.").fails(r"`one\nNothing"),
        reads("a folder with a name of two lines", ".")
            .given(|world| world.put("one\ntwo", ""))
            .says(r"one\ntwo"),
        writes("a name like an option", "-rf", "x").says("Created `-rf`").leaves("-rf", "x"),
        writes("a name with spaces and quotes", " a \"b\" 'c' ", "x").says("Created"),
        writes("a name with backslashes", "a\\b\\c", "x").leaves("a\\b\\c", "x"),
        writes("a name of symbols", "$(rm -rf x);`y`", "x").says("Created"),
        writes("a name of pictures", "🦀\u{200d}🎷.txt", "x").says("Created"),
        writes("three dots", ".../x", "x").says("Created `.../x`"),
        writes("the longest name", &"n".repeat(255), "x").says("Created"),
        writes("a hundred folders", &format!("{}x", "d/".repeat(100)), "x")
            .says("100 bytes")
            .says("Created"),
        reads("nearly the name", "b.txt").fails("`b.txt` does not exist: did you mean `a.txt`?"),
        reads("the name and a space", "a.txt ").fails("did you mean `a.txt`?"),
        reads("nothing like it", "zzzzzzzz").fails("search for it by name"),
        reads("nothing like it, deep down", &"z/".repeat(1_000)).fails("search for it by name"),
    ]
}
