//! The memory of a lane for data in flight: how much of it each client may hold.
//!
//! A client holds memory for the data of a READ until its reply has been sent. It holds memory for the bytes of a
//! WRITE that have arrived, until the disk has written them. Memory is counted in bytes, before it is used:
//!
//! | part | size | available to |
//! |---|---|---|
//! | own | [`OWN_BYTES`] for each client | that client alone |
//! | pool | configured for the lane | every client, within its share |
//! | overdraft | the longest request | the client that has the turn |
//!
//! **The bound.** A lane holds at most the pool, the longest request, and `OWN_BYTES` for each client. A client
//! whose requests have at most [`SMALL_BYTES`] waits only for its own replies and writes, never for memory that
//! another client holds. A longer request waits at most until each client before it in the queue has had its turn.
//! The lane cuts off a client that moves no byte during its turn for as long as the lane has patience.
//!
//! # Rules (cited by name)
//!
//! - **[own-memory-for-each-client]** Other clients cannot use the memory that is a client's own.
//! - **[share-leaves-as-much-free]** A grant from the pool leaves at least as much free as the client then holds of the
//!   pool, and a third of what all clients of its export then hold.
//! - **[turn-finishes-a-request]** The client that has waited longest gets the turn: every grant up to the end of its request.
//!   The next client gets it when the pool is not overdrawn.

use crate::numbers::Numbers;
use std::collections::VecDeque;

/// A request of at most this length needs only memory of its own client, in bytes.
pub(crate) const SMALL_BYTES: usize = 64 << 10;
/// Memory of each client that no other client can use, in bytes: one small request at the disk or on its way to the client,
/// while the next one arrives.
const OWN_BYTES: usize = 2 * SMALL_BYTES;
/// An export may hold this many times what it leaves free in the pool: three quarters, if it is alone.
const EXPORT_SHARE: usize = 3;

/// What one client holds.
#[derive(Debug, Default)]
pub(crate) struct Account {
    export: usize,
    bytes: usize,
}

/// The memory of a lane. See the [module](self).
#[derive(Debug)]
pub(crate) struct LaneMemory {
    pool_bytes: usize,
    /// Bytes of the pool that clients hold; more than `pool_bytes` when the turn has overdrawn it.
    taken_bytes: usize,
    /// The same by export.
    by_export: Vec<usize>,
    /// The client that has the turn.
    turn: Option<u32>,
    /// Clients that wait for memory, the oldest first.
    waiting: Numbers,
    /// Memory or the turn was given back since clients last tried.
    is_worth_a_try: bool,
}

impl Account {
    /// The account of a client of `export` that holds nothing.
    pub(crate) fn new(export: usize) -> Self {
        Self { export, bytes: 0 }
    }

    /// Bytes of the pool that the client holds.
    pub(crate) fn pool_bytes(&self) -> usize {
        self.bytes.saturating_sub(OWN_BYTES)
    }
}

impl LaneMemory {
    /// Memory with a pool of `pool_bytes`, for the clients of so many exports.
    pub(crate) fn new(pool_bytes: usize, exports: usize) -> Self {
        Self {
            pool_bytes,
            taken_bytes: 0,
            by_export: vec![0; exports],
            turn: None,
            waiting: Numbers::default(),
            is_worth_a_try: false,
        }
    }

    /// Grants `bytes` to `client`, or lets it wait: it is among those that [`Self::retry`] returns then.
    #[must_use]
    pub(crate) fn take(&mut self, client: u32, account: &mut Account, bytes: usize) -> bool {
        let pool_bytes = account.bytes.saturating_add(bytes).saturating_sub(OWN_BYTES);
        let more = pool_bytes - account.pool_bytes();
        // [own-memory-for-each-client]
        if more > 0
            && !self.is_within_share(account.export, pool_bytes, more)
            && !self.has_turn(client)
        {
            self.waiting.put(client);
            return false;
        }
        account.bytes += bytes;
        self.taken_bytes += more;
        self.by_export[account.export] += more;
        true
    }

    /// [share-leaves-as-much-free]
    fn is_within_share(&self, export: usize, pool_bytes: usize, more: usize) -> bool {
        let free = self.pool_bytes.saturating_sub(self.taken_bytes + more);
        pool_bytes <= free && self.by_export[export] + more <= EXPORT_SHARE * free
    }

    /// [turn-finishes-a-request]: whether `client` has the turn, which it gets here if it is free.
    fn has_turn(&mut self, client: u32) -> bool {
        let is_next = self.waiting.at(0).is_none_or(|first| first == client);
        if self.turn.is_none() && is_next && self.taken_bytes <= self.pool_bytes {
            self.turn = Some(client);
        }
        self.turn == Some(client)
    }

    /// The request of `client` for which it took memory has all that it needs, or will not need more.
    pub(crate) fn has_all(&mut self, client: u32) {
        if self.turn == Some(client) {
            self.turn = None;
            self.is_worth_a_try = true;
        }
    }

    /// Takes back `bytes` that the client of `account` holds.
    pub(crate) fn give(&mut self, account: &mut Account, bytes: usize) {
        let before = account.pool_bytes();
        account.bytes = account.bytes.checked_sub(bytes).expect("memory that the client holds");
        let less = before - account.pool_bytes();
        self.taken_bytes -= less;
        self.by_export[account.export] -= less;
        // A client may wait for its own memory, which does not come out of the pool.
        self.is_worth_a_try = true;
    }

    /// Whether a client waits for memory.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The clients that should try again, the oldest first. Those that still find no memory keep their order.
    pub(crate) fn retry(&mut self) -> VecDeque<u32> {
        match core::mem::take(&mut self.is_worth_a_try) {
            true => self.waiting.take_all(),
            false => VecDeque::new(),
        }
    }

