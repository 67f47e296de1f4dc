//! The commands that an operator may send, one in each line.

use crate::clients::weight::Weight;
use core::fmt;
use core::num::NonZeroU64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest line, without its end, in bytes.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// A command, as a JSON object whose `command` is its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Request {
    /// List the exports and clients. The answer takes a second, over which rates are measured.
    List {},
    /// Disconnect a client immediately. Its requests in flight are not answered.
    Disconnect {
        /// The number of the client.
        client: u64,
    },
    /// Give a client a weight: its share of its export among the export's clients.
    Weight {
        /// The number of the client.
        client: u64,
        /// The weight. A client without one counts as one of 40.
        weight: Weight,
    },
    /// Limit the bytes and requests per second of an export that was started with a rate.
    Rate {
        /// The name of the export; empty for the default one.
        export: String,
        /// Bytes read and written per second; `None`: no limit.
        #[serde(default)]
        bytes_per_s: Option<NonZeroU64>,
        /// Requests per second; `None`: no limit.
        #[serde(default)]
        requests_per_s: Option<NonZeroU64>,
        /// The time in milliseconds for which unused capacity is kept.
        #[serde(default)]
        burst_ms: u32,
    },
    /// Delay the requests of an export that was started with a delay, each by a time drawn from a
    /// range.
    Delay {
        /// The name of the export; empty for the default one.
        export: String,
        /// The shortest delay in microseconds.
        min_us: u32,
        /// The longest delay in microseconds.
        max_us: u32,
    },
    /// Replace the fault rules of an export that was started with faults. Their times begin now.
    Fault {
        /// The name of the export; empty for the default one.
        export: String,
        /// The text of a fault file; empty for no faults.
        rules: String,
    },
    /// Add an export. The server decides what describes a disk: `blockyard serve` takes the keys of
    /// its configuration file.
    Add {
        /// The description of the disk.
        disk: Map<String, Value>,
    },
    /// Remove an export: flush its disk and close it.
    Remove {
        /// The name of the export; empty for the default one.
        export: String,
        /// End its clients first: their requests in flight are answered, with an error if they take
        /// too long. Without this, an export with clients stays.
        #[serde(default)]
        force: bool,
    },
    /// Change the size of an export. A client learns the size when it connects, so the export must
    /// have no clients.
    Resize {
        /// The name of the export; empty for the default one.
        export: String,
        /// The size in bytes.
        size_bytes: u64,
        /// End its clients first: their requests in flight are answered, with an error if they take
        /// too long. Without this, an export with clients keeps its size.
        #[serde(default)]
        force: bool,
    },
    /// Accept no more clients and requests, answer those in flight, flush the disks and end.
    Drain {},
}

/// The reason why a line is no [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The line has more than [`LINE_BYTES_MAX`] bytes.
    TooLong,
    /// The connection ended within the line.
    Unfinished,
    /// The line is not the JSON of a request, for this reason.
    Bad(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "a line has at most {LINE_BYTES_MAX} bytes"),
            Self::Unfinished => f.write_str("the last line has no end"),
            Self::Bad(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for Refusal {}

impl Request {
    /// Returns the request in the first line of `received`, and the length of that line with its
    /// end. Returns `None` until the end of the line has been received. Bytes after the line are
    /// ignored.
    #[must_use]
    pub fn read(received: &[u8]) -> Option<(usize, Result<Self, Refusal>)> {
        let head = &received[..received.len().min(LINE_BYTES_MAX + 1)];
        match head.iter().position(|byte| *byte == b'\n') {
            Some(len) => Some((len + 1, Self::parse(&head[..len]))),
            None => (head.len() > LINE_BYTES_MAX).then_some((head.len(), Err(Refusal::TooLong))),
        }
    }

    fn parse(line: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(line).map_err(|error| Refusal::Bad(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        let (len, request) =
            Request::read(format!("{line}\nmore").as_bytes()).expect("line that is complete");
        assert_eq!(len, line.len() + 1);
        request.expect_err("line that is no request").to_string()
    }

    fn read(line: &[u8]) -> Result<Request, Refusal> {
        Request::read(line).expect("line that is complete").1
    }

    #[test]
    fn a_request_is_an_object_with_a_known_command_and_its_fields() {
        assert_eq!(read(b"{\"command\":\"list\"}\n"), Ok(Request::List {}));
        assert_eq!(
            read(b" {\"client\": 7, \"command\": \"disconnect\"} \r\n"),
            Ok(Request::Disconnect { client: 7 })
        );
        let known = "unknown variant `lst`, expected one of `list`, `disconnect`, ";
        assert!(refusal("{\"command\":\"lst\"}").starts_with(known));
        assert!(refusal("{\"command\":\"list\",\"x\":1}").starts_with("unknown field `x`"));
        assert!(refusal("{\"command\":\"disconnect\"}").starts_with("missing field `client`"));
        let zero = "{\"command\":\"rate\",\"export\":\"\",\"bytes_per_s\":0}";
        assert!(refusal(zero).starts_with("invalid value"));
        assert!(refusal("{}").starts_with("missing field `command`"));
        for line in ["", "list", "[]", "{\"command\":\"list\"} {}", &"[".repeat(10_000)] {
            assert!(!refusal(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn a_line_is_whole_at_its_end_and_too_long_beyond_the_limit() {
        let line = b"{\"command\":\"list\"}\n";
        for len in 0..line.len() {
            assert_eq!(Request::read(&line[..len]), None, "{len} bytes");
        }
        let mut long = vec![b' '; LINE_BYTES_MAX];
        assert_eq!(Request::read(&long), None);
        long.push(b'\n');
        assert!(matches!(Request::read(&long), Some((_, Err(Refusal::Bad(_))))));
        long[LINE_BYTES_MAX] = b' ';
        assert_eq!(Request::read(&long), Some((LINE_BYTES_MAX + 1, Err(Refusal::TooLong))));
    }
}
