//! The counts in Prometheus' text format.
//!
//! Disks have node_exporter's names; counts for which it has none have our own.

use crate::disk::roster::Listed;
use crate::observation::meter::{Counts, Kind};
use crate::observation::overview::ClientView;
use blockyard::elevator::bfq::DEFAULT_WEIGHT;
use blockyard::layer::fault::Count;
use blockyard::stats::{Direction, Stage};
use blockyard::status::Status;
use blockyard::trace::{Action, Hold};
use blockyard_std::parts::job::SECTOR;
use core::fmt::{Display, Write};
use std::collections::BTreeMap;

struct Page<'a> {
    text: String,
    disks: &'a [Listed],
    /// The counts of each disk.
    counts: Vec<&'a Counts>,
}

/// Returns the text of all metrics of `disks`, whose `counts` are by their numbers, and of the
/// `clients` of disks that are shared by weights.
pub(super) fn write_metrics(
    disks: &[Listed],
    counts: &BTreeMap<usize, Counts>,
    clients: &[ClientView],
    lanes: usize,
    connections: usize,
) -> String {
    let none = Counts::new();
    let counts = disks.iter().map(|listed| counts.get(&listed.number).unwrap_or(&none)).collect();
    let mut page = Page { text: String::new(), disks, counts };
    page.write_head("blockyard_connections", "gauge", "Clients connected.");
    page.write_line(format_args!("blockyard_connections {connections}"));
    page.write_head("blockyard_lanes", "gauge", "Threads that serve.");
    page.write_line(format_args!("blockyard_lanes {lanes}"));
    page.write_family(
        "blockyard_answer_turns_max",
        "The most turns of a lane between the arrival of a READ, WRITE or FLUSH and its answer.",
        |counts| counts.turns_max,
    );
    page.write_disk_stats();
    page.write_durations();
    page.write_holds();
    page.write_damage();
    page.write_faults();
    page.write_clients(clients);
    page.text
}

