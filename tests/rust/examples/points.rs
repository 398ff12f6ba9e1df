//! Point queries by the Rust driver, as `pando-bench point` makes them; prints what they cost this process.
//!
//! `points URI CLIENTS SECONDS DOCUMENTS`: so many queries at once, on one thread, since that is what costs
//! the driver least.

use mongodb::Client;
use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::options::ClientOptions;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The pool is filled, and caches are warm, before anything counts.
const WARM_UP: Duration = Duration::from_secs(2);

/// What is counted.
#[derive(Default)]
struct Counts {
    done: Cell<u64>,
    missed: Cell<u64>,
}

/// SplitMix64: the draws cost the driver nothing.
fn draw(state: &Cell<u64>) -> u64 {
    state.set(state.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
    let mixed = (state.get() ^ (state.get() >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// CPU time of this process so far, in seconds: fields 14 and 15 of its line, in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let line = std::fs::read_to_string("/proc/self/stat").expect("this is Linux");
    let behind = line.rsplit_once(')').expect("a name in parentheses").1;
    let ticks: Vec<f64> =
        behind.split_whitespace().skip(11).take(2).map(|field| field.parse().expect("a number")).collect();
    ticks.iter().sum::<f64>() / 100.0
}

async fn ask(client: &Client, seed: u64, documents: u64, end: Instant, counts: &Counts) {
    let collection = client.database("sbtest").collection::<RawDocumentBuf>("sbtest1");
    let state = Cell::new(seed);
    while Instant::now() < end {
        let id = 1 + i32::try_from(draw(&state) % documents).expect("few documents");
        let found = collection
            .find_one(doc! { "_id": id })
            .projection(doc! { "c": 1, "_id": 0 })
            .await
            .expect("the server answers");
        let length = found.as_ref().and_then(|document| document.get_str("c").ok()).map(str::len);
        if length != Some(119) {
            counts.missed.set(counts.missed.get() + 1);
        }
        counts.done.set(counts.done.get() + 1);
    }
}

async fn all(client: &Client, clients: u64, documents: u64, end: Instant, counts: &Counts) {
    futures_util::future::join_all((0..clients).map(|seed| ask(client, seed, documents, end, counts))).await;
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [uri, numbers @ ..] = arguments.as_slice() else { panic!("points URI CLIENTS SECONDS DOCUMENTS") };
    let numbers: Vec<u64> = numbers.iter().map(|text| text.parse().expect("a number")).collect();
    let [clients, seconds, documents] = numbers.as_slice() else {
        panic!("points URI CLIENTS SECONDS DOCUMENTS")
    };
    let mut options = ClientOptions::parse(uri).await.expect("a URI");
    options.max_pool_size = u32::try_from(*clients).ok();
    options.min_pool_size = options.max_pool_size;
    let client = Client::with_options(options).expect("possible options");
    all(&client, *clients, *documents, Instant::now() + WARM_UP, &Counts::default()).await;
    let counts = Counts::default();
    let (began, cpu) = (Instant::now(), cpu_seconds());
    all(&client, *clients, *documents, began + Duration::from_secs(*seconds), &counts).await;
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let done = counts.done.get().max(1) as f64;
    println!(
        "{{\"rate\": {}, \"cpu_us\": {}, \"missed\": {}}}",
        done / elapsed,
        cpu * 1e6 / done,
        counts.missed.get()
    );
}
