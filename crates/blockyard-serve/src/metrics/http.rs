//! One question over HTTP/1.1 and its answer, which ends the connection.

use super::question::Question;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The time within which a question must arrive, and within which an answer must be sent.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The resource that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Metrics,
    Health,
}

impl Asked {
    fn at(path: &str) -> Option<Self> {
        match path {
            "/metrics" => Some(Self::Metrics),
            "/healthz" => Some(Self::Health),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Answer {
    status: String,
    text: String,
}

impl Answer {
    pub(super) fn ok(text: String) -> Self {
        Self { status: "200 OK".to_owned(), text }
    }

    pub(super) fn unavailable(text: String) -> Self {
        Self { status: "503 Service Unavailable".to_owned(), text }
    }

    fn refusal(status: impl ToString) -> Self {
        let status = status.to_string();
        Self { text: format!("{status}\n"), status }
    }
}

/// Answers one question of `client`.
///
/// # Errors
///
/// The client is too slow, or has hung up.
pub(super) fn serve(
    mut client: &TcpStream,
    answer: impl FnOnce(Asked) -> Answer,
) -> io::Result<()> {
    let received = receive(client)?;
    let question = Question::read(&received).expect("head that was received");
    let (answer, has_body) = match question {
        Ok(Question { path, wants_body }) => match Asked::at(path) {
            Some(asked) => (answer(asked), wants_body),
            None => (Answer::refusal("404 Not Found"), wants_body),
        },
        Err(refusal) => (Answer::refusal(refusal), true),
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
    // A close with unread input would discard the answer, so only the sending side is shut down.
    client.shutdown(std::net::Shutdown::Write)
}

/// Receives a whole question, or enough bytes to refuse it.
fn receive(mut client: &TcpStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + TIMEOUT;
    let mut received = Vec::new();
    let mut bytes = [0; 1024];
    while Question::read(&received).is_none() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => received.extend(&bytes[..len]),
        }
    }
    Ok(received)
}
