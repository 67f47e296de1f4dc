//! A lane: a thread with its own request queues, io_uring and doors.
//!
//! ```text
//! wait ─► now ─► doors: parse, submit ─► run, complete ─► doors: answer each request that ended
//!   ▲                                                                      │
//!   └──────────── one send and one receive for each door ◄─────────────────┘
//! ```
//!
//! One call hands the kernel everything that a turn sends and receives, and waits for completions. I/O
//! of files is submitted earlier in the turn, two operations at a time.
//!
//! A lane with nothing to do looks for completions for a few microseconds before it sleeps, where that pays
//! ([`spin`]).
//!
//! A lane knows no protocol: its doors ([`Door`]) understand what arrives and compose what is sent.
//!
//! # Rules (cited by name)
//!
//! - **[turn-is-bounded]** The work of a turn is bounded, whatever devices, layers and their rules do: a request that a device gives
//!   back undone waits for the next turn ([undone-waits-a-turn]), and so does the rest of a job after some bios
//!   ([`ROUNDS_OF_A_TURN`]). Between two turns the lane looks at its bell, so an operator's command always arrives.
//! - **[last-flush-in-time]** A lane that drains lets ranges go on for half of its patience. What is left of them then is abandoned
//!   ([abandoned-range-stops]), so that terabytes of TRIM do not use up the time of the last flush. The range of a client whose
//!   connection is broken is abandoned at once, also while the lane serves.
//! - **[door-number-kept-until-quiet]** A lane keeps a door, and does not reuse its number, until the kernel holds no
//!   memory of the door and no disk holds a request of it.
//! - **[idle-holder-cut-off]** A client that holds memory of the pool, or has the turn, and moves no byte for the lane's
//!   patience is cut off if another client waits for memory or the server ends. A client that moves bytes is never cut off.

mod changes;
mod spin;

use crate::bell;
use crate::clock;
use crate::discards::Discards;
use crate::door::{Door, Settled};
use crate::entrance::{Entrance, Message};
use crate::event::ENDING;
use crate::job::{Job, Owner};
use crate::lane_memory::LaneMemory;
use crate::newcomers::{Newcomers, Register, Ticket};
use crate::overview::Overview;
use crate::queue::DiskQueue;
use crate::reserve;
use crate::ring::{Done, IoEngine};
use crate::roster::{Listed, Roster};
use crate::services::{Kept, LOOKUPS_OF_A_TURN, Services};
use crate::slab::Slab;
use crate::traffic::Traffic;
use crate::watcher::{LaneWatcher, Watcher};
use crate::words::error_words;
use blockyard::time::{self, Instant};
use blockyard_std::parts::queue::{EndedJob, ROUNDS_OF_A_TURN};
use core::num::NonZero;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use changes::Removal;
use spin::Spin;

/// The state that all lanes share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The bell of each lane, by the lane's number. It wakes the lane for messages, ended discards and shared depth.
    pub(crate) bells: Vec<Arc<OwnedFd>>,
    pub(crate) roster: Arc<Roster>,
    /// The time after which an idle client is cut off ([idle-holder-cut-off]).
    pub(crate) patience: Duration,
    /// The pool of a lane's memory, in bytes.
    pub(crate) lane_bytes_max: usize,
    /// Whether the lanes poll and never sleep.
    pub(crate) polls: bool,
    pub(crate) io: IoEngine,
    /// Whether the server can be queried for counters.
    pub(crate) is_metered: bool,
    /// The channel for the reason why a lane fails while it serves.
    pub(crate) failures: Option<mpsc::Sender<String>>,
    pub(crate) watcher: Option<Arc<dyn Watcher>>,
    /// The number of doors of all lanes.
    pub(crate) connections: Arc<AtomicUsize>,
    /// The clients of all lanes that have not chosen an export.
    pub(crate) newcomers: Arc<Register>,
    /// The bell to ring when the last door closes, if the server is to end with it.
    pub(crate) ends_with_last: Option<Arc<OwnedFd>>,
}