    /// Whether `client` waits for memory.
    pub(crate) fn awaits(&self, client: u32) -> bool {
        self.waiting.has(client)
    }

    /// Forgets a client, which gives back what it holds first.
    pub(crate) fn forget(&mut self, client: u32, account: &Account) {
        assert_eq!(account.bytes, 0, "bytes that client {client} has not given back");
        self.has_all(client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::prng::Prng;

    const POOL: usize = 8 << 20;
    const LONGEST: usize = 4 << 20;
    const STEP: usize = 256 << 10;

    /// A client that has one request at a time.
    struct Client {
        account: Account,
        /// Bytes of the request that it has no memory for yet.
        wanted: usize,
        /// Takes memory as bytes of a WRITE arrive, rather than all at once.
        is_write: bool,
        /// How many clients were before it when it began to wait, and the turns that had begun by then.
        waits: Option<(usize, usize)>,
    }

    struct Model {
        memory: LaneMemory,
        clients: Vec<Client>,
        /// Turns that have begun.
        turns: usize,
        ended: usize,
    }

    impl Model {
        fn new(clients: usize, exports: usize, random: &mut Prng) -> Self {
            let clients = (0..clients).map(|number| Client {
                account: Account::new(number % exports),
                wanted: 0,
                is_write: random.below(2) == 0,
                waits: None,
            });
            let memory = LaneMemory::new(POOL, exports);
            Self { memory, clients: clients.collect(), turns: 0, ended: 0 }
        }

        /// A client that has nothing to do asks for `bytes`; one that holds memory gives some back; or bytes arrive.
        fn act(&mut self, number: usize, bytes: usize) {
            let client = &mut self.clients[number];
            if client.waits.is_some() {
                return;
            }
            if client.wanted > 0 {
                return self.arrive(number);
            }
            if client.account.bytes > 0 {
                let bytes = client.account.bytes.min(STEP);
                self.memory.give(&mut client.account, bytes);
                self.ended += usize::from(client.account.bytes == 0);
            } else {
                client.wanted = bytes;
                self.arrive(number);
            }
            self.retry();
        }

        fn arrive(&mut self, number: usize) {
            let id = u32::try_from(number).unwrap();
            let client = &mut self.clients[number];
            let step = if client.is_write { client.wanted.min(STEP) } else { client.wanted };
            let (turn, before) = (self.memory.turn, self.memory.waiting.len());
            let is_small = client.account.bytes + step <= OWN_BYTES;
            let is_granted = self.memory.take(id, &mut client.account, step);
            self.turns += usize::from(self.memory.turn.is_some() && self.memory.turn != turn);
            assert!(is_granted || !is_small, "client {number} waits for memory of its own");
            if !is_granted {
                client.waits.get_or_insert((before, self.turns));
                return;
            }
            client.wanted -= step;
            if let Some((before, turns)) = client.waits.take() {
                let others = self.turns - turns;
                assert!(
                    others <= before + 1,
                    "{others} turns before client {number} with {before} before it"
                );
            }
            if client.wanted == 0 {
                self.memory.has_all(id);
            }
        }

        fn retry(&mut self) {
            for client in self.memory.retry() {
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
            assert!(memory.taken_bytes <= POOL + LONGEST, "{} bytes taken", memory.taken_bytes);
        }
    }

    /// [own-memory-for-each-client], [turn-finishes-a-request]: many clients, in any order.
    #[test]
    fn every_request_gets_memory_and_small_ones_at_once() {
        for seed in 0..200 {
            let mut random = Prng::new(seed);
            let count = 2 + random.below(60) as usize;
            let mut model = Model::new(count, 1 + random.below(4) as usize, &mut random);
            // Clients before this one act seldom.
            let slow = random.below(count as u64) as usize;
            for _ in 0..20_000 {
                let number = random.below(count as u64) as usize;
                if number < slow && random.below(50) > 0 {
                    continue;
                }
                let bytes = 1 << random.below(LONGEST.ilog2().into());
                let bytes = if number == slow { SMALL_BYTES } else { 2 * bytes };
                model.act(number, bytes);
            }
            // Each client ends what it has begun.
            for round in 0.. {
                for number in 0..count {
                    let client = &model.clients[number];
                    if client.wanted > 0 || client.account.bytes > 0 {
                        model.act(number, 0);
                    }
                }
                if model
                    .clients
                    .iter()
                    .all(|client| client.account.bytes == 0 && client.wanted == 0)
                {
                    break;
                }
                assert!(round < 100_000, "seed {seed}: a request never gets its memory");
            }
            assert!(model.ended > 0);
            assert_eq!(model.memory.taken_bytes, 0);
        }
    }

    /// [share-leaves-as-much-free]: five clients that take nothing leave a sixth enough to go on.
    #[test]
    fn clients_that_hold_all_they_can_leave_a_share_for_the_next() {
        let mut memory = LaneMemory::new(POOL, 2);
        let mut accounts: Vec<Account> = (0..5).map(|_| Account::new(0)).collect();
        for (client, account) in (0..).zip(&mut accounts) {
            while memory.take(client, account, STEP / 4) && memory.turn.is_none() {}
        }
        let mut other = Account::new(1);
        assert!(memory.take(5, &mut other, 2 * OWN_BYTES), "a share of the other export");
        let held: Vec<usize> = accounts.iter().map(Account::pool_bytes).collect();
        assert!(held.iter().sum::<usize>() <= POOL * 3 / 4 + STEP, "{held:?}");
    }
}
