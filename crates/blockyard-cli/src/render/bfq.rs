//! BFQ: a table of slots, one of what else it did, and one of the service of control groups.

use blockyard_answer::BfqFigures;
use blockyard_text::number::{approximate, count, exact_percent, percent, size};

use super::share;
use super::table::Table;

const SLOT_COLUMNS: [&str; 8] = [
    "slots",
    "too idle",
    "timeout",
    "budget",
    "empty",
    "preempted",
    "average budget",
    "budget used",
];
const DEED_COLUMNS: [&str; 9] =
    ["waits", "met", "near", "held", "withheld", "raised", "time raised", "injected", "merged"];
const GROUP_COLUMNS: [&str; 3] = ["weight", "bytes", "share"];

/// Returns the tables of the designs under BFQ, in lines of at most `width`. The text is empty if
/// there are none.
pub(super) fn text(designs: &[(&str, &BfqFigures)], width: usize) -> String {
    if designs.is_empty() {
        return String::new();
    }
    let mut slots = Table::of_numbers("design", SLOT_COLUMNS);
    let mut deeds = Table::of_numbers("design", DEED_COLUMNS);
    for (name, of) in designs {
        slots.row([
            (*name).to_owned(),
            count(approximate(of.slots)),
            share(of.too_idle, of.slots),
            share(of.timeout, of.slots),
            share(of.exhausted, of.slots),
            share(of.no_more_requests, of.slots),
            share(of.preempted, of.slots),
            size(of.mean_budget_bytes),
            percent(of.budget_used_percent),
        ]);
        deeds.row([
            (*name).to_owned(),
            count(approximate(of.waits)),
            share(of.met, of.waits),
            share(of.near, of.waits),
            exact_percent(of.held_percent),
            exact_percent(of.withheld_percent),
            count(approximate(of.raised_interactive + of.raised_soft_real_time)),
            exact_percent(of.raised_percent),
            count(approximate(of.injected)),
            count(approximate(of.merged)),
        ]);
    }
    let text = format!(
        "\nSlots of BFQ, and why they ended:\n{slots:width$}\nHow BFQ held the device, raised \
         weights and injected requests:\n{deeds:width$}"
    );
    text + &groups(designs, width)
}

fn groups(designs: &[(&str, &BfqFigures)], width: usize) -> String {
    if designs.iter().all(|(_, of)| of.groups.is_empty()) {
        return String::new();
    }
    let mut table = Table::of_numbers("design, group", GROUP_COLUMNS);
    for (name, of) in designs {
        table.row([*name, "", "", ""].map(str::to_owned));
        for group in &of.groups {
            let weight = group.weight.map_or_else(|| "-".to_owned(), |weight| weight.to_string());
            table.row([
                format!("  {}", group.name.as_deref().unwrap_or("(none)")),
                weight,
                size(approximate(group.bytes)),
                exact_percent(group.percent),
            ]);
        }
    }
    format!("\nWhat control groups got:\n{table:width$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_answer::GroupFigures;

    fn group(name: Option<&str>, weight: Option<u32>, mib: u64, percent: f64) -> GroupFigures {
        GroupFigures { name: name.map(str::to_owned), weight, bytes: mib << 20, percent }
    }

    #[test]
    fn slots_waits_and_groups_have_a_table_each() {
        let figures = BfqFigures {
            slots: 200,
            timeout: 150,
            exhausted: 50,
            mean_budget_bytes: f64::from(8 << 20),
            budget_used_percent: 75.0,
            waits: 400,
            met: 300,
            near: 100,
            held_percent: 12.5,
            withheld_percent: 2.25,
            raised_interactive: 2,
            raised_soft_real_time: 1,
            raised_percent: 50.5,
            injected: 7,
            groups: vec![
                group(None, None, 1, 20.5),
                group(Some("db"), Some(300), 3, 60.5),
                group(Some("backup"), Some(100), 1, 19.5),
            ],
            ..BfqFigures::default()
        };
        let narrow = text(&[("mq-bfq", &figures)], 80);
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        // A table that is too wide for 80 columns continues below itself.
        let text = text(&[("mq-bfq", &figures)], 120);
        let rows: Vec<_> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        for row in [
            "mq-bfq 200 - 75 % 25 % - - 8.00 MiB 75 %",
            "mq-bfq 400 75 % 25 % 12.5 % 2.25 % 3 50.5 % 7 0",
            "(none) - 1.00 MiB 20.5 %",
            "db 300 3.00 MiB 60.5 %",
            "backup 100 1.00 MiB 19.5 %",
        ] {
            assert!(rows.iter().any(|of| of == row), "{row} is not in:\n{text}");
        }
    }

    #[test]
    fn designs_without_bfq_have_no_table() {
        assert_eq!(text(&[], 80), "");
    }
}
