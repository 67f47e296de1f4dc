//! The memory of a lane for data in flight, and the share of it that each client may hold.
//!
//! A client holds memory for the data of a READ until its reply has been sent. It holds memory for the bytes of a
//! WRITE that have arrived, until the disk has written them. Memory is counted in bytes, before it is used:
//!
//! | part | size | available to |
//! |---|---|---|
//! | own | [`OWN_BYTES`] for each client | that client alone |
//! | pool | configured for the lane | every client, within its share |
//! | reserve | the longest request | the one request that has the turn |
//!
//! **The bound.** A lane holds at most the pool, the longest request, `OWN_BYTES` for each client, and 64 MiB of spare
//! buffers; and for each client an input buffer and its replies without data. A client
//! whose requests have at most [`SMALL_BYTES`] waits only for its own replies and writes, never for memory that
//! another client holds. A longer request waits at most until each client before it in the queue has had its turn.
//! The lane cuts off a client that moves no byte for the lane's patience, so each turn ends as long as the other
//! clients keep moving bytes. There is no minimum rate: a client that moves one byte in each patience keeps the turn, and
//! delays the longer requests of others, for as long as its request lasts.
//!
//! # Rules (cited by name)
//!
//! - **[own-memory-for-each-client]** Other clients cannot use the memory that is a client's own.
//! - **[share-leaves-as-much-free]** A grant from the pool leaves at least as much free as the client then holds of the
//!   pool. If there are several exports, it also leaves a third of the memory that all clients of the export then hold.
//! - **[turn-finishes-a-request]** A client is eligible for the turn if it holds memory of the pool only for the
//!   request that waits. The eligible client that has waited longest gets the turn: its request takes the rest of its
//!   memory from the reserve. The next turn begins when the whole reserve has been given back.

use crate::lane::numbers::Numbers;
use std::collections::VecDeque;

/// The length in bytes of the longest request that needs only its client's own memory.
pub(crate) const SMALL_BYTES: usize = 64 << 10;
/// Memory of each client that no other client can use, in bytes. It suffices for one small request at the disk or in
/// its reply, while the next request arrives.
const OWN_BYTES: usize = 2 * SMALL_BYTES;
/// If there are several exports, the clients of one may hold this many times the memory that stays free in the pool.
const EXPORT_SHARE: usize = 3;

/// The memory that one client holds.
#[derive(Debug, Default)]
pub(crate) struct Account {
    export: usize,
    /// Bytes of the client's own memory and of the pool.
    bytes: usize,
    reserve_bytes: usize,
}

/// The memory of a lane. See the [module](self).
#[derive(Debug)]
pub(crate) struct LaneMemory {
    pool_bytes: usize,
    /// Bytes of the pool that clients hold.
    taken_bytes: usize,
    /// Bytes of the pool that the clients of each export hold.
    by_export: Vec<usize>,
    /// The client whose request has the turn, until that request needs no more.
    turn: Option<u32>,
    /// Bytes of the reserve that are held.
    reserve_bytes: usize,
    /// Clients that wait for memory, the oldest first.
    waiting: Numbers,
    /// The waiting clients that wait for the turn.
    queue: Numbers,
    /// Whether memory or the turn has been given back, or the next client has left the queue, since the waiting clients last
    /// tried.
    is_worth_a_try: bool,
}

impl Account {
    /// Returns the account of a client of `export` that holds no memory.
    pub(crate) fn new(export: usize) -> Self {
        Self { export, bytes: 0, reserve_bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes + self.reserve_bytes == 0
    }

    /// Returns whether the client holds memory that other clients could use.
    pub(crate) fn holds_shared(&self) -> bool {
        self.pool_bytes() + self.reserve_bytes > 0
    }

    fn pool_bytes(&self) -> usize {
        self.bytes.saturating_sub(OWN_BYTES)
    }
}

impl LaneMemory {
    /// Returns memory with a pool of `pool_bytes`, for clients of no export yet.
    pub(crate) fn new(pool_bytes: usize) -> Self {
        Self {
            pool_bytes,
            taken_bytes: 0,
            by_export: Vec::new(),
            turn: None,
            reserve_bytes: 0,
            waiting: Numbers::default(),
            queue: Numbers::default(),
            is_worth_a_try: false,
        }
    }

    /// Gets ready for clients of the export with this number.
    pub(crate) fn add_export(&mut self, export: usize) {
        self.by_export.resize(self.by_export.len().max(export + 1), 0);
    }

