//! The driver tags of one host.

use super::{Full, TagPool};
use crate::unit::{DriverTag, HctxId, QueueId, RequestId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Every active queue may hold this many tags of a hardware queue, however many queues share them.
pub const SHARE_MIN: u32 = 4;

/// The configuration of a [`TagSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagSetConfig {
    /// Hardware queues.
    pub hctxs: u16,
    /// Tags of a hardware queue, reserved ones included.
    pub depth: u16,
    /// How many of them are reserved.
    pub reserved: u16,
    /// Whether all hardware queues share the tags of one.
    pub shared_over_hctxs: bool,
    /// Request queues that use the set.
    pub queues: u16,
    /// The most submitters that wait for tags of one hardware queue.
    pub max_waiters: u32,
}

impl TagSetConfig {
    /// Returns the configuration for one request queue on one hardware queue with `depth` tags,
    /// none of them reserved, and room for `depth` waiting submitters.
    #[must_use]
    pub const fn single(depth: u16) -> Self {
        Self {
            hctxs: 1,
            depth,
            reserved: 0,
            shared_over_hctxs: false,
            queues: 1,
            max_waiters: depth as u32,
        }
    }

    /// The number of pools of tags.
    fn pools(&self) -> usize {
        if self.shared_over_hctxs { 1 } else { usize::from(self.hctxs) }
    }
}

/// The driver tags of one host, used by one request queue or shared by several.
///
/// A call that takes a [`QueueId`] or [`HctxId`] panics if the configuration has no such queue,
/// unless the call says otherwise.
///
/// ```
/// use blockyard::tag::{TagSet, TagSetConfig};
/// use blockyard::unit::{HctxId, QueueId, RequestId};
///
/// let mut tags = TagSet::new(TagSetConfig {
///     hctxs: 1, depth: 1, reserved: 0, shared_over_hctxs: false, queues: 2, max_waiters: 8,
/// });
/// let (hctx, request) = (HctxId(0), RequestId(5));
/// let tag = tags.take(QueueId(0), hctx, u32::MAX).unwrap();
/// tags.assign(hctx, tag, request);
/// assert_eq!(tags.owner(hctx, tag), Some((QueueId(0), request)));
///
/// // The other queue finds none, and is named when it can continue.
/// assert_eq!(tags.take(QueueId(1), hctx, u32::MAX), None);
/// tags.starve(QueueId(1), hctx, false);
/// assert_eq!(tags.next_starved(), None);
/// tags.put(hctx, tag);
/// assert_eq!(tags.next_starved(), Some((QueueId(1), hctx)));
/// ```
#[derive(Clone, Debug)]
pub struct TagSet {
    config: TagSetConfig,
    /// One for each hardware queue, or one for all of them.
    pools: Vec<Pool>,
    /// The bits of a hardware queue's number that name its pool: all of them, or none if there is
    /// only one.
    pool_bits: usize,
    active: Vec<bool>,
    users: u32,
    /// The most tags of a pool that one queue may hold ([tags-shared-fairly]).
    share: u32,
    /// The most tags of a pool that any queue may ever hold; see [`Self::limit_queues`].
    queue_max: u32,
    starved: Starved,
    /// Whether a pool may have woken waiters to name.
    woken: bool,
}

impl TagSet {
    /// Returns a set with every tag free and no queue active.
    ///
    /// # Panics
    ///
    /// Panics if there is no hardware queue, no request queue, or no tag that is not reserved.
    #[must_use]
    pub fn new(config: TagSetConfig) -> Self {
        assert!(config.hctxs > 0, "requests need a hardware queue to go to");
        assert!(config.queues > 0, "a tag set without a request queue serves nobody");
        assert!(config.reserved < config.depth, "no tag is left beside the reserved ones");
        Self {
            config,
            pools: (0..config.pools()).map(|_| Pool::new(&config)).collect(),
            pool_bits: if config.shared_over_hctxs { 0 } else { usize::MAX },
            active: alloc::vec![false; usize::from(config.queues)],
            users: 0,
            share: u32::MAX,
            queue_max: u32::MAX,
            starved: Starved::new(&config),
            woken: false,
        }
    }

