//! Disks under layers: a model decides when and with which status requests complete, in order of
//! arrival. Delays, rates and faults apply as configured. The data always comes from the medium.

mod nbd;

use blockyard::bio::Op;
use blockyard::driver::{Accept, Busy, Device, Driver, Finished, Issue, Outcome};
use blockyard::layer::delay::Extra;
use blockyard::layer::fault::{Action, FaultRule, Turns, When};
use blockyard::layer::rate::Rates;
use blockyard::limits::Limits;
use blockyard::request::Request;
use blockyard::status::Status;
use blockyard::time::{Duration, Instant};
use blockyard::unit::{Budget, DriverTag, HctxId, QueueId};
use blockyard_serve::{Behaviour, Config, DiskConfig, Layers, Server, Source};
use nbd::{Client, EIO, FLUSH, Running, WRITE, ZEROES, disk, memory};
use std::io::Write;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// A model that serves one request at a time, each for `takes`, and fails writes to its first
/// sector.
#[derive(Clone, Debug)]
struct OneByOne {
    takes: Duration,
    limits: Limits,
}

#[derive(Debug)]
struct OneAtWork {
    takes: Duration,
    is_taken: bool,
    at_work: Option<(Finished, Instant)>,
}

impl Behaviour for OneByOne {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn depth(&self) -> u16 {
        4
    }

    fn device(&self) -> Box<dyn Device> {
        Box::new(OneAtWork { takes: self.takes, is_taken: false, at_work: None })
    }
}

impl Driver for OneAtWork {
    blockyard::leaf_calls!(prepare, unprepare, commit, timed_out);

    fn take_budget(&mut self, _: QueueId) -> Option<Budget> {
        (!std::mem::replace(&mut self.is_taken, true)).then_some(Budget(0))
    }

    fn return_budget(&mut self, _: QueueId, _: Budget) {
        self.is_taken = false;
    }

    fn queue_rq(&mut self, issue: &Issue<'_>) -> Accept {
        let request = issue.request();
        assert_ne!(request.op, Op::Flush, "a model without a cache should get no flush");
        if self.at_work.is_some() {
            return Accept::Busy(Busy::Device);
        }
        let fails = request.op == Op::Write && request.sector == 0;
        let outcome = Outcome::Done(if fails { Status::Medium } else { Status::Ok });
        let finished = Finished { queue: issue.queue, hctx: issue.hctx, tag: issue.tag, outcome };
        self.at_work = Some((finished, issue.now + self.takes));
        Accept::Queued
    }

    fn finish(&mut self, _: QueueId, _: HctxId, _: DriverTag, _: &Request) {}
}

impl Device for OneAtWork {
    fn next_finished(&mut self, now: Instant) -> Option<Finished> {
        let (finished, _) = self.at_work.take_if(|(_, due)| *due <= now)?;
        Some(finished)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.at_work.as_ref().map(|(_, due)| *due)
    }
}

fn one_by_one(disk: DiskConfig, takes: Duration) -> DiskConfig {
    let model = OneByOne { takes, limits: Limits::new(MIB / 512) };
    DiskConfig { layers: Layers { model: Some(Arc::new(model)), ..Layers::default() }, ..disk }
}

fn under(layers: Layers) -> Running {
    Running::start(DiskConfig { layers, ..memory(MIB) }, |_| ())
}

fn elapsed_ms(body: impl FnOnce()) -> u128 {
    let start = std::time::Instant::now();
    body();
    start.elapsed().as_millis()
}

/// Sends a write to block `block` and does not wait for the reply.
fn send_write(client: &mut Client, block: u64) -> u64 {
    let cookie = client.ask(WRITE, block * 8192, 4096).unwrap();
    client.stream.write_all(&[u8::try_from(block).unwrap(); 4096]).unwrap();
    cookie
}

/// Checks [live-device-never-late].
#[test]
fn requests_take_the_time_of_the_model_in_order_of_arrival() {
    for source in [
        Source::Memory { bytes: MIB, huge_pages: false },
        Source::File { path: nbd::file(MIB), buffered: false },
    ] {
        let running = Running::start(one_by_one(disk(source), Duration::from_ms(4)), |_| ());
        let mut client = running.client();
        let took = elapsed_ms(|| {
            // There are far fewer tags. A request that waits for one must not overtake a request
            // that has one.
            let sent: Vec<_> = (1..=20).map(|block| send_write(&mut client, block)).collect();
            let replied = sent.iter().map(|_| client.reply().unwrap());
            assert_eq!(
                replied.collect::<Vec<_>>(),
                sent.iter().map(|c| (*c, 0)).collect::<Vec<_>>()
            );
        });
        assert!(took >= 20 * 4, "20 requests of 4 ms each took {took} ms");
        assert_eq!(client.read(20 * 8192, 4096), [20; 4096]);
        assert_eq!(client.call(FLUSH, 0, 0), 0);
        let (_, timing) = &running.server.timing()[0];
        assert_eq!(timing.read().completions, 21, "every request but the flush should be counted");
        client.bye();
        running.stop();
    }
}