    /// Grants `bytes` to `client`, for a request that holds `so_far` bytes. If it returns `false`, the client
    /// waits until [`Self::take_waiting`] returns it.
    #[must_use]
    pub(crate) fn take_bytes(
        &mut self,
        client: u32,
        account: &mut Account,
        so_far: usize,
        bytes: usize,
    ) -> bool {
        // A client that holds 100 KiB and asks for 60 KiB has 32 KiB beyond its own 128 KiB: these come out of the pool.
        let pool_bytes = account.bytes.saturating_add(bytes).saturating_sub(OWN_BYTES);
        let more = pool_bytes - account.pool_bytes();
        // What fits into the client's own memory is always granted ([own-memory-for-each-client]).
        if more == 0 || self.is_within_share(account.export, pool_bytes, more) {
            account.bytes += bytes;
            self.taken_bytes += more;
            self.by_export[account.export] += more;
        } else if (account.bytes + account.reserve_bytes).saturating_sub(so_far) <= OWN_BYTES
            && self.claim_turn(client)
        {
            // What the client holds for its other requests is its own memory, so the turn is all that it keeps from others.
            account.reserve_bytes += bytes;
            self.reserve_bytes += bytes;
        } else {
            self.waiting.insert(client);
            return false;
        }
        self.leave_queue(client);
        true
    }

    /// Returns whether a grant of `more` bytes keeps [share-leaves-as-much-free].
    fn is_within_share(&self, export: usize, pool_bytes: usize, more: usize) -> bool {
        // Of 64 MiB, a single client gets at most 32 MiB: then as much is free as it holds.
        let free = self.pool_bytes.saturating_sub(self.taken_bytes + more);
        let is_alone = self.by_export.len() == 1;
        pool_bytes <= free && (is_alone || self.by_export[export] + more <= EXPORT_SHARE * free)
    }

    /// Returns whether `client` has the turn now, and queues the client if not ([turn-finishes-a-request]).
    fn claim_turn(&mut self, client: u32) -> bool {
        if self.has_turn(client) {
            return true;
        }
        // A client that is in the queue already keeps its place.
        self.queue.insert(client);
        let is_next = self.is_next_for_turn(client);
        if is_next {
            self.turn = Some(client);
        }
        is_next
    }

    /// Removes `client` from the queue. If it could have had the turn, the one behind it can have it now, and may have been
    /// refused already.
    fn leave_queue(&mut self, client: u32) {
        self.is_worth_a_try |= self.is_next_for_turn(client);
        self.queue.remove(client);
    }

    /// Returns whether the turn is free, and `client` is the first in the queue for it.
    fn is_next_for_turn(&self, client: u32) -> bool {
        self.turn.is_none() && self.reserve_bytes == 0 && self.queue.get(0) == Some(client)
    }

    /// Returns whether `client` has the turn.
    pub(crate) fn has_turn(&self, client: u32) -> bool {
        self.turn == Some(client)
    }

    /// Ends the turn of `client`, whose request has all its memory or will need no more.
    pub(crate) fn release_turn(&mut self, client: u32) {
        if self.has_turn(client) {
            self.turn = None;
            self.is_worth_a_try = true;
        }
    }

