//! Answers of a running server, as text.

#![expect(clippy::float_arithmetic, reason = "for the eye only: nothing is ordered by it")]

use blockyard_serve::control::{Client, Delay, Export, Limits, Listing};
use blockyard_serve::counted;
use blockyard_text::number::{approximate, count, digits, mebibytes, time};

use super::table::{Align, Table};

const SIZES: [(u32, &str); 5] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")];
const AGES: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];

/// The exports and clients of a server as two tables.
pub(crate) fn listing(listing: &Listing) -> String {
    let mut exports = Table::new(&[
        ("export", Align::Left),
        ("kind", Align::Left),
        ("size", Align::Right),
        ("clients", Align::Right),
        ("in flight", Align::Right),
        ("read/s", Align::Right),
        ("MiB/s", Align::Right),
        ("write/s", Align::Right),
        ("MiB/s", Align::Right),
    ]);
    listing.exports.iter().for_each(|export| exports.row(export_row(export)));
    let health: String = listing.exports.iter().filter_map(health).collect();
    let layers: String = listing.exports.iter().filter_map(layers).collect();
    let exports = format!("{exports}{health}{layers}");
    if listing.clients.is_empty() {
        return format!("{exports}\nno clients\n");
    }
    let mut clients = Table::new(&[
        ("client", Align::Right),
        ("peer", Align::Left),
        ("export", Align::Left),
        ("TLS", Align::Left),
        ("since", Align::Right),
        ("in flight", Align::Right),
        ("request/s", Align::Right),
    ]);
    listing.clients.iter().for_each(|client| clients.row(client_row(client)));
    format!("{exports}\n{clients}{}", shares(&listing.clients))
}

/// The shares of clients as a third table, if one of them has a weight.
fn shares(clients: &[Client]) -> String {
    if clients.iter().all(|client| client.weight.is_none()) {
        return String::new();
    }
    let mut shares = Table::new(&[
        ("client", Align::Right),
        ("export", Align::Left),
        ("MiB/s", Align::Right),
        ("share", Align::Right),
        ("weight", Align::Right),
    ]);
    clients.iter().for_each(|client| shares.row(share_row(client)));
    format!("\n{shares}")
}

fn export_row(export: &Export) -> [String; 9] {
    let rates = &export.rates;
    [
        name(&export.name),
        format!("{}{}", export.kind, if export.read_only { ", ro" } else { "" }),
        size(export.size_bytes),
        export.clients.to_string(),
        export.in_flight.to_string(),
        rate(rates.reads_per_s),
        mebibytes(rates.read_bytes_per_s),
        rate(rates.writes_per_s),
        mebibytes(rates.written_bytes_per_s),
    ]
}

/// What there is to say about the health of an export, in a line.
fn health(export: &Export) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(btt) = &export.btt {
        let arenas = counted(btt.arenas, "arena");
        parts.push(format!("BTT with {arenas}, {}", counted(btt.free_blocks, "free block")));
        if btt.read_only_arenas > 0 {
            parts.push(format!("{} read-only", btt.read_only_arenas));
        }
        if btt.unfinished_writes > 0 {
            parts.push(format!("{} to finish", counted(btt.unfinished_writes, "cut write")));
        }
        if btt.broken {
            parts.push("a write failed halfway: all writes are refused".to_owned());
        }
    }
    if let Some(damage) = &export.damage {
        parts.push(format!("{damage} ({} so far)", export.failed_requests));
    }
    if export.flush_failed {
        parts.push("the last flush failed: writes that were answered may be lost".to_owned());
    }
    (!parts.is_empty()).then(|| format!("{}: {}\n", name(&export.name), parts.join("; ")))
}

/// The rates, delay and fault rules that an operator may change on an export, in a line.
fn layers(export: &Export) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(export.limits.as_ref().map(limits));
    parts.extend(export.delay.as_ref().map(delay));
    parts.extend(export.faults.as_deref().map(|rules| match rules {
        [] => "no fault rules".to_owned(),
        rules => format!("fault rules {}", rules.join(", ")),
    }));
    (!parts.is_empty()).then(|| format!("{}: {}\n", name(&export.name), parts.join("; ")))
}

