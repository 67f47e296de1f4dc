//! The device of a simulation: a model and the layers over it.

use super::Model;

use crate::data::medium::{Media, Medium};
use crate::profile::FaultRules;
use blockyard::driver::{Device, Driver};
use blockyard::layer::checked::{Checked, Terms};
use blockyard::layer::fault::{Count, FaultRule, Faulty};
use blockyard::prng::Prng;
use blockyard::tag::TagSetConfig;
use blockyard::time::Instant;
use core::fmt::Debug;

/// Counts of the requests that matched a rule of a fault file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultCount {
    /// The rule's name.
    pub name: String,
    /// Requests that matched the rule.
    pub matched: u64,
    /// Matching requests on which the rule fired.
    pub fired: u64,
}

/// The calls of a simulation on a stack. Each layer answers for itself and for the layers below it.
pub trait Layers: Device + Debug {
    /// Returns the model at the bottom.
    fn model(&self) -> &Model;

    /// As [`Self::model`].
    fn model_mut(&mut self) -> &mut Model;

    /// Returns the counts of all fault rules, in their order.
    fn fault_counts(&self) -> Vec<FaultCount> {
        Vec::new()
    }

    /// Returns the number of completions that fault rules lost.
    fn lost(&self) -> u64 {
        0
    }

    /// Notes that a piece of work is done and no run is open.
    fn call_ended(&self) {}

    /// Returns the media, if their data is kept.
    fn media(&self) -> Option<&Media> {
        None
    }

    /// As [`Self::media`].
    fn media_mut(&mut self) -> Option<&mut Media> {
        None
    }

    /// Applies the device's effects on data until `now` to the media.
    fn update_media(&mut self, now: Instant) {
        let _ = now;
    }
}

impl Layers for Model {
    fn model(&self) -> &Model {
        self
    }

    fn model_mut(&mut self) -> &mut Model {
        self
    }
}

impl Layers for Medium<Model> {
    fn model(&self) -> &Model {
        &self.below
    }

    fn model_mut(&mut self) -> &mut Model {
        &mut self.below
    }

    fn media(&self) -> Option<&Media> {
        Some(&self.media)
    }

    fn media_mut(&mut self) -> Option<&mut Media> {
        Some(&mut self.media)
    }

    fn update_media(&mut self, now: Instant) {
        self.advance_data(now);
    }
}

impl<D: Layers> Layers for Faulty<D> {
    fn model(&self) -> &Model {
        self.below.model()
    }

    fn model_mut(&mut self) -> &mut Model {
        self.below.model_mut()
    }

    fn fault_counts(&self) -> Vec<FaultCount> {
        let count = |(rule, Count { matched, fired }): (&FaultRule, Count)| FaultCount {
            name: rule.name.clone(),
            matched,
            fired,
        };
        self.counts().map(count).chain(self.below.fault_counts()).collect()
    }

    fn lost(&self) -> u64 {
        Self::lost(self) + self.below.lost()
    }

    fn call_ended(&self) {
        self.below.call_ended();
    }

    fn media(&self) -> Option<&Media> {
        self.below.media()
    }

    fn media_mut(&mut self) -> Option<&mut Media> {
        self.below.media_mut()
    }

    fn update_media(&mut self, now: Instant) {
        self.below.update_media(now);
    }
}

impl<D: Layers> Layers for Checked<D> {
    fn model(&self) -> &Model {
        self.below.model()
    }

    fn model_mut(&mut self) -> &mut Model {
        self.below.model_mut()
    }

    fn fault_counts(&self) -> Vec<FaultCount> {
        self.below.fault_counts()
    }

    fn lost(&self) -> u64 {
        self.below.lost()
    }

    fn call_ended(&self) {
        Self::call_ended(self);
        self.below.call_ended();
    }

    fn media(&self) -> Option<&Media> {
        self.below.media()
    }

    fn media_mut(&mut self) -> Option<&mut Media> {
        self.below.media_mut()
    }

    fn update_media(&mut self, now: Instant) {
        self.below.update_media(now);
    }
}

/// A model, alone or under layers. A model alone, or with only its calls checked, costs one
/// comparison per call. It compares the tag of this enum, which must not be merged into those of
/// the variants.
#[derive(Debug)]
#[repr(u8)]
pub enum Stack {
    /// The model alone.
    Bare(Model),
    /// A model whose calls are all checked against the contract.
    Checked(Checked<Model>),
    /// A model under other layers.
    Layered(Box<dyn Layers + Send>),
}

