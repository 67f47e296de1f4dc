//! The published figures of the block translation table (May 2015), with plain copies, on each
//! device that may have been measured: rates within 2 %, the share of the copy within one point.

use crate::published;

use published::{assert_met, measured};

#[test]
fn published_figures_of_a_btt_are_met() {
    let experiment = measured("btt", &["pmem-raw", "btt-linux-2015"]);
    assert_met(&experiment, |_| Some(2.0));
}
