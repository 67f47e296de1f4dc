//! Lines for standard error, as text or as JSON, which never block a server.
//!
//! Before [`begin`], a line is written immediately, however long that takes. Afterwards, one thread
//! writes. Lines for which there is no room are dropped, and their count is written when there is
//! room again.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use anstyle::{AnsiColor, Style};
use blockyard_serve::counted;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::terminal::above_progress;

/// The maximum number of lines that wait to be written.
const LINES_MAX: usize = 1024;
/// The time for which the end of the program waits for standard error.
const LAST_LINES: Duration = Duration::from_millis(500);

/// How severe a line is, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// The command fails
    Error,
    /// Something is wrong, and the command continues
    Warning,
    /// Anything else
    Note,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// A JSON object in each line, with `time_ms` (since 1970), `level` and `message`
    Json,
}

/// Which lines are written, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// The least severe lines that are written.
    pub(crate) level: Level,
    pub(crate) format: Format,
}

/// The object of a line, for a program that reads the log: a key and the object's name.
pub(crate) type About<'a> = Option<(&'static str, &'a str)>;

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Error => AnsiColor::Red.on_default().bold(),
            Self::Warning => AnsiColor::Yellow.on_default().bold(),
            Self::Note => Style::new(),
        }
    }
}

impl Choice {
    fn line(self, level: Level, words: &str, about: About<'_>) -> String {
        let name = level.name();
        let style = level.style();
        match self.format {
            Format::Text => format!("blockyard: {style}{name}{style:#}: {words}\n"),
            Format::Json => {
                #[expect(clippy::disallowed_methods, reason = "a log has the time of day")]
                let now = SystemTime::now();
                let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
                let mut line = json!({ "time_ms": ms, "level": name, "message": words });
                if let Some((key, name)) = about {
                    line[key] = Value::from(name);
                }
                format!("{line}\n")
            }
        }
    }
}

/// The waiting lines.
#[derive(Debug)]
struct Queue {
    lines: VecDeque<String>,
    choice: Choice,
    /// The number of lines dropped since there was room.
    dropped: u64,
    has_writer: bool,
    is_writing: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue::new());
/// Signals that the queue has a line or that the writer has written one.
static CHANGED: Condvar = Condvar::new();

impl Queue {
    const fn new() -> Self {
        let choice = Choice { level: Level::Note, format: Format::Text };
        Self { lines: VecDeque::new(), choice, dropped: 0, has_writer: false, is_writing: false }
    }

    fn put(&mut self, line: String) {
        // After a drop, the count comes before the next line.
        if self.dropped > 0 || self.lines.len() == LINES_MAX {
            self.dropped += 1;
        } else {
            self.lines.push_back(line);
        }
    }

    fn next(&mut self) -> Option<String> {
        let next = self.lines.pop_front();
        if self.dropped > 0 && self.lines.len() <= LINES_MAX / 2 {
            let count = core::mem::take(&mut self.dropped);
            let lines = counted(count, "line");
            let were = if count == 1 { "was" } else { "were" };
            let words = format!("{lines} of the log {were} dropped: standard error was full");
            self.lines.push_back(self.choice.line(Level::Warning, &words, None));
        }
        next
    }
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread that writes. It writes the lines of `choice`.
pub(crate) fn begin(choice: Choice) {
    let mut waiting = queue();
    waiting.has_writer = true;
    waiting.choice = choice;
    drop(waiting);
    std::thread::spawn(|| {
        let mut waiting = queue();
        loop {
            if let Some(line) = waiting.next() {
                waiting.is_writing = true;
                drop(waiting);
                print(&line);
                waiting = queue();
            } else {
                waiting.is_writing = false;
                CHANGED.notify_all();
                waiting = CHANGED.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        }
    });
}

/// Drops notes from now on.
pub(crate) fn drop_notes() {
    queue().choice.level = Level::Warning;
}

/// Whether notes are written.
pub(crate) fn has_notes() -> bool {
    queue().choice.level >= Level::Note
}

/// Queues a line for the writer thread. Writes the line itself if there is no such thread.
pub(crate) fn put(level: Level, words: &str, about: About<'_>) {
    let mut queue = queue();
    if level > queue.choice.level {
        return;
    }
    let line = queue.choice.line(level, words, about);
    if queue.has_writer {
        queue.put(line);
        CHANGED.notify_all();
    } else {
        drop(queue);
        print(&line);
    }
}

fn print(line: &str) {
    // A failure to print cannot be reported.
    above_progress(|| drop(anstream::stderr().write_all(line.as_bytes())));
}

/// Waits for a short time until all lines are written.
pub(crate) fn finish() {
    let has_more = |queue: &mut Queue| queue.is_writing || !queue.lines.is_empty();
    drop(CHANGED.wait_timeout_while(queue(), LAST_LINES, has_more));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_lines_are_counted_in_their_place() {
        let mut queue = Queue::new();
        for number in 0..LINES_MAX + 7 {
            queue.put(number.to_string());
        }
        for number in 0..LINES_MAX / 2 {
            assert_eq!(queue.next(), Some(number.to_string()));
        }
        queue.put("after".to_owned());
        let rest: Vec<_> = core::iter::from_fn(|| queue.next()).collect();
        assert_eq!(rest[LINES_MAX / 2 - 1], (LINES_MAX - 1).to_string());
        assert!(rest[LINES_MAX / 2].contains(" 7 lines of the log were dropped"));
        assert_eq!(rest[LINES_MAX / 2 + 1..], ["after"]);
    }

    #[test]
    fn a_line_of_json_is_an_object_with_the_name_of_what_it_is_about() {
        let choice = Choice { level: Level::Note, format: Format::Json };
        let line = choice.line(Level::Warning, "say \"what\"\n", Some(("disk", "root")));
        assert_eq!(line.find('\n'), Some(line.len() - 1), "one line");
        let line: Value = serde_json::from_str(&line).expect("an object");
        assert!(line["time_ms"].as_u64() > Some(1_700_000_000_000));
        assert_eq!(line["level"], "warning");
        assert_eq!((&line["message"], &line["disk"]), (&json!("say \"what\"\n"), &json!("root")));
    }
}
