//! A hung lane does not keep a trace open. The files are closed without the lane's records.

use blockyard::time::Instant;
use blockyard_trace::output::{Files, Lanes, LiveRecorder};

#[test]
fn files_are_closed_while_a_lane_hangs() {
    let path = std::env::temp_dir().join(format!("hung-lane-{}.json", std::process::id()));
    let files = Files { perfetto: Some(path.clone()), blktrace: None };
    let lanes = Lanes { name: "none".to_owned(), lanes: 2, disks: 1, depth: 4 };
    let recorder = LiveRecorder::create(&files, lanes, |_| ()).unwrap();
    let [ended, hangs] = [0, 1].map(|lane| recorder.lane(lane, Instant::ZERO));
    drop(ended);
    recorder.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("none, lane 1: requests") && text.ends_with("]}\n"), "{text}");
    drop(hangs); // the lane's records have no writer any more
    std::fs::remove_file(path).unwrap();
}