    /// Lets no queue hold more than `tags` tags of a hardware queue from now on, however few of
    /// them are in use. A set of 64 tags for two queues of 32 each is as two sets.
    pub(crate) fn limit_queues(&mut self, tags: u32) {
        debug_assert!(tags > 0, "a queue without tags waits forever");
        self.queue_max = tags;
        self.divide_among_queues();
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) fn heap(config: &TagSetConfig) -> usize {
        config.pools() * (size_of::<Pool>() + Pool::heap(config))
            + usize::from(config.queues) * size_of::<bool>()
            + Starved::heap(config)
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &TagSetConfig {
        &self.config
    }

    /// Takes a tag for a request of `queue` on `hctx`, if one is free. This makes `queue` active.
    ///
    /// For `limit` see [`TagMap::take`](super::map::TagMap::take). Name the owner with
    /// [`Self::assign`].
    #[must_use = "the tag stays in use until it is put back"]
    pub fn take(&mut self, queue: QueueId, hctx: HctxId, limit: u32) -> Option<DriverTag> {
        self.take_as(queue, hctx, limit, |_| None)
    }

    /// Takes a reserved tag for a request of `queue` on `hctx`, if one is free
    /// ([reserved-tags-separate]).
    #[must_use = "the tag stays in use until it is put back"]
    pub fn take_reserved(&mut self, queue: QueueId, hctx: HctxId) -> Option<DriverTag> {
        self.take_reserved_as(queue, hctx, |_| None)
    }

    /// Takes a tag of `hctx`, a reserved one if `reserved`, for the request of `queue` that `name`
    /// names by the tag.
    #[inline]
    pub(crate) fn take_for(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        reserved: bool,
        name: impl FnOnce(DriverTag) -> RequestId,
    ) -> Option<DriverTag> {
        if reserved {
            self.take_reserved_as(queue, hctx, |tag| Some(name(tag)))
        } else {
            self.take_as(queue, hctx, u32::MAX, |tag| Some(name(tag)))
        }
    }

    #[inline(always)]
    fn take_as(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        limit: u32,
        request: impl FnOnce(DriverTag) -> Option<RequestId>,
    ) -> Option<DriverTag> {
        // Also a take that fails makes the queue active: it competes for tags from now on.
        if !self.active[queue.index()] {
            self.activate_queue(queue);
        }
        let share = self.share;
        let pool = self.pool_mut(hctx);
        let held = &mut pool.held[queue.index()];
        if *held >= share {
            return None; // [tags-shared-fairly]
        }
        let tag = pool.tags.take(limit)?;
        *held += 1;
        Some(pool.hand_out(tag, queue, request))
    }

    fn take_reserved_as(
        &mut self,
        queue: QueueId,
        hctx: HctxId,
        request: impl FnOnce(DriverTag) -> Option<RequestId>,
    ) -> Option<DriverTag> {
        let pool = self.pool_mut(hctx);
        let tag = pool.tags.take_reserved()?;
        Some(pool.hand_out(tag, queue, request))
    }

    /// Names the request that a tag just taken is for.
    pub fn assign(&mut self, hctx: HctxId, tag: DriverTag, request: RequestId) {
        let owner = &mut self.pool_mut(hctx).owners[tag.index()];
        debug_assert!(owner.request.is_none(), "[one-owner-per-tag]: the tag has an owner");
        owner.request = Some(request);
    }

    /// Makes an assigned tag stand for another request of the same queue.
    pub(crate) fn reassign(&mut self, hctx: HctxId, tag: DriverTag, request: RequestId) {
        debug_assert!(self.owner(hctx, tag).is_some(), "[one-owner-per-tag]: {tag:?} has no owner");
        self.pool_mut(hctx).owners[tag.index()].request = Some(request);
    }

    /// Returns the request that `tag` was assigned to, and its queue; `None` for any other number.
    #[must_use]
    pub fn owner(&self, hctx: HctxId, tag: DriverTag) -> Option<(QueueId, RequestId)> {
        let owner = self.pools.get(self.pool_of(hctx))?.owners.get(tag.index())?;
        Some((owner.queue, owner.request?))
    }

    /// Gives `tag` back. [`Self::next_woken`] and [`Self::next_starved`] then name those that can
    /// continue.
    ///
    /// # Panics
    ///
    /// Panics if `tag` is not in use ([one-owner-per-tag]).
    pub fn put(&mut self, hctx: HctxId, tag: DriverTag) {
        let pool = self.pool_mut(hctx);
        let must_count = pool.tags.put_number(u32::from(tag.0));
        let owner = &mut pool.owners[tag.index()];
        owner.request = None;
        // Reserved tags are in nobody's share.
        if u32::from(tag.0) >= pool.tags.map().reserved() {
            debug_assert!(
                pool.held[owner.queue.index()] > 0,
                "[one-owner-per-tag]: {tag:?} of {:?}",
                owner.queue
            );
            pool.held[owner.queue.index()] -= 1;
        }
        if must_count {
            self.count_freed(hctx, tag);
        }
    }

    /// Notes that `tag` was given back while waiters sleep.
    #[inline(never)]
    fn count_freed(&mut self, hctx: HctxId, tag: DriverTag) {
        let has_woken = self.pool_mut(hctx).tags.count_freed(u32::from(tag.0));
        self.woken |= has_woken;
    }

    /// Whether a request of `queue` has a tag.
    pub(crate) fn has_requests_of(&self, queue: QueueId) -> bool {
        let mut owners = self.pools.iter().flat_map(|pool| &pool.owners);
        owners.any(|owner| owner.request.is_some() && owner.queue == queue)
    }

    /// Returns how many unreserved tags of `hctx` are in use; with shared tags, of all hardware
    /// queues.
    ///
    /// # Panics
    ///
    /// Panics if `hctx` is not a hardware queue of this set.
    #[must_use]
    pub fn in_use(&self, hctx: HctxId) -> u32 {
        self.pool(hctx).tags.map().in_use()
    }

    /// Notes that `queue` has been idle for a while: it no longer counts as a queue that shares the
    /// tags ([tags-shared-fairly]), until it takes a tag again. All waiters may try again.
    ///
    /// # Panics
    ///
    /// Panics if `queue` holds tags.
    pub fn idle(&mut self, queue: QueueId) {
        let holds = self.pools.iter().any(|pool| pool.held[queue.index()] > 0);
        assert!(!holds, "queue {} holds tags, so it is not idle", queue.0);
        if core::mem::replace(&mut self.active[queue.index()], false) {
            self.users -= 1;
            self.divide_among_queues();
            // The shares of the others grow without a put, for which their waiters would sleep on.
            self.wake_all();
        }
    }

    /// Wakes all waiters: the reason for their refusal may have changed without a put.
    pub(crate) fn wake_all(&mut self) {
        for pool in &mut self.pools {
            pool.tags.wake_all();
        }
        self.woken = true;
    }

    #[cold]
    fn activate_queue(&mut self, queue: QueueId) {
        debug_assert!(self.users < u32::from(self.config.queues), "{} active queues", self.users);
        self.active[queue.index()] = true;
        self.users += 1;
        self.divide_among_queues();
    }

    /// Divides the tags of each pool among the active queues ([tags-shared-fairly]).
    fn divide_among_queues(&mut self) {
        // 32 tags and 3 users: each may hold 11. 8 tags and 4 users: each may hold 4, and whoever
        // comes first has them.
        let depth = u32::from(self.config.depth - self.config.reserved);
        let users = self.users.max(1);
        let share = depth.div_ceil(users).max(SHARE_MIN);
        debug_assert!(
            u64::from(share) * u64::from(users) >= u64::from(depth),
            "[tags-shared-fairly]: a tag is nobody's share"
        );
        self.share = share.min(self.queue_max);
        for pool in &mut self.pools {
            pool.tags.resize((depth / users).min(self.queue_max));
        }
    }

    /// Registers `waiter`, a submitter that was refused a tag of `hctx` (a reserved one if
    /// `reserved`). It sleeps until [`Self::next_woken`] names it; see
    /// [`Waiters::wait`](super::Waiters::wait).
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if the configured number of waiters wait already.
    pub fn wait(&mut self, hctx: HctxId, waiter: u64, reserved: bool) -> Result<(), Full> {
        let pool = self.pool_mut(hctx);
        pool.tags.wait(waiter, reserved)?;
        let woken = pool.tags.has_woken();
        self.woken |= woken;
        Ok(())
    }

    /// Notes that a submitter that was woken has got a tag of `hctx`; see
    /// [`Waiters::woken_got_tag`](super::Waiters::woken_got_tag).
    pub fn woken_got_tag(&mut self, hctx: HctxId, reserved: bool) {
        self.pool_mut(hctx).tags.woken_got_tag(reserved);
    }

    /// Returns the next submitter to try again.
    pub fn next_woken(&mut self) -> Option<u64> {
        // Most calls come while nobody waits; with 1024 hardware queues, a look at each pool would
        // cost too much.
        let mut pools = self.pools.iter_mut();
        let waiter = if self.woken { pools.find_map(|pool| pool.tags.next_woken()) } else { None };
        self.woken = waiter.is_some();
        waiter
    }

    /// Registers `hctx` of `queue`, whose run stopped for lack of a tag (a reserved one if
    /// `reserved`): it is to run again when there is one.
    pub fn starve(&mut self, queue: QueueId, hctx: HctxId, reserved: bool) {
        self.starved.add(Starving { queue, hctx, reserved });
    }

    /// Returns the next hardware queue to run again: of those registered, the one that has waited
    /// longest and for which a tag is free. It is no longer registered.
    ///
    /// Run it before the next call. If it takes the tag, no other is woken for it; if it
    /// does not, the next one is named for it.
    #[inline]
    pub fn next_starved(&mut self) -> Option<(QueueId, HctxId)> {
        if self.starved.line.is_empty() { None } else { self.name_starved() }
    }

    fn name_starved(&mut self) -> Option<(QueueId, HctxId)> {
        let at = self.starved.line.iter().position(|starving| self.may_take(starving))?;
        let Starving { queue, hctx, .. } = self.starved.remove(at);
        Some((queue, hctx))
    }

    /// Whether a take without a limit would succeed.
    fn may_take(&self, starving: &Starving) -> bool {
        let pool = self.pool(starving.hctx);
        let map = pool.tags.map();
        if starving.reserved {
            return map.reserved_in_use() < map.reserved();
        }
        !map.is_full() && pool.held[starving.queue.index()] < self.share
    }

    const fn pool_of(&self, hctx: HctxId) -> usize {
        hctx.index() & self.pool_bits
    }

    fn pool(&self, hctx: HctxId) -> &Pool {
        self.pools.get(self.pool_of(hctx)).unwrap_or_else(|| unknown_hctx(hctx))
    }

    fn pool_mut(&mut self, hctx: HctxId) -> &mut Pool {
        let at = self.pool_of(hctx);
        self.pools.get_mut(at).unwrap_or_else(|| unknown_hctx(hctx))
    }
}

#[cold]
fn unknown_hctx(hctx: HctxId) -> ! {
    panic!("{hctx:?} is not a hardware queue of this tag set")
}

/// The tags of a pool, their holders and their waiters.
#[derive(Clone, Debug)]
struct Pool {
    tags: TagPool,
    /// Unreserved tags in use by each request queue.
    held: Vec<u32>,
    owners: Vec<Owner>,
}

impl Pool {
    fn new(config: &TagSetConfig) -> Self {
        Self {
            tags: TagPool::new(
                u32::from(config.depth),
                u32::from(config.reserved),
                config.max_waiters,
            ),
            held: alloc::vec![0; usize::from(config.queues)],
            owners: alloc::vec![Owner::NOBODY; usize::from(config.depth)],
        }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    fn heap(config: &TagSetConfig) -> usize {
        TagPool::heap(config.depth.into(), config.reserved.into(), config.max_waiters)
            + usize::from(config.queues) * size_of::<u32>()
            + usize::from(config.depth) * size_of::<Owner>()
    }

    #[inline(always)]
    fn hand_out(
        &mut self,
        tag: u32,
        queue: QueueId,
        request: impl FnOnce(DriverTag) -> Option<RequestId>,
    ) -> DriverTag {
        let given = DriverTag(u16::try_from(tag).expect("the depth of a tag set is 16 bits"));
        let owner = &mut self.owners[tag as usize];
        debug_assert!(owner.request.is_none(), "[one-owner-per-tag]: the tag has an owner");
        *owner = Owner { queue, request: request(given) };
        given
    }
}

/// The owner of a tag.
#[derive(Clone, Copy, Debug)]
struct Owner {
    queue: QueueId,
    request: Option<RequestId>,
}

impl Owner {
    const NOBODY: Self = Self { queue: QueueId(0), request: None };
}

/// A hardware queue that waits for a tag.
#[derive(Clone, Copy, Debug)]
struct Starving {
    queue: QueueId,
    hctx: HctxId,
    reserved: bool,
}

/// The hardware queues that wait for a tag, in order of registration, each once for either kind of
/// tag.
#[derive(Clone, Debug)]
struct Starved {
    line: VecDeque<Starving>,
    /// Whether a hardware queue is registered for a kind; those of one request queue together.
    in_line: Vec<bool>,
    hctxs: usize,
}

impl Starved {
    fn new(config: &TagSetConfig) -> Self {
        let all = Self::max_starving(config);
        Self {
            line: VecDeque::with_capacity(all),
            in_line: alloc::vec![false; all],
            hctxs: usize::from(config.hctxs),
        }
    }

