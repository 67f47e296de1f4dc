//! Texts compressed by gzip, with one member that has no name and no comment (RFC 1951 and 1952).
//!
//! `ci/oracle/pack.py` writes them; `zcat` shows them.

/// The bytes of gzip's header, and of its trailer: the checksum and the length.
const HEADER: usize = 10;
const TRAILER: usize = 8;

/// The length that each code for a length begins with, and the number of its extra bits.
const LENGTHS: [(usize, u32); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// The order in which a block states the lengths of the codes for lengths of codes.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Bits, the lowest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> usize {
        let byte = self.bytes[self.at / 8];
        self.at += 1;
        usize::from(byte >> ((self.at - 1) % 8) & 1)
    }

    fn number(&mut self, bits: u32) -> usize {
        (0..bits).fold(0, |number, place| number | self.bit() << place)
    }
}

/// The symbols of a Huffman code, by length of their codes and then by value.
struct Code {
    /// The number of symbols with codes of each length.
    counts: [usize; 16],
    symbols: Vec<usize>,
}

impl Code {
    fn of(lengths: &[usize]) -> Self {
        let mut counts = [0; 16];
        for length in lengths.iter().filter(|length| **length > 0) {
            counts[*length] += 1;
        }
        let mut symbols: Vec<_> =
            (0..lengths.len()).filter(|symbol| lengths[*symbol] > 0).collect();
        symbols.sort_by_key(|symbol| lengths[*symbol]);
        Self { counts, symbols }
    }

    fn symbol(&self, bits: &mut Bits<'_>) -> usize {
        let mut code = 0;
        let mut first = 0;
        let mut index = 0;
        for count in &self.counts[1..] {
            code |= bits.bit();
            if code < first + count {
                return self.symbols[index + code - first];
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        panic!("a code of more than 15 bits");
    }
}

/// Reads the codes at the head of a block: for bytes and lengths, and for distances.
fn codes(bits: &mut Bits<'_>) -> (Code, Code) {
    let literals = bits.number(5) + 257;
    let distances = bits.number(5) + 1;
    let stated = bits.number(4) + 4;
    let mut lengths = [0; 19];
    for place in &ORDER[..stated] {
        lengths[*place] = bits.number(3);
    }
    let of_lengths = Code::of(&lengths);
    let mut lengths = Vec::new();
    while lengths.len() < literals + distances {
        let symbol = of_lengths.symbol(bits);
        let (length, times) = match symbol {
            16 => (lengths[lengths.len() - 1], bits.number(2) + 3),
            17 => (0, bits.number(3) + 3),
            18 => (0, bits.number(7) + 11),
            length => (length, 1),
        };
        lengths.resize(lengths.len() + times, length);
    }
    (Code::of(&lengths[..literals]), Code::of(&lengths[literals..]))
}

/// Returns the text of a file compressed by gzip.
pub(crate) fn text(gzip: &[u8]) -> String {
    assert_eq!(gzip[..4], [31, 139, 8, 0], "gzip without a name");
    let (body, trailer) = gzip[HEADER..].split_at(gzip.len() - HEADER - TRAILER);
    let mut bits = Bits { bytes: body, at: 0 };
    let mut out: Vec<u8> = Vec::new();
    let mut is_last = false;
    while !is_last {
        is_last = bits.bit() == 1;
        assert_eq!(bits.number(2), 2, "only blocks with codes of their own are read");
        let (literals, distances) = codes(&mut bits);
        loop {
            let symbol = literals.symbol(&mut bits);
            match symbol {
                0..256 => out.push(u8::try_from(symbol).unwrap()),
                256 => break,
                _ => {
                    let (least, extra) = LENGTHS[symbol - 257];
                    let length = least + bits.number(extra);
                    let from = out.len() - distance(distances.symbol(&mut bits), &mut bits);
                    (from..from + length).for_each(|at| out.push(out[at]));
                }
            }
        }
    }
    let length = u32::from_le_bytes(trailer[4..].try_into().unwrap());
    assert_eq!(out.len(), usize::try_from(length).unwrap(), "the length that gzip states");
    String::from_utf8(out).unwrap()
}

/// Returns the distance of a code. Codes 0 to 3 are distances 1 to 4; of later ones, two share each
/// number of extra bits: code 4 begins at 5 with 1 bit, code 6 at 9 with 2.
fn distance(symbol: usize, bits: &mut Bits<'_>) -> usize {
    if symbol < 4 {
        return symbol + 1;
    }
    let extra = symbol / 2 - 1;
    let first = ((2 + symbol % 2) << extra) + 1;
    first + bits.number(u32::try_from(extra).unwrap())
}
