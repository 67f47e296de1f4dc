//! Links the program at fixed addresses, as the machine has no loader.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "none") {
        let folder = std::env::var("CARGO_MANIFEST_DIR").expect("folder of the package");
        println!("cargo:rustc-link-arg-bins=-T{folder}/link.ld");
        println!("cargo:rustc-link-arg-bins=--no-pie");
    }
    println!("cargo:rerun-if-changed=link.ld");
}
