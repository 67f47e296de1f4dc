//! Reproductions of published experiments.
//!
//! An [`Experiment`] is data: tables of workloads under designs, with the figures that were
//! published. The published figures are transcribed in `reference/`, with their source: from before
//! a change, with whether the device's profile was fitted to each, and from after it, with what the
//! model predicted before they were known.
//! [`experiments`] lists the experiments, [`run`](run()) runs one and returns the answer, a
//! [`Reproduction`].
//!
//! The published figures do not determine a device completely. A [`Variant`] is another profile
//! that fits them as closely. A prediction covers the range of the variants that were known when it
//! was made.

mod btt;
mod hsq;
mod mmc_double_buffer;
mod mmc_mq;
mod scsi;

pub mod published;
pub mod run;
pub mod unit;

pub use published::{Basis, Published, Range, Tolerance, Verdict};
pub use run::{Cell, Reproduction, run, runs};
pub use unit::Unit;

/// A published experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// The publication.
    pub source: &'static str,
    /// How it is run here, for the reader.
    pub about: &'static str,
    /// Its tables.
    pub tables: Vec<Table>,
}

/// Workloads under designs on one device.
#[derive(Clone, Debug)]
pub struct Table {
    /// The title of the table.
    pub title: String,
    /// The built-in device that stands for the one measured.
    pub device: &'static str,
    /// Other profiles that the device may have had.
    pub variants: &'static [Variant],
    /// Its rows.
    pub workloads: Vec<Workload>,
    /// Built-in designs. The first is the baseline for the others.
    pub designs: &'static [&'static str],
    /// What its figures are relative to.
    pub against: Against,
    /// The unit of what is measured.
    pub unit: Unit,
    /// When a figure agrees with a published one.
    pub tolerance: Tolerance,
    /// For a design with published outcomes, the design before the change; if it is not here, the
    /// first design.
    pub before: &'static [(&'static str, &'static str)],
    /// The published figures, each for a workload and a design of this table.
    pub published: Vec<Published>,
    /// Further units that are shown.
    pub counters: &'static [Unit],
}

/// What the figures of a table are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Nothing.
    Nothing,
    /// Figures of this design, which are subtracted.
    Less(&'static str),
    /// Figures of this design: the change in percent of them.
    Gain(&'static str),
}

impl Against {
    /// The design, if there is one.
    #[must_use]
    pub const fn design(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Less(design) | Self::Gain(design) => Some(design),
        }
    }
}

impl Table {
    /// The name of the unit of its figures, in `reference/` and in tables.
    #[must_use]
    pub const fn unit_name(&self) -> &'static str {
        match self.against {
            Against::Gain(_) => "gain %",
            Against::Nothing | Against::Less(_) => self.unit.name(),
        }
    }

    /// The design before the change that led to `design`, if the table has one.
    #[must_use]
    pub fn before(&self, design: &str) -> Option<&'static str> {
        let known = self.before.iter().find(|(after, _)| *after == design);
        let before = known.map_or(self.designs[0], |(_, before)| before);
        (before != design).then_some(before)
    }
}

/// Another profile that the published figures allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant {
    /// The difference from the device.
    pub name: &'static str,
    /// Whether it was added when the outcome was known.
    pub since_outcome: bool,
    /// Its profile, TOML.
    pub text: &'static str,
    /// What else the published design may have been: the name of a design, and the TOML of the one
    /// that takes its place.
    pub designs: &'static [(&'static str, &'static str)],
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name in the published figures.
    pub name: String,
    /// Its options for fio.
    pub options: Vec<String>,
}

/// All experiments, oldest first.
#[must_use]
pub fn experiments() -> Vec<Experiment> {
    vec![
        mmc_double_buffer::experiment(),
        btt::experiment(),
        mmc_mq::experiment(),
        scsi::experiment(),
        hsq::experiment(),
    ]
}

/// Splits `text` at spaces into options for fio.
fn options(text: &str) -> Vec<String> {
    assert!(text.starts_with("--"), "{text} has no options");
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_devices::profile::{Design, Device};
    use blockyard_fio::job::{NoSource, parse_args};

    #[test]
    fn everything_that_a_table_names_exists() {
        for experiment in experiments() {
            for table in &experiment.tables {
                let of = format!("{}: {}", experiment.name, table.title);
                assert!(Device::lookup(table.device).is_ok(), "{of}");
                let before = table.before.iter().flat_map(|(design, before)| [design, before]);
                let against = table.against.design();
                for design in table.designs.iter().chain(before).chain(&against) {
                    assert!(Design::lookup(design).is_ok(), "{of}: {design}");
                }
                for Variant { name, text, designs, .. } in table.variants {
                    assert!(Device::parse(name, text).is_ok(), "{of}: {name}");
                    for (design, text) in *designs {
                        assert!(Design::lookup(design).is_ok(), "{of}: {name}: {design}");
                        assert!(Design::parse(design, text).is_ok(), "{of}: {name}: {design}");
                    }
                }
                for workload in &table.workloads {
                    let options = workload.options.iter().map(String::as_str);
                    assert!(parse_args(options, &NoSource).is_ok(), "{of}: {}", workload.name);
                }
                for published in &table.published {
                    let is_its = |workload: &Workload| workload.name == published.workload;
                    assert!(table.workloads.iter().any(is_its), "{of}: {}", published.workload);
                    assert!(
                        table.designs.contains(&published.design),
                        "{of}: {}",
                        published.design
                    );
                }
            }
        }
    }

    fn figures_of(experiment: &str) -> usize {
        let all = experiments();
        let found = all.iter().find(|it| it.name == experiment).unwrap();
        found.tables.iter().map(|table| table.published.len()).sum::<usize>()
    }

    #[test]
    fn every_published_figure_is_in_a_table() {
        // Both readings of the workload have the same figures.
        assert_eq!(figures_of("scsi"), 2 * (12 + 8) + 4);
        assert_eq!(figures_of("mmc-mq"), 5 * (6 * 13 + 3));
        // Both ways to complete have the same outcomes; one of them is unusable.
        assert_eq!(figures_of("hsq"), 8 + 2 * 7);
        assert_eq!(figures_of("mmc-double-buffer"), (2 + 3) * 6 * 13);
        assert_eq!(figures_of("btt"), 3 + 3);
    }

    #[test]
    fn runs_that_tables_share_are_simulated_once() {
        let mut experiment = scsi::experiment();
        let once = runs(&experiment);
        let again = experiment.tables.clone();
        experiment.tables.extend(again);
        assert_eq!(runs(&experiment), once);
    }
}
