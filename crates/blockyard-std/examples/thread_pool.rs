//! Four threads read and write a file at random: `cargo run --example thread_pool FILE`.

use blockyard_std::Disk;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().nth(1).ok_or("usage: thread_pool FILE")?)
}

fn run(path: &str) -> Result<(), Box<dyn std::error::Error>> {
    let disk = Disk::file(path)?;
    let blocks = disk.size_bytes() / 4096;
    std::thread::scope(|threads| {
        for mut random in 1..=4_u64 {
            let disk = disk.clone();
            threads.spawn(move || {
                for _ in 0..1000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let offset = (random >> 33) % blocks * 4096;
                    let done = match random >> 63 {
                        0 => disk.read_at(&mut [0; 4096], offset),
                        _ => disk.write_at(&[7; 4096], offset),
                    };
                    done.expect("the file keeps its size");
                }
            });
        }
    });
    println!("{:?}", disk.shutdown()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    /// The example, and its length: an embedder's first program is short.
    #[test]
    fn four_threads_share_a_file() {
        let path = std::env::temp_dir().join(format!("blockyard-pool-{}", std::process::id()));
        std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
        super::run(path.to_str().unwrap()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(bytes.chunks(4096).all(|block| block == [0; 4096] || block == [7; 4096]));
        assert!(bytes.contains(&7));
        let program = include_str!("thread_pool.rs").split("#[cfg(test)]").next().unwrap();
        let lines = program.lines().filter(|line| !line.is_empty() && !line.starts_with("//"));
        assert!(lines.count() <= 30);
    }
}