    fn max_starving(config: &TagSetConfig) -> usize {
        2 * usize::from(config.hctxs) * usize::from(config.queues)
    }

    /// The heap that [`Self::new`] takes, in bytes.
    fn heap(config: &TagSetConfig) -> usize {
        Self::max_starving(config) * (size_of::<Starving>() + size_of::<bool>())
    }

    fn add(&mut self, starving: Starving) {
        let at = self.index(&starving);
        if !core::mem::replace(&mut self.in_line[at], true) {
            self.line.push_back(starving);
        }
    }

    fn remove(&mut self, at: usize) -> Starving {
        let starving = self.line.remove(at).expect("the caller found it there");
        let at = self.index(&starving);
        self.in_line[at] = false;
        starving
    }

    const fn index(&self, starving: &Starving) -> usize {
        let hctx = starving.queue.index() * self.hctxs + starving.hctx.index();
        2 * hctx + starving.reserved as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: HctxId = HctxId(0);
    const CONFIG: TagSetConfig = TagSetConfig {
        hctxs: 2,
        depth: 32,
        reserved: 0,
        shared_over_hctxs: false,
        queues: 4,
        max_waiters: 8,
    };

    fn take_all(tags: &mut TagSet, queue: u16) -> Vec<DriverTag> {
        core::iter::from_fn(|| tags.take(QueueId(queue), H, u32::MAX)).collect()
    }

    #[test]
    fn a_queue_alone_may_hold_every_tag() {
        let mut tags = TagSet::new(CONFIG);
        assert_eq!(take_all(&mut tags, 0).len(), 32);
    }

    #[test]
    fn active_queues_hold_an_equal_part_rounded_up_and_at_least_four() {
        for (depth, queues, share) in [(32, 2, 16), (31, 3, 11), (32, 4, 8), (8, 4, 4), (7, 4, 4)] {
            let mut tags = TagSet::new(TagSetConfig { depth, ..CONFIG });
            for queue in 0..queues {
                let tag = tags.take(QueueId(queue), H, u32::MAX).unwrap();
                tags.put(H, tag);
            }
            assert_eq!(take_all(&mut tags, 0).len(), share, "{depth} tags, {queues} queues");
            assert!(tags.in_use(H) == u32::from(depth) || !take_all(&mut tags, 1).is_empty());
        }
    }

    #[test]
    fn one_tag_is_not_shared_and_reserved_tags_count_against_no_share() {
        let mut tags = TagSet::new(TagSetConfig { depth: 4, reserved: 3, ..CONFIG });
        let tag = tags.take(QueueId(0), H, u32::MAX).unwrap();
        assert_eq!(tags.take(QueueId(1), H, u32::MAX), None);
        tags.put(H, tag);
        assert_eq!(tags.take(QueueId(1), H, u32::MAX), Some(tag));
        for reserved in 0..3 {
            assert_eq!(tags.take_reserved(QueueId(0), H), Some(DriverTag(reserved)));
        }
        assert_eq!(tags.take_reserved(QueueId(0), H), None);
        assert_eq!(tags.in_use(H), 1);
        tags.put(H, DriverTag(2));
        tags.idle(QueueId(0));
    }

    #[test]
    fn a_queue_that_goes_idle_leaves_its_share_and_wakes_all() {
        let mut tags = TagSet::new(CONFIG);
        let tag = tags.take(QueueId(1), H, u32::MAX).unwrap();
        assert_eq!(take_all(&mut tags, 0).len(), 16);
        tags.wait(H, 7, false).unwrap();
        tags.wait(H, 8, false).unwrap();
        tags.starve(QueueId(0), H, false);
        tags.put(H, tag);
        assert_eq!(tags.next_starved(), None, "its share is used up");
        assert_eq!(tags.next_woken(), None, "half a batch");
        tags.idle(QueueId(1));
        assert_eq!(tags.next_starved(), Some((QueueId(0), H)));
        let woken = [(); 3].map(|()| tags.next_woken());
        assert_eq!(woken, [Some(7), Some(8), None]);
        assert_eq!(take_all(&mut tags, 0).len(), 16);
    }

    #[test]
    fn waiters_of_a_shared_set_are_woken_in_smaller_batches() {
        let frees_until_woken = |users| {
            let mut tags = TagSet::new(TagSetConfig { depth: 64, ..CONFIG });
            let mut held = Vec::new();
            for queue in 0..users {
                held.push(tags.take(QueueId(queue), H, u32::MAX).unwrap());
            }
            held.extend(take_all(&mut tags, 0));
            tags.wait(H, 1, false).unwrap();
            let woken = |tag: &DriverTag| {
                tags.put(H, *tag);
                tags.next_woken().is_some()
            };
            held.iter().position(woken).unwrap() + 1
        };
        assert_eq!([1, 2, 4].map(frees_until_woken), [8, 4, 2]);
    }

    #[test]
    #[should_panic(expected = "not idle")]
    fn a_queue_that_holds_tags_is_not_idle() {
        let mut tags = TagSet::new(CONFIG);
        let _ = tags.take(QueueId(0), HctxId(1), u32::MAX);
        tags.idle(QueueId(0));
    }

    #[test]
    fn tags_shared_over_hardware_queues_are_one_pool() {
        let mut tags = TagSet::new(TagSetConfig { depth: 1, shared_over_hctxs: true, ..CONFIG });
        let tag = tags.take(QueueId(0), HctxId(1), u32::MAX).unwrap();
        tags.assign(HctxId(1), tag, RequestId(3));
        assert_eq!(tags.take(QueueId(0), H, u32::MAX), None);
        assert_eq!(tags.owner(H, tag), Some((QueueId(0), RequestId(3))));
        tags.starve(QueueId(0), H, false);
        tags.put(HctxId(1), tag);
        assert_eq!(tags.owner(H, tag), None);
        assert_eq!(tags.next_starved(), Some((QueueId(0), H)));
    }

    #[test]
    fn separate_tags_are_separate() {
        let mut tags = TagSet::new(TagSetConfig { depth: 1, ..CONFIG });
        let first = tags.take(QueueId(0), H, u32::MAX).unwrap();
        let second = tags.take(QueueId(0), HctxId(1), u32::MAX).unwrap();
        tags.starve(QueueId(0), H, false);
        tags.put(HctxId(1), second);
        assert_eq!(tags.next_starved(), None, "a tag of another hardware queue was freed");
        tags.put(H, first);
        assert_eq!(tags.next_starved(), Some((QueueId(0), H)));
    }

    #[test]
    fn those_that_starve_go_in_turn_one_for_each_freed_tag() {
        let mut tags = TagSet::new(TagSetConfig { depth: 2, ..CONFIG });
        let held = take_all(&mut tags, 3);
        for queue in [2, 0, 1, 0] {
            tags.starve(QueueId(queue), H, false);
        }
        let mut order = Vec::new();
        for tag in held {
            tags.put(H, tag);
            while let Some((queue, hctx)) = tags.next_starved() {
                order.push(queue.0);
                assert!(tags.take(queue, hctx, u32::MAX).is_some());
                tags.starve(queue, hctx, false);
            }
        }
        assert_eq!(order, [2, 0]);
        let in_line: Vec<_> = tags.starved.line.iter().map(|starving| starving.queue.0).collect();
        assert_eq!(in_line, [1, 2, 0]);
    }

    /// A hardware queue that was starved for a tag of one kind used to be unable to register for
    /// the other: an abort with a free reserved tag waited for the requests that it was to abort.
    #[test]
    fn a_hardware_queue_that_needs_both_kinds_is_named_for_either() {
        for first in [false, true] {
            let mut tags = TagSet::new(TagSetConfig { depth: 2, reserved: 1, ..CONFIG });
            let normal = tags.take(QueueId(0), H, u32::MAX).unwrap();
            let reserved = tags.take_reserved(QueueId(0), H).unwrap();
            tags.starve(QueueId(1), H, first);
            tags.starve(QueueId(1), H, !first);
            assert_eq!(tags.next_starved(), None);
            tags.put(H, reserved);
            assert_eq!((tags.next_starved(), tags.next_starved()), (Some((QueueId(1), H)), None));
            tags.put(H, normal);
            assert_eq!((tags.next_starved(), tags.next_starved()), (Some((QueueId(1), H)), None));
        }
    }

    #[test]
    fn one_that_takes_nothing_leaves_the_tag_to_the_next() {
        let mut tags = TagSet::new(TagSetConfig { depth: 1, ..CONFIG });
        let tag = tags.take(QueueId(0), H, u32::MAX).unwrap();
        tags.starve(QueueId(1), H, false);
        tags.starve(QueueId(2), H, false);
        tags.put(H, tag);
        assert_eq!(tags.next_starved(), Some((QueueId(1), H)));
        assert_eq!(tags.next_starved(), Some((QueueId(2), H)));
        assert_eq!(tags.next_starved(), None);
    }
}
