//! The part of a system prompt that says where and when the agent works. Another run of the same work has another one: a
//! recording compares requests without it, and a prompt that goes on elsewhere goes without it.

use std::borrow::Cow;

/// The line that begins the block.
pub const ENVIRONMENT_BEGIN: &str = "<environment>";

/// The line that ends the block.
pub const ENVIRONMENT_END: &str = "</environment>";

/// A system prompt without its environment block.
pub fn without_environment(prompt: &str) -> Cow<'_, str> {
    let begin = prompt.rfind(&format!("\n\n{ENVIRONMENT_BEGIN}\n"));
    let Some(begin) = begin else { return Cow::Borrowed(prompt) };
    let end = format!("\n{ENVIRONMENT_END}");
    match prompt[begin..].find(&end) {
        Some(at) => {
            let behind = begin + at + end.len();
            Cow::Owned(format!("{}{}", &prompt[..begin], &prompt[behind..]))
        }
        None => Cow::Borrowed(prompt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_block_is_left_out() {
        let prompt = "Help.\n\n<environment>\nDate: today\n</environment>\n\n# Plan first";
        assert_eq!(without_environment(prompt), "Help.\n\n# Plan first");
        for whole in ["Help.", "<environment>\nx\n</environment>", "a\n\n<environment>\nno end"] {
            assert_eq!(without_environment(whole), whole);
        }
    }
}
