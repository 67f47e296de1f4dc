//! The way into a lane, for the threads around it: what it is told, and what it is asked.

use crate::bell;
use crate::meter::Counts;
use crate::traffic::Traffic;
use core::sync::atomic::AtomicUsize;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How long a lane may take to answer.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What a lane is told from outside.
#[derive(Debug)]
pub(crate) enum Message<A> {
    /// A client has come: a door is to be opened for this.
    Arrival(A),
    /// Tell what was counted, by the number of the disk.
    Report(mpsc::Sender<Vec<Counts>>),
    /// Tell what clients had.
    Traffic(mpsc::Sender<Traffic>),
    /// End: answer what is under way, flush, and go.
    Drain,
    /// Go, whatever is under way.
    Leave,
}

/// The outside of a lane.
#[derive(Debug)]
pub(crate) struct Entrance<A> {
    messages: mpsc::Sender<Message<A>>,
    bell: Arc<OwnedFd>,
    /// Doors of the lane.
    pub(crate) load: Arc<AtomicUsize>,
}

impl<A> Clone for Entrance<A> {
    fn clone(&self) -> Self {
        let Self { messages, bell, load } = self;
        Self { messages: messages.clone(), bell: Arc::clone(bell), load: Arc::clone(load) }
    }
}

impl<A> Entrance<A> {
    /// That of a lane that `bell` wakes, and what comes through.
    pub(crate) fn new(bell: Arc<OwnedFd>) -> (Self, mpsc::Receiver<Message<A>>) {
        let (messages, received) = mpsc::channel();
        (Self { messages, bell, load: Arc::default() }, received)
    }

    pub(crate) fn send(&self, message: Message<A>) {
        // A lane that has ended wants no messages.
        drop(self.messages.send(message));
        bell::ring(&self.bell);
    }
}

/// Asks all lanes at once, and has their answers by the lane.
///
/// # Errors
///
/// The first lane that does not answer within a second, or has ended.
pub(crate) fn ask<A, T>(
    entrances: &[Entrance<A>],
    question: impl Fn(mpsc::Sender<T>) -> Message<A>,
) -> Result<Vec<T>, usize> {
    let asked = entrances.iter().map(|entrance| {
        let (tell, told) = mpsc::channel();
        entrance.send(question(tell));
        told
    });
    let asked: Vec<_> = asked.collect();
    let until = Instant::now() + TIMEOUT;
    let answers = asked.into_iter().enumerate().map(|(lane, told)| {
        told.recv_timeout(until.saturating_duration_since(Instant::now())).map_err(|_| lane)
    });
    answers.collect()
}
