//! A file as a text that can be edited, and the way back to its bytes.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use crate::read::{Contents, SAMPLE_BYTES_MAX, recognize};

/// A file's contents, ready to be edited.
#[derive(Debug)]
pub(super) struct Document<'a> {
    /// The byte order mark, kept as it is.
    mark: &'a [u8],
    /// The rest, in UTF-8 unless the form is unknown.
    body: Cow<'a, [u8]>,
    encoding: TextEncoding,
}

/// How text is written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextEncoding {
    Utf8,
    Utf16(Order),
    /// Not UTF-8, but a superset of ASCII: only ASCII text can be edited.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl<'a> Document<'a> {
    /// Parses a file's contents. The error says why they cannot be edited.
    pub(super) fn parse(contents: &'a [u8]) -> Result<Self, &'static str> {
        let (encoding, mark) = Encoding::for_bom(contents).unzip();
        let (mark, body) = contents.split_at(mark.unwrap_or(0));
        let guess = || match recognize(&contents[..contents.len().min(SAMPLE_BYTES_MAX)]) {
            Contents::Text(encoding, _) => Ok(encoding),
            Contents::Binary(what) => Err(what),
            Contents::Image(_) => Err("an image"),
        };
        let encoding = match encoding {
            Some(encoding) => encoding,
            None => guess()?,
        };
        if encoding == UTF_16LE {
            return utf16(mark, body, Order::Little);
        }
        if encoding == UTF_16BE {
            return utf16(mark, body, Order::Big);
        }
        let encoding =
            if str::from_utf8(body).is_ok() { TextEncoding::Utf8 } else { TextEncoding::Unknown };
        Ok(Self { mark, body: Cow::Borrowed(body), encoding })
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    pub(super) fn encoding(&self) -> TextEncoding {
        self.encoding
    }

    /// The body as a text, unless its form is unknown.
    pub(super) fn text(&self) -> Option<&str> {
        match self.encoding {
            TextEncoding::Utf8 | TextEncoding::Utf16(_) => str::from_utf8(&self.body).ok(),
            TextEncoding::Unknown => None,
        }
    }

    /// The bytes of a file whose body is made of these parts.
    pub(super) fn write<'b>(&'b self, parts: Vec<&'b [u8]>) -> Vec<Cow<'b, [u8]>> {
        let order = match self.encoding {
            TextEncoding::Utf8 | TextEncoding::Unknown => {
                let parts = std::iter::once(self.mark).chain(parts);
                return parts.map(Cow::Borrowed).collect();
            }
            TextEncoding::Utf16(order) => order,
        };
        let bytes = |unit: u16| match order {
            Order::Little => unit.to_le_bytes(),
            Order::Big => unit.to_be_bytes(),
        };
        let encode = |part: &[u8]| {
            String::from_utf8_lossy(part).encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
        };
        let parts = parts.into_iter().map(|part| Cow::Owned(encode(part)));
        std::iter::once(Cow::Borrowed(self.mark)).chain(parts).collect()
    }
}

/// Text in UTF-16 becomes UTF-8 and back without loss, if it is whole.
fn utf16<'a>(mark: &'a [u8], body: &[u8], order: Order) -> Result<Document<'a>, &'static str> {
    let broken = "broken UTF-16, which could not be written back as it is";
    let (pairs, []) = body.as_chunks::<2>() else {
        return Err(broken);
    };
    let units = pairs.iter().map(|pair| match order {
        Order::Little => u16::from_le_bytes(*pair),
        Order::Big => u16::from_be_bytes(*pair),
    });
    let text: String = char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| broken)?;
    Ok(Document { mark, body: Cow::Owned(text.into_bytes()), encoding: TextEncoding::Utf16(order) })
}
