//! `gangline cards`: which cards are known, what their MIG instances are, and what still fits.

use super::{CliError, Ending, Format, print_result};
use crate::card_models::{CardReport, ModelList, text};

/// List the card models that are known, or show one and what fits on it
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A model, or what a node calls it (label nvidia.com/gpu.product)
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// MIG instances that are on the card, or a mask of its occupied units: hexadecimal such as
    /// 0x43, or binary such as 0b1000011
    #[arg(
        long,
        value_name = "PROFILE@START,...",
        value_delimiter = ',',
        requires = "model"
    )]
    occupied: Vec<String>,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

pub(super) fn run(args: &Args) -> Result<Ending, CliError> {
    match &args.model {
        None => print_result(&ModelList::all(), args.output, text::models)?,
        Some(model) => {
            let report = CardReport::new(model, &args.occupied)?;
            print_result(&report, args.output, text::card)?;
        }
    }
    Ok(Ending::Good)
}
