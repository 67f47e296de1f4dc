//! What was published of the block translation table in May 2015, with plain copies, on each device that may
//! have been the one measured: rates within 2 %, the share of the copy within a point.

mod published;

use published::{assert_met, measured};

#[test]
fn published_figures_of_a_btt_are_met() {
    let experiment = measured("btt", &["pmem-raw", "btt-linux-2015"]);
    assert_met(&experiment, |_, _| Some(2.0));
}
