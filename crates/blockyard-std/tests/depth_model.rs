//! The shared depth object under every interleaving of threads. Run it with
//! `RUSTFLAGS="--cfg loom" cargo test -p blockyard-std --test depth_model --release`.
#![cfg(loom)]

use blockyard_std::parts::depth::Depth;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A bell on which a lane sleeps. Each ring wakes the lane once.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// Two lanes share the bytes of one request, and both get them eventually, one at a time. loom
/// reports a lost wake-up as a deadlock.
///
/// Checks [depth-waiter-rung] and [depth-never-exceeded].
#[test]
fn no_wake_up_is_lost_and_the_depth_is_never_exceeded() {
    loom::model(|| {
        let depth = Arc::new(Depth::new(2, 100, 2));
        let bells = Arc::new([Bell::default(), Bell::default()]);
        let at_device = Arc::new(AtomicU32::new(0));
        let lanes: Vec<_> = (0..2)
            .map(|lane| {
                let depth = depth.clone();
                let bells = bells.clone();
                let at_device = at_device.clone();
                thread::spawn(move || {
                    while !depth.take_bytes(lane, 60) {
                        bells[lane as usize].wait();
                    }
                    assert_eq!(
                        at_device.fetch_add(1, Ordering::SeqCst),
                        0,
                        "[depth-never-exceeded]"
                    );
                    at_device.fetch_sub(1, Ordering::SeqCst);
                    depth.put_bytes(60, |lane| bells[lane as usize].ring());
                })
            })
            .collect();
        for lane in lanes {
            lane.join().unwrap();
        }
    });
}

/// A lane that holds the whole depth yields to a waiting lane, and is woken when that lane's
/// request ends. Checks [even-share-while-waiting].
#[test]
fn a_lane_that_gives_way_is_woken_again() {
    loom::model(|| {
        let depth = Arc::new(Depth::new(2, 100, 2));
        let bells = Arc::new([Bell::default(), Bell::default()]);
        assert!(depth.take_request(0, 0) && depth.take_request(0, 1));
        let other = {
            let depth = depth.clone();
            let bells = bells.clone();
            thread::spawn(move || {
                while !depth.take_request(1, 0) {
                    bells[1].wait();
                }
                depth.put_request(|lane| bells[lane as usize].ring());
            })
        };
        depth.put_request(|lane| bells[lane as usize].ring());
        while !depth.take_request(0, 1) {
            bells[0].wait();
        }
        depth.put_request(|lane| bells[lane as usize].ring());
        depth.put_request(|lane| bells[lane as usize].ring());
        other.join().unwrap();
    });
}
