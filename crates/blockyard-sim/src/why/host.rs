//! An MMC host's part: what its bus was used for, and what passes from one transfer to the next.

use super::{
    EQUAL, Figures, MUCH_SLOWER, USED_UP, digits, distance_of, duration, float, instead,
    instead_of, percent, ratio,
};
use crate::device::mmc::host::Overlap;
use crate::measure::Measured;
use crate::simulate::Report;
use blockyard::time::Duration;
use blockyard_mmc::command::Opcode;

/// Commands that read, and those that write.
const READS: [Opcode; 3] = [Opcode::ReadSingle, Opcode::ReadMultiple, Opcode::ExecuteRead];
const WRITES: [Opcode; 3] = [Opcode::WriteSingle, Opcode::WriteMultiple, Opcode::ExecuteWrite];

/// The figures of an MMC host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostFigures {
    /// How often each command was sent, by its number, [`Self::queue_status`] apart.
    pub commands: [u64; 64],
    /// Questions which tasks of a command queue are ready: CMD13 with bit 15.
    pub queue_status: u64,
    /// CMD13s after the card's state for each command that writes; `None` where nothing was written.
    pub status_per_write: Option<f64>,
    /// Writes that were reported as done, and of which the card then said that they failed.
    pub lost_writes: u64,
    /// Writes that were reported as done, and of which nobody can know whether they failed.
    pub doubtful_writes: u64,
    /// Part of the time with a transaction on the bus. Where the controller waits for a busy card,
    /// that belongs to the transaction.
    pub bus_busy_percent: f64,
    /// Mean time without a transaction between two, nanoseconds; without [`Self::unnoticed_ns`].
    pub mean_bus_gap_ns: u64,
    /// Time in which a transaction was over and nobody knew, as its interrupt was lost, nanoseconds: a
    /// fault's doing, and no design's.
    pub unnoticed_ns: u64,
    /// Part of the time without a request, in the driver or waiting for it.
    pub absent_percent: f64,
    /// Part of the time in which the card's memory worked on what the bus does not show: it programmed
    /// pages, or read ahead.
    pub memory_percent: f64,
    /// Time of processors that made memory ready for transfers.
    pub map: Beside,
    /// Time of processors that made it ready for themselves again.
    pub unmap: Beside,
    /// Threads woken for each I/O.
    pub wakeups_per_io: f64,
    /// Of these, those of the driver's threads that an idle bus waited for.
    pub awaited_wakeups_per_io: f64,
    /// Changes from one thread to another for each I/O.
    pub switches_per_io: f64,
    /// What one transfer takes.
    pub transfer: Transfer,
}

/// Time of processors as parts of the time of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside {
    /// While a transaction was on the bus.
    pub inside_percent: f64,
    /// While none was.
    pub outside_percent: f64,
}

/// Means for each transfer; its first three times add up to the time from one to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transfer {
    /// Bus or card was at work, nanoseconds.
    pub work_ns: f64,
    /// Neither was, though there was a request, in the driver or waiting for it.
    pub idle_ns: f64,
    /// There was no request.
    pub absent_ns: f64,
    /// I/Os in it.
    pub ios: f64,
    /// CMD13s after the card's state.
    pub status: f64,
    /// Memory was mapped without a transaction on the bus, nanoseconds.
    pub map_ns: f64,
    /// Memory was unmapped so.
    pub unmap_ns: f64,
    /// Wake-ups of the driver's threads that an idle bus waited for.
    pub awaited_wakeups: f64,
}