/// The layers over a model.
#[derive(Clone, Debug)]
pub struct Layering<'a> {
    /// The media, if their data is kept.
    pub media: Option<Media>,
    /// The fault rules.
    pub faults: Option<&'a FaultRules>,
    /// Draws the chance of the rules.
    pub draws: Prng,
    /// The terms of the queues, if every call is checked against the contract above and below the
    /// faults.
    pub terms: Option<&'a [Terms]>,
}

impl Stack {
    /// Puts `layers` over `model`, on a host with `tags`.
    #[must_use]
    pub fn new(model: Model, layers: Layering<'_>, tags: &TagSetConfig) -> Self {
        let mut layers = layers;
        match layers.media.take() {
            Some(media) => Self::Layered(layers.over(Medium { below: model, media }, tags)),
            None => match (layers.faults, layers.terms) {
                (None, None) => Self::Bare(model),
                (None, Some(terms)) => Self::Checked(Checked::new(model, terms.to_vec(), tags)),
                (Some(_), _) => Self::Layered(layers.over(model, tags)),
            },
        }
    }

    fn layers(&self) -> &dyn Layers {
        match self {
            Self::Bare(model) => model,
            Self::Checked(checked) => checked,
            Self::Layered(layers) => &**layers,
        }
    }

    fn layers_mut(&mut self) -> &mut dyn Layers {
        match self {
            Self::Bare(model) => model,
            Self::Checked(checked) => checked,
            Self::Layered(layers) => &mut **layers,
        }
    }

    /// As [`Layers::model`].
    #[must_use]
    pub fn model(&self) -> &Model {
        match self {
            Self::Bare(model) => model,
            Self::Checked(checked) => &checked.below,
            Self::Layered(layers) => layers.model(),
        }
    }

    /// As [`Layers::model_mut`].
    pub fn model_mut(&mut self) -> &mut Model {
        match self {
            Self::Bare(model) => model,
            Self::Checked(checked) => &mut checked.below,
            Self::Layered(layers) => layers.model_mut(),
        }
    }

    /// Whether the model completes requests one by one. Layers complete them at other times.
    #[must_use]
    pub fn completes_one_by_one(&self) -> bool {
        match self {
            Self::Bare(model) | Self::Checked(Checked { below: model, .. }) => {
                model.completes_one_by_one()
            }
            Self::Layered(_) => false,
        }
    }

    /// As [`Layers::fault_counts`].
    #[must_use]
    pub fn fault_counts(&self) -> Vec<FaultCount> {
        self.layers().fault_counts()
    }

    /// As [`Layers::lost`].
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.layers().lost()
    }

    /// As [`Layers::call_ended`].
    pub fn call_ended(&self) {
        self.layers().call_ended();
    }

    /// As [`Layers::media`].
    #[must_use]
    pub fn media(&self) -> Option<&Media> {
        self.layers().media()
    }

    /// As [`Layers::media`].
    pub fn media_mut(&mut self) -> Option<&mut Media> {
        self.layers_mut().media_mut()
    }

    /// As [`Layers::update_media`].
    pub fn update_media(&mut self, now: Instant) {
        self.layers_mut().update_media(now);
    }
}

impl Layering<'_> {
    /// Puts the faults over `device`, with checks above and below them if requested.
    fn over<D: Layers + Send + 'static>(
        self,
        device: D,
        tags: &TagSetConfig,
    ) -> Box<dyn Layers + Send> {
        debug_assert!(self.media.is_none(), "the media should lie directly above the model");
        let rules = self.faults.map(|faults| faults.rules.clone());
        match (self.terms, rules) {
            (None, None) => Box::new(device),
            (None, Some(rules)) => Box::new(Faulty::new(device, rules, self.draws, tags)),
            (Some(terms), None) => Box::new(Checked::new(device, terms.to_vec(), tags)),
            (Some(terms), Some(rules)) => {
                let device = Checked::new(device, terms.to_vec(), tags);
                let faulty = Faulty::new(device, rules, self.draws, tags);
                Box::new(Checked::new(faulty, terms.to_vec(), tags))
            }
        }
    }
}

impl Driver for Stack {
    blockyard::pass_on!(
        Self::{Bare, Checked, Layered}:
        take_budget, return_budget, prepare, unprepare, queue_rq, commit, timed_out, finish
    );
}

impl Device for Stack {
    blockyard::pass_on!(Self::{Bare, Checked, Layered}: next_finished, poll_at);
}
