//! The port of a target, which serves the commands there in turn.
//!
//! Only the last turn of a command has consequences. So the port wants two events for a command,
//! and counts the turns between them when it must know how far they have come. The first event is
//! the beginning of the last turn. From then on the end of the command is certain, and it is
//! scheduled then: events of one instant happen in the order of scheduling.
//!
//! The port works whenever a command is at it. Each command is served first for its own time, then
//! for its data, one burst in each turn. So a large command delays a small one by a burst, and not
//! by all its data: with bursts of 64 KiB, a read of 4 KiB waits for 64 KiB of one of 1 MiB. A
//! command that arrives when a turn ends comes before the one whose turn it was.

use crate::null::transfer_time;
use crate::scsi::profile::HbaProfile;
use crate::{DeviceEvent, Events};
use blockyard::time::{Duration, Instant};

/// The last turn of a command begins. Numbers of commands are below those of the port's events.
pub(super) const LAST_TURN: u32 = u32::MAX - 1;
/// A command has passed the port.
pub(super) const PASSED: u32 = u32::MAX;

/// The times of commands in one direction.
#[derive(Clone, Copy, Debug)]
struct Way {
    own: Duration,
    bytes_per_s: u64,
    /// The time of a whole burst.
    burst: Duration,
}

/// A command at the port.
#[derive(Clone, Copy, Debug)]
struct Passing {
    slot: u32,
    /// The number of turns that have not ended.
    turns: u64,
    /// The time of the first of them.
    next: Duration,
    /// The time of a whole burst.
    burst: Duration,
    /// The time of the last turn.
    last: Duration,
}

impl Passing {
    /// Returns the command after its next turn, which must not be its last.
    const fn after_turn(&self) -> Self {
        let turns = self.turns - 1;
        Self { turns, next: if turns == 1 { self.last } else { self.burst }, ..*self }
    }
}

/// The next event of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The last turn of a command begins. Unless that is certain, an arrival may change it.
    LastTurn { at: Instant, certain: bool },
    /// A command, the first that is in its last turn, has passed.
    Passed,
}

/// The port.
#[derive(Debug)]
pub(super) struct Port {
    reads: Way,
    writes: Way,
    burst_bytes: u64,
    /// The commands in the order of their turns. The first one comes after the last one.
    ring: Vec<Passing>,
    /// The place of the command that has its turn, and when its turn ends.
    turn: usize,
    turn_ends: Instant,
    awaited: Awaited,
}

impl Port {
    /// Returns the port of `profile`, without commands.
    pub(super) fn new(profile: &HbaProfile) -> Self {
        debug_assert!(profile.burst > 0, "a turn of the port carries data");
        let [reads, writes] =
            [(profile.port_read, profile.link_read), (profile.port_write, profile.link_write)].map(
                |(own, bytes_per_s)| {
                    let burst = transfer_time(profile.burst, bytes_per_s);
                    Way { own, bytes_per_s, burst }
                },
            );
        Self {
            reads,
            writes,
            burst_bytes: profile.burst,
            ring: Vec::new(),
            turn: 0,
            turn_ends: Instant::ZERO,
            awaited: Awaited::Passed,
        }
    }

    /// Lets a command with `bytes` of data come to the port at `now`.
    pub(super) fn arrive(
        &mut self,
        slot: u32,
        is_read: bool,
        bytes: u64,
        now: Instant,
        events: &mut Events,
    ) {
        debug_assert!(slot < LAST_TURN, "{slot} is the number of an event of the port");
        let Way { own, bytes_per_s, burst } = if is_read { self.reads } else { self.writes };
        let last = match bytes % self.burst_bytes {
            0 => burst,
            rest => transfer_time(rest, bytes_per_s),
        };
        let turns = 1 + bytes.div_ceil(self.burst_bytes);
        let command = Passing { slot, turns, next: own, burst, last };
        if self.ring.is_empty() {
            self.ring.push(command);
            return self.begin_turn(now, events);
        }
        while self.turn_ends < now {
            self.end_turn();
        }
        self.ring.insert(self.turn, command);
        self.turn += 1;
        if let Awaited::LastTurn { at, certain: false } = self.awaited
            && self.last_turn().0 < at
        {
            self.await_last_turn(events);
        }
    }

