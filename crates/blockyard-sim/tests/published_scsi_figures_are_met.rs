//! The SCSI table published in August 2017, cell by cell and in both readings of its workload:
//! within 3 % where the profile of the device was fitted on the cell, within 8 % elsewhere. And for
//! the reason that was published: the 2017 mq-deadline loses its sequential rate because next to
//! nothing is merged any more.

use blockyard_sim::reproduce::{Basis, Cell, Region, Span, cells, run};

#[test]
fn published_scsi_figures_are_met() {
    let mut cells = cells();
    cells.retain(|cell| cell.published.is_some());
    let figures = run(&cells, Span::default(), 1, &|| {}).unwrap();
    let mut missed = Vec::new();
    for (cell, figures) in cells.iter().zip(&figures) {
        let published = cell.published.unwrap();
        let measured = 1000.0 * f64::from(published.kiops);
        let difference = 100.0 * (figures.iops - measured) / measured;
        let allowed = if published.basis == Basis::Fitted { 3.0 } else { 8.0 };
        if difference.abs() > allowed {
            missed.push(format!(
                "{} under {}, {:?} region: {:.0} I/Os per second, {difference:+.1} % ({:?})",
                cell.op, cell.design, cell.region, figures.iops, published.basis
            ));
        }
    }
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), cells.len(), missed.join("\n"));
    for region in Region::ALL {
        let merged = |design| {
            let of = |cell: &Cell| (cell.region, cell.op, cell.design) == (region, "read", design);
            figures[cells.iter().position(of).unwrap()].ios_per_command
        };
        assert!(merged("mq-deadline-2017") < 1.3, "{region:?}");
        assert!(merged("legacy-deadline") > 3.0, "{region:?}");
    }
}
