//! Counts of errors: each error is counted once.

use super::*;
use crate::command::status::Status as CardStatus;
use crate::controller::{HostError, Part};

/// The failure of a write that was already told is a lost or a doubtful write instead. The engine's
/// own commands are those of no request.
#[test]
fn a_fault_is_one_failure() {
    let faults = [
        Fault::Error(Part::Command, HostError::Damaged, 0),
        Fault::Bits(Part::Command, CardStatus::ERROR),
        Fault::Silence,
    ];
    let mut met = 0;
    for policy in every_policy() {
        for fault in faults {
            for at in 0..12 {
                let controller = Scripted::new(policy.transfer, policy.busy);
                let mut bench = Bench::with(Policies::NONE, controller, emmc(), policy);
                bench.script().faults.insert(at, fault);
                bench.writes(2);
                bench.settle();
                bench.submit([Bio::new(Op::Flush, 0, 0, 900)]);
                bench.settle();
                bench.submit([Bio::read(200, 8, 2), Bio::new(Op::Discard, 1024, 4096, 901)]);
                bench.settle();
                if bench.spans().len() <= at {
                    continue;
                }
                met += 1;
                let counts = bench.mmc().counts();
                let writes = counts.lost_writes + counts.doubtful_writes;
                let of_engine = policy.pipeline == Pipeline::Cqe;
                let case = format!("{fault:?} at {at}, {policy:?}: {counts:?}");
                assert!(counts.failures <= 1 && writes <= 1, "{case}");
                assert!(counts.failures + writes >= 1 || of_engine, "{case}");
            }
        }
    }
    assert!(met > 1000, "{met} faults");
}
