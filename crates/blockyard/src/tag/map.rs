//! Which numbers are free.

use alloc::vec::Vec;

/// The numbers `0..depth`, the lowest of them reserved.
///
/// ```
/// use blockyard::tag::TagMap;
///
/// let mut tags = TagMap::new(4, 1);
/// assert_eq!(tags.take(u32::MAX), Some(1));
/// assert_eq!(tags.take_reserved(), Some(0));
/// assert_eq!(tags.take_reserved(), None);
/// tags.put(1);
/// assert_eq!(tags.in_use(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct TagMap {
    reserved: Bits,
    normal: Bits,
}

impl TagMap {
    /// Returns the numbers `0..depth`, of which `0..reserved` are for [`Self::take_reserved`] only.
    ///
    /// # Panics
    ///
    /// Panics if `reserved` exceeds `depth`.
    #[must_use]
    pub fn new(depth: u32, reserved: u32) -> Self {
        assert!(reserved <= depth, "{reserved} of {depth} tags cannot be reserved");
        Self { reserved: Bits::new(reserved), normal: Bits::new(depth - reserved) }
    }

    /// The heap that [`Self::new`] takes, in bytes.
    pub(crate) fn heap(depth: u32, reserved: u32) -> usize {
        let words = Bits::words(reserved) + Bits::words(depth - reserved);
        words as usize * size_of::<u64>()
    }

    /// The number of numbers, reserved ones included.
    #[must_use]
    pub const fn depth(&self) -> u32 {
        self.reserved.depth + self.normal.depth
    }

    /// The number of reserved numbers: those below this one.
    #[must_use]
    pub const fn reserved(&self) -> u32 {
        self.reserved.depth
    }

    /// The number of unreserved numbers in use ([reserved-tags-separate]).
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        debug_assert!(
            self.normal.in_use <= self.normal.depth,
            "more numbers in use than there are"
        );
        self.normal.in_use
    }

    /// The number of reserved numbers in use.
    #[must_use]
    pub const fn reserved_in_use(&self) -> u32 {
        self.reserved.in_use
    }

    /// Whether a take without a limit would fail ([take-fails-only-when-full]).
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.normal.in_use == self.normal.depth
    }

    /// Takes the lowest free number that is not reserved, if there is one.
    ///
    /// `limit` bounds how many of the unreserved numbers takes with this limit may use.
    /// A limit of at least their count, such as [`u32::MAX`], is no limit.
    /// Takes without a limit may leave fewer than `limit`.
    #[must_use = "the number stays in use until it is put back"]
    #[inline(always)]
    pub fn take(&mut self, limit: u32) -> Option<u32> {
        let bit = if limit >= self.normal.depth {
            self.normal.take()
        } else {
            self.normal.take_limited(limit)
        }?;
        Some(self.reserved.depth + bit)
    }

    /// Takes a free reserved number, if there is one.
    #[must_use = "the number stays in use until it is put back"]
    pub fn take_reserved(&mut self) -> Option<u32> {
        self.reserved.take()
    }

    /// Gives `tag` back.
    ///
    /// # Panics
    ///
    /// Panics if `tag` is not in use ([one-owner-per-tag]).
    #[inline]
    pub fn put(&mut self, tag: u32) {
        match tag.checked_sub(self.reserved.depth) {
            Some(bit) => self.normal.put(bit),
            None => self.reserved.put(tag),
        }
    }
}

/// A bitmap of free numbers, in words of at most 64 bits.
///
/// A map of four numbers or more has at least four words. So takes without a limit, which fill word
/// after word, leave takes with a limit their part of the later words.
#[derive(Clone, Debug)]
struct Bits {
    /// A set bit is a free number.
    words: Vec<u64>,
    /// Binary logarithm of the numbers in a word.
    shift: u32,
    /// The bits of a number that say which of its word it is.
    within: u32,
    /// No word before this one has a free number.
    first: u32,
    depth: u32,
    in_use: u32,
}

impl Bits {
    fn new(depth: u32) -> Self {
        let shift = Self::shift(depth);
        let within = (1 << shift) - 1;
        let mut bits = Self { words: Vec::new(), shift, within, first: 0, depth, in_use: 0 };
        bits.words = (0..Self::words(depth))
            .map(|at| low_bits(bits.end_of(at) - bits.start_of(at)))
            .collect();
        bits
    }

    fn shift(depth: u32) -> u32 {
        match depth {
            0..4 => u64::BITS.ilog2(), // one word
            // 4 words or more: 31 numbers in words of 4, 256 in words of 64, 1024 in 16 words of 64.
            _ => (depth / 4).ilog2().min(u64::BITS.ilog2()),
        }
    }

    fn words(depth: u32) -> u32 {
        depth.div_ceil(1 << Self::shift(depth))
    }

    /// The lowest number of the word at `at`.
    const fn start_of(&self, at: u32) -> u32 {
        at << self.shift
    }

    /// The number behind the highest of the word at `at`.
    fn end_of(&self, at: u32) -> u32 {
        self.depth.min(self.start_of(at) + (1 << self.shift))
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        while let Some(&word) = self.words.get(self.first as usize) {
            if word != 0 {
                return Some(self.take_lowest(self.first, word));
            }
            self.first += 1; // a put before it moves it back
        }
        None
    }

    fn take_limited(&mut self, limit: u32) -> Option<u32> {
        for (at, &word) in (self.first..).zip(&self.words[self.first as usize..]) {
            let open = word & low_bits(self.part(at, limit));
            if open != 0 {
                return Some(self.take_lowest(at, open));
            }
        }
        None
    }

