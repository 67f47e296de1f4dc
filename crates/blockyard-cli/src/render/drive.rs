//! Tables of a drive: its front end and its medium.

use blockyard_answer::DriveFigures;
use blockyard_text::number::{count, digits, exact_percent, time};

use super::table::Table;
use super::wrap::wrapped;

const COLUMNS: [&str; 5] =
    ["commands per doorbell", "interrupts per command", "controller", "link", "medium"];

/// The words above the table of the medium.
const MEDIUM: &str = "The medium (sums over the run; docs/devices explains the counters):";

/// Returns the tables of each design. The text is empty if there are none.
pub(super) fn text(rows: &[(&str, &DriveFigures)], width: usize) -> String {
    let Some((_, first)) = rows.first() else { return String::new() };
    let names: Vec<_> = first.medium.iter().map(|(name, _)| heading(name)).collect();
    let mut front = Table::of_numbers("design", COLUMNS);
    let mut medium = Table::of_numbers("design", names.iter().map(String::as_str));
    for (name, figures) in rows {
        front.row([
            (*name).to_owned(),
            digits(figures.commands_per_doorbell),
            digits(figures.interrupts_per_command),
            exact_percent(figures.controller_percent),
            exact_percent(figures.link_percent),
            exact_percent(figures.medium_percent),
        ]);
        let amounts = figures.medium.iter().map(|(name, amount)| shown(name, *amount));
        medium.row(core::iter::once((*name).to_owned()).chain(amounts));
    }
    format!(
        "\nThe drive, and how much of it was in use:\n{front:width$}\n{}\n{medium:width$}",
        wrapped(MEDIUM, width)
    )
}

/// Returns the heading of a counter.
fn heading(name: &str) -> String {
    name.trim_end_matches("_ns").trim_end_matches("_percent").replace('_', " ")
}

/// Returns the amount of a counter, as its name says.
#[expect(clippy::cast_precision_loss, reason = "a count to be read")]
fn shown(name: &str, amount: u64) -> String {
    match name {
        _ if name.ends_with("_ns") => time(amount),
        _ if name.ends_with("_percent") => format!("{amount} %"),
        _ => count(amount as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_answer::LoadFigures;

    #[test]
    fn designs_are_shown_below_each_other() {
        let figures = DriveFigures {
            commands_per_doorbell: 1.5,
            interrupts_per_command: 0.25,
            controller_percent: 70.0,
            link_percent: 61.04,
            medium_percent: 99.0,
            engine_percent: 0.0,
            at_device: 1.0,
            disk: None,
            load: LoadFigures::default(),
            medium: vec![
                ("units_read", 1_200),
                ("channel_wait_ns", 1_500),
                ("amplified_percent", 137),
            ],
        };
        let expected = "
The drive, and how much of it was in use:
            commands   interrupts
design  per doorbell  per command  controller    link  medium
none            1.50         0.25      70.0 %  61.0 %  99.0 %

The medium (sums over the run; docs/devices explains the counters):
                    channel
design  units read     wait  amplified
none         1.20k  1.50 us      137 %
";
        assert_eq!(text(&[("none", &figures)], 80), expected);
        assert_eq!(text(&[], 80), "");
    }
}