    /// Handles an event of the port at `now`. Returns the slot of the command that has passed, if
    /// one has.
    pub(super) fn event(&mut self, number: u32, now: Instant, events: &mut Events) -> Option<u32> {
        if number == LAST_TURN {
            self.look(now, events);
            return None;
        }
        debug_assert_eq!((number, self.awaited), (PASSED, Awaited::Passed), "at {now}");
        while self.ring[self.turn].turns > 1 {
            self.end_turn();
        }
        debug_assert_eq!(self.turn_ends, now, "a command passes at the end of its last turn");
        let passed = self.ring.remove(self.turn);
        if self.turn == self.ring.len() {
            self.turn = 0;
        }
        if !self.ring.is_empty() {
            self.begin_turn(now, events);
        }
        Some(passed.slot)
    }

    /// Looks whether a last turn begins at `now`. Otherwise commands have arrived that come first.
    fn look(&mut self, now: Instant, events: &mut Events) {
        if !matches!(self.awaited, Awaited::LastTurn { at, .. } if at == now) {
            return; // an arrival has brought this event forward
        }
        while self.turn_ends < now {
            self.end_turn();
        }
        if self.turn_ends == now {
            let next = &self.ring[self.place_after(self.turn)];
            let is_alone = self.ring.len() == 1;
            let after = next.after_turn();
            let next = if is_alone { &after } else { next };
            if next.turns == 1 {
                return self.await_end(now + next.next, events);
            }
            self.end_turn();
        }
        self.foresee(events);
    }

    /// Returns the place of the command that has its turn after the one at `place`.
    const fn place_after(&self, place: usize) -> usize {
        if place + 1 == self.ring.len() { 0 } else { place + 1 }
    }

    /// Begins the turn of the command whose turn it is.
    fn begin_turn(&mut self, now: Instant, events: &mut Events) {
        debug_assert!(self.turn_ends <= now, "a turn lasts until {}, beyond {now}", self.turn_ends);
        self.turn_ends = now + self.ring[self.turn].next;
        self.foresee(events);
    }

    /// Ends the turn of a command that has more of them, and begins that of the next one.
    fn end_turn(&mut self) {
        let command = &mut self.ring[self.turn];
        debug_assert!(command.turns > 1, "{command:?} ends by an event");
        *command = command.after_turn();
        self.turn = self.place_after(self.turn);
        self.turn_ends = self.turn_ends + self.ring[self.turn].next;
    }

    fn foresee(&mut self, events: &mut Events) {
        if self.ring[self.turn].turns == 1 {
            self.await_end(self.turn_ends, events);
        } else {
            self.await_last_turn(events);
        }
    }

    fn await_end(&mut self, at: Instant, events: &mut Events) {
        self.awaited = Awaited::Passed;
        events.push_back((at, DeviceEvent(PASSED)));
    }

    fn await_last_turn(&mut self, events: &mut Events) {
        let (at, certain) = self.last_turn();
        self.awaited = Awaited::LastTurn { at, certain };
        events.push_back((at, DeviceEvent(LAST_TURN)));
    }

