//! Cuts the power at many instants of one history, and looks at what is left.

use super::history::{Change, History, Record};
use super::medium::{Behaviour, Medium, Survivor};
use super::promises::Promises;
use blockyard::prng::Prng;
use blockyard_btt::check::{self, Severity};
use blockyard_btt::{Btt, Container, Memory, OpenOptions};

/// The life of a disk, from the start of a server to its end.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) number: u64,
    pub(crate) history: History,
    /// The bytes of the file before.
    pub(crate) base: Vec<u8>,
    pub(crate) units: u64,
    pub(crate) unit_bytes: usize,
    /// The container of the BTT, if the file has one. Then answers are durable.
    pub(crate) btt: Option<Container>,
}

impl Life {
    /// Cuts the power `cuts` times below a disk with this behaviour. Half of the cuts are anywhere;
    /// the others are just after the server has promised something. Returns what one of the cuts
    /// left.
    ///
    /// # Errors
    ///
    /// A cut broke a promise. The words say which.
    pub(crate) fn cut(
        &self,
        cuts: usize,
        seed: u64,
        behaviour: Behaviour,
    ) -> Result<Vec<u8>, String> {
        let mut prng = Prng::new(seed);
        let instants = self.instants(cuts, &mut prng);
        let kept = prng.pick(&instants);
        let mut instants = instants.into_iter().peekable();
        let before = self.words(&Survivor::of(&self.base))?;
        let requests = &self.history.requests;
        let mut promises = Promises::new(requests, self.number, &before, self.btt.is_some());
        let mut medium = Medium::new(self.base.clone(), behaviour);
        let mut left = Vec::new();
        for (place, record) in self.history.records.iter().enumerate() {
            let now = place + 1;
            match record {
                Record::Sent(number) => promises.send(*number, now),
                Record::Answered(number) => promises.answer(*number, now),
                Record::Written { at, bytes } => medium.write(place, *at, bytes),
                Record::Completed(write) => medium.complete(*write),
                Record::Zeroed { at, len } => {
                    let zeroes = vec![0; usize::try_from(*len).expect("length within memory")];
                    medium.write(place, *at, &zeroes);
                    medium.complete(place);
                }
                Record::Synchronised => medium.synchronise(),
            }
            while instants.next_if_eq(&now).is_some() {
                let survivor = medium.cut(&mut prng);
                if now == kept {
                    left = survivor.bytes();
                }
                self.words(&survivor)
                    .and_then(|words| {
                        (0..).zip(words).try_for_each(|(unit, word)| promises.check(unit, word))
                    })
                    .map_err(|error| format!("after {now} records, seed {seed}: {error}"))?;
            }
        }
        assert_eq!(instants.next(), None, "no cut lies beyond the history");
        Ok(left)
    }

    /// Draws the instants of cuts, in order: numbers of records.
    fn instants(&self, cuts: usize, prng: &mut Prng) -> Vec<usize> {
        let records = &self.history.records;
        let promises = records.iter().enumerate().filter(|(_, record)| match record {
            Record::Answered(number) => {
                let request = &self.history.requests[*number];
                request.fua || request.change == Change::Flush || self.btt.is_some()
            }
            _ => false,
        });
        let promises: Vec<usize> = promises.map(|(place, _)| place + 1).collect();
        let mut instants: Vec<usize> = (0..cuts)
            .map(|nth| match nth.is_multiple_of(2) {
                true => prng.pick(&promises),
                false => 1 + usize::try_from(prng.below(records.len() as u64)).expect("place"),
            })
            .collect();
        instants.sort_unstable();
        instants
    }

    /// The word of which each unit consists. A unit with two different words is torn: an error.
    fn words(&self, survivor: &Survivor<'_>) -> Result<Vec<u64>, String> {
        let btt = self.btt.map(|container| opened(survivor, container)).transpose()?;
        let mut bytes = vec![0; self.unit_bytes];
        let word = |unit| {
            match &btt {
                Some(btt) => btt.read(unit, &mut bytes).map_err(|e| format!("unit {unit}: {e}"))?,
                None => survivor.read(unit * self.unit_bytes as u64, &mut bytes).expect("bytes"),
            }
            let (first, rest) = bytes.split_first_chunk().expect("first word of a unit");
            match rest.chunks_exact(first.len()).all(|word| word == first) {
                true => Ok(u64::from_le_bytes(*first)),
                false => Err(format!("unit {unit} is a mix")),
            }
        };
        (0..self.units).map(word).collect()
    }
}

/// Opens a BTT as a server does: one that a check calls broken is refused.
fn opened<'a>(
    survivor: &'a Survivor<'a>,
    container: Container,
) -> Result<Btt<&'a Survivor<'a>>, String> {
    let options = check::Options::new(container);
    let (report, _) = check::check(survivor, &options, &mut |_| ()).map_err(|e| e.to_string())?;
    if report.count(Severity::Broken) > 0 {
        return Err(format!("the BTT is broken: {:?}", report.findings()));
    }
    Btt::open(survivor, &OpenOptions::new(container)).map_err(|error| error.to_string())
}
