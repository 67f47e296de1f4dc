//! Chrome's trace-event JSON, which <https://ui.perfetto.dev> and `trace_processor` read.
//!
//! A file may hold several worlds, each with its own processes, named after its design. In a
//! real-time trace, each lane has its own processes, without processors:
//!
//! - processors: one for each: the work on it (a job's step, a completion, a worker's run of a
//!   hardware queue, spinning for the lock)
//! - software queues: one for each processor of a disk: merges, joins, splits, plugs released,
//!   sleeps for a tag
//! - hardware queues: one for each: runs by its worker, holds and refusals with their reason,
//!   requeues; a counter of tags in use
//! - device slots: one for each driver tag: the commands of the device under this tag
//! - bus: for an MMC host: one of transactions with their commands; one of the times when the card
//!   was busy
//! - requests: a span for each stage of each request; a counter for each disk
//!
//! Each issued command has a span `in driver`. An earlier stage that took no time has no span. A
//! stage that is still open when the world ends is a span without end.
//!
//! Times are microseconds with three decimals; no number passes through a float.
//!
//! The stages of a request are spans with one id: the request's number in its disk's queue, plus
//! 2^32 times the disk and 2^48 times the lane. Later requests use the id again. `staged` lasts
//! from the first bio until the request leaves the elevator or software queue; `held` from there
//! until the driver takes the request, with the `reason`; `in driver` until the driver completes it
//! or gives it back.
//!
//! A disk's counters are `requests` (with a tag), `in flight` (in the driver) and `submitted` (bios
//! since the start). The counters that have changed are written together with their values at the
//! end of an instant, at most every 50 µs, and at the end of the world. A hold is written if its
//! reason differs from that of the hardware queue's previous hold: each request's span has its own
//! hold, and the statistics count all holds. Work for the driver of an MMC host, and its
//! transactions with memory, have the request's `slot`. A transaction lasts from its start to its
//! interrupt, including the time that the controller waits for a busy card.

mod lines;
mod state;

use super::file::OutputError;
use super::format::Output;
use super::json::escaped;
use super::record::{LaneId, Record, Step};
use crate::observe::{Setting, TaskId, Work};
use blockyard::bio::Op;
use blockyard::time::{Duration, Instant};
use blockyard::trace::{Action, Hold};
use blockyard::unit::{CpuId, DriverTag, HctxId, QueueId, RequestId};
use blockyard_mmc::block::ActKind;
use blockyard_mmc::bus_use::{BusUse, BusUseKind};
use lines::{Line, Lines, Process, Track};
use state::{Life, Slot, Stage, World};
use std::path::Path;

/// The shortest time between two writes of the counters.
const COUNTERS_EVERY: Duration = Duration::from_us(50);

/// A trace file.
#[derive(Debug)]
pub(super) struct Perfetto {
    lines: Lines,
    /// Names of tasks, escaped.
    tasks: Vec<String>,
    /// The lane of the current records.
    lane: LaneId,
    world: World,
    /// The state of each lane. That of `lane` is in `world` instead.
    worlds: Vec<World>,
}

impl Perfetto {
    /// Creates an empty trace at `path`.
    pub(super) fn create(path: &Path) -> Result<Self, OutputError> {
        Ok(Self {
            lines: Lines::create(path)?,
            tasks: Vec::new(),
            lane: LaneId(0),
            world: World::default(),
            worlds: Vec::new(),
        })
    }

