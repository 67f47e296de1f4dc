//! Syntax errors of a profile, in the words of profiles.

use core::ops::Range;

use toml::de::{DeValue, Error};

use super::error::Problem;

/// Returns the problem that the parser's `error` about `text` is: a key without a value, a value
/// without quotes, a key or table that is there twice, or else what the parser says.
pub(crate) fn problem(text: &str, error: &Error) -> Problem {
    let span = error.span().unwrap_or_default();
    debug_assert!(span.end <= text.len(), "{span:?} of {} bytes", text.len());
    let words = if error.message() == "duplicate key" {
        twice(text, span)
    } else {
        without_value(line_at(text, span.start))
    };
    Problem::Syntax(words.unwrap_or_else(|| error.message().to_owned()))
}

/// Returns the message about a key or table that is there a second time.
fn twice(text: &str, span: Range<usize>) -> Option<String> {
    let line = line_at(text, span.start);
    if line.starts_with('[') {
        let header = line.get(..=line.rfind(']')?)?;
        let first = text.lines().position(|line| line.trim().starts_with(header))?;
        return Some(format!(
            "`{header}` is there a second time, after line {}: put its keys together",
            first + 1
        ));
    }
    let key = text.get(span).filter(|key| !key.is_empty())?;
    Some(format!("`{key}` is there a second time in its table: leave out one of the two"))
}

/// Returns the message about `line` if it has a key without a value, or with one that needs quotes.
fn without_value(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let value = value.split('#').next().unwrap_or_default().trim();
    if value.is_empty() {
        return Some(format!("`{key}` has no value: write one after `=`"));
    }
    let is_bare = !value.contains(|letter: char| "\"'[]{},=".contains(letter));
    let wrong = is_bare && DeValue::parse(value).is_err();
    wrong.then(|| format!("a value that is no number needs quotes: write `{key} = \"{value}\"`"))
}

/// Returns the line of byte `offset`, without spaces around it.
fn line_at(text: &str, offset: usize) -> &str {
    let before = text.get(..offset).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    text[start..].lines().next().unwrap_or_default().trim()
}
