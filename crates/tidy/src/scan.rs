//! A scanner that knows just enough Rust: what is code, what is text, where braces match.

use std::ops::Range;

/// `source` with comments and the contents of string and character literals replaced by
/// spaces. Length in bytes and line breaks stay, so offsets and lines are the same.
pub fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = text_end(bytes, at);
        if end == at {
            at += 1;
            continue;
        }
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Whole literals and comments were blanked, and those begin and end with ASCII.
    String::from_utf8_lossy(&code).into_owned()
}

/// Where the comment or literal that starts at `at` ends; `at` itself if none starts here.
fn text_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return block_comment_end(bytes, at);
    }
    match rest[0] {
        b'"' => string_end(bytes, at),
        b'\'' => character_end(bytes, at),
        b'r' if !continues_word(bytes, at) => raw_string_end(bytes, at).unwrap_or(at),
        _ => at,
    }
}

/// Whether the byte before `at` belongs to the same identifier; a `b` or `c` that is a
/// literal's prefix does not count.
fn continues_word(bytes: &[u8], at: usize) -> bool {
    let word = |index: usize| is_word(bytes[index]);
    match at {
        0 => false,
        1 => word(0) && !matches!(bytes[0], b'b' | b'c'),
        _ => word(at - 1) && (!matches!(bytes[at - 1], b'b' | b'c') || word(at - 2)),
    }
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A raw string's end, or nothing when this is an identifier such as `r#fn` or `rest`.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..].iter().take_while(|b| **b == b'#').count();
    let body = start + 1 + hashes;
    if bytes.get(body) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let length = bytes[body + 1..].windows(close.len()).position(|w| w == close);
    Some(length.map_or(bytes.len(), |length| body + 1 + length + close.len()))
}

/// A character literal's end; a lifetime or label is not text.
fn character_end(bytes: &[u8], start: usize) -> usize {
    if bytes.get(start + 1) == Some(&b'\\') {
        let rest = bytes.get(start + 3..).unwrap_or(&[]);
        return rest.iter().position(|b| *b == b'\'').map_or(bytes.len(), |n| start + 4 + n);
    }
    // One character of one to four bytes, then the closing quote.
    let width = match bytes.get(start + 1) {
        Some(0xF0..) => 4,
        Some(0xE0..) => 3,
        Some(0xC0..) => 2,
        _ => 1,
    };
    if bytes.get(start + 1 + width) == Some(&b'\'') { start + 2 + width } else { start }
}

/// Whether a byte can be part of an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Byte offsets at which `needle` stands in `code` as whole words.
pub fn words<'a>(code: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let outer = |index: Option<usize>, inner: u8| {
        index.and_then(|i| bytes.get(i)).is_none_or(|b| !is_word(*b) || !is_word(inner))
    };
    let needle_bytes = needle.as_bytes();
    code.match_indices(needle).map(|(at, _)| at).filter(move |at| {
        outer(at.checked_sub(1), needle_bytes[0]) && outer(Some(at + needle.len()), needle_bytes[needle.len() - 1])
    })
}

/// The line, from 1, of a byte offset.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset].iter().filter(|b| **b == b'\n').count()
}

/// From `from`, the end of the item that starts there: past its matching `}` or its `;`.
/// `code` is free of text, as [`code_only`] leaves it.
pub fn item_end(code: &str, from: usize) -> usize {
    let (mut braces, mut nested) = (0_i32, 0_i32);
    for (index, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested -= 1,
            b';' if braces == 0 && nested == 0 => return index + 1,
            b'{' if nested == 0 => braces += 1,
            b'}' if nested == 0 => {
                braces -= 1;
                if braces <= 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The parts of `code` under `#[cfg(test)]`, as byte ranges.
pub fn test_ranges(code: &str) -> Vec<Range<usize>> {
    const MARK: &str = "#[cfg(test)]";
    code.match_indices(MARK).map(|(at, _)| at..item_end(code, at + MARK.len())).collect()
}