    /// Returns when the next last turn begins if no command arrives. That is certain if the command
    /// has no other turn before: arrivals have their turns after those who are there.
    fn last_turn(&self) -> (Instant, bool) {
        // The command that has its turn now comes after all others.
        let current = [self.ring[self.turn].after_turn()];
        let order = [&self.ring[self.turn + 1..], &self.ring[..self.turn], &current];
        let mut at = self.turn_ends;
        let mut bursts = Duration::ZERO;
        let mut fewest = u64::MAX;
        let mut bursts_before = Duration::ZERO;
        for commands in order {
            for command in commands {
                if command.turns == 1 {
                    return (at, true);
                }
                if command.turns < fewest {
                    (fewest, bursts_before) = (command.turns, bursts);
                }
                at = at + command.next;
                bursts += command.burst;
            }
        }
        // One round has passed. All turns of the next rounds are whole bursts.
        debug_assert!(fewest > 1, "a command that has one turn left ends the search");
        let rounds = Duration::from_ns((fewest - 2) * bursts.as_ns());
        (at + rounds + bursts_before, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Device, DeviceModel};
    use blockyard::prng::Prng;
    use std::collections::VecDeque;

    /// A command that arrives: its instant, whether it reads, and its bytes.
    type Arrival = (u64, bool, u64);

    fn profile(own_read_ns: u64) -> HbaProfile {
        let DeviceModel::Hba(hba) = Device::lookup("srp").unwrap().model else { panic!("srp") };
        HbaProfile { port_read: Duration::from_ns(own_read_ns), ..hba }
    }

    /// The time in ns of a turn of a command that has `left` bytes, or `None` for its own time.
    fn turn(profile: &HbaProfile, reads: bool, left: Option<u64>) -> u64 {
        let (own, rate) = match reads {
            true => (profile.port_read, profile.link_read),
            false => (profile.port_write, profile.link_write),
        };
        left.map_or(own, |left| transfer_time(left.min(profile.burst), rate)).as_ns()
    }

    /// The ends of commands by instant, one turn after the other.
    fn turn_by_turn(profile: &HbaProfile, arrivals: &[Arrival]) -> Vec<(u64, usize)> {
        let mut ends = Vec::new();
        let mut ring: VecDeque<(usize, Option<u64>)> = VecDeque::new();
        let mut turn_ends = 0;
        let mut arrivals = arrivals.iter().copied().enumerate().peekable();
        let mut arrived = Vec::new();
        loop {
            if let Some((command, arrival)) =
                arrivals.next_if(|(_, (at, ..))| ring.is_empty() || *at <= turn_ends)
            {
                arrived.push(arrival);
                ring.push_back((command, None));
                if ring.len() == 1 {
                    turn_ends = arrival.0 + turn(profile, arrival.1, None);
                }
                continue;
            }
            let Some((command, left)) = ring.pop_front() else { return ends };
            let left = left.map_or(arrived[command].2, |left| left.saturating_sub(profile.burst));
            if left == 0 {
                ends.push((turn_ends, command));
            } else {
                ring.push_back((command, Some(left)));
            }
            let next = ring.front();
            turn_ends += next.map_or(0, |(next, left)| turn(profile, arrived[*next].1, *left));
        }
    }

    /// The ends of commands by instant, and the number of events of the port.
    fn by_events(profile: &HbaProfile, arrivals: &[Arrival]) -> (Vec<(u64, usize)>, u64) {
        let mut port = Port::new(profile);
        let mut ends = Vec::new();
        let mut count = 0;
        let mut events = Events::new();
        let mut heap = crate::event::EventHeap::new();
        for (slot, (at, ..)) in arrivals.iter().enumerate() {
            heap.push(Instant::from_ns(*at), DeviceEvent(u32::try_from(slot).unwrap()));
        }
        while let Some((now, DeviceEvent(number))) = heap.pop() {
            if let Some((_, is_read, bytes)) = arrivals.get(number as usize) {
                port.arrive(number, *is_read, *bytes, now, &mut events);
            } else {
                count += 1;
                let passed = port.event(number, now, &mut events);
                ends.extend(passed.map(|slot| (now.as_ns(), slot as usize)));
            }
            events.drain(..).for_each(|(at, event)| heap.push(at, event));
        }
        (ends, count)
    }

    fn random_arrivals(prng: &mut Prng, count: u64, gap_ns: u64, sizes: &[u64]) -> Vec<Arrival> {
        let mut at = 0;
        let arrival = |_| {
            // Many commands arrive when a turn ends.
            at += if prng.below(3) == 0 { 201 * prng.below(20) } else { prng.below(gap_ns) };
            (at, prng.below(3) > 0, prng.pick(sizes))
        };
        (0..count).map(arrival).collect()
    }

    #[test]
    fn commands_end_as_if_each_turn_had_an_event() {
        let mut prng = Prng::new(1);
        for round in 0..400 {
            let profile = profile(if round % 4 == 0 { 0 } else { 5440 });
            let gap = prng.pick(&[10, 1000, 15_000, 200_000]);
            let all = [0, 512, 700, 4096, 5000, 65_536, 524_288];
            let sizes = &all[prng.pick(&[0, 1, 2, 3, 4, 5, 6])..];
            let arrivals = random_arrivals(&mut prng, 60, gap, sizes);
            let (ends, _) = by_events(&profile, &arrivals);
            assert_eq!(ends, turn_by_turn(&profile, &arrivals), "{arrivals:?}");
        }
    }

    #[test]
    fn a_busy_port_wants_two_events_for_a_command() {
        let arrivals = random_arrivals(&mut Prng::new(2), 1000, 14_000, &[4096]);
        let (ends, events) = by_events(&profile(5440), &arrivals);
        assert_eq!(ends.len(), 1000);
        // Nine turns of each command.
        assert!(events <= 2200, "{events}");
    }
}