    /// Makes `lane` the lane of the next records.
    fn select_lane(&mut self, lane: LaneId) {
        let before = usize::from(core::mem::replace(&mut self.lane, lane).0);
        let lane = usize::from(lane.0);
        self.worlds[before] = core::mem::take(&mut self.world);
        self.world = core::mem::take(&mut self.worlds[lane]);
        self.lines.select_lane(lane);
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::Step(step) => self.step(step),
            Record::Work { on, work, begin, end } => self.work(*on, work, *begin, *end),
            Record::Spin { on, begin, end } => self.spin(*on, "spin", *begin, *end),
            Record::Poll { on, begin, end } => self.spin(*on, "poll", *begin, *end),
            Record::Bus(used) => self.bus(used),
            Record::DeviceDone { hctx, tag, at } => self.device_done(*hctx, *tag, *at),
        }
    }

    fn spin(&mut self, on: CpuId, name: &str, begin: Instant, end: Instant) {
        let track = self.processor(on);
        self.slice(track, begin, end).name(name).text("}");
    }

    fn processor(&mut self, cpu: CpuId) -> Track {
        let track = Process::Processors.track(u32::from(cpu.0));
        self.lines.name_track(track, || format!("CPU {}", cpu.0));
        track
    }

    fn software_queue(&mut self, disk: QueueId, cpu: CpuId) -> Track {
        let at = u32::from(disk.0) * self.world.cpus + u32::from(cpu.0);
        let track = Process::SoftwareQueues.track(at);
        self.lines.name_track(track, || format!("disk {}, CPU {}", disk.0, cpu.0));
        track
    }

    fn hardware_queue(&mut self, disk: QueueId, hctx: HctxId) -> Track {
        let at = u32::from(disk.0) * self.world.hctxs + u32::from(hctx.0);
        let track = Process::HardwareQueues.track(at);
        self.lines.name_track(track, || format!("disk {}, hardware queue {}", disk.0, hctx.0));
        track
    }

    fn slice(&mut self, track: Track, begin: Instant, end: Instant) -> Line<'_> {
        debug_assert!(begin <= end, "a span from {begin:?} to {end:?}");
        let mut line = self.lines.line(b'X', track, begin);
        line.lasts(end.since(begin));
        line
    }

    fn work(&mut self, on: CpuId, work: &Work, begin: Instant, end: Instant) {
        let track = self.processor(on);
        debug_assert!(begin <= end, "work from {begin:?} to {end:?}");
        let mut line = self.lines.line(b'X', track, begin);
        line.lasts(end.since(begin));
        let name = match work {
            Work::Step(task) => &self.tasks[task.0 as usize],
            Work::Complete { interrupt: true, .. } | Work::Vector(_) => "interrupt",
            Work::Complete { interrupt: false, .. } => "complete",
            Work::Run { .. } => "run",
            Work::Copy(_) => "copy",
            Work::Poll(_) => "look",
            Work::Actor(_) => "actor",
            Work::Interrupt => "interrupt",
            Work::Timer => "timer",
            Work::MmcDriver(_) => "switch",
            Work::MmcDriverStep(kind, _) => act_name(*kind),
        };
        line.name(name);
        if let Work::MmcDriverStep(_, Some(slot)) = work {
            line.slot(*slot);
        }
        line.text("}");
        if let Work::Run { queue, hctx, .. } = work {
            let track = self.hardware_queue(*queue, *hctx);
            self.slice(track, begin, end).name("run").text("}");
        }
        for slot in self.world.starting.drain(..) {
            self.world.slots[slot as usize].since = end;
        }
    }

    fn bus(&mut self, used: &BusUse) {
        let (number, name) = match used.kind {
            BusUseKind::Transaction { .. } => (0, "transactions"),
            BusUseKind::CardBusy => (1, "card busy"),
        };
        let track = Process::Bus.track(number);
        self.lines.name_track(track, || name.to_owned());
        let mut line = self.slice(track, used.from, used.until);
        let BusUseKind::Transaction { announce, command, stop, sectors, slot } = used.kind else {
            line.name("busy").text("}");
            return;
        };
        line.text(",\"name\":\"");
        if let Some(announce) = announce {
            line.command(announce).text(" ");
        }
        match command {
            Some(command) => line.command(command),
            None => line.text("more"),
        };
        if sectors > 0 {
            line.text(" x").number(sectors.into()).text(" sectors");
        }
        if let Some(stop) = stop {
            line.text(" ").command(stop);
        }
        line.text("\"");
        if let Some(slot) = slot {
            line.slot(slot);
        }
        line.text("}");
    }

    fn device_done(&mut self, hctx: HctxId, tag: DriverTag, at: Instant) {
        let slot = self.world.slot(hctx, tag);
        self.world.starting.retain(|starting| *starting != slot);
        let track = Process::DeviceSlots.track(slot);
        self.lines.name_track(track, || format!("hardware queue {}, tag {}", hctx.0, tag.0));
        let Slot { since, op } = self.world.slots[slot as usize];
        self.slice(track, since, at).name(name_of(op)).text("}");
    }

    fn step(&mut self, step: &Step) {
        debug_assert!(step.at >= self.world.counted_at, "the steps of a lane are in order");
        if step.at > self.world.counted_at {
            if self.world.counted_at >= self.world.counters_due {
                self.write_counters();
                self.world.counters_due = self.world.counted_at + COUNTERS_EVERY;
            }
            self.world.counted_at = step.at;
        }
        self.write_instant(step);
        if step.action == Action::Queue {
            self.world.disk(step.queue).submitted.now += 1;
        }
        if let Some(id) = step.request {
            self.change_stage(step, id);
        }
    }

    /// Writes an instant event on its track.
    fn write_instant(&mut self, step: &Step) {
        let (name, reason) = match step.action {
            Action::BackMerge => ("back merge", ""),
            Action::FrontMerge => ("front merge", ""),
            Action::Join => ("join", ""),
            Action::Split => ("split", ""),
            Action::Sleep => ("sleep", ""),
            Action::Unplug { .. } => ("unplug", ""),
            Action::Requeue => ("requeue", ""),
            Action::TimedOut => ("timed out", ""),
            Action::Hold(hold) => ("hold: ", hold.name()),
            Action::Refuse(busy) => ("refused: ", Hold::from(busy).name()),
            Action::Queue
            | Action::GetRequest
            | Action::Plug
            | Action::Insert
            | Action::Schedule
            | Action::Issue
            | Action::Complete(_)
            | Action::SequenceEnd(_) => return,
        };
        let track = match step.action {
            Action::Hold(_) | Action::Refuse(_) | Action::Requeue | Action::TimedOut => {
                self.hardware_queue(step.queue, step.hctx)
            }
            _ => self.software_queue(step.queue, step.cpu),
        };
        if let Action::Hold(hold) = step.action {
            let last =
                self.world.disk(step.queue).holds[step.hctx.index()].replace((hold, step.at));
            if last.is_some_and(|(same, _)| same == hold) {
                return; // the same reason as before
            }
        }
        let mut line = self.lines.line(b'i', track, step.at);
        line.text(",\"s\":\"t\",\"name\":\"").text(name).text(reason).text("\"}");
    }

    /// Moves the request `id` to its next stage.
    fn change_stage(&mut self, step: &Step, id: RequestId) {
        let next = match step.action {
            Action::GetRequest => Some(Stage::Staged),
            Action::Schedule => Some(Stage::Held),
            Action::Issue => Some(Stage::InDriver),
            // A request with a tag returns to the dispatch list, one without to the elevator.
            Action::Requeue if step.tag.is_none() => Some(Stage::Staged),
            Action::Requeue => Some(Stage::Held),
            Action::Complete(_) | Action::SequenceEnd(_) | Action::Join => None,
            Action::Refuse(busy) => {
                if let Some(life) = self.world.disk(step.queue).request(id) {
                    life.refused = Some(busy);
                }
                return;
            }
            _ => return,
        };
        let tagged = step.tag.is_some();
        let life = next.map(|stage| Life { stage, since: step.at, tagged, refused: None });
        let before = core::mem::replace(self.world.disk(step.queue).request(id), life);
        self.count(step, before.as_ref(), life.as_ref());
        if let Some(before) = before {
            self.write_stage(step, id, &before);
        }
        if next == Some(Stage::InDriver)
            && let Some(tag) = step.tag
        {
            let slot = self.world.slot(step.hctx, tag);
            self.world.slots[slot as usize] = Slot { since: step.at, op: step.op };
            self.world.starting.push(slot);
        }
    }

    /// Adjusts the counters for a request that changes from `before` to `after`.
    fn count(&mut self, step: &Step, before: Option<&Life>, after: Option<&Life>) {
        let disk = self.world.disk(step.queue);
        moved(&mut disk.held.now, before.is_some(), after.is_some());
        moved(&mut disk.in_flight.now, is_in_driver(before), is_in_driver(after));
        debug_assert!(disk.in_flight.now <= disk.held.now, "a request in the driver has a tag");
        moved(&mut self.world.tags[step.hctx.index()].now, is_tagged(before), is_tagged(after));
    }

    /// Writes the span of a stage that ends with `step`.
    fn write_stage(&mut self, step: &Step, id: RequestId, life: &Life) {
        if step.at == life.since && life.stage != Stage::InDriver {
            return;
        }
        debug_assert!(life.since <= step.at, "a stage ends after its start");
        let reason = match life.stage {
            Stage::Held => self.world.disk(step.queue).reason(life, step.hctx),
            Stage::Staged | Stage::InDriver => None,
        };
        let mut line = self.span(b'b', step.queue, id, life.since);
        line.name(life.stage.name());
        if let Some(hold) = reason {
            line.text(",\"args\":{\"reason\":\"").text(hold.name()).text("\"}");
        }
        if life.stage == Stage::InDriver {
            line.text(",\"args\":{\"op\":\"").text(name_of(step.op)).text("\",\"sector\":");
            line.number(step.sector).text(",\"sectors\":").number(u64::from(step.sectors));
            line.text("}");
        }
        line.text("}");
        self.span(b'e', step.queue, id, step.at).name(life.stage.name()).text("}");
    }

    /// Begins a line of a request's span.
    fn span(&mut self, phase: u8, disk: QueueId, id: RequestId, at: Instant) -> Line<'_> {
        let mut line = self.lines.line(phase, Process::Requests.itself(), at);
        let id = u64::from(self.lane.0) << 48 | u64::from(disk.0) << 32 | u64::from(id.0);
        line.text(",\"cat\":\"request\",\"id\":").number(id);
        line
    }

    /// Writes the counters that changed at the last instant.
    fn write_counters(&mut self) {
        let at = self.world.counted_at;
        for (number, disk) in (0..).zip(&mut self.world.disks) {
            let counters = [
                ("\"requests\":", &mut disk.held),
                ("\"in flight\":", &mut disk.in_flight),
                ("\"submitted\":", &mut disk.submitted),
            ];
            if counters.iter().all(|(_, counter)| counter.is_written()) {
                continue;
            }
            let mut line = self.lines.line(b'C', Process::Requests.itself(), at);
            line.text(",\"name\":\"disk ").number(number).text("\",\"args\":{");
            let mut comma = "";
            for (name, counter) in counters {
                if let Some(value) = counter.write() {
                    line.text(comma).text(name).number(value);
                    comma = ",";
                }
            }
            line.text("}}");
        }
        for (number, tags) in (0..).zip(&mut self.world.tags) {
            if let Some(value) = tags.write() {
                let mut line = self.lines.line(b'C', Process::HardwareQueues.itself(), at);
                line.text(",\"name\":\"hardware queue ").number(number);
                line.text("\",\"args\":{\"tags\":").number(value).text("}}");
            }
        }
    }

    /// Ends the world: writes its open stages and its counters.
    fn end_world(&mut self) {
        for lane in (0..).take(self.worlds.len()) {
            self.select_lane(LaneId(lane));
            self.end_lane();
        }
    }

    fn end_lane(&mut self) {
        self.write_counters();
        for (disk, number) in core::mem::take(&mut self.world.disks).iter().zip(0..) {
            for (life, id) in disk.requests.iter().zip(0..) {
                if let Some(life) = life {
                    self.span(b'b', QueueId(number), RequestId(id), life.since)
                        .name(life.stage.name())
                        .text("}");
                }
            }
        }
    }
}

