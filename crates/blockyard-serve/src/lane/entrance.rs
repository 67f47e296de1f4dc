//! The channel through which other threads send messages to a lane and query it.

use crate::clients::weight::Weight;
use crate::disk::{Change, Disk};
use crate::lane::door::Arrival;
use crate::observation::meter::Counts;
use crate::observation::overview::Overview;
use crate::observation::traffic::Traffic;
use blockyard_std::parts::bell;
use core::ops::Range;
use core::sync::atomic::AtomicUsize;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// The time within which a lane must answer a query.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A message from another thread to a lane.
#[derive(Debug)]
pub(crate) enum Message {
    /// A client has connected, or has come from another lane: open a door for it.
    Arrival(Box<dyn Arrival>),
    /// Wake all doors: something has changed that one of them looks at.
    WakeDoors,
    /// Send the counters of the disks with these numbers, at most
    /// [`DISKS_PER_REPORT`](crate::observation::meter::DISKS_PER_REPORT).
    Report(Range<usize>, mpsc::Sender<Vec<(usize, Counts)>>),
    /// Send the traffic of the lane's clients.
    Traffic(mpsc::Sender<Traffic>),
    /// Send the traffic of each disk, and the clients.
    Overview(mpsc::Sender<Overview>),
    /// Cut off the client with this number. Send whether it is one of the lane's.
    Disconnect(u64, mpsc::Sender<bool>),
    /// Give the client with this number a weight. Send `None` if it is none of the lane's, or why
    /// it gets none.
    Weigh(u64, Weight, mpsc::Sender<Option<Result<(), String>>>),
    /// Change the layers of the disk with this number. Send whether it has the layer.
    Change(usize, Change, mpsc::Sender<bool>),
    /// Take a disk with this number into service.
    Add(usize, Arc<Disk>, mpsc::Sender<()>),
    /// A closed gate is open again, or its export is gone: let the clients that wait in front of it
    /// choose again.
    ChooseAgain,
    /// Drain the clients of the disk with this number, flush it, and forget it. Send whether the
    /// flush succeeded.
    Remove(usize, mpsc::Sender<io::Result<()>>),
    /// Answer every request in flight, flush, and end.
    Drain,
    /// End immediately, even with requests in flight.
    Leave,
}

/// A handle with which other threads send messages to a lane.
#[derive(Debug)]
pub(crate) struct Entrance {
    messages: mpsc::Sender<Message>,
    bell: Arc<OwnedFd>,
    /// The number of doors of the lane.
    pub(crate) load: Arc<AtomicUsize>,
}

impl Clone for Entrance {
    fn clone(&self) -> Self {
        let Self { messages, bell, load } = self;
        Self { messages: messages.clone(), bell: Arc::clone(bell), load: Arc::clone(load) }
    }
}

impl Entrance {
    /// Returns the entrance of a lane that waits on `bell`, and the receiver of its messages.
    pub(crate) fn new(bell: Arc<OwnedFd>) -> (Self, mpsc::Receiver<Message>) {
        let (messages, received) = mpsc::channel();
        (Self { messages, bell, load: Arc::default() }, received)
    }

    pub(crate) fn send(&self, message: Message) {
        // A lane that has ended has dropped its receiver and needs no message.
        drop(self.messages.send(message));
        bell::ring(&self.bell);
    }
}

/// Sends a query to all lanes at the same time and returns their answers, in the order of
/// `entrances`.
///
/// # Errors
///
/// Returns the index of the first lane that has ended or does not answer within a second.
pub(crate) fn ask_lanes<T>(
    entrances: &[Entrance],
    question: impl Fn(mpsc::Sender<T>) -> Message,
) -> Result<Vec<T>, usize> {
    ask_within(TIMEOUT, entrances, question)
}

/// As [`ask_lanes`], but waits for as long as `timeout`.
pub(crate) fn ask_within<T>(
    timeout: Duration,
    entrances: &[Entrance],
    question: impl Fn(mpsc::Sender<T>) -> Message,
) -> Result<Vec<T>, usize> {
    let asked = entrances.iter().map(|entrance| {
        let (sender, answer) = mpsc::channel();
        entrance.send(question(sender));
        answer
    });
    // All lanes are asked before the first answer is awaited, so that they work at the same time.
    let asked: Vec<_> = asked.collect();
    let until = Instant::now() + timeout;
    let answers = asked.into_iter().enumerate().map(|(lane, answer)| {
        answer.recv_timeout(until.saturating_duration_since(Instant::now())).map_err(|_| lane)
    });
    answers.collect()
}