impl HostFigures {
    /// Those of `report`, if its device had a host.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let host = report.mmc.as_ref()?;
        let ns = |time: Duration| float(time.as_ns());
        let span = ns(report.span);
        let percent = |time| ratio(100.0 * ns(time), span);
        let beside = |time: Overlap| Beside {
            inside_percent: percent(time.inside),
            outside_percent: percent(time.outside),
        };
        let measured = report.jobs.iter().flat_map(|job| job.stats.measured());
        let ios = float(measured.map(|measured: &Measured| measured.ios).sum());
        let sent = |opcode: Opcode| host.commands[usize::from(opcode.index())];
        let sum = |opcodes: [Opcode; 3]| float(opcodes.into_iter().map(sent).sum());
        let (status, writes) = (float(sent(Opcode::SendStatus)), sum(WRITES));
        let transfers = sum(READS) + writes;
        let work = ns(report.device_busy);
        let absent = ns(host.absent);
        Some(Self {
            commands: host.commands,
            queue_status: host.queue_status,
            lost_writes: host.lost_writes,
            doubtful_writes: host.doubtful_writes,
            status_per_write: (writes > 0.0).then(|| status / writes),
            bus_busy_percent: percent(host.bus_busy),
            mean_bus_gap_ns: host.bus_gap.as_ns(),
            unnoticed_ns: host.unnoticed.as_ns(),
            absent_percent: percent(host.absent),
            memory_percent: percent(host.memory),
            map: beside(host.map),
            unmap: beside(host.unmap),
            wakeups_per_io: ratio(float(report.totals.wakeups), ios),
            awaited_wakeups_per_io: ratio(float(host.awaited_wakeups), ios),
            switches_per_io: ratio(float(report.totals.context_switches), ios),
            transfer: Transfer {
                work_ns: ratio(work, transfers),
                idle_ns: ratio((span - work - absent).max(0.0), transfers),
                absent_ns: ratio(absent, transfers),
                ios: ratio(ios, transfers),
                status: ratio(status, transfers),
                map_ns: ratio(ns(host.map.outside), transfers),
                unmap_ns: ratio(ns(host.unmap.outside), transfers),
                awaited_wakeups: ratio(float(host.awaited_wakeups), transfers),
            },
        })
    }

    /// Whether the run of `figures` is held by what the host does between transfers (Y2).
    pub(super) fn holds(&self, figures: &Figures) -> bool {
        let used_up = |percent| percent >= USED_UP;
        used_up(100.0 - self.absent_percent)
            && !used_up(figures.device_busy_percent)
            && !used_up(self.memory_percent)
    }

    /// What the run of `figures` is held by, if that is the host or its card (Y2).
    pub(super) fn limit(&self, figures: &Figures) -> Option<String> {
        if self.memory_percent >= USED_UP {
            let memory = percent(self.memory_percent);
            return Some(format!(
                "the card's memory ({memory} of the time it programs pages or reads ahead)"
            ));
        }
        let at_work = figures.device_busy_percent;
        if at_work >= USED_UP {
            return Some(format!("bus and card ({} of the time at work)", percent(at_work)));
        }
        self.holds(figures).then(|| {
            let idle = percent(100.0 - self.absent_percent - at_work);
            format!(
                "what the host does between transfers (bus and card idle for {idle} of the time, \
                 though requests wait)"
            )
        })
    }
}

/// How long bus and card are idle under two designs, where that differs and I/Os share transfers
/// (Y5); each with its name.
pub(super) fn tell_idle(a: (&str, &Transfer), b: (&str, &Transfer)) -> String {
    let ((a_name, a), (b_name, b)) = (a, b);
    if !(a.is_shared() || b.is_shared()) || distance_of(ratio(a.idle_ns, b.idle_ns)) < MUCH_SLOWER {
        return String::new();
    }
    let told = |name: &str, of: &Transfer| {
        format!(
            "{} under {name}, which {} I/Os share: {} of the {} for each",
            duration(of.idle_ns),
            digits(of.ios),
            duration(of.idle_of_io_ns()),
            duration(ratio(of.whole_ns(), of.ios)),
        )
    };
    format!(
        " Between two transfers bus and card are idle for {}; for {}.",
        told(a_name, a),
        told(b_name, b)
    )
}

/// Something that is done between two transfers.
struct Filling {
    what: &'static str,
    amount: f64,
    /// A difference from there on is worth telling.
    visible: f64,
    write: fn(f64) -> String,
}

impl Transfer {
    /// From one to the next.
    fn whole_ns(&self) -> f64 {
        self.work_ns + self.idle_ns + self.absent_ns
    }

    /// Its idle time, for each of its I/Os.
    fn idle_of_io_ns(&self) -> f64 {
        ratio(self.idle_ns, self.ios)
    }

    /// Whether it carries several I/Os, mostly.
    fn is_shared(&self) -> bool {
        self.ios >= MUCH_SLOWER
    }

    /// What may take its time while bus and card are idle though there is a request.
    fn fillings(&self) -> [Filling; 4] {
        let share = self.whole_ns() / 100.0;
        let count = |what, amount| Filling { what, amount, visible: 0.05, write: digits };
        let time = |what, amount| Filling { what, amount, visible: share, write: duration };
        [
            count("CMD13s", self.status),
            time("mapping off the bus", self.map_ns),
            time("unmapping off the bus", self.unmap_ns),
            count("wake-ups waited for", self.awaited_wakeups),
        ]
    }

