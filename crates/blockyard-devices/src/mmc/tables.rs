//! Tables of MMC hosts: commands, the use of the bus, and the threads that are woken.

use super::figures::{HostFigures, Overlapped};
use crate::tables::FigureTable;
use blockyard_text::number::{approximate, count, digits, exact_percent, time};
use std::collections::BTreeSet;

/// The column name of CMD13 with bit 15, which reads the queue status register.
const QUEUE_STATUS: &str = "CMD13/QSR";

/// The words above the table of the host.
const HOST: &str =
    "The host (bus % is the time with a transaction; busy % above includes a busy card):";

/// Returns the tables of `hosts`, one under each design.
pub(crate) fn tables(hosts: &[&HostFigures]) -> Vec<FigureTable> {
    debug_assert!(!hosts.is_empty(), "a table has a row");
    vec![commands(hosts), host(hosts), woken(hosts)]
}

/// Returns a column for each command that any host sent, and then one for each other count that any
/// host has.
fn commands(hosts: &[&HostFigures]) -> FigureTable {
    let mut table = FigureTable::new("Commands on the bus:");
    let sent = hosts.iter().flat_map(|host| host.commands.sent().map(|(command, _)| command));
    for command in sent.collect::<BTreeSet<_>>() {
        table.column(&command.to_string(), hosts, |host| number(host.commands.of(command)));
    }
    if hosts.iter().any(|host| host.queue_status > 0) {
        table.column(QUEUE_STATUS, hosts, |host| number(host.queue_status));
    }
    if hosts.iter().any(|host| host.status_per_write.is_some()) {
        table.column("CMD13/write", hosts, status_per_write);
    }
    if hosts.iter().any(|host| host.lost_writes > 0) {
        table.column("lost writes", hosts, |host| number(host.lost_writes));
    }
    if hosts.iter().any(|host| host.doubtful_writes > 0) {
        table.column("in doubt", hosts, |host| number(host.doubtful_writes));
    }
    table
}

fn host(hosts: &[&HostFigures]) -> FigureTable {
    let mut table = FigureTable::new(HOST);
    table.column("bus %", hosts, |host| digits(host.bus_busy_percent));
    table.column("bus gap", hosts, |host| time(host.mean_bus_gap_ns));
    table.column("map, bus busy", hosts, |host| exact_percent(host.map_percent.inside));
    table.column("map, bus idle", hosts, |host| exact_percent(host.map_percent.outside));
    table.column("unmap, bus busy", hosts, |host| exact_percent(host.unmap_percent.inside));
    table.column("unmap, bus idle", hosts, |host| exact_percent(host.unmap_percent.outside));
    table.column("awaited wakes/I/O", hosts, |host| digits(host.awaited_wakeups_per_io));
    if hosts.iter().any(|host| host.unnoticed_ns > 0) {
        table.column("unnoticed", hosts, |host| time(host.unnoticed_ns));
    }
    table
}

fn woken(hosts: &[&HostFigures]) -> FigureTable {
    let caption = "Interrupts, and the threads that are woken, for each I/O:";
    let mut table = FigureTable::new(caption);
    table.column("interrupts", hosts, |host| digits(host.woken_per_io.interrupts));
    table.column("between CPUs", hosts, |host| digits(host.woken_per_io.between_processors));
    table.column("driver's thread", hosts, |host| digits(host.woken_per_io.thread));
    table.column("driver's worker", hosts, |host| digits(host.woken_per_io.worker));
    table.column("jobs", hosts, |host| digits(host.woken_per_io.jobs));
    table.column("context switches", hosts, |host| digits(host.switches_per_io));
    table
}

/// Formats a count, with a dash for zero.
fn number(times: u64) -> String {
    if times == 0 { "-".to_owned() } else { count(approximate(times)) }
}

fn status_per_write(figures: &HostFigures) -> String {
    figures.status_per_write.map_or_else(|| "-".to_owned(), digits)
}

/// Returns the figures of a single run, in fio's style.
pub(crate) fn lines(figures: &HostFigures) -> String {
    let sent = figures.commands.sent();
    let mut commands: String =
        sent.map(|(command, sent)| format!("{command}={}, ", count(approximate(sent)))).collect();
    if figures.queue_status > 0 {
        commands += &format!("{QUEUE_STATUS}={}, ", number(figures.queue_status));
    }
    let unnoticed = match figures.unnoticed_ns {
        0 => String::new(),
        ns => format!(", unnoticed={}", time(ns)),
    };
    let lost =
        line("lost writes", figures.lost_writes) + &line("in doubt", figures.doubtful_writes);
    format!(
        "\nMMC host:\n  \
           commands     : {commands}CMD13/write={}\n  \
           bus          : busy={}, gap={}{unnoticed}\n  \
           bus busy/idle: map={}, unmap={}\n  \
           per I/O      : interrupts={}, between CPUs={}, ctx={}\n  \
           wakes/I/O    : all={} (thread={}, worker={}, jobs={}), awaited={}\n{lost}",
        status_per_write(figures),
        exact_percent(figures.bus_busy_percent),
        time(figures.mean_bus_gap_ns),
        pair(figures.map_percent),
        pair(figures.unmap_percent),
        digits(figures.woken_per_io.interrupts),
        digits(figures.woken_per_io.between_processors),
        digits(figures.switches_per_io),
        digits(figures.wakeups_per_io),
        digits(figures.woken_per_io.thread),
        digits(figures.woken_per_io.worker),
        digits(figures.woken_per_io.jobs),
        digits(figures.awaited_wakeups_per_io),
    )
}

/// The part of a time in which the bus is busy, and the part in which it is idle.
fn pair(of: Overlapped) -> String {
    exact_percent(of.inside) + " / " + &exact_percent(of.outside)
}

/// A line with a number of writes, if there are any.
fn line(name: &str, writes: u64) -> String {
    match writes {
        0 => String::new(),
        _ => format!("  {name:13}: {writes}\n"),
    }
}
