//! The `blockyard` command. Its code is in the library of this package, so that fuzz targets can
//! call it.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    blockyard_cli::main()
}
