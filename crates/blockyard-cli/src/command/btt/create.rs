//! `btt create`: a file with an empty BTT.

use blockyard_btt::Container;
use blockyard_btt::layout::ARENA_BYTES_MIN;
use blockyard_pmem::{Image, NewImage};

use super::{options, unusable};
use crate::cli::{Create, VersionName};
use crate::message::Failure;

pub(super) fn create(args: &Create) -> Result<(), Failure> {
    let container = match (args.pmemblk_pool, args.format) {
        (true, _) => Container::Pool,
        (false, VersionName::V1) => Container::Namespace,
        (false, VersionName::V2) => Container::LabelledNamespace,
    };
    let new = NewImage { bytes: args.size, sector_bytes: args.sector_size, container };
    let made = Image::create(&args.file, &new, &options(false, None));
    let before = container.first_arena();
    let btt = made.map_err(|error| {
        let fits_without = (ARENA_BYTES_MIN..ARENA_BYTES_MIN + before).contains(&args.size);
        let more = if fits_without { ", behind the start of the file: use 17m" } else { "" };
        unusable(&args.file, format!("{error}{more}"))
    })?;
    btt.flush().map_err(|error| super::failed(&args.file, error))
}