/// Whether a request has a tag.
fn is_tagged(life: Option<&Life>) -> bool {
    life.is_some_and(|life| life.tagged)
}

/// Whether a request is with the driver.
fn is_in_driver(life: Option<&Life>) -> bool {
    life.is_some_and(|life| life.stage == Stage::InDriver)
}

/// Counts one more if something has come to be so, and one less if it no longer is.
fn moved(counter: &mut u64, was: bool, is: bool) {
    *counter = *counter + u64::from(is) - u64::from(was);
}

impl Output for Perfetto {
    fn world(&mut self, setting: &Setting) -> Result<(), OutputError> {
        self.end_world();
        self.tasks.clear();
        self.lines.begin_world();
        let processes: Vec<_> = Process::ALL
            .into_iter()
            .filter(|(process, _)| match process {
                Process::Processors => setting.lanes.is_none(),
                Process::Bus => setting.mmc,
                _ => true,
            })
            .collect();
        let lanes = setting.lanes.unwrap_or(1);
        assert!(lanes > 0, "a world has a lane");
        for lane in 0..lanes {
            let name = escaped(&setting.name);
            let name = if lanes > 1 { format!("{name}, lane {lane}") } else { name };
            self.lines.begin_lane(&name, &processes);
        }
        self.worlds = (0..lanes).map(|_| World::new(setting)).collect();
        self.world = core::mem::take(&mut self.worlds[0]);
        self.lane = LaneId(0);
        self.lines.select_lane(0);
        self.lines.spill()
    }

