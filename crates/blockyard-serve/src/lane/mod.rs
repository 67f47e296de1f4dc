//! A lane: a thread with its own request queues, io_uring and doors.
//!
//! ```text
//! wait ─► now ─► doors: parse, submit ─► run, complete ─► doors: answer each request that ended
//!   ▲                                                                      │
//!   └──────────── one send and one receive for each door ◄─────────────────┘
//! ```
//!
//! One call hands the kernel everything that a turn sends and receives, and waits for completions.
//! I/O of files is submitted earlier in the turn, two operations at a time.
//!
//! A lane with nothing to do looks for completions for a few microseconds before it sleeps, where
//! that pays ([`spin`]).
//!
//! A lane knows no protocol: its doors ([`Door`]) understand what arrives and compose what is sent.
//!
//! # Rules (cited by name)
//!
//! - **[turn-is-bounded]** The work of a turn is bounded, whatever devices, layers and their rules
//!   do: a request that a device gives back undone waits for the next turn ([undone-waits-a-turn]),
//!   and so does the rest of a job after some bios ([`Rounds`]). Between two turns the lane looks
//!   at its bell, so an operator's command always arrives.
//! - **[last-flush-in-time]** A lane that drains lets ranges continue for half of its patience. The
//!   rest of them is abandoned then ([abandoned-range-stops]), so that terabytes of TRIM do not use
//!   up the time of the last flush. The range of a client whose connection is broken is abandoned
//!   immediately, also while the lane serves.
//! - **[door-number-kept-until-quiet]** A lane keeps a door, and does not reuse its number, until
//!   the kernel holds no memory of the door and no disk holds a request of it.
//! - **[idle-holder-cut-off]** A client that holds memory of the pool, or has the turn, and moves
//!   no byte for the lane's patience is cut off if another client waits for memory or the server
//!   ends. A client that moves bytes is never cut off.

mod changes;
mod disks;
pub(crate) mod door;
pub(crate) mod entrance;
mod groups;
mod handshakes;
pub(crate) mod lent;
pub(crate) mod memory;
mod numbers;
pub(crate) mod queue;
pub(crate) mod services;
mod spin;

use crate::clients::reserve;
use crate::clients::weight::Weight;
use crate::disk::roster::{Listed, Roster};
use crate::lane::door::{AfterTurn, Arrival, Door};
use crate::lane::entrance::{Entrance, Message};
use crate::lane::memory::LaneMemory;
use crate::lane::queue::DiskQueue;
use crate::lane::services::{Kept, LOOKUPS_OF_A_TURN, Services};
use crate::observation::event::ENDING;
use crate::observation::overview::Overview;
use crate::observation::traffic::Traffic;
use crate::observation::watcher::{LaneWatcher, Watcher};
use blockyard::time::{self, Instant};
use blockyard_std::parts::bell;
use blockyard_std::parts::clock;
use blockyard_std::parts::discards::Discards;
use blockyard_std::parts::job::{Job, Owner};
use blockyard_std::parts::queue::{EndedJob, Rounds};
use blockyard_std::parts::ring::{Done, IoEngine};
use blockyard_std::parts::slab::Slab;
use blockyard_std::parts::words::error_words;
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
    /// The bell of each lane, by the lane's number. It wakes the lane for messages, ended discards
    /// and shared depth.
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
    /// The bell to ring when the last door closes, if the server is to end with it.
    pub(crate) ends_with_last: Option<Arc<OwnedFd>>,
}

#[derive(Debug)]
pub(crate) struct LaneParts {
    pub(crate) number: u32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) messages: mpsc::Receiver<Message>,
    /// The entrances of all lanes, for clients that move from one to another.
    pub(crate) entrances: Arc<[Entrance]>,
    /// The bell that rings when there is a message.
    pub(crate) bell: Arc<OwnedFd>,
    /// The number of doors of this lane.
    pub(crate) load: Arc<AtomicUsize>,
}

/// The reason for which a lane cuts off a client by command.
const DISCONNECTED: &str = "an operator disconnected it";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// The doors end, and no new door opens.
    Draining,
    /// The last flushes are in flight: `left` of them have not ended, and at least one failed if
    /// `has_failed`.
    Flushing {
        left: usize,
        has_failed: bool,
    },
    /// The lane ends immediately, even with requests in flight.
    Leaving,
}

/// A lane. See the [module](self).
pub(crate) struct Lane {
    parts: LaneParts,
    services: Services,
    doors: Slab<Box<dyn Door>>,
    removals: Vec<Removal>,
    stage: Stage,
    /// The instant at which the ranges in flight are abandoned ([last-flush-in-time]).
    ranges_until: Instant,
    spin: Spin,
}