#[derive(Debug)]
pub(crate) struct LaneParts<D: Door> {
    pub(crate) number: u32,
    pub(crate) shared: Arc<Shared>,
    /// The state that all doors share.
    pub(crate) doors: D::Shared,
    pub(crate) messages: mpsc::Receiver<Message<D::Arrival>>,
    /// The entrances of all lanes, for clients that move from one to another.
    pub(crate) entrances: Arc<[Entrance<D::Arrival>]>,
    /// The bell that rings when there is a message.
    pub(crate) bell: Arc<OwnedFd>,
    /// The number of doors of this lane.
    pub(crate) load: Arc<AtomicUsize>,
}

/// The reason for which a lane cuts off a client that holds memory.
const IDLE: &str = "idle too long while other clients needed its buffers";
/// The reason for which a lane cuts off a client that has not chosen an export.
const SILENT: &str = "it chose no export, and others needed its place";

/// The reason for which a lane cuts off a client by command.
const DISCONNECTED: &str = "an operator disconnected it";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// The doors end, and no new door opens.
    Draining,
    /// The last flushes are in flight: `left` of them have not ended, and at least one failed if `has_failed`.
    Flushing {
        left: usize,
        has_failed: bool,
    },
    /// The lane ends at once, even with requests in flight.
    Leaving,
}

/// A lane. See the [module](self).
pub(crate) struct Lane<D: Door> {
    parts: LaneParts<D>,
    services: Services<D::Memory>,
    doors: Slab<D>,
    removals: Vec<Removal>,
    stage: Stage,
    /// The instant at which the ranges in flight are abandoned ([last-flush-in-time]).
    ranges_until: Instant,
    spin: Spin,
}

impl<D: Door> Lane<D> {
    /// Returns a lane for this thread.
    ///
    /// # Errors
    ///
    /// As [`Ring::new`](crate::ring::Ring::new).
    pub(crate) fn new(parts: LaneParts<D>) -> io::Result<Self> {
        let (shared, now) = (&parts.shared, clock::now());
        let patience = clock::duration(shared.patience);
        let newcomers = Newcomers::new(Arc::clone(&shared.newcomers));
        let memory = LaneMemory::new(shared.lane_bytes_max);
        let mut services = Services::new(
            shared.io,
            patience,
            memory,
            newcomers,
            Discards::new(Arc::clone(&parts.bell)),
            now,
        )?;
        services.number =
            usize::try_from(parts.number).expect("the number of a lane, of which there are few");
        services.is_metered = shared.is_metered;
        let watcher = shared.watcher.as_ref().map(|all| all.lane(parts.number, now));
        let watcher = watcher.map(LaneWatcher::new);
        let disks = shared.roster.all();
        let (doors, removals, stage) = (Slab::default(), Vec::new(), Stage::Serving);
        let spin = Spin::new(thread::available_parallelism().map_or(1, NonZero::get));
        let ranges_until = Instant::MAX;
        let mut lane = Self { parts, services, doors, removals, stage, ranges_until, spin };
        for Listed { number, disk, .. } in disks.iter() {
            lane.add_disk(*number, disk, watcher.clone());
        }
        Ok(lane)
    }

