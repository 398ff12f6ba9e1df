//! The places of the collections (or tables) of a workload: one, or several that share its data, in one
//! database or several. One database against many was the point of a post, when a lock belonged to a
//! database.

/// Collections and their databases.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Spread {
    /// The database, or what the names of several begin with.
    pub database: String,
    /// How many databases the collections are spread over.
    pub databases: u32,
    /// The collection, or what the names of several begin with.
    pub collection: &'static str,
    /// How many collections there are.
    pub collections: u32,
}

impl Spread {
    /// Database and name of a collection, counted from 0. Several are numbered from 1, as sysbench's are; of
    /// several databases the first holds the first collection, the second the second, and so on around.
    pub fn place(&self, collection: u32) -> (String, String) {
        let numbered = |name: &str, count: u32, number: u32| match count {
            1 => name.to_owned(),
            _ => format!("{name}{}", number + 1),
        };
        let database = numbered(&self.database, self.databases, collection % self.databases);
        (database, numbered(self.collection, self.collections, collection))
    }

    /// The databases that have a collection of it.
    pub fn all_databases(&self) -> Vec<String> {
        (0..self.collections.min(self.databases)).map(|collection| self.place(collection).0).collect()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (String, String)> + '_ {
        (0..self.collections).map(|collection| self.place(collection))
    }

    /// The collection, from 0, of the thing with this number.
    pub fn of(&self, number: u64) -> u32 {
        u32::try_from(number % u64::from(self.collections)).unwrap_or(0)
    }

    /// How many of so many things a collection has, if they go around.
    pub fn share(&self, things: u32, collection: u32) -> u32 {
        let up_to = u64::from(things) + u64::from(self.collections - 1 - collection);
        u32::try_from(up_to / u64::from(self.collections)).unwrap_or(u32::MAX)
    }

    /// In words, behind what is spread; nothing for one collection.
    pub fn summary(&self) -> String {
        match (self.collections, self.databases) {
            (1, 1) => String::new(),
            (collections, 1) => format!(", in {collections} collections"),
            (collections, databases) => format!(", in {collections} collections of {databases} databases"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// So many collections in so many databases.
    pub fn spread(collections: u32, databases: u32) -> Spread {
        Spread { database: "kv".into(), databases, collection: "keyvalue", collections }
    }

    #[test]
    fn one_has_the_plain_names_and_several_go_around_the_databases() {
        assert_eq!(spread(1, 1).place(0), ("kv".into(), "keyvalue".into()));
        let names: Vec<String> =
            spread(3, 2).all().map(|(database, name)| format!("{database}.{name}")).collect();
        assert_eq!(names, ["kv1.keyvalue1", "kv2.keyvalue2", "kv1.keyvalue3"]);
        assert_eq!(spread(3, 2).all_databases(), ["kv1", "kv2"]);
        assert_eq!(spread(1, 1).all_databases(), ["kv"]);
    }

    #[test]
    fn shares_add_up_and_are_those_of_going_around() {
        for (things, collections) in [(0, 3), (1, 3), (7, 3), (100, 7), (5, 1), (u32::MAX - 1, 4)] {
            let spread = spread(collections, 1);
            let all: u64 =
                (0..collections).map(|collection| u64::from(spread.share(things, collection))).sum();
            assert_eq!(all, u64::from(things));
            if things <= 100 {
                for collection in 0..collections {
                    let counted =
                        (0..things).filter(|thing| spread.of(u64::from(*thing)) == collection).count();
                    assert_eq!(
                        spread.share(things, collection) as usize,
                        counted,
                        "{collection} of {collections}"
                    );
                }
            }
        }
    }
}