    /// Takes back `bytes` that the client of `account` holds.
    pub(crate) fn return_bytes(&mut self, account: &mut Account, bytes: usize) {
        // The reserve comes first: the next turn begins only when the whole reserve is back ([turn-finishes-a-request]).
        let reserve_bytes = bytes.min(account.reserve_bytes);
        account.reserve_bytes -= reserve_bytes;
        self.reserve_bytes -= reserve_bytes;
        let before = account.pool_bytes();
        account.bytes = account
            .bytes
            .checked_sub(bytes - reserve_bytes)
            .expect("a client gives back only memory that it holds");
        let less = before - account.pool_bytes();
        self.taken_bytes -= less;
        self.by_export[account.export] -= less;
        // A client may wait for its own memory, which does not come out of the pool.
        self.is_worth_a_try = true;
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether [`Self::take_waiting`] would return a client.
    pub(crate) fn may_retry(&self) -> bool {
        self.is_worth_a_try && self.is_awaited()
    }

    /// Returns the clients that should try again, the oldest first. Clients that are refused again keep their order.
    pub(crate) fn take_waiting(&mut self) -> VecDeque<u32> {
        match core::mem::take(&mut self.is_worth_a_try) {
            true => self.waiting.drain_all(),
            false => VecDeque::new(),
        }
    }

    /// Forgets a client that has gone; its number may be used again.
    pub(crate) fn remove_client(&mut self, client: u32) {
        self.waiting.remove(client);
        self.leave_queue(client);
        self.release_turn(client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::prng::Prng;

    const POOL: usize = 8 << 20;
    const LONGEST: usize = 4 << 20;
    const STEP: usize = 256 << 10;

    fn below(random: &mut Prng, n: usize) -> usize {
        usize::try_from(random.below(n as u64)).unwrap()
    }

    /// A client that may send its next request before all earlier replies have been sent.
    struct Client {
        account: Account,
        /// The bytes of replies that have not been sent.
        replying: usize,
        /// The bytes of the request for which it has memory, and those for which it has none yet.
        so_far: usize,
        wanted: usize,
        /// Whether it takes memory as the bytes of a WRITE arrive, rather than all at once.
        is_write: bool,
        waits: bool,
        /// The number of clients before it when it joined the queue, and the number of turns that had begun by then.
        queued: Option<(usize, usize)>,
    }

    impl Client {
        fn is_busy(&self) -> bool {
            self.wanted > 0 || self.replying > 0
        }
    }

    struct Model {
        memory: LaneMemory,
        clients: Vec<Client>,
        turns: usize,
        ended: usize,
    }

    impl Model {
        fn new(clients: usize, exports: usize, random: &mut Prng) -> Self {
            let clients = (0..clients).map(|number| Client {
                account: Account::new(number % exports),
                replying: 0,
                so_far: 0,
                wanted: 0,
                is_write: random.below(2) == 0,
                waits: false,
                queued: None,
            });
            let mut memory = LaneMemory::new(POOL);
            memory.add_export(exports - 1);
            Self { memory, clients: clients.collect(), turns: 0, ended: 0 }
        }

        /// Lets a client make a step. If `sends` is set, or if the client waits, a part of its replies is sent. Otherwise bytes of
        /// its request arrive, or it requests `bytes`.
        fn act(&mut self, number: usize, bytes: usize, sends: bool) {
            let client = &mut self.clients[number];
            if client.replying > 0 && (sends || client.waits) {
                let bytes = client.replying.min(STEP);
                client.replying -= bytes;
                self.memory.return_bytes(&mut client.account, bytes);
                self.ended += usize::from(client.replying == 0);
            } else if client.wanted > 0 && !client.waits {
                self.arrive(number);
            } else if client.wanted == 0 && bytes > 0 {
                client.wanted = bytes;
                self.arrive(number);
            }
            self.retry();
        }

        fn arrive(&mut self, number: usize) {
            let id = u32::try_from(number).unwrap();
            let client = &mut self.clients[number];
            let step = if client.is_write { client.wanted.min(STEP) } else { client.wanted };
            let turn = self.memory.turn;
            let before = self.memory.queue.len();
            let is_small = client.account.bytes + step <= OWN_BYTES;
            let is_granted = self.memory.take_bytes(id, &mut client.account, client.so_far, step);
            self.turns += usize::from(self.memory.turn.is_some() && self.memory.turn != turn);
            assert!(is_granted || !is_small, "client {number} waits for memory of its own");
            client.waits = !is_granted;
            if !is_granted {
                if self.memory.queue.contains(id) {
                    client.queued.get_or_insert((before, self.turns));
                }
                return;
            }
            client.so_far += step;
            client.wanted -= step;
            if let Some((before, turns)) = client.queued.take() {
                let others = self.turns - turns;
                assert!(
                    others <= before + 1,
                    "{others} turns before client {number} with {before} before it"
                );
            }
            if client.wanted == 0 {
                client.replying += core::mem::take(&mut client.so_far);
                self.memory.release_turn(id);
            }
        }

        fn retry(&mut self) {
            for client in self.memory.take_waiting() {
                self.arrive(client as usize);
            }
            self.check();
        }

        fn check(&self) {
            let memory = &self.memory;
            let held: usize = self.clients.iter().map(|client| client.account.pool_bytes()).sum();
            assert_eq!(
                (held, memory.by_export.iter().sum()),
                (memory.taken_bytes, memory.taken_bytes)
            );
            let reserved: usize =
                self.clients.iter().map(|client| client.account.reserve_bytes).sum();
            assert_eq!(reserved, memory.reserve_bytes, "{memory:?}");
            assert!(held <= POOL && reserved <= LONGEST, "{memory:?}");
            let is_turn_free = memory.turn.is_none() && memory.reserve_bytes == 0;
            assert!(
                !is_turn_free || memory.queue.is_empty() || memory.may_retry(),
                "nobody takes the turn, and nobody will try: {memory:?}"
            );
        }
    }

    /// Checks [own-memory-for-each-client] and [turn-finishes-a-request] with many clients in any order, some of them
    /// slow.
    #[test]
    fn every_request_gets_memory_and_small_ones_at_once() {
        for seed in 0..200 {
            let mut random = Prng::new(seed);
            let clients = 2 + below(&mut random, 60);
            let mut model = Model::new(clients, 1 + below(&mut random, 4), &mut random);
            let slow = below(&mut random, clients);
            for _ in 0..20_000 {
                let number = below(&mut random, clients);
                if number >= slow || below(&mut random, 50) == 0 {
                    let longest = 2 << below(&mut random, LONGEST.ilog2() as usize);
                    let bytes = 1 + below(&mut random, longest);
                    model.act(number, bytes, random.below(3) > 0);
                }
            }
            assert!(
                model.ended > 0 && model.turns > 0 || clients < 10,
                "seed {seed} tests nothing"
            );
            for round in 0.. {
                let busy: Vec<_> =
                    (0..clients).filter(|number| model.clients[*number].is_busy()).collect();
                busy.iter().for_each(|number| model.act(*number, 0, true));
                if busy.is_empty() {
                    break;
                }
                assert!(round < 1000, "seed {seed}: a request never gets its memory");
            }
            assert_eq!((model.memory.taken_bytes, model.memory.reserve_bytes), (0, 0));
        }
    }

    /// A client that goes while it heads the queue for the turn lets those behind it try, although it gives nothing back.
    #[test]
    fn a_client_that_goes_lets_the_next_try() {
        let mut memory = LaneMemory::new(0);
        memory.add_export(0);
        let mut accounts = [(); 3].map(|()| Account::new(0));
        assert!(memory.take_bytes(0, &mut accounts[0], 0, LONGEST), "it has the turn");
        assert!(!memory.take_bytes(1, &mut accounts[1], 0, LONGEST));
        assert!(!memory.take_bytes(2, &mut accounts[2], 0, LONGEST));
        memory.release_turn(0);
        memory.return_bytes(&mut accounts[0], LONGEST);
        assert!(memory.may_retry());
        assert_eq!(memory.take_waiting(), [1, 2]);
        // The second is refused, as the first of the queue has not tried yet.
        assert!(!memory.take_bytes(2, &mut accounts[2], 0, LONGEST));
        assert!(!memory.may_retry());
        memory.remove_client(1);
        assert!(memory.may_retry());
        assert_eq!(memory.take_waiting(), [2]);
        assert!(memory.take_bytes(2, &mut accounts[2], 0, LONGEST));
    }

    /// A client that heads the queue for the turn gets its memory from the pool instead. Another one, which has waited longer but
    /// joined the queue later, has been refused just before: it tries again.
    #[test]
    fn a_client_that_needs_no_turn_lets_the_next_try() {
        let mut memory = LaneMemory::new(1 << 20);
        memory.add_export(0);
        let mut accounts = [(); 4].map(|()| Account::new(0));
        let [pool, reply, most] = [512, 200, 400].map(|kib| OWN_BYTES + (kib << 10));
        assert!(memory.take_bytes(3, &mut accounts[3], 0, LONGEST), "it has the turn");
        assert!(memory.take_bytes(2, &mut accounts[2], 0, pool), "it has half of the pool");
        assert!(memory.take_bytes(1, &mut accounts[1], 0, reply), "it has a part of the rest");
        assert!(!memory.take_bytes(1, &mut accounts[1], 0, LONGEST), "its reply is not sent");
        assert!(!memory.take_bytes(0, &mut accounts[0], 0, most), "it heads the queue");
        memory.return_bytes(&mut accounts[1], reply);
        assert_eq!(memory.take_waiting(), [1, 0]);
        assert!(!memory.take_bytes(1, &mut accounts[1], 0, LONGEST), "it joins the queue");
        assert!(!memory.take_bytes(0, &mut accounts[0], 0, most));
        memory.release_turn(3);
        memory.return_bytes(&mut accounts[3], LONGEST);
        memory.return_bytes(&mut accounts[2], pool);
        assert_eq!(memory.take_waiting(), [1, 0]);
        assert!(!memory.take_bytes(1, &mut accounts[1], 0, LONGEST), "another one heads the queue");
        assert!(memory.take_bytes(0, &mut accounts[0], 0, most), "the pool has room");
        assert!(memory.may_retry());
        assert_eq!(memory.take_waiting(), [1]);
        assert!(memory.take_bytes(1, &mut accounts[1], 0, LONGEST));
    }

    /// Checks [share-leaves-as-much-free]: whatever the clients of one export hold, a client of another one gets memory
    /// for a request at once.
    #[test]
    fn clients_that_hold_all_they_can_leave_a_share_for_the_next() {
        for exports in [1, 2] {
            let clients = if exports == 1 { 5 } else { 100 };
            let mut memory = LaneMemory::new(POOL);
            memory.add_export(exports - 1);
            for client in 0..clients {
                let mut account = Account::new(0);
                while memory.take_bytes(client, &mut account, 0, STEP / 4) {}
                assert!(account.pool_bytes() <= POOL - memory.taken_bytes, "client {client}");
            }
            let held = memory.reserve_bytes;
            let mut other = Account::new(exports - 1);
            assert!(
                memory.take_bytes(clients, &mut other, 0, 2 * OWN_BYTES),
                "{} taken",
                memory.taken_bytes
            );
            assert_eq!(memory.reserve_bytes, held, "the grant comes from the pool");
        }
    }
}