impl Lane {
    /// Returns a lane for this thread.
    ///
    /// # Errors
    ///
    /// As [`Ring::new`](blockyard_std::parts::ring::Ring::new).
    pub(crate) fn new(parts: LaneParts) -> io::Result<Self> {
        let shared = &parts.shared;
        let now = clock::now();
        let mut services = Services::new(
            shared.io,
            clock::duration(shared.patience),
            LaneMemory::new(shared.lane_bytes_max),
            Discards::new(Arc::clone(&parts.bell)),
            now,
        )?;
        services.number =
            usize::try_from(parts.number).expect("the number of a lane, of which there are few");
        services.is_metered = shared.is_metered;
        let watcher = shared.watcher.as_ref().map(|all| all.lane(parts.number, now));
        let watcher = watcher.map(LaneWatcher::new);
        let disks = shared.roster.all();
        let mut lane = Self {
            parts,
            services,
            doors: Slab::default(),
            removals: Vec::new(),
            stage: Stage::Serving,
            ranges_until: Instant::MAX,
            spin: Spin::new(thread::available_parallelism().map_or(1, NonZero::get)),
        };
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
        let ended = self.run_turns();
        // Only a lane that fails while it serves makes the server end. A lane that drains is
        // awaited, and its error is the result of the server.
        if let Err(error) = &ended
            && self.stage == Stage::Serving
            && let Some(failures) = &self.parts.shared.failures
        {
            drop(failures.send(error_words(error))); // the receiver may have gone
        }
        self.services.disks.iter().for_each(DiskQueue::report_faults);
        ended
    }

    fn run_turns(&mut self) -> io::Result<()> {
        self.services.ring.readable(self.parts.bell.as_raw_fd(), Kept::Bell);
        loop {
            let limit = self.sleep_limit();
            self.services.ring.enter(limit)?;
            // One reading of the clock serves the whole turn: everything in it happens at the same
            // instant.
            self.services.now = clock::now();
            self.services.turn += 1;
            while let Some(done) = self.services.ring.next_done() {
                self.spin.note_completion(self.services.now);
                self.dispatch_completion(done);
            }
            if self.stage == Stage::Leaving {
                return Ok(());
            }
            self.take_turn();
            if let Stage::Flushing { left: 0, has_failed } = self.stage {
                return match has_failed {
                    true => Err(io::Error::other("the last flush failed")),
                    false => Ok(()),
                };
            }
        }
    }

    /// Returns how long the lane may sleep, or `None` if it must not.
    fn sleep_limit(&mut self) -> Option<Duration> {
        let services = &mut self.services;
        // Doors that were scheduled after this turn had called its doors, or that have waited for
        // lookups, continue immediately.
        let has_work = !services.scheduled.is_empty() || !services.lookups_wanted.is_empty();
        let is_busy = has_work || services.memory.may_retry();
        if self.parts.shared.polls || is_busy {
            self.spin.reset();
            return None;
        }
        if self.spin.should_look_again(services.ring.has_pushed(), services.now) {
            return None;
        }
        let disks = services.disks.iter().filter_map(|disk| disk.queue.poll_at());
        let removals = self.removals.iter().map(|removal| removal.hurries_at);
        let others = [services.next_wake(), services.impatient_at, self.ranges_until];
        let wakes = disks.chain(removals).chain(others).chain(services.handshakes.poll_at());
        let earliest = wakes.min().unwrap_or(Instant::MAX);
        if earliest == Instant::MAX {
            return Some(Duration::MAX);
        }
        // The turn itself has taken time: the clock is read again, so that the lane does not
        // oversleep by that much.
        Some(Duration::from_nanos(earliest.since(clock::now()).as_ns()))
    }

    /// Passes a completed operation to its owner.
    fn dispatch_completion(&mut self, done: Done<Kept>) {
        match done.kept {
            Kept::Door { door, memory } => {
                let services = &mut self.services;
                self.doors[door].take_back(door, memory, done.result, done.more, services);
                services.schedule_door(door);
            }
            Kept::Disk { disk, number, .. } => {
                // The lane never forgets a disk with I/O in flight, so the number is still the
                // disk's.
                self.services.disks[usize::from(disk)].outbox.end(number, done.result);
            }
            Kept::Prefetch { disk } => {
                // The disk may have been removed meanwhile.
                if let Some(disk) = self.services.disks.find_mut(disk) {
                    disk.is_prefetching = false;
                }
            }
            Kept::Bell => self.answer_bell(),
        }
    }

