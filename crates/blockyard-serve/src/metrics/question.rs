//! The part of HTTP/1.1 that one question needs: a GET or HEAD of a path.
//!
//! The header fields and the query of the path are skipped.

use core::fmt;

/// The longest question, in bytes.
pub const QUESTION_BYTES_MAX: usize = 8 << 10;

/// A question: a GET or HEAD of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The path, without its query.
    pub path: &'a str,
    /// Whether the answer has a body: GET, not HEAD.
    pub(crate) wants_body: bool,
}

/// The reason why a question is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The question is not HTTP/1.
    Bad,
    /// The method is neither GET nor HEAD.
    NotAllowed,
    /// The question is longer than [`QUESTION_BYTES_MAX`].
    TooLong,
}

/// Writes the status of the answer: its code and reason.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bad => "400 Bad Request",
            Self::NotAllowed => "405 Method Not Allowed",
            Self::TooLong => "431 Request Header Fields Too Large",
        })
    }
}

impl core::error::Error for Refusal {}

impl<'a> Question<'a> {
    /// Returns the question at the start of `received`, or `None` until all of it has been
    /// received. Bytes after the question are ignored.
    ///
    /// # Errors
    ///
    /// Any [`Refusal`].
    pub fn read(received: &'a [u8]) -> Option<Result<Self, Refusal>> {
        const END: &[u8] = b"\r\n\r\n";
        let head = &received[..received.len().min(QUESTION_BYTES_MAX)];
        if head.windows(END.len()).any(|end| end == END) {
            let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
            return Some(Self::parse(line));
        }
        (head.len() == QUESTION_BYTES_MAX).then_some(Err(Refusal::TooLong))
    }

    fn parse(line: &'a [u8]) -> Result<Self, Refusal> {
        let line = core::str::from_utf8(line).map_err(|_| Refusal::Bad)?;
        let (method, target) = line
            .rsplit_once(" HTTP/1.")
            .filter(|(_, minor)| !minor.contains(' '))
            .and_then(|(words, _)| words.split_once(' '))
            .filter(|(_, target)| !target.contains(' '))
            .ok_or(Refusal::Bad)?;
        let wants_body = match method {
            "GET" => true,
            "HEAD" => false,
            _ => return Err(Refusal::NotAllowed),
        };
        let path = target.split('?').next().unwrap_or_default();
        Ok(Self { path, wants_body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_lanes(line: &str) -> Result<(&str, bool), Refusal> {
        let head = [line, "\r\nHost: x\r\n\r\nmore"].concat();
        let question = Question::read(head.as_bytes()).expect("head that is complete")?;
        let at = line.find(question.path).expect("path within its line");
        Ok((&line[at..at + question.path.len()], question.wants_body))
    }

    #[test]
    fn a_question_is_a_method_a_target_and_a_version() {
        assert_eq!(ask_lanes("GET /metrics HTTP/1.1"), Ok(("/metrics", true)));
        assert_eq!(ask_lanes("GET /metrics?a=b HTTP/1.0"), Ok(("/metrics", true)));
        assert_eq!(ask_lanes("HEAD /healthz HTTP/1.1"), Ok(("/healthz", false)));
        assert_eq!(ask_lanes("POST /metrics HTTP/1.1"), Err(Refusal::NotAllowed));
        for bad in [
            "GET /metrics",
            "GET /metrics HTTP/2",
            "GET  /metrics HTTP/1.1",
            "",
            "GET / HTTP/1.1 x",
        ] {
            assert_eq!(ask_lanes(bad), Err(Refusal::Bad), "{bad}");
        }
        assert_eq!(Question::read(b"GET /\xff HTTP/1.1\r\n\r\n"), Some(Err(Refusal::Bad)));
    }

    #[test]
    fn it_is_whole_at_the_empty_line_and_long_beyond_the_limit() {
        let whole = b"GET / HTTP/1.1\r\nA: b\r\n\r\n";
        for len in 0..whole.len() {
            assert_eq!(Question::read(&whole[..len]), None, "{len} bytes");
        }
        let mut long: Vec<u8> = b"GET / HTTP/1.1\r\nA: ".to_vec();
        long.resize(QUESTION_BYTES_MAX - 4, b'a');
        long.extend(b"\r\n\r\n");
        assert!(matches!(Question::read(&long), Some(Ok(_))), "the longest question");
        long.insert(20, b'a');
        assert_eq!(Question::read(&long), Some(Err(Refusal::TooLong)));
        assert_eq!(Question::read(&long[..QUESTION_BYTES_MAX - 1]), None);
    }
}
