//! The database in one's own process: a folder, a typed collection, an index, a query, an aggregate.
//!
//! ```sh
//! cargo run -p pandodb --example cities -- ./my-data
//! ```

use pandodb::{Pando, doc};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct City {
    #[serde(rename = "_id")]
    name: String,
    country: String,
    people: i64,
}

#[derive(Debug, Deserialize)]
struct Total {
    #[serde(rename = "_id")]
    country: String,
    people: i64,
}

fn city(name: &str, country: &str, people: i64) -> City {
    City { name: name.to_owned(), country: country.to_owned(), people }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "cities-data".to_owned());
    let pando = Pando::open(&folder)?;
    let cities = pando.database("atlas").collection::<City>("cities");
    if cities.count_documents(doc! {}).run()? == 0 {
        cities.create_index(doc! { "people": -1 }).run()?;
        cities
            .insert_many(&[
                city("Utrecht", "NL", 374_000),
                city("Groningen", "NL", 244_000),
                city("Reykjavík", "IS", 139_000),
                city("Hafnarfjörður", "IS", 30_000),
            ])
            .run()?;
    }
    println!("Cities of more than 100,000 people, the largest first:");
    for city in cities.find(doc! { "people": { "$gt": 100_000 } }).sort(doc! { "people": -1 }).run()? {
        let city = city?;
        println!("  {} ({}): {}", city.name, city.country, city.people);
    }
    println!("People by country:");
    let totals = cities
        .aggregate([
            doc! { "$group": { "_id": "$country", "people": { "$sum": "$people" } } },
            doc! { "$sort": { "_id": 1 } },
        ])
        .with_type::<Total>()
        .run()?;
    for total in totals {
        let total = total?;
        println!("  {}: {}", total.country, total.people);
    }
    pando.close()?;
    println!("Kept in {folder}.");
    Ok(())
}