    /// Lets doors and disks react to the completed operations.
    fn take_turn(&mut self) {
        self.check_deadlines();
        // A door that is scheduled by another one's call joins the end of the list, and is called
        // in this turn too.
        let mut at = 0;
        while let Some(door) = self.services.scheduled.get(at) {
            self.doors[door].process_input(door, &mut self.services);
            at += 1;
        }
        let now = self.services.now;
        // [range-in-slices]
        self.services.disks.iter_mut().for_each(|disk| disk.queue.submit_slices(now));
        self.advance_disks();
        // The requests that have ended may have freed what other doors wait for. Those doors submit
        // in this turn.
        self.retry_waiting_for_memory();
        self.grant_lookups();
        self.grant_handshake_step();
        // A door that schedules itself again at the end of its turn is called in the next one: the
        // length is taken before.
        for _ in 0..self.services.scheduled.len() {
            let Some(door) = self.services.scheduled.pop_first() else { break };
            // [door-number-kept-until-quiet]: neither the kernel nor a disk uses a door that is
            // done or leaves.
            match self.doors[door].end_turn(door, &mut self.services) {
                AfterTurn::Keep => {}
                AfterTurn::Close => self.close_door(door),
                AfterTurn::MoveTo(lane) => self.move_client(door, lane),
            }
        }
        if !self.removals.is_empty() {
            self.advance_removals();
        }
        // Only now: the last door may have closed in this turn, and its last write may have ended
        // in it.
        if self.stage == Stage::Draining && self.doors.is_empty() {
            self.flush_all();
        }
    }

    /// Does what is due at this turn's instant, before doors get new requests.
    fn check_deadlines(&mut self) {
        if self.services.next_wake() <= self.services.now {
            self.wake_doors();
        }
        if self.services.impatient_at <= self.services.now {
            self.cut_off_idle_clients();
        }
        if !self.removals.is_empty() {
            self.hurry_removals();
        }
        if self.ranges_until <= self.services.now {
            self.ranges_until = Instant::MAX;
            self.services.stop_ranges(|_| true); // [last-flush-in-time]
        }
    }

    fn advance_disks(&mut self) {
        for disk in 0..self.services.disks.end() {
            if self.services.disks.contains(disk) {
                self.advance_disk(disk);
            }
        }
    }

    /// Advances the queue of `disk` and returns the jobs that have ended to their owners.
    fn advance_disk(&mut self, disk: usize) {
        let mut rounds = DiskRounds { lane: self, disk, last_door: None, ended: 0 };
        rounds.take_rounds(); // [turn-is-bounded]
        let ended = rounds.ended;
        self.spin.count_ended_requests(ended);
        self.services.start_file_io(disk);
    }

    /// Lets the first door that waits for lookups look up runs.
    fn grant_lookups(&mut self) {
        let Some(door) = self.services.lookups_wanted.pop_first() else { return };
        // One door gets all lookups of the turn. If it needs more, it queues again behind the
        // others.
        self.services.lookups_left = LOOKUPS_OF_A_TURN;
        self.call_again(door);
        self.services.lookups_left = 0;
        self.advance_disks();
    }

    /// Lets the first door that waits for a step of its TLS handshake take it, if it is time:
    /// while the lane ends requests, handshakes get a tenth of it.
    fn grant_handshake_step(&mut self) {
        let now = self.services.now;
        if self.spin.has_ended_requests() {
            self.services.handshakes.note_ended_requests(now);
        }
        let Some(door) = self.services.handshakes.next_door(now) else { return };
        self.call_again(door);
        // The door may have closed its connection instead of taking the step. The permission is for
        // this call alone.
        self.services.handshakes.revoke_step();
        self.advance_disks();
    }

    /// Calls a door that has waited for a resource, in a turn that has called the scheduled doors
    /// already.
    fn call_again(&mut self, door: u32) {
        self.services.schedule_door(door);
        self.doors[door].process_input(door, &mut self.services);
    }

    /// Lets the doors that wait for memory try again if some has been given back.
    fn retry_waiting_for_memory(&mut self) {
        let waiting = self.services.memory.take_waiting();
        if waiting.is_empty() {
            return;
        }
        for door in waiting {
            self.call_again(door);
        }
        self.advance_disks();
    }

    /// Answers the bell, which rings for ended discards, for shared depth that has become free, and
    /// for messages.
    fn answer_bell(&mut self) {
        // Silenced first: what is added after this point rings again, and is not missed.
        bell::silence(&self.parts.bell);
        while let Some((disk, number, result)) = self.services.discards.next_ended() {
            self.services.disks[usize::from(disk)].outbox.end(number, result);
        }
        for disk in self.services.disks.iter_mut() {
            disk.queue.try_again(self.services.now);
        }
        self.drain_messages();
        self.services.ring.readable(self.parts.bell.as_raw_fd(), Kept::Bell);
    }

