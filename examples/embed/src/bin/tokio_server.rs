//! A server on tokio: clients read and write one disk over TCP. `cargo run --bin tokio_server
//! ADDRESS FILE`.
//!
//! A request is a letter, an offset and a length, both little-endian: `r` reads, `w` writes the
//! bytes that follow, `f` flushes. The reply is `+`, with the bytes of a read behind it, or `-`.

use blockyard_std::Disk;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The longest read or write, in bytes.
const LONGEST: u32 = 1 << 20;

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (address, path) = words
        .next()
        .zip(words.next())
        .ok_or_else(|| io::Error::other("usage: tokio_server ADDRESS FILE"))?;
    let disk = Disk::file(path)?;
    let clients = serve(TcpListener::bind(address).await?, disk.clone());
    tokio::select! {
        ended = clients => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    let report =
        tokio::task::spawn_blocking(|| disk.shutdown()).await.map_err(io::Error::other)??;
    println!("{:?}", report.stats);
    Ok(report.ok()?)
}

/// Serves each client that connects, in a task of its own.
async fn serve(listener: TcpListener, disk: Disk) -> io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        tokio::spawn(talk(client, disk.clone()));
    }
}

/// Answers the requests of one client, until it leaves.
async fn talk(mut client: TcpStream, disk: Disk) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut memory = Vec::new(); // each I/O takes it and gives it back
    loop {
        let kind = client.read_u8().await?;
        let offset = client.read_u64_le().await?;
        let len = client.read_u32_le().await?;
        if len > LONGEST {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let result;
        memory.resize(len as usize, 0);
        match kind {
            b'r' => (result, memory) = disk.read(memory, offset).await,
            b'w' => {
                client.read_exact(&mut memory).await?;
                (result, memory) = disk.write(memory, offset).await;
            }
            b'f' => result = disk.begin_flush().await,
            _ => return Err(io::Error::from(io::ErrorKind::InvalidData)),
        }
        client.write_u8(if result.is_ok() { b'+' } else { b'-' }).await?;
        if kind == b'r' && result.is_ok() {
            client.write_all(&memory).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(client: &mut TcpStream, kind: u8, offset: u64, len: u32, bytes: &[u8]) -> bool {
        let mut request = vec![kind];
        request.extend(offset.to_le_bytes());
        request.extend(len.to_le_bytes());
        request.extend(bytes);
        client.write_all(&request).await.unwrap();
        client.read_u8().await.unwrap() == b'+'
    }

    /// Eight clients at once, each with its own part of the disk, and one that leaves while its
    /// read is in flight.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn clients_read_what_they_wrote() {
        let disk = Disk::memory(1 << 20).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, disk.clone()));
        let clients = (0..8_u8).map(|own| {
            tokio::spawn(async move {
                let mut client = TcpStream::connect(address).await.unwrap();
                for round in 0..50_u8 {
                    let offset = u64::from(own) << 16 | u64::from(round) << 8;
                    let bytes = [own ^ round; 5000];
                    assert!(ask(&mut client, b'w', offset, 5000, &bytes).await);
                    assert!(ask(&mut client, b'r', offset, 5000, &[]).await);
                    let mut back = [0; 5000];
                    client.read_exact(&mut back).await.unwrap();
                    assert!(back == bytes, "client {own}, round {round}");
                }
                assert!(ask(&mut client, b'f', 0, 0, &[]).await);
                assert!(!ask(&mut client, b'r', 1 << 20, 1, &[]).await, "beyond the end");
            })
        });
        let mut leaver = TcpStream::connect(address).await.unwrap();
        leaver.write_all(&[b'r', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0]).await.unwrap();
        drop(leaver);
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        server.abort();
        let report = tokio::task::spawn_blocking(|| disk.shutdown()).await.unwrap().unwrap();
        assert_eq!((report.ok(), report.stats.writes.ended), (Ok(()), 8 * 50));
    }
}
