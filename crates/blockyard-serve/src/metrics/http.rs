//! As much of HTTP/1.1 as one question and one answer need; the connection ends with it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest question, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// How long a question may take to come, and an answer to go.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// `/metrics`.
    Metrics,
    /// `/healthz`.
    Health,
}

/// What is answered.
#[derive(Debug)]
pub(super) struct Answer {
    status: &'static str,
    text: String,
}

impl Answer {
    pub(super) const fn ok(text: String) -> Self {
        Self { status: "200 OK", text }
    }

    pub(super) const fn unavailable(text: String) -> Self {
        Self { status: "503 Service Unavailable", text }
    }

    fn refusal(status: &'static str) -> Self {
        Self { status, text: format!("{status}\n") }
    }
}

/// Answers one question of `client`.
///
/// # Errors
///
/// The client is too slow, or has gone.
pub(super) fn serve(
    client: &mut TcpStream,
    answer: impl FnOnce(Asked) -> Answer,
) -> io::Result<()> {
    let head = receive(client)?;
    let question = head.map_or(Err("431 Request Header Fields Too Large"), |head| parse(&head));
    let (answer, has_body) = match question {
        Ok((asked, has_body)) => (answer(asked), has_body),
        Err(status) => (Answer::refusal(status), true),
    };
    let mut bytes = format!(
        "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        answer.status,
        answer.text.len()
    )
    .into_bytes();
    if has_body {
        bytes.extend(answer.text.as_bytes());
    }
    client.set_write_timeout(Some(TIMEOUT))?;
    client.write_all(&bytes)?;
    // Closing with something unread would take the answer back.
    client.shutdown(std::net::Shutdown::Write)
}

/// Everything up to the empty line; nothing where there is too much of it.
fn receive(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let until = Instant::now() + TIMEOUT;
    let mut head = Vec::new();
    let mut bytes = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => head.extend(&bytes[..len]),
        }
    }
    Ok(Some(head))
}

/// What the first line asks for, and whether more than the head of the answer is wanted; else the
/// status that refuses it.
fn parse(head: &[u8]) -> Result<(Asked, bool), &'static str> {
    let bad = "400 Bad Request";
    let line = head.split(|byte| *byte == b'\r').next().ok_or(bad)?;
    let line = core::str::from_utf8(line).map_err(|_| bad)?;
    let words: Vec<_> = line.split(' ').collect();
    let [method, target, version] = *words else { return Err(bad) };
    if !version.starts_with("HTTP/1.") {
        return Err(bad);
    }
    let has_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return Err("405 Method Not Allowed"),
    };
    match target.split('?').next() {
        Some("/metrics") => Ok((Asked::Metrics, has_body)),
        Some("/healthz") => Ok((Asked::Health, has_body)),
        _ => Err("404 Not Found"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_a_method_a_target_and_a_version() {
        let status = |line: &str| parse(format!("{line}\r\nHost: x\r\n\r\n").as_bytes());
        assert_eq!(status("GET /metrics HTTP/1.1"), Ok((Asked::Metrics, true)));
        assert_eq!(status("GET /metrics?a=b HTTP/1.0"), Ok((Asked::Metrics, true)));
        assert_eq!(status("HEAD /healthz HTTP/1.1"), Ok((Asked::Health, false)));
        for (line, code) in [
            ("GET / HTTP/1.1", "404"),
            ("GET /metrics/ HTTP/1.1", "404"),
            ("POST /metrics HTTP/1.1", "405"),
            ("GET /metrics", "400"),
            ("GET /metrics HTTP/2", "400"),
            ("GET  /metrics HTTP/1.1", "400"),
            ("", "400"),
        ] {
            assert!(status(line).is_err_and(|status| status.starts_with(code)), "{line}");
        }
        assert!(parse(b"GET /\xff HTTP/1.1\r\n\r\n").is_err());
    }
}
