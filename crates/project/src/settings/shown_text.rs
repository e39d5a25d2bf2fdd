//! Texts of settings as they are shown: an address without user name, password, query and fragment, which may hold keys.

/// The text with `***` in place of what may be secret in the address that it holds. What is behind it is cut, too.
pub fn without_secrets(text: &str) -> String {
    let Some((scheme, address)) = text.split_once("://") else { return text.to_owned() };
    let end = address.find(['?', '#']).unwrap_or(address.len());
    let (place, rest) = address.split_at(end);
    let place =
        place.rfind('@').map_or_else(|| place.to_owned(), |at| format!("***{}", &place[at..]));
    let mark = rest.chars().next().map(|mark| format!("{mark}***")).unwrap_or_default();
    format!("{scheme}://{place}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        for (text, shown) in [
            ("https://host/mcp", "https://host/mcp"),
            ("https://host/mcp?key=s3cret&b=1", "https://host/mcp?***"),
            ("https://host/mcp#s3cret", "https://host/mcp#***"),
            ("https://me:s3cret@host/?a", "https://***@host/?***"),
            ("--url=https://host?key=s3cret", "--url=https://host?***"),
            ("no address? no", "no address? no"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