fn limits(limits: &Limits) -> String {
    let bytes = limits.bytes_per_s.map(|bytes| format!("{}/s", size(bytes)));
    let requests = limits.requests_per_s.map(|requests| format!("{} requests/s", rate(requests)));
    let both: Vec<_> = bytes.into_iter().chain(requests).collect();
    match limits.burst_ns {
        _ if both.is_empty() => "unlimited".to_owned(),
        0 => format!("at most {}", both.join(", ")),
        burst_ns => format!("at most {}, bursts of {}", both.join(", "), time(burst_ns)),
    }
}

fn delay(delay: &Delay) -> String {
    match (delay.min_ns, delay.max_ns) {
        (_, 0) => "no delay".to_owned(),
        (min_ns, max_ns) if min_ns == max_ns => format!("delayed by {}", time(min_ns)),
        (min_ns, max_ns) => format!("delayed by {} to {}", time(min_ns), time(max_ns)),
    }
}

fn client_row(client: &Client) -> [String; 7] {
    [
        client.id.to_string(),
        client.peer.clone(),
        client.export.as_deref().map_or_else(|| "-".to_owned(), name),
        client.tls.clone().unwrap_or_else(|| "no".to_owned()),
        age(client.connected_s),
        client.in_flight.to_string(),
        rate(client.requests_per_s),
    ]
}

fn share_row(client: &Client) -> [String; 5] {
    let nothing = || "-".to_owned();
    [
        client.id.to_string(),
        client.export.as_deref().map_or_else(nothing, name),
        mebibytes(client.bytes_per_s),
        client.share_percent.map_or_else(nothing, |percent| format!("{percent} %")),
        client.weight.map_or_else(nothing, |weight| weight.to_string()),
    ]
}

fn name(name: &str) -> String {
    if name.is_empty() { "(default)".to_owned() } else { name.to_owned() }
}

fn rate(rate: u64) -> String {
    count(approximate(rate))
}

/// A size in its largest unit, with decimals only if it is not a whole number of them.
fn size(bytes: u64) -> String {
    let unit = SIZES.into_iter().find(|(shift, _)| bytes >> shift > 0);
    let (shift, unit) = unit.unwrap_or((0, "B"));
    let whole = bytes >> shift;
    match whole << shift == bytes {
        true => format!("{whole} {unit}"),
        false => format!("{} {unit}", digits(approximate(bytes) / approximate(1 << shift))),
    }
}

fn age(seconds: u64) -> String {
    let unit = AGES.into_iter().find(|(length, _)| seconds >= *length);
    let (length, unit) = unit.unwrap_or((1, "s"));
    format!("{} {unit}", seconds / length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The line about an export with these keys.
    fn line(keys: &Value) -> Option<String> {
        let mut export = serde_json::to_value(Export::default()).unwrap();
        export.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        layers(&serde_json::from_value(export).unwrap())
    }

    /// An export without layers has no line. 20 MiB/s are 20,971,520 B/s.
    #[test]
    fn the_layers_of_an_export_are_a_line_below_the_table() {
        assert_eq!(line(&json!({})), None);
        let both =
            json!({ "bytes_per_s": 20_971_520, "requests_per_s": 500, "burst_ns": 1_000_000_000 });
        let words = "(default): at most 20 MiB/s, 500 requests/s, bursts of 1.00 s\n";
        assert_eq!(line(&json!({ "limits": both })).unwrap(), words);
        let one = json!({ "bytes_per_s": null, "requests_per_s": 20, "burst_ns": 0 });
        assert_eq!(line(&json!({ "limits": one })).unwrap(), "(default): at most 20 requests/s\n");
        let all = json!({
            "name": "disk",
            "limits": { "bytes_per_s": null, "requests_per_s": null, "burst_ns": 0 },
            "delay": { "min_ns": 1_000_000, "max_ns": 3_000_000 },
            "faults": ["cut", "full"],
        });
        let words = "disk: unlimited; delayed by 1.00 ms to 3.00 ms; fault rules cut, full\n";
        assert_eq!(line(&all).unwrap(), words);
        let none = json!({ "delay": { "min_ns": 0, "max_ns": 0 }, "faults": [] });
        assert_eq!(line(&none).unwrap(), "(default): no delay; no fault rules\n");
    }

    #[test]
    fn sizes_and_ages_are_short() {
        let sizes = [0, 511, 1 << 20, 3 << 29, (1 << 40) + 1].map(size);
        assert_eq!(sizes, ["0 B", "511 B", "1 MiB", "1.50 GiB", "1.00 TiB"]);
        assert_eq!([0, 59, 60, 7199, 200_000].map(age), ["0 s", "59 s", "1 min", "1 h", "2 d"]);
    }
}
