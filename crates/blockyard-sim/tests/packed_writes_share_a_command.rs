//! A packed command carries several writes in one transfer, after a header.

use blockyard::status::Status;
use blockyard::trace::Action;
use blockyard_devices::profile::{Design, Device};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::{Report, Simulation};

/// 20 jobs with one random 4 KiB write each at a time, 50 writes per job.
fn writes(packed: &str) -> Report {
    let job = "--name=x --direct=1 --filename=/dev/mmcblk0 --size=1g --rw=randwrite --bs=4k \
               --numjobs=20 --number_ios=50";
    let jobs = parse_args(job.split_whitespace(), &NoSource).unwrap();
    let design = format!(
        "base = \"mmc-double-buffer-full\"\n[host]\ntransfer = \"dma\"\npipeline = \"two-slot-full\"\n\
         busy-detect = \"cmd13\"\npacked = \"{packed}\""
    );
    let design = Design::parse("packed", &design).unwrap();
    let device = Device::lookup("emmc-hs400-sprd").unwrap();
    Simulation::new(&jobs, &device, &design, 1).unwrap().finish().unwrap()
}

#[test]
fn packed_writes_need_fewer_commands_and_less_time() {
    let [alone, packed] = ["off", "write"].map(writes);
    fn commands(report: &Report) -> [u64; 64] {
        report.family.mmc.as_ref().unwrap().commands
    }
    for report in [&alone, &packed] {
        assert!(report.stages.count(Action::Complete(Status::Ok)) >= 990);
    }
    // This design announces packs only.
    let announced = [&alone, &packed].map(|report| commands(report)[23]);
    assert!(announced[0] == 0 && announced[1] > 0, "{announced:?}");
    // While one pack is in flight, the writes of up to ten jobs gather for the next one.
    assert!(commands(&alone)[25] >= 990);
    assert!(commands(&packed)[25] * 4 < commands(&alone)[25], "{}", commands(&packed)[25]);
    assert!(packed.span < alone.span);
}
