//! `reproduce`: published experiments, figure beside figure.

use std::io::Write;

use blockyard_sim::reproduce::{Basis, Cell, Region, SCSI_DEVICE, SCSI_SOURCE, Span, cells, run};
use blockyard_sim::why::Figures;
use clap::ValueEnum;
use serde::Serialize;

use crate::cli::{Experiment, OutputFormat, Reproduce};
use crate::human::{count, digits};
use crate::message::Failure;
use crate::progress::Tally;
use crate::table::{Align, Table};

/// The answer as programs get it; as text it is a table for each reading of the workload.
#[derive(Serialize)]
struct Answered {
    experiment: &'static str,
    source: &'static str,
    device: &'static str,
    seed: u64,
    cells: Vec<Row>,
}

/// Ours beside theirs.
#[derive(Serialize)]
struct Row {
    /// `shared` or `own`: the region of the disk that each job works on.
    region: &'static str,
    rw: &'static str,
    design: &'static str,
    /// `null`: ours is a prediction.
    published_iops: Option<f64>,
    iops: f64,
    difference_percent: Option<f64>,
    ios_per_command: f64,
    /// `fitted`, `outcome` or `prediction`.
    basis: &'static str,
}

pub(super) fn reproduce(args: &Reproduce, out: &mut dyn Write) -> Result<(), Failure> {
    match args.experiment {
        None => args.answer.deliver(&experiments(), out),
        Some(Experiment::Scsi) => scsi(args, out),
    }
}

/// The experiments there are, a line for each.
fn experiments() -> String {
    let mut table = Table::new(&[("experiment", Align::Left), ("what it is", Align::Left)]);
    for experiment in Experiment::value_variants() {
        if let Some(value) = experiment.to_possible_value() {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            table.row([value.get_name().to_owned(), help]);
        }
    }
    table.to_string()
}

fn scsi(args: &Reproduce, out: &mut dyn Write) -> Result<(), Failure> {
    let cells = cells();
    let tally = Tally::new("cells", cells.len());
    let figures = run(&cells, Span::default(), args.answer.seed, &|| tally.one_more())?;
    tally.erase();
    let answered = Answered {
        experiment: "scsi",
        source: SCSI_SOURCE,
        device: SCSI_DEVICE,
        seed: args.answer.seed,
        cells: cells.iter().zip(&figures).map(|(cell, figures)| Row::new(cell, figures)).collect(),
    };
    let text = match args.output_format {
        OutputFormat::Normal => answered.text(),
        OutputFormat::Json => {
            serde_json::to_string_pretty(&answered).expect("names are strings") + "\n"
        }
    };
    args.answer.deliver(&text, out)
}

impl Row {
    #[expect(clippy::float_arithmetic, reason = "for the reader only: nothing is ordered by it")]
    fn new(cell: &Cell, figures: &Figures) -> Self {
        let published = cell.published.map(|published| 1000.0 * f64::from(published.kiops));
        Self {
            region: name_of(cell.region),
            rw: cell.op,
            design: cell.design,
            published_iops: published,
            iops: figures.iops,
            difference_percent: published.map(|iops| 100.0 * (figures.iops / iops - 1.0)),
            ios_per_command: figures.ios_per_command,
            basis: match cell.published.map(|published| published.basis) {
                Some(Basis::Fitted) => "fitted",
                Some(Basis::Outcome) => "outcome",
                None => "prediction",
            },
        }
    }

    fn cells(&self) -> [String; COLUMNS.len()] {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        [
            self.rw.to_owned(),
            self.design.to_owned(),
            or_dash(self.published_iops.map(count)),
            count(self.iops),
            or_dash(self.difference_percent.map(|percent| format!("{percent:+.1}"))),
            digits(self.ios_per_command),
            self.basis.to_owned(),
        ]
    }
}

const fn name_of(region: Region) -> &'static str {
    match region {
        Region::Shared => "shared",
        Region::Own => "own",
    }
}

const COLUMNS: &[(&str, Align)] = &[
    ("rw", Align::Left),
    ("design", Align::Left),
    ("published", Align::Right),
    ("ours", Align::Right),
    ("differs %", Align::Right),
    ("I/O/cmd", Align::Right),
    ("basis", Align::Left),
];

const READINGS: &[(&str, &str)] =
    &[("shared", "All jobs share the disk"), ("own", "Each job has a region of its own")];

const LEGEND: &str = "
I/Os per second of 4 KiB, 64 jobs of depth 64, 2 s of virtual time after 0.5 s.
fitted: the device's profile was fitted on the published figure; outcome: it was not;
prediction: of a design whose measurement is not among the published figures used here.
";

impl Answered {
    fn text(&self) -> String {
        let mut text = format!("{} on {}, seed {}\n", self.source, self.device, self.seed);
        for (region, title) in READINGS {
            let mut table = Table::new(COLUMNS);
            let of_region = self.cells.iter().filter(|row| row.region == *region);
            of_region.for_each(|row| table.row(row.cells()));
            text += &format!("\n{title}:\n\n{table}");
        }
        text + LEGEND
    }
}