impl Page<'_> {
    fn write_head(&mut self, name: &str, kind: &str, help: &str) {
        self.write_line(format_args!("# HELP {name} {help}"));
        self.write_line(format_args!("# TYPE {name} {kind}"));
    }

    fn write_line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("write of a line to memory");
    }

    /// Writes a line for each disk. `labels` are further labels and begin with a comma.
    fn write_samples<V: Display>(
        &mut self,
        name: &str,
        labels: &str,
        value: impl Fn(&Counts) -> V,
    ) {
        for (Listed { disk, .. }, counts) in self.disks.iter().zip(&self.counts) {
            let disk = Escaped(&disk.name);
            let value = value(counts);
            writeln!(self.text, "{name}{{device=\"{disk}\"{labels}}} {value}")
                .expect("write of a line to memory");
        }
    }

    fn write_family<V: Display>(&mut self, name: &str, help: &str, value: impl Fn(&Counts) -> V) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        self.write_head(name, kind, help);
        self.write_samples(name, "", value);
    }

    fn write_disk_stats(&mut self) {
        for (kind, one, many) in [
            (Kind::Read, "read", "reads"),
            (Kind::Write, "write", "writes"),
            (Kind::Discard, "discard", "discards"),
        ] {
            let name = format!("node_disk_{many}_completed_total");
            let help = format!("The total number of {many} completed successfully.");
            self.write_family(&name, &help, |counts| counts.done(kind).requests);
            let name = format!("node_disk_{many}_merged_total");
            let help = format!("The total number of {many} merged.");
            self.write_family(&name, &help, |counts| counts.done(kind).merged);
            let (name, help) = match kind {
                Kind::Read => ("node_disk_read_bytes_total", "read"),
                Kind::Write => ("node_disk_written_bytes_total", "written"),
                _ => ("node_disk_discarded_bytes_total", "discarded"),
            };
            let help = format!("The total number of bytes {help}.");
            self.write_family(name, &help, |counts| counts.done(kind).sectors * SECTOR);
            let name = format!("node_disk_{one}_time_seconds_total");
            let help = format!("The total number of seconds spent by all {many}.");
            self.write_family(&name, &help, |counts| Seconds(counts.done(kind).ns));
        }
        let help = "The total number of flush requests completed.";
        self.write_family("node_disk_flush_requests_total", help, |counts| {
            counts.done(Kind::Flush).requests
        });
        let help = "The total number of seconds spent by all flush requests.";
        self.write_family("node_disk_flush_requests_time_seconds_total", help, |counts| {
            Seconds(counts.done(Kind::Flush).ns)
        });
        let help = "The number of requests at the device.";
        self.write_family("node_disk_io_now", help, |counts| counts.issued);
        let help = "Total seconds with a request at the device, of each lane.";
        self.write_family("node_disk_io_time_seconds_total", help, |counts| {
            Seconds(counts.busy_ns)
        });
        let help = "The weighted number of seconds with requests at the device.";
        self.write_family("node_disk_io_time_weighted_seconds_total", help, |counts| {
            Seconds(counts.weighted_ns)
        });
    }

    /// Writes what clients moved, and their weights. The share of a client is its rate of bytes
    /// divided by the sum over the clients of its disk.
    fn write_clients(&mut self, clients: &[ClientView]) {
        if clients.is_empty() {
            return;
        }
        let name = "blockyard_client_bytes_total";
        self.write_head(name, "counter", "Bytes that a client has read and written.");
        self.write_samples_of_clients(name, clients, |client| client.moved_bytes);
        let name = "blockyard_client_weight";
        self.write_head(name, "gauge", "The weight of a client; 40 is that of one without.");
        self.write_samples_of_clients(name, clients, |client| {
            u64::from(client.weight.map_or(DEFAULT_WEIGHT, u32::from))
        });
    }

    fn write_samples_of_clients(
        &mut self,
        name: &str,
        clients: &[ClientView],
        value: impl Fn(&ClientView) -> u64,
    ) {
        for client in clients {
            let disk = self.disks.iter().find(|listed| Some(listed.number) == client.disk);
            let Some(Listed { disk, .. }) = disk else { continue };
            let [disk, peer] = [&disk.name, &client.peer].map(|text| Escaped(text));
            let labels = format!("device=\"{disk}\",client=\"{}\",peer=\"{peer}\"", client.id);
            self.write_line(format_args!("{name}{{{labels}}} {}", value(client)));
        }
    }

    fn write_durations(&mut self) {
        const NAME: &str = "blockyard_request_duration_seconds";
        self.write_head(NAME, "histogram", "Time that requests spent in each stage.");
        for direction in Direction::ALL {
            let op = match direction {
                Direction::Read => "read",
                Direction::Write => "write",
                Direction::Flush => "flush",
            };
            for stage in Stage::ALL {
                let stage_name = match stage {
                    Stage::Staged => "staged",
                    Stage::Held => "held",
                    Stage::InDriver => "driver",
                    Stage::Flushing => "flushing",
                    Stage::Total => "total",
                };
                let labels = format!(",stage=\"{stage_name}\",op=\"{op}\"");
                for (Listed { disk, .. }, counts) in self.disks.iter().zip(&self.counts) {
                    let labels = format!("device=\"{}\"{labels}", Escaped(&disk.name));
                    let times = counts.stages.times_ns(direction, stage);
                    for (power, below) in times.below() {
                        // Values are whole nanoseconds, so the largest value below the power is one
                        // less.
                        let end = Seconds((1 << power) - 1);
                        writeln!(self.text, "{NAME}_bucket{{{labels},le=\"{end}\"}} {below}")
                            .expect("write of a line to memory");
                    }
                    let count = times.count();
                    let sum = Seconds(times.sum);
                    write!(
                        self.text,
                        "{NAME}_bucket{{{labels},le=\"+Inf\"}} {count}\n\
                         {NAME}_sum{{{labels}}} {sum}\n{NAME}_count{{{labels}}} {count}\n"
                    )
                    .expect("write of lines to memory");
                }
            }
        }
    }

    fn write_holds(&mut self) {
        let name = "blockyard_held_total";
        self.write_head(name, "counter", "How often requests were held back, by what held them.");
        for hold in Hold::ALL {
            let labels = format!(",because=\"{}\"", hold.name());
            self.write_samples(name, &labels, |counts| counts.stages.count(Action::Hold(hold)));
        }
        let name = "blockyard_held_seconds_total";
        self.write_head(name, "counter", "How long queues stood held, by what held them.");
        for hold in Hold::ALL {
            let labels = format!(",because=\"{}\"", hold.name());
            self.write_samples(name, &labels, |counts| Seconds(counts.stages.held_ns(hold)));
        }
        let name = "blockyard_errors_total";
        self.write_head(name, "counter", "Requests that the device did not do.");
        for (status, words) in [
            (Status::IoError, "io"),
            (Status::Medium, "medium"),
            (Status::Timeout, "timeout"),
            (Status::NoSpace, "no_space"),
            (Status::NotSupported, "not_supported"),
            (Status::Gone, "gone"),
        ] {
            let labels = format!(",error=\"{words}\"");
            self.write_samples(name, &labels, |counts| {
                counts.stages.count(Action::Complete(status))
            });
        }
    }
}