#[test]
fn requests_that_the_model_fails_or_does_not_support_are_refused() {
    let running = Running::start(one_by_one(memory(MIB), Duration::from_us(10)), |_| ());
    let mut client = running.client();
    assert_eq!(client.write(0, &[1; 512]), EIO);
    assert_eq!(client.write(512, &[1; 512]), 0);
    assert_ne!(client.call(ZEROES, 0, 4096), 0, "the model's limits have no WRITE_ZEROES");
    client.bye();
    running.stop();
}

#[test]
fn delays_and_rates_delay_completions() {
    let delay = Some(Extra::fixed(Duration::from_ms(30)));
    let running = under(Layers { delay, ..Layers::default() });
    let mut client = running.client();
    assert!(elapsed_ms(|| assert_eq!(client.write(0, &[1; 512]), 0)) >= 30);
    client.bye();
    running.stop();

    // 400 KiB at 1 MiB per second, with a burst of up to a quarter of a second.
    let rates =
        Rates { bytes_per_s: Some(MIB), requests_per_s: None, burst: Duration::from_ms(250) };
    let running = under(Layers { rates: Some(rates), ..Layers::default() });
    let mut client = running.client();
    let took = elapsed_ms(|| (0..100).for_each(|block| drop(client.read(block * 4096, 4096))));
    assert!((140..1000).contains(&took), "{took} ms");
    client.bye();
    running.stop();
}

#[test]
fn fault_rules_fail_or_lose_the_requests_that_they_match() {
    fn rule(turn: u64, then: Action) -> FaultRule {
        FaultRule {
            name: "rule".to_owned(),
            when: When {
                ops: vec![Op::Write],
                turns: Turns::Between(turn, turn),
                ..When::default()
            },
            then,
        }
    }
    fn faults(rule: &impl Fn(u64, Action) -> FaultRule) -> Vec<FaultRule> {
        vec![rule(2, Action::Error(Status::Medium)), rule(2, Action::LoseWrite)]
    }
    for source in [
        Source::Memory { bytes: MIB, huge_pages: false },
        Source::File { path: nbd::file(MIB), buffered: false },
    ] {
        let layers = Layers { faults: Some(faults(&rule)), ..Layers::default() };
        let running = Running::start(DiskConfig { layers, ..disk(source) }, |_| ());
        let mut client = running.client();
        // The second rule does not see writes that the first rule failed, so its second write is
        // the third.
        let errors = [1, 2, 3, 4].map(|with| client.write(with * 4096, &[1; 4096]));
        assert_eq!(errors, [0, EIO, 0, 0]);
        let kept = [1, 2, 3, 4].map(|at| client.read(at * 4096, 1)[0]);
        assert_eq!(kept, [1, 0, 0, 1]);
        client.bye();
        let counts = running.server.faults();
        running.stop();
        let [(disk, counts)] = &counts[..] else { panic!("one disk has rules") };
        let counts: Vec<_> =
            counts.read().into_iter().map(|(_, met)| (met.matched, met.fired)).collect();
        assert_eq!((disk.as_str(), &counts[..]), ("", &[(4, 1), (3, 1)][..]));
    }
}

#[test]
fn impossible_layers_are_refused_at_the_start() {
    let torn =
        FaultRule { name: "torn".to_owned(), when: When::default(), then: Action::TearWrite(1) };
    let layers = Layers { faults: Some(vec![torn]), ..Layers::default() };
    let config = Config::new(vec![DiskConfig { layers, ..memory(MIB) }], Vec::new());
    let error = Server::start(&config).unwrap_err().to_string();
    assert!(error.starts_with("rule \"torn\": torn and misdirected"), "{error}");
    let mut config = Config::new(vec![memory(MIB)], Vec::new());
    config.lanes = 65;
    let error = Server::start(&config).unwrap_err().to_string();
    assert_eq!(error, "65 lanes: a server has at most 64");
    let config = Config::new(vec![one_by_one(memory(MIB + 1), Duration::ZERO)], Vec::new());
    let error = Server::start(&config).unwrap_err().to_string();
    assert_eq!(error, "the disk has 1048577 bytes, but the device has only 1048576");
}