    /// Handles all messages that have come.
    fn drain_messages(&mut self) {
        loop {
            match self.parts.messages.try_recv() {
                Ok(message) => self.handle_message(message),
                Err(mpsc::TryRecvError::Empty) => return,
                Err(mpsc::TryRecvError::Disconnected) => {
                    // All senders are gone, so no further client can arrive.
                    if self.doors.is_empty() {
                        self.start_drain();
                    }
                    return;
                }
            }
        }
    }

    fn handle_message(&mut self, message: Message) {
        // Whoever asked may have given up meanwhile, so a failed answer is no error.
        match message {
            Message::Arrival(arrival) => self.open_door(arrival),
            Message::WakeDoors => self.wake_doors(),
            Message::Report(numbers, answer) => {
                let disks = self.services.disks.within(numbers);
                let counts = disks.filter_map(|(number, disk)| {
                    disk.report_faults();
                    Some((number, disk.counts(self.services.now)?))
                });
                let _ = answer.send(counts.collect());
            }
            Message::Traffic(answer) => {
                let _ = answer.send(self.services.traffic());
            }
            Message::Overview(answer) => {
                let _ = answer.send(self.build_overview());
            }
            Message::Disconnect(client, answer) => {
                let _ = answer.send(self.disconnect_client(client));
            }
            Message::Weigh(client, weight, answer) => {
                let _ = answer.send(self.weigh_client(client, weight));
            }
            Message::Change(disk, change, answer) => {
                let now = self.services.now;
                let disk = self.services.disks.find_mut(disk);
                let _ = answer.send(disk.is_some_and(|disk| disk.change_layer(&change, now)));
            }
            Message::Add(number, disk, answer) => {
                self.add_disk(number, &disk, None);
                let _ = answer.send(());
            }
            Message::Remove(disk, answer) => self.remove_disk(disk, answer),
            Message::ChooseAgain => self.schedule_choosing_doors(),
            Message::Drain => self.start_drain(),
            Message::Leave => self.stage = Stage::Leaving,
        }
    }

    /// Opens a door for a client that has connected, or that another lane has handed over.
    fn open_door(&mut self, arrival: Box<dyn Arrival>) {
        // [session-fails-without-memory]
        let has_room = self.doors.make_room() && reserve::has_room_for(0);
        let door = match self.stage {
            Stage::Serving if has_room => arrival.open_door(&mut self.services),
            Stage::Serving => {
                arrival.turn_away();
                None
            }
            // The client was accepted just before the server began to end. Its socket is closed
            // with the arrival.
            Stage::Draining | Stage::Flushing { .. } | Stage::Leaving => None,
        };
        let Some(door) = door else {
            self.count_closed_door();
            return;
        };
        let number = self.doors.insert(door);
        // The first call sends the greeting.
        self.services.schedule_door(number);
    }

    /// Hands the client of a door over to the lane with this number, the home of its disk.
    fn move_client(&mut self, door: u32, lane: usize) {
        let arrival = self.doors.remove(door).pack_for_move(&mut self.services);
        self.remove_from_lists(door);
        // The number of connections stays: the client only changes its lane.
        self.parts.load.fetch_sub(1, Ordering::Relaxed);
        let entrance = &self.parts.entrances[lane];
        entrance.load.fetch_add(1, Ordering::Relaxed);
        entrance.send(Message::Arrival(arrival));
    }

    fn wake_doors(&mut self) {
        // Each door that still waits for an instant schedules it again.
        self.services.clear_wake();
        for number in 0..self.doors.end() {
            if let Some(door) = self.doors.find_mut(number) {
                door.on_wake(number, &mut self.services);
            }
        }
    }

    /// Cuts off idle clients if another one waits for memory, or if they or the server must end
    /// ([idle-holder-cut-off]).
    fn cut_off_idle_clients(&mut self) {
        let services = &mut self.services;
        let is_ending = self.stage != Stage::Serving;
        let leaving: Vec<_> = self.removals.iter().map(|removal| Some(removal.disk)).collect();
        if !services.memory.is_awaited() && !is_ending && leaving.is_empty() {
            // Nobody waits. The next refusal of memory, or the next drain, starts these checks
            // again.
            services.impatient_at = Instant::MAX;
            return;
        }
        // With a patience of 30 s and a client that last moved a byte 20 s ago, the next check
        // comes in 10 s.
        services.impatient_at = services.now + services.patience;
        for number in 0..self.doors.end() {
            let Some(door) = self.doors.find_mut(number) else { continue };
            let must_leave = is_ending || leaving.contains(&door.disk());
            if let Some(ends_at) = door.cut_off_if_idle(number, must_leave, services) {
                services.impatient_at = services.impatient_at.min(ends_at);
            }
        }
    }

