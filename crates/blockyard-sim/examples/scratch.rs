use blockyard_sim::{job::*, profile::*, simulate::*};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let device = Device::lookup(&a[1]).unwrap();
    let runtime = &a[3];
    for rw in ["read", "randread", "write", "randwrite"] {
        for d in a[2].split(',') {
            let design = Design::lookup(d).unwrap();
            let args = [
                format!("--name=j"),
                "--ioengine=libaio".into(),
                "--direct=1".into(),
                "--bs=4k".into(),
                format!("--rw={rw}"),
                "--iodepth=64".into(),
                "--numjobs=64".into(),
                "--group_reporting".into(),
                format!("--runtime={runtime}"),
                "--time_based".into(),
                if a.get(4).is_some() { "--size=8g".into() } else { "--filename=/dev/sda".into() },
            ];
            let jobs = match parse_args(args.iter().map(|s| s.as_str()), &NoSource) {
                Ok(j) => j,
                Err(e) => panic!("{e}"),
            };
            let t = std::time::Instant::now();
            let sim = Simulation::new(&jobs, &device, &design, 1).unwrap();
            let r = match sim.finish() {
                Ok(r) => r,
                Err(e) => {
                    println!("{rw} {d}: {e}");
                    continue;
                }
            };
            let el = t.elapsed().as_secs_f64();
            let ios: u64 = r.jobs.iter().flat_map(|j| j.stats.measured()).map(|m| m.ios).sum();
            let cmds =
                r.stages.count(blockyard::trace::Action::Complete(blockyard::status::Status::Ok));
            let lat = r.jobs[0].stats.measured().next().unwrap();
            println!(
                "{rw:10} {d:26} {:8.1}k IOPS  k={:.3} occ={:.1} cpu={:.0}% spin={:.0}% wake/io={:.2} runs/io={:.2} ev/io={:.2} p50={}us p99={}us sim {:.2}M io/s",
                ios as f64 / r.span.as_ns() as f64 * 1e6,
                ios as f64 / cmds as f64,
                r.commands_held_ns as f64 / r.span.as_ns() as f64,
                r.totals.cpu.as_ns() as f64 / r.span.as_ns() as f64 / r.cpus as f64 * 100.,
                r.totals.spinning.as_ns() as f64 / r.span.as_ns() as f64 / r.cpus as f64 * 100.,
                r.totals.wakeups as f64 / ios as f64,
                r.totals.runs as f64 / ios as f64,
                r.totals.events as f64 / ios as f64,
                lat.lat_ns.percentile(50000) / 1000,
                lat.lat_ns.percentile(99000) / 1000,
                ios as f64 / el / 1e6
            );
        }
    }
}