    fn task(&mut self, task: TaskId, name: &str) -> Result<(), OutputError> {
        assert_eq!(task.0 as usize, self.tasks.len(), "tasks should be numbered in order");
        self.tasks.push(escaped(name));
        Ok(())
    }

    fn records(&mut self, lane: LaneId, records: &[Record]) -> Result<(), OutputError> {
        if records.is_empty() {
            return Ok(());
        }
        self.select_lane(lane);
        for record in records {
            self.record(record);
            self.lines.spill()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), OutputError> {
        self.end_world();
        self.lines.finish()
    }
}

const fn name_of(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Discard => "discard",
        Op::WriteZeroes => "write zeroes",
        Op::SecureErase => "secure erase",
        Op::DriverIn => "driver in",
        Op::DriverOut => "driver out",
    }
}

/// Returns the name of an act.
const fn act_name(kind: ActKind) -> &'static str {
    match kind {
        ActKind::CopyIn => "copy in",
        ActKind::Prepare => "map",
        ActKind::PrepareFirst => "map first",
        ActKind::PrepareMore => "map more",
        ActKind::Retune => "retune",
        ActKind::Start => "start",
        ActKind::SendStatus => "CMD13",
        ActKind::HandleStatus => "heed CMD13",
        ActKind::PollLine => "look at DAT0",
        ActKind::SendStop => "CMD12",
        ActKind::SendCommand => "command",
        ActKind::ReadRegister => "read register",
        ActKind::SwitchQueue => "switch queue",
        ActKind::EnableEngine => "enable engine",
        ActKind::DisableEngine => "disable engine",
        ActKind::HaltEngine => "halt engine",
        ActKind::DiscardTasks => "CMD48",
        ActKind::ClearTasks => "clear engine",
        ActKind::RestartEngine => "restart engine",
        ActKind::Reset => "reset",
        ActKind::Post => "unmap",
        ActKind::CopyOut => "copy out",
        ActKind::Complete => "complete",
    }
}