    /// Returns the traffic of each disk, and the clients.
    fn build_overview(&mut self) -> Overview {
        let now = self.services.now;
        let clients: Vec<_> = (0..self.doors.end())
            .filter_map(|number| self.doors.find_mut(number)?.describe_client(now))
            .collect();
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
    fn disconnect_client(&mut self, client: u64) -> bool {
        let Some(number) = self.door_of(client) else { return false };
        self.doors[number].cut_off(number, DISCONNECTED, &mut self.services);
        true
    }

    /// Gives the client with this number a weight. Returns `None` if it is no client of this lane.
    fn weigh_client(&mut self, client: u64, weight: Weight) -> Option<Result<(), String>> {
        let number = self.door_of(client)?;
        Some(self.doors[number].weigh(weight, &mut self.services))
    }

    /// Returns the door of the client with this number.
    fn door_of(&mut self, client: u64) -> Option<u32> {
        let now = self.services.now;
        (0..self.doors.end()).find(|number| {
            let view = self.doors.find_mut(*number).and_then(|door| door.describe_client(now));
            view.is_some_and(|view| view.id == client)
        })
    }

    /// Closes a door that is done.
    fn close_door(&mut self, door: u32) {
        self.doors.remove(door).close(&mut self.services);
        self.remove_from_lists(door);
        self.count_closed_door();
    }

    /// Removes the number of a door from all lists, as another door may get it.
    fn remove_from_lists(&mut self, door: u32) {
        self.services.memory.remove_client(door);
        self.services.lookups_wanted.remove(door);
        self.services.handshakes.remove_door(door);
    }

    fn count_closed_door(&self) {
        self.parts.load.fetch_sub(1, Ordering::Relaxed);
        let shared = &self.parts.shared;
        let before = shared.connections.fetch_sub(1, Ordering::Relaxed);
        if before == 1
            && let Some(stop) = &shared.ends_with_last
        {
            bell::ring(stop);
        }
    }

    /// Starts to drain: the doors answer the requests received so far, and then end.
    fn start_drain(&mut self) {
        if self.stage != Stage::Serving {
            return;
        }
        self.stage = Stage::Draining;
        // From now on, an idle client delays the end of the server, whoever waits for memory.
        self.services.impatient_at = self.services.now;
        let patience_ns = self.services.patience.as_ns();
        self.ranges_until = self.services.now + time::Duration::from_ns(patience_ns / 2);
        for number in 0..self.doors.end() {
            if let Some(door) = self.doors.find_mut(number) {
                door.start_drain(number, ENDING, &mut self.services);
            }
        }
    }
}

/// A lane as it advances one of its disks.
struct DiskRounds<'a> {
    lane: &'a mut Lane,
    disk: usize,
    /// The door that got the job before. Most jobs of a turn are one door's, which is scheduled
    /// once for all of them.
    last_door: Option<u32>,
    /// The number of jobs that have ended.
    ended: u32,
}

impl Rounds for DiskRounds<'_> {
    #[inline]
    fn advance_queue(&mut self) {
        let services = &mut self.lane.services;
        services.disks[self.disk].queue.advance(services.now);
    }

    #[inline]
    fn next_ended(&mut self, submitted: &mut bool) -> Option<EndedJob> {
        self.lane.services.next_ended_job(self.disk, submitted)
    }

    #[inline]
    fn return_to_owner(&mut self, ended: EndedJob) {
        let EndedJob { status, job: Job { transfer, owner, .. }, .. } = ended;
        self.ended += 1;
        let Lane { services, doors, .. } = &mut *self.lane;
        match owner {
            Owner::Door { door, token } => {
                // The door answers at the end of this turn, together with its other requests.
                if self.last_door != Some(door) {
                    self.last_door = Some(door);
                    services.schedule_door(door);
                }
                doors[door].finish_request(token, status, transfer, services);
            }
            Owner::Abandoned { door } => {
                services.schedule_door(door);
                doors[door].reclaim_memory(transfer, services);
            }
            Owner::Lane => self.lane.finish_flush(self.disk, status),
        }
    }
}

#[cfg(test)]
mod tests;
