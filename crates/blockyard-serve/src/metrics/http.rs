//! One question over HTTP/1.1 and its answer, which ends the connection.

use super::question::Question;
use crate::clients::callers::Caller;
use std::io;
use std::time::{Duration, Instant};

/// The time within which a question must arrive.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(2);
/// The time within which the whole answer must be read: as long as Prometheus waits for one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

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

/// Answers one question of `caller`.
///
/// # Errors
///
/// The caller is too slow, or has hung up.
pub(super) fn serve(caller: &Caller, answer: impl FnOnce(Asked) -> Answer) -> io::Result<()> {
    let received = receive(caller)?;
    let question = Question::read(&received).expect("head that was received");
    let (answer, has_body) = match question {
        Ok(Question { path, wants_body }) => match Asked::at(path) {
            Some(asked) => (answer(asked), wants_body),
            None => (Answer::refusal("404 Not Found"), wants_body),
        },
        Err(refusal) => (Answer::refusal(refusal), true),
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        answer.status,
        answer.text.len()
    );
    let until = Instant::now() + ANSWER_TIMEOUT;
    caller.send(head.as_bytes(), until)?;
    if has_body {
        caller.send(answer.text.as_bytes(), until)?;
    }
    caller.end_sending()
}

/// Receives a whole question, or enough bytes to refuse it.
fn receive(caller: &Caller) -> io::Result<Vec<u8>> {
    let until = Instant::now() + QUESTION_TIMEOUT;
    let mut received = Vec::new();
    let mut bytes = [0; 1024];
    while Question::read(&received).is_none() {
        match caller.receive(&mut bytes, until)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => received.extend(&bytes[..len]),
        }
    }
    Ok(received)
}
