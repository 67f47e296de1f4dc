//! Helpers for tests of published figures.

use blockyard_answer::reproduce::{Cell, Experiment, experiments, run};

/// Returns the experiment called `name`, without outcomes and without the tables that have no other
/// published figure.
pub(crate) fn measured(name: &str, designs: &'static [&'static str]) -> Experiment {
    let mut experiment = experiments().into_iter().find(|it| it.name == name).unwrap();
    for table in &mut experiment.tables {
        table.published.retain(|published| !published.basis.is_after());
    }
    experiment.tables.retain(|table| !table.published.is_empty());
    experiment.tables.iter_mut().for_each(|table| table.designs = designs);
    experiment
}

/// Runs `experiment` and compares each published figure with ours, on the device and on its
/// variants. `allowed` gives the largest difference in percent; with `None` the figure is not
/// compared.
#[expect(clippy::float_arithmetic, reason = "figures are compared")]
pub(crate) fn assert_met(
    experiment: &Experiment,
    allowed: impl Fn(&Cell) -> Option<f64>,
) -> Vec<Cell> {
    let cells = run(experiment, 1, &|| {}).unwrap().cells;
    let mut missed = Vec::new();
    let mut count = 0;
    for cell in &cells {
        let Some(published) = cell.published else { continue };
        count += 1;
        let Some(allowed) = allowed(cell) else { continue };
        let variants = cell.on_variants.iter().map(|(name, ours)| (*name, ours));
        for (device, ours) in [(cell.device, &cell.ours)].into_iter().chain(variants) {
            let difference = 100.0 * (ours - published) / published.abs();
            if difference.abs() > allowed {
                missed.push(format!(
                    "{}, {}, {} on {device}: {ours:.2} for {published}: {difference:+.1} % ({:?})",
                    cell.table, cell.workload, cell.design, cell.basis
                ));
            }
        }
    }
    let of_tables: usize = experiment.tables.iter().map(|table| table.published.len()).sum();
    assert_eq!(count, of_tables, "each published figure should have a cell");
    assert!(missed.is_empty(), "{}:\n{}", missed.len(), missed.join("\n"));
    cells
}