    /// Returns how many numbers of the word at `at` takes under `limit` may use. The parts of all
    /// words add up to `limit`.
    fn part(&self, at: u32, limit: u32) -> u32 {
        // 31 numbers are in words of 4. A limit of 10 gives 1 to those below 4, 2 below 8, 3 below 12 and 5 below 16: parts
        // of 1, 1, 1 and 2.
        let part =
            self.share_below(self.end_of(at), limit) - self.share_below(self.start_of(at), limit);
        u32::try_from(part).expect("a part of a word is at most 64")
    }

    /// Returns the part of `limit` that the numbers below `number` have, rounded down.
    fn share_below(&self, number: u32, limit: u32) -> u64 {
        u64::from(limit) * u64::from(number) / u64::from(self.depth)
    }

    /// Takes the lowest of the `open` numbers of the word at `at`.
    #[inline]
    fn take_lowest(&mut self, at: u32, open: u64) -> u32 {
        let bit = open.trailing_zeros();
        self.words[at as usize] &= !(1 << bit);
        self.in_use += 1;
        self.start_of(at) + bit
    }

    #[inline]
    fn put(&mut self, number: u32) {
        assert!(number < self.depth, "[one-owner-per-tag]: there is no such tag");
        let at = number >> self.shift;
        let mask = 1 << (number & self.within);
        let word = &mut self.words[at as usize];
        assert!(*word & mask == 0, "[one-owner-per-tag]: a free tag was put back");
        *word |= mask;
        self.first = self.first.min(at);
        self.in_use -= 1;
    }
}

/// The lowest `count` bits, of at most 64.
const fn low_bits(count: u32) -> u64 {
    match u64::MAX.checked_shr(u64::BITS - count) {
        Some(bits) => bits,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    #[test]
    fn from_four_tags_on_there_are_four_words() {
        for depth in 4..2000 {
            let bits = Bits::new(depth);
            assert!(bits.words.len() >= 4, "{depth} tags in {} words", bits.words.len());
            let free: u32 = bits.words.iter().map(|word| word.count_ones()).sum();
            assert_eq!(free, depth);
        }
        assert_eq!(Bits::new(256).words.len(), 4);
        assert_eq!(Bits::new(1024).words.len(), 16);
    }

    #[test]
    fn the_parts_of_all_words_add_up_to_the_limit() {
        for depth in 1..300 {
            let bits = Bits::new(depth);
            for limit in 0..=depth {
                let words = 0..u32::try_from(bits.words.len()).unwrap();
                assert_eq!(words.map(|at| bits.part(at, limit)).sum::<u32>(), limit);
            }
        }
    }

    #[test]
    fn a_limited_take_finds_its_part_of_the_words_that_others_left() {
        let mut tags = TagMap::new(64, 0);
        for _ in 0..48 {
            tags.take(u32::MAX).unwrap();
        }
        let limited: Vec<_> = core::iter::from_fn(|| tags.take(32)).collect();
        assert_eq!(limited, (48..56).collect::<Vec<_>>());
        assert_eq!(tags.take(u32::MAX), Some(56));
    }

    #[test]
    #[should_panic(expected = "[one-owner-per-tag]")]
    fn a_tag_is_not_put_twice() {
        let mut tags = TagMap::new(8, 0);
        let tag = tags.take(u32::MAX).unwrap();
        tags.put(tag);
        tags.put(tag);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Take(u32),
        TakeReserved,
        Put(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => prop_oneof![Just(u32::MAX), 0u32..300].prop_map(Step::Take),
            1 => Just(Step::TakeReserved),
            3 => any::<usize>().prop_map(Step::Put),
        ];
        proptest::collection::vec(step, 0..600)
    }

    /// The map against a set of free numbers.
    fn run(depth: u32, reserved: u32, steps: Vec<Step>) {
        let mut tags = TagMap::new(depth, reserved);
        let mut free: BTreeSet<u32> = (0..depth).collect();
        let mut used = Vec::new();
        let normal = depth - reserved;
        for step in steps {
            let (expected, taken) = match step {
                Step::Put(pick) => {
                    if !used.is_empty() {
                        let tag = used.swap_remove(pick % used.len());
                        free.insert(tag);
                        tags.put(tag);
                    }
                    continue;
                }
                Step::TakeReserved => {
                    (free.range(..reserved).next().copied(), tags.take_reserved())
                }
                Step::Take(limit) => {
                    let allowed =
                        |tag: &&u32| limit >= normal || in_part(*tag - reserved, normal, limit);
                    (free.range(reserved..).find(allowed).copied(), tags.take(limit))
                }
            };
            assert_eq!(taken, expected);
            if let Some(tag) = taken {
                free.remove(&tag);
                used.push(tag);
            }
            let in_use = used.iter().filter(|&&tag| tag >= reserved).count();
            assert_eq!(tags.in_use() as usize, in_use);
            assert_eq!(tags.is_full(), in_use == normal as usize);
        }
    }

    /// Recomputes how a limit is divided: a word's part of the limit, counted from the word's start.
    fn in_part(number: u32, depth: u32, limit: u32) -> bool {
        let mut width = 64;
        while depth >= 4 && 4 * width > depth {
            width /= 2;
        }
        let start = number / width * width;
        let end = depth.min(start + width);
        number - start < limit * end / depth - limit * start / depth
    }

    proptest! {
        #[test]
        fn gives_the_lowest_free_number_like_a_set(
            depth in 0u32..300,
            reserved in 0u32..20,
            steps in steps(),
        ) {
            run(depth, reserved.min(depth), steps);
        }
    }
}