    /// Serves until the lane has drained or is told to leave.
    ///
    /// # Errors
    ///
    /// Fails if the io_uring or one of the last flushes fails.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        let ended = self.run();
        if let (Err(error), Stage::Serving, Some(failures)) =
            (&ended, self.stage, &self.parts.shared.failures)
        {
            drop(failures.send(error_words(error))); // the receiver may have gone
        }
        self.services.disks.iter().for_each(DiskQueue::tell_faults);
        ended
    }

    fn run(&mut self) -> io::Result<()> {
        self.services.ring.readable(self.parts.bell.as_raw_fd(), Kept::Bell);
        loop {
            let wait = self.wait();
            self.services.ring.enter(wait)?;
            self.services.now = clock::now();
            self.services.turn += 1;
            while let Some(done) = self.services.ring.next_done() {
                self.spin.found(self.services.now);
                self.take_in(done);
            }
            if self.stage == Stage::Leaving {
                return Ok(());
            }
            self.turn();
            if let Stage::Flushing { left: 0, has_failed } = self.stage {
                return match has_failed {
                    true => Err(io::Error::other("the last flush failed")),
                    false => Ok(()),
                };
            }
        }
    }

    /// Returns how long the lane may sleep, or `None` if it must not.
    fn wait(&mut self) -> Option<Duration> {
        let services = &mut self.services;
        let has_work = !services.listed.is_empty() || !services.lookups_wanted.is_empty();
        let is_busy = has_work || services.memory.may_retry();
        if self.parts.shared.polls || is_busy {
            self.spin.forget();
            return None;
        }
        if self.spin.looks_again(services.ring.has_pushed(), services.now) {
            return None;
        }
        let polls = services.disks.iter().filter_map(|disk| disk.queue.poll_at());
        let removals = self.removals.iter().map(|removal| removal.hurries_at);
        let until = polls.chain(removals);
        let until = until.chain([services.wakes_at(), services.impatient_at, self.ranges_until]);
        let until = until.chain(services.handshakes.poll_at()).min();
        let until = until.unwrap_or(Instant::MAX);
        if until == Instant::MAX {
            return Some(Duration::MAX);
        }
        Some(Duration::from_nanos(until.since(clock::now()).as_ns()))
    }

    /// Passes a completed operation to its owner.
    fn take_in(&mut self, done: Done<Kept<D::Memory>>) {
        match done.kept {
            Kept::Door { door, memory } => {
                let services = &mut self.services;
                self.doors[door].returned(door, memory, done.result, done.more, services);
                services.list(door);
            }
            Kept::Disk { disk, number, .. } => {
                self.services.disks[usize::from(disk)].outbox.end(number, done.result);
            }
            Kept::Prefetch { disk } => {
                // The disk may have been removed meanwhile.
                if let Some(disk) = self.services.disks.find_mut(disk) {
                    disk.is_prefetching = false;
                }
            }
            Kept::Bell => self.rung(),
        }
    }

    /// Lets doors and disks react to the completed operations.
    fn turn(&mut self) {
        if self.services.wakes_at() <= self.services.now {
            self.wake_doors();
        }
        if self.services.impatient_at <= self.services.now {
            self.cut_off_idlers();
        }
        if !self.removals.is_empty() {
            self.hurry_removals();
        }
        if self.ranges_until <= self.services.now {
            self.ranges_until = Instant::MAX;
            self.services.abandon(|_| true); // [last-flush-in-time]
        }
        let mut at = 0;
        while let Some(door) = self.services.listed.at(at) {
            self.doors[door].ready(door, &mut self.services);
            at += 1;
        }
        let now = self.services.now;
        self.services.disks.iter_mut().for_each(|disk| disk.queue.submit_slices(now)); // [range-in-slices]
        self.advance_disks();
        self.retry_memory();
        self.look_up();
        self.shake_hands();
        for _ in 0..self.services.listed.len() {
            let Some(door) = self.services.listed.take_first() else { break };
            // [door-number-kept-until-quiet]: neither the kernel nor a disk uses a door that is done or leaves.
            match self.doors[door].settle(door, &mut self.services) {
                Settled::Stays => {}
                Settled::Done => self.forget(door),
                Settled::Leaves(lane) => self.hand_over(door, lane),
            }
        }
        if !self.removals.is_empty() {
            self.advance_removals();
        }
        if self.stage == Stage::Draining && self.doors.is_empty() {
            self.flush_all();
        }
    }

    fn advance_disks(&mut self) {
        for disk in 0..self.services.disks.end() {
            if self.services.disks.has(disk) {
                self.advance(disk);
            }
        }
    }

    /// Advances the queue of `disk` and notifies the owners of the jobs that have ended.
    fn advance(&mut self, disk: usize) {
        // [turn-is-bounded]: each bio that ends may let its job submit another one.
        for _ in 0..ROUNDS_OF_A_TURN {
            let mut has_submitted = false;
            self.services.disks[disk].queue.advance(self.services.now);
            while let Some(ended) = self.services.next_ended(disk, &mut has_submitted) {
                self.ended(disk, ended);
            }
            if !has_submitted {
                break;
            }
        }
        self.services.begin_io(disk);
    }

    fn ended(&mut self, disk: usize, ended: EndedJob) {
        let EndedJob { status, job: Job { transfer, owner, .. }, .. } = ended;
        self.spin.ended();
        match owner {
            Owner::Door { door, token } => {
                self.services.list(door);
                self.doors[door].ended(token, status, transfer, &mut self.services);
            }
            Owner::Lane => self.flushed(disk, status),
        }
    }

    /// Lets the first door that waits for lookups look up runs.
    fn look_up(&mut self) {
        let Some(door) = self.services.lookups_wanted.take_first() else { return };
        self.services.lookups_left = LOOKUPS_OF_A_TURN;
        self.call_again(door);
        self.services.lookups_left = 0;
        self.advance_disks();
    }

    /// Lets the first door that waits for a step of its TLS handshake take it, if it is time ([handshakes-get-a-tenth]).
    fn shake_hands(&mut self) {
        let now = self.services.now;
        if self.spin.has_ended() {
            self.services.handshakes.requests_ended(now);
        }
        let Some(door) = self.services.handshakes.next(now) else { return };
        self.call_again(door);
        self.services.handshakes.ended();
        self.advance_disks();
    }

    /// Calls a door that has waited for a resource, in a turn that has called the listed doors already.
    fn call_again(&mut self, door: u32) {
        self.services.list(door);
        self.doors[door].ready(door, &mut self.services);
    }

    /// Lets the doors that wait for memory try again if some has been given back.
    fn retry_memory(&mut self) {
        let waiting = self.services.memory.retry();
        if waiting.is_empty() {
            return;
        }
        for door in waiting {
            self.call_again(door);
        }
        self.advance_disks();
    }

    /// Handles the bell: collects ended discards, retries requests that wait for shared depth, and reads the messages.
    fn rung(&mut self) {
        bell::silence(&self.parts.bell);
        while let Some((disk, number, result)) = self.services.discards.next_ended() {
            self.services.disks[usize::from(disk)].outbox.end(number, result);
        }
        for disk in self.services.disks.iter_mut() {
            disk.queue.try_again(self.services.now);
        }
        loop {
            let message = match self.parts.messages.try_recv() {
                Ok(message) => message,
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => {
                    // All senders are gone, so no further client can arrive.
                    if self.doors.is_empty() {
                        self.drain();
                    }
                    break;
                }
            };
            match message {
                Message::Arrival(arrival, ticket) => self.open(arrival, ticket),
                Message::Report(numbers, answer) => {
                    let counts =
                        self.services.disks.within(numbers).filter_map(|(number, disk)| {
                            disk.tell_faults();
                            Some((number, disk.counts(self.services.now)?))
                        });
                    // The receiver may have been dropped.
                    drop(answer.send(counts.collect()));
                }
                Message::Traffic(answer) => {
                    // The receiver may have been dropped here too.
                    let _ = answer.send(self.services.traffic());
                }
                Message::CutOff(ticket) => {
                    // The client may have chosen an export meanwhile.
                    if let Some(door) = self.services.newcomers.take(ticket) {
                        self.doors[door].cut_off(door, SILENT, &mut self.services);
                    }
                }
                Message::Overview(answer) => drop(answer.send(self.overview())),
                Message::Disconnect(client, answer) => {
                    let _ = answer.send(self.disconnect(client));
                }
                Message::Change(disk, change, answer) => {
                    let (now, disk) = (self.services.now, self.services.disks.find_mut(disk));
                    let _ = answer.send(disk.is_some_and(|disk| disk.change(&change, now)));
                }
                Message::Add(number, disk, answer) => {
                    self.add_disk(number, &disk, None);
                    let _ = answer.send(());
                }
                Message::Remove(disk, answer) => self.remove_disk(disk, answer),
                Message::ChooseAgain => self.choose_again(),
                Message::Drain => self.drain(),
                Message::Leave => self.stage = Stage::Leaving,
            }
        }
        self.services.ring.readable(self.parts.bell.as_raw_fd(), Kept::Bell);
    }

    /// Opens a door for a client that has connected, or for one without a ticket, which another lane has handed over.
    fn open(&mut self, arrival: D::Arrival, ticket: Option<Ticket>) {
        let has_room = self.doors.make_room() && reserve::has(0); // [session-fails-without-memory]
        let door = match self.stage {
            Stage::Serving if has_room => D::open(arrival, &self.parts.doors, &mut self.services),
            Stage::Serving => {
                D::turn_away(arrival, &self.parts.doors);
                None
            }
            _ => None,
        };
        let Some(door) = door else {
            ticket.into_iter().for_each(|ticket| self.services.newcomers.forget(ticket));
            self.forget_one();
            return;
        };
        let number = self.doors.insert(door);
        if let Some(ticket) = ticket {
            self.services.newcomers.put(ticket, number);
        }
        self.services.list(number);
    }

    /// Hands the client of a door over to the lane with this number ([served-at-home]).
    fn hand_over(&mut self, door: u32, lane: usize) {
        let arrival = self.doors.remove(door).leave(&mut self.services);
        self.strike(door);
        self.parts.load.fetch_sub(1, Ordering::Relaxed);
        let entrance = &self.parts.entrances[lane];
        entrance.load.fetch_add(1, Ordering::Relaxed);
        entrance.send(Message::Arrival(arrival, None));
    }

    fn wake_doors(&mut self) {
        self.services.forget_wake();
        for number in 0..self.doors.end() {
            if let Some(door) = self.doors.find_mut(number) {
                door.wake(number, &mut self.services);
            }
        }
    }

    /// Cuts off idle doors if another door waits for memory or the server ends ([idle-holder-cut-off]).
    fn cut_off_idlers(&mut self) {
        let services = &mut self.services;
        let is_ending = self.stage != Stage::Serving;
        let leaving: Vec<_> = self.removals.iter().map(|removal| Some(removal.disk)).collect();
        if !services.memory.is_awaited() && !is_ending && leaving.is_empty() {
            services.impatient_at = Instant::MAX;
            return;
        }
        services.impatient_at = services.now + services.patience;
        for number in 0..self.doors.end() {
            let Some(door) = self.doors.find_mut(number) else { continue };
            let is_leaving = is_ending || leaving.contains(&door.disk());
            let counts_all = is_leaving || services.memory.has_the_turn(number);
            let Some(since) = door.holds_since(counts_all) else { continue };
            if since + services.patience <= services.now {
                door.cut_off(number, IDLE, services);
            } else {
                services.impatient_at = services.impatient_at.min(since + services.patience);
            }
        }
    }

    /// Returns the traffic of each disk, and the clients.
    fn overview(&mut self) -> Overview {
        let now = self.services.now;
        let numbers = 0..self.doors.end();
        let visitor = |number| self.doors.find_mut(number)?.visitor(now);
        let clients: Vec<_> = numbers.filter_map(visitor).collect();
        let mut disks = vec![Traffic::default(); self.services.disks.end()];
        for (number, disk) in self.services.disks.numbered() {
            disks[number] = disk.traffic;
        }
        for client in &clients {
            if let Some(disk) = client.disk {
                disks[disk].clients += 1;
                disks[disk].in_flight += client.in_flight;
            }
        }
        Overview { disks, clients }
    }

    /// Cuts off the client with this number. Returns whether it is a client of this lane.
    fn disconnect(&mut self, client: u64) -> bool {
        let now = self.services.now;
        for number in 0..self.doors.end() {
            let Some(door) = self.doors.find_mut(number) else { continue };
            if door.visitor(now).is_some_and(|visitor| visitor.id == client) {
                door.cut_off(number, DISCONNECTED, &mut self.services);
                return true;
            }
        }
        false
    }

    /// Closes a door that is done.
    fn forget(&mut self, door: u32) {
        self.doors.remove(door).close(&mut self.services);
        self.strike(door);
        self.forget_one();
    }

    /// Strikes the number of a door off all lists.
    fn strike(&mut self, door: u32) {
        self.services.newcomers.remove(door);
        self.services.memory.forget(door);
        self.services.lookups_wanted.remove(door);
        self.services.handshakes.forget(door);
    }

    fn forget_one(&self) {
        self.parts.load.fetch_sub(1, Ordering::Relaxed);
        let shared = &self.parts.shared;
        let were = shared.connections.fetch_sub(1, Ordering::Relaxed);
        if were == 1
            && let Some(stop) = &shared.ends_with_last
        {
            bell::ring(stop);
        }
    }

    /// Starts to drain: the doors answer the requests received so far, and then end.
    fn drain(&mut self) {
        if self.stage != Stage::Serving {
            return;
        }
        self.stage = Stage::Draining;
        self.services.impatient_at = self.services.now;
        let patience_ns = self.services.patience.as_ns();
        self.ranges_until = self.services.now + time::Duration::from_ns(patience_ns / 2);
        for number in 0..self.doors.end() {
            if let Some(door) = self.doors.find_mut(number) {
                door.end(number, ENDING, &mut self.services);
            }
        }
    }
}

#[cfg(test)]
mod tests;
