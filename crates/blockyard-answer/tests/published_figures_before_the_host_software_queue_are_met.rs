//! fio's figures on an eMMC device and an SD card before the host software queue series (February
//! 2020). All eight rows are within 3 %, on the devices and on all variants that the figures allow,
//! with one CMD13 for each write, as counted there.

use crate::published;

use blockyard_answer::reproduce::Unit;
use published::{assert_met, measured};

#[test]
fn published_figures_before_the_host_software_queue_are_met() {
    let experiment = measured("hsq", &["mmc-blkmq-4.16"]);
    let cells = assert_met(&experiment, |_| Some(3.0));
    for cell in cells {
        match cell.counters[Unit::StatusPerWrite.name()] {
            Some(each) => assert!((0.99..1.01).contains(&each), "{}: {each}", cell.workload),
            None => assert!(cell.workload.ends_with("read")),
        }
    }
}