impl Page<'_> {
    fn write_damage(&mut self) {
        const NAME: &str = "blockyard_damage_failures_total";
        self.write_head(
            NAME,
            "counter",
            "Requests that failed because the file of the disk is damaged.",
        );
        for Listed { disk, .. } in self.disks {
            let name = Escaped(&disk.name);
            let failed = disk.damage.failed_requests();
            self.write_line(format_args!("{NAME}{{device=\"{name}\"}} {failed}"));
        }
        const FLUSH: &str = "blockyard_flush_failed";
        self.write_head(FLUSH, "gauge", "Whether the last flush of the disk failed: 1 or 0.");
        for Listed { disk, .. } in self.disks {
            let name = Escaped(&disk.name);
            let failed = u8::from(disk.damage.has_failed_flush());
            self.write_line(format_args!("{FLUSH}{{device=\"{name}\"}} {failed}"));
        }
    }

    /// Writes the counts of fault rules, unless no disk has any.
    fn write_faults(&mut self) {
        let counts: Vec<_> = self.disks.iter().map(|listed| listed.disk.faults.read()).collect();
        if counts.iter().all(Vec::is_empty) {
            return;
        }
        let help = "Requests that a fault rule is about.";
        self.write_rules("blockyard_fault_matched_total", help, &counts, |count| count.matched);
        let help = "Requests that a fault rule struck.";
        self.write_rules("blockyard_fault_fired_total", help, &counts, |count| count.fired);
    }

    fn write_rules(
        &mut self,
        name: &str,
        help: &str,
        counts: &[Vec<(String, Count)>],
        value: impl Fn(&Count) -> u64,
    ) {
        self.write_head(name, "counter", help);
        for (Listed { disk, .. }, counts) in self.disks.iter().zip(counts) {
            for (rule, count) in counts {
                let disk = Escaped(&disk.name);
                let rule = Escaped(rule);
                let value = value(count);
                writeln!(self.text, "{name}{{device=\"{disk}\",rule=\"{rule}\"}} {value}")
                    .expect("write of a line to memory");
            }
        }
    }
}

struct Seconds(u128);

impl Display for Seconds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// The name of a disk or rule as the value of a label. The empty name of the default disk becomes
/// `(default)`.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(default)");
        }
        for letter in self.0.chars() {
            match letter {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_their_quotes() {
        assert_eq!(Escaped("a\"b\\c\nd").to_string(), "a\\\"b\\\\c\\nd");
        assert_eq!(Escaped("").to_string(), "(default)");
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(Seconds(1023).to_string(), "0.000001023");
        assert_eq!(Seconds(61_000_000_007).to_string(), "61.000000007");
    }
}
