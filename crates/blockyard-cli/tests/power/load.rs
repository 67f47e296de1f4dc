//! Clients that write, zero and flush at random, many requests at once, and record each request.

use super::history::{Change, Record, Request, Shared, mark};
use crate::nbd::{self, Client};
use blockyard::prng::Prng;
use std::io::Write;
use std::path::Path;

const CLIENTS: u64 = 4;
/// Most requests in flight of a client.
const DEPTH: usize = 8;
const FUA: u16 = 1;
const NO_HOLE: u16 = 2;

/// The load of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The bytes that no power cut may tear.
    pub(crate) unit_bytes: u64,
    /// The disk is used up to here. Few units are written often.
    pub(crate) units: u64,
    /// The longest request, in units.
    pub(crate) longest: u64,
    /// Requests of each client.
    pub(crate) requests: usize,
}

impl Load {
    /// Runs all clients to their end.
    pub(crate) fn run(self, socket: &Path, history: &Shared, life: u64, seed: u64) {
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let prng = Prng::new(seed).fork(client);
                scope.spawn(move || self.client(socket, history, life, prng));
            }
        });
    }

    fn client(self, socket: &Path, history: &Shared, life: u64, mut prng: Prng) {
        let mut client = Client::connect(socket).expect("connection to the server");
        let mut in_flight = 0;
        let mut left = self.requests;
        while left > 0 || in_flight > 0 {
            if left > 0 && (in_flight == 0 || in_flight < DEPTH && prng.below(2) == 0) {
                self.send(&mut client, history, life, &mut prng);
                (left, in_flight) = (left - 1, in_flight + 1);
                continue;
            }
            let (number, error) = client.reply().expect("answer of the server");
            let number = usize::try_from(number).expect("cookie of a request");
            // Recorded after the answer was received.
            history.add(Record::Answered(number));
            assert_eq!(error, 0, "request {number} succeeds");
            in_flight -= 1;
        }
        client.bye();
    }

    fn send(self, client: &mut Client, history: &Shared, life: u64, prng: &mut Prng) {
        let (kind, change, flags) = match prng.below(16) {
            0..=9 => (nbd::WRITE, Change::Write, 0),
            10 => (nbd::ZEROES, Change::Zero, NO_HOLE),
            11 => (nbd::ZEROES, Change::Zero, 0),
            12 => (nbd::TRIM, Change::Zero, 0),
            _ => (nbd::FLUSH, Change::Flush, 0),
        };
        let fua = change != Change::Flush && prng.below(6) == 0;
        let units = match change {
            Change::Flush => 0..0,
            _ => {
                let count = 1 + prng.below(self.longest);
                let start = prng.below(self.units - count + 1);
                start..start + count
            }
        };
        let number = history.send(Request { change, units: units.clone(), fua });
        let len = u32::try_from((units.end - units.start) * self.unit_bytes).expect("short");
        let mut bytes =
            nbd::header(kind, number as u64, units.start * self.unit_bytes, len).to_vec();
        let flags = if fua { flags | FUA } else { flags };
        bytes[4..6].copy_from_slice(&flags.to_be_bytes());
        if change == Change::Write {
            for unit in units {
                let words = (0..self.unit_bytes / 8).map(|_| mark(life, number, unit));
                bytes.extend(words.flat_map(u64::to_le_bytes));
            }
        }
        client.stream.write_all(&bytes).expect("server that takes a request");
    }
}
