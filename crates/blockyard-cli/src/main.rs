//! The `blockyard` command. All of it is in the library beside this file, where fuzz targets reach it.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    blockyard_cli::main()
}