    /// Why one of it takes longer, or less, than one of `other` (Y4).
    pub(super) fn tell_against(&self, other: &Self) -> String {
        let visible = |ns: f64, whole: f64| 100.0 * ns >= whole;
        let part = |before: &str, part: fn(&Self) -> f64, behind: &str| {
            let (a, b) = (part(self), part(other));
            let is_told = visible(a, self.whole_ns()) || visible(b, other.whole_ns());
            let times = instead_of(&duration(a), &duration(b));
            is_told.then(|| format!("{before} for {times}{behind}"))
        };
        let parts = [
            part("at work", |of| of.work_ns, ""),
            part("idle", |of| of.idle_ns, " while requests wait"),
            part("without a request", |of| of.absent_ns, ""),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        format!(
            "From one transfer to the next it takes {}: bus and card are {}.{}{}",
            instead_of(&duration(self.whole_ns()), &duration(other.whole_ns())),
            parts.join(", "),
            self.tell_fillings(other),
            self.tell_shared(other),
        )
    }

    /// What fills the idle time of the one that has more of it.
    fn tell_fillings(&self, other: &Self) -> String {
        if distance_of(ratio(self.idle_ns, other.idle_ns)) < EQUAL {
            return String::new();
        }
        let sign = (self.idle_ns - other.idle_ns).signum();
        let pairs = self.fillings().into_iter().zip(other.fillings());
        let told = pairs.filter_map(|(Filling { what, amount, visible, write }, than)| {
            let tells = (amount - than.amount) * sign >= visible;
            tells.then(|| format!("{} instead of {} {what}", write(amount), write(than.amount)))
        });
        let told: Vec<_> = told.collect();
        if told.is_empty() {
            return String::new();
        }
        format!(" Between two of them: {}.", told.join(", "))
    }

    /// What is idle is shared by the I/Os of a transfer (Y5).
    fn tell_shared(&self, other: &Self) -> String {
        if !(self.is_shared() || other.is_shared()) {
            return String::new();
        }
        format!(
            " {} I/Os share each transfer: idle is {} for each of them.",
            instead(self.ios, other.ios),
            instead_of(&duration(self.idle_of_io_ns()), &duration(other.idle_of_io_ns())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{tests::run, why};
    use super::*;
    use crate::profile::Device;

    /// A run on an MMC host of so many transfers a second, which are `transfer`.
    fn hosted(transfer: Transfer) -> Figures {
        let host = HostFigures {
            commands: [0; 64],
            queue_status: 0,
            lost_writes: 0,
            doubtful_writes: 0,
            status_per_write: Some(transfer.status),
            bus_busy_percent: 50.0,
            mean_bus_gap_ns: 0,
            unnoticed_ns: 0,
            absent_percent: 100.0 * transfer.absent_ns / transfer.whole_ns(),
            memory_percent: 0.0,
            map: Beside::default(),
            unmap: Beside::default(),
            wakeups_per_io: 4.0,
            awaited_wakeups_per_io: 2.0,
            switches_per_io: 1.0,
            transfer,
        };
        let commands_per_s = 1e9 / transfer.whole_ns();
        Figures {
            iops: commands_per_s * transfer.ios,
            ios_per_command: transfer.ios,
            commands_per_s,
            device_busy_percent: 100.0 * transfer.work_ns / transfer.whole_ns(),
            mmc: Some(host),
            ..run(1, 1.0)
        }
    }

    fn told(runs: &[(&str, Figures)]) -> String {
        why(&Device::lookup("emmc-hs400-sprd").unwrap(), runs)
    }

    /// 40 us at work and 10 idle, an I/O each.
    const QUICK: Transfer = Transfer {
        work_ns: 40e3,
        idle_ns: 10e3,
        absent_ns: 0.0,
        ios: 1.0,
        status: 0.0,
        map_ns: 0.0,
        unmap_ns: 100.0,
        awaited_wakeups: 0.0,
    };

    #[test]
    fn what_passes_between_transfers_is_told_with_what_fills_it() {
        let slow = Transfer { idle_ns: 40e3, status: 1.0, awaited_wakeups: 2.0, ..QUICK };
        assert_eq!(
            told(&[("a", hosted(QUICK)), ("b", hosted(slow))]),
            "b does 0.62 of the I/Os of a: 0.62 times the commands per second, at 1.00 I/Os per \
             command. From one transfer to the next it takes 80.0 us instead of 50.0 us: bus and \
             card are at work for 40.0 us, idle for 40.0 us instead of 10.0 us while requests wait. \
             Between two of them: 1.00 instead of 0.00 CMD13s, 2.00 instead of 0.00 wake-ups waited \
             for."
        );
    }

    #[test]
    fn only_what_explains_the_idle_time_is_told() {
        // More CMD13s under the quicker design explain nothing, 200 ns of 100 us neither.
        let quick = Transfer { status: 1.0, ..QUICK };
        let slow = Transfer { idle_ns: 60e3, map_ns: 30e3, unmap_ns: 300.0, ..QUICK };
        let words = told(&[("a", hosted(quick)), ("b", hosted(slow))]);
        assert!(
            words.contains("Between two of them: 30.0 us instead of 0 ns mapping off the bus.")
        );
        assert!(!words.contains("CMD13") && !words.contains("unmapping"), "{words}");
        // Where the card is slower nothing is looked for between transfers.
        let words =
            told(&[("a", hosted(QUICK)), ("b", hosted(Transfer { work_ns: 90e3, ..slow }))]);
        assert!(words.contains("at work for 90.0 us instead of 40.0 us"), "{words}");
        let busy = Transfer { work_ns: 90e3, status: 1.0, ..QUICK };
        assert!(!told(&[("a", hosted(QUICK)), ("b", hosted(busy))]).contains("Between two"));
    }

    #[test]
    fn jobs_that_keep_a_host_waiting_are_told() {
        let slow = hosted(Transfer { absent_ns: 50e3, ..QUICK });
        let words = told(&[("a", hosted(QUICK)), ("b", slow)]);
        assert!(words.contains(", without a request for 50.0 us instead of 0 ns."), "{words}");
        let held = "b is held by the pace of the jobs themselves (";
        assert!(words.contains(held), "{words}");
        assert!(
            words.contains("a by what the host does between transfers (bus and card idle for 20 %")
        );
    }

    #[test]
    fn what_ios_share_is_told_for_each_of_them() {
        let (quick, slow) =
            (Transfer { ios: 8.0, ..QUICK }, Transfer { ios: 8.0, idle_ns: 40e3, ..QUICK });
        let words = told(&[("a", hosted(quick)), ("b", hosted(slow))]);
        let end =
            " 8.00 I/Os share each transfer: idle is 5.00 us instead of 1.25 us for each of them.";
        assert!(words.ends_with(end), "{words}");
    }

    #[test]
    fn equals_whose_idle_time_differs_say_what_shares_it() {
        // Both take 50 us for each I/O: one merges more and idles longer.
        let long = Transfer { work_ns: 460e3, idle_ns: 40e3, ios: 10.0, ..QUICK };
        let words = told(&[("a", hosted(QUICK)), ("b", hosted(long))]);
        let told_so = " Between two transfers bus and card are idle for 10.0 us under a, which 1.00 I/Os \
                   share: 10.0 us of the 50.0 us for each; for 40.0 us under b, which 10.0 I/Os share: \
                   4.00 us of the 50.0 us for each.";
        assert!(
            words.starts_with("All designs do the same within 2 %") && words.contains(told_so),
            "{words}"
        );
        // Where none shares, or idle time is the same, there is nothing to say.
        assert!(!told(&[("a", hosted(QUICK)), ("b", hosted(QUICK))]).contains("Between"));
        let alone = Transfer { work_ns: 10e3, idle_ns: 40e3, ..QUICK };
        assert!(!told(&[("a", hosted(QUICK)), ("b", hosted(alone))]).contains("Between"));
    }

    #[test]
    fn a_card_whose_memory_works_on_holds_a_run_though_its_bus_is_idle() {
        let memory = |of: Transfer, memory_percent| {
            let figures = hosted(of);
            let host = figures.mmc.map(|host| HostFigures { memory_percent, ..host });
            Figures { mmc: host, ..figures }
        };
        let long = Transfer { work_ns: 60e3, idle_ns: 40e3, ios: 2.0, ..QUICK };
        let words = told(&[("a", memory(QUICK, 99.0)), ("b", memory(long, 99.0))]);
        let held = "what holds them is the card's memory (99 % of the time it programs pages or reads \
                    ahead). Between two transfers bus and card are idle for 10.0 us under a";
        assert!(words.contains(held), "{words}");
        let slow = memory(Transfer { idle_ns: 60e3, ..QUICK }, 20.0);
        let words = told(&[("a", memory(QUICK, 99.0)), ("b", slow)]);
        assert!(words.contains("b is held by what the host does"), "{words}");
        assert!(words.contains("a by the card's memory"), "{words}");
    }

    #[test]
    fn a_card_that_is_always_at_work_holds_a_run() {
        let words = told(&[("a", hosted(Transfer { idle_ns: 1e3, ..QUICK }))]);
        assert_eq!(words, "a is held by bus and card (98 % of the time at work).");
    }
}
