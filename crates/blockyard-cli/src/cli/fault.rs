//! Fault rules as options name them.

use core::convert::Infallible;
use core::str::FromStr;
use std::io::{self, Read};

use blockyard_devices::profile::{FaultRules, ProfileError};

/// The longest text from standard input, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The source of fault rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FaultSource {
    /// `none`: no rules.
    None,
    /// `-`: the text of a fault file, at standard input.
    Stdin,
    /// The text of a fault file that was made of rules on the command line.
    Inline(String),
    /// The path of a fault file.
    File(String),
}

impl FromStr for FaultSource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        // A key of TOML begins with none of these, and most paths that are not plain names do.
        let is_path = text.starts_with(['/', '.']) || !text.contains('=');
        Ok(match text {
            "none" => Self::None,
            "-" => Self::Stdin,
            rules if rules.trim_start().starts_with('{') => {
                Self::Inline(format!("rule = [{rules}]"))
            }
            path if is_path => Self::File(path.to_owned()),
            rule => Self::Inline(format!("rule = [{{{rule}}}]")),
        })
    }
}

impl FaultSource {
    /// Reads the rules.
    pub(crate) fn read(&self) -> Result<FaultRules, ProfileError> {
        match self {
            Self::File(path) => FaultRules::read(path),
            Self::None => FaultRules::parse("none", ""),
            Self::Stdin => FaultRules::parse(STDIN, &stdin().map_err(unreadable)?),
            Self::Inline(text) => FaultRules::parse("rule", text),
        }
    }

    /// Reads the text of the fault file, which a server has yet to check.
    pub(crate) fn text(&self) -> Result<String, ProfileError> {
        match self {
            Self::None => Ok(String::new()),
            Self::Stdin => stdin().map_err(unreadable),
            Self::Inline(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|error| ProfileError::Unreadable { file: path.clone(), error }),
        }
    }
}

const STDIN: &str = "standard input";

fn unreadable(error: io::Error) -> ProfileError {
    ProfileError::Unreadable { file: STDIN.to_owned(), error }
}

fn stdin() -> io::Result<String> {
    read_limited(io::stdin())
}

/// Reads all text of `source`.
///
/// # Errors
///
/// The text is longer than [`MAX_BYTES`]: without its end, it would be other rules. Or it cannot be
/// read.
fn read_limited(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        let why = format!("fault rules have at most {MAX_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::layer::fault::Turns;

    /// Rules beyond the first 1 MiB were dropped without a word.
    #[test]
    fn a_text_beyond_the_limit_is_refused() {
        let fits = vec![b'#'; 1 << 20];
        let text = read_limited(fits.as_slice()).expect("a text of 1 MiB");
        assert_eq!(text.len(), 1 << 20);
        let longer = vec![b'#'; (1 << 20) + 1];
        let refused = read_limited(longer.as_slice()).expect_err("a text of one byte more");
        assert_eq!(refused.to_string(), "fault rules have at most 1048576 bytes");
    }

    fn source(text: &str) -> FaultSource {
        text.parse().expect("every text is a source")
    }

    #[test]
    fn a_text_with_an_equals_sign_is_a_rule_unless_it_begins_as_a_path() {
        assert_eq!(source("none"), FaultSource::None);
        assert_eq!(source("-"), FaultSource::Stdin);
        for path in ["x.toml", "./a=b.toml", "/tmp/a=b", "../a=b"] {
            assert_eq!(source(path), FaultSource::File(path.to_owned()));
        }
        assert!(matches!(source("error=\"io\""), FaultSource::Inline(_)));
    }

    #[test]
    fn rules_on_the_command_line_are_those_of_a_file() {
        let one =
            source("op = [\"read\", \"fsync\"], nth = 2, error = \"io\"").read().expect("one rule");
        assert_eq!((&*one.rules[0].name, one.rules.len()), ("rule 1", 1));
        assert_eq!(one.rules[0].when.turns, Turns::Between(2, 2));
        let two = source("{lost = true}, {name = \"second\", delay = \"1ms\"}")
            .read()
            .expect("two rules");
        let names: Vec<_> = two.rules.iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["rule 1", "second"]);
        let wrong = source("op = \"raed\", error = \"io\"").read().expect_err("no op").to_string();
        assert_eq!(wrong, "rule:1: unknown value `raed` for `op`: did you mean `read`?");
        assert!(source("op = read, error = \"io\"").read().is_err());
    }
}
