//! Detects the kind of a file's contents from its first bytes.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes that are inspected.
pub(crate) const SAMPLE_BYTES_MAX: usize = 64 * 1024;

/// Kind of contents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Contents {
    /// An image of this type.
    Image(&'static str),
    /// Binary data, with the name of its format if known.
    Binary(&'static str),
    /// Text.
    Text(&'static Encoding, Certainty),
}

/// How sure an encoding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It is UTF-8, or the file says so itself.
    Sure,
    /// Guessed from the bytes.
    Guessed,
}

/// First bytes of known formats.
const IMAGES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

const BINARIES: [(&[u8], &str); 12] = [
    (b"\x7fELF", "an ELF program or library"),
    (b"PK\x03\x04", "a ZIP archive, or a format made of one"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"BZh91AY&SY", "bzip2 data"),
    (b"%PDF-", "a PDF document"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "Java bytecode or a Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"MZ\x90\0", "a Windows program"),
];

/// Detects the kind of a file from `sample`, its first bytes.
pub(crate) fn recognize(sample: &[u8]) -> Contents {
    if sample.len() > 12 && sample.starts_with(b"RIFF") && &sample[8..12] == b"WEBP" {
        return Contents::Image("image/webp");
    }
    if let Some((_, mime)) = IMAGES.iter().find(|(magic, _)| sample.starts_with(magic)) {
        return Contents::Image(mime);
    }
    if let Some((_, name)) = BINARIES.iter().find(|(magic, _)| sample.starts_with(magic)) {
        return Contents::Binary(name);
    }
    if let Some((encoding, _)) = Encoding::for_bom(sample) {
        return Contents::Text(encoding, Certainty::Sure);
    }
    if memchr::memchr(0, sample).is_some() {
        return match utf16_by_zeros(sample) {
            Some(encoding) => Contents::Text(encoding, Certainty::Guessed),
            None => Contents::Binary("data"),
        };
    }
    let (multibyte, broken) = utf8_sequences(sample);
    if broken == 0 {
        return Contents::Text(UTF_8, Certainty::Sure);
    }
    let control = |b: &&u8| matches!(b, 0x01..=0x07 | 0x0e..=0x1a | 0x1c..=0x1f);
    if sample.iter().filter(control).count() > sample.len() / 20 {
        return Contents::Binary("data");
    }
    // A few broken characters do not make a UTF-8 text a Latin one.
    let encoding = if multibyte > broken { UTF_8 } else { WINDOWS_1252 };
    Contents::Text(encoding, Certainty::Guessed)
}

/// Counts characters of more than a byte, and bytes that belong to none. One that is cut off by
/// the end of the sample is neither.
fn utf8_sequences(sample: &[u8]) -> (usize, usize) {
    let (mut multibyte, mut broken) = (0, 0);
    let mut chunks = sample.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        multibyte += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        let cut_off = chunks.peek().is_none() && sample.len() >= SAMPLE_BYTES_MAX;
        if !chunk.invalid().is_empty() && !cut_off {
            broken += 1;
        }
    }
    (multibyte, broken)
}

/// Western text in UTF-16 has a zero in every second byte, and hardly any in the others.
fn utf16_by_zeros(sample: &[u8]) -> Option<&'static Encoding> {
    let pairs = sample.len() / 2;
    let zeros = |odd: usize| sample.iter().skip(odd).step_by(2).filter(|b| **b == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    if pairs < 2 || !sample.len().is_multiple_of(2) {
        return None;
    }
    let (most, few) = (pairs * 7 / 10, pairs / 20);
    if odd >= most && even <= few {
        Some(UTF_16LE)
    } else if even >= most && odd <= few {
        Some(UTF_16BE)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn contents_are_recognized_by_their_first_bytes() {
        let sure = |encoding| Contents::Text(encoding, Certainty::Sure);
        let guessed = |encoding| Contents::Text(encoding, Certainty::Guessed);
        let little = utf16("hello, world\n");
        let big: Vec<u8> = little.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
        let mut cut = "x".repeat(SAMPLE_BYTES_MAX - 1).into_bytes();
        cut.push(0xc3);
        let table: [(&str, &[u8], Contents); 16] = [
            ("nothing", b"", sure(UTF_8)),
            ("ascii", b"hello\n", sure(UTF_8)),
            ("utf-8", "gr\u{fc}n\n".as_bytes(), sure(UTF_8)),
            ("utf-8 with a mark", b"\xef\xbb\xbfhi", sure(UTF_8)),
            ("utf-8 cut by the end of the sample", &cut, sure(UTF_8)),
            ("utf-8 with one bad byte", "gr\u{fc}n und wei\u{df} \u{e4}".as_bytes(), sure(UTF_8)),
            ("mostly utf-8", b"gr\xc3\xbcn wei\xc3\x9f \xff", guessed(UTF_8)),
            ("latin", b"gr\xfcn und wei\xdf\n", guessed(WINDOWS_1252)),
            ("utf-16 with a mark", b"\xff\xfeh\0i\0", sure(UTF_16LE)),
            ("utf-16 without one", &little, guessed(UTF_16LE)),
            ("utf-16, the other way round", &big, guessed(UTF_16BE)),
            ("zeros", &[0; 100], Contents::Binary("data")),
            ("noise", b"\x01\x02\x80\xff\x03\x04", Contents::Binary("data")),
            ("a program", b"\x7fELF\x02\x01", Contents::Binary("an ELF program or library")),
            ("png", b"\x89PNG\r\n\x1a\n....", Contents::Image("image/png")),
            ("webp", b"RIFF\x10\0\0\0WEBPVP8 ", Contents::Image("image/webp")),
        ];
        for (name, sample, expected) in table {
            assert_eq!(recognize(sample), expected, "{name}");
        }
    }
}
