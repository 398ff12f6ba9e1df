//! What the five posts published, as far as it was in numbers: tables to set ours beside. Their machines were other ones: what is to be
//! compared is who is ahead of whom, and by how much, not the rates themselves.

/// A table of a post.
#[derive(Debug)]
pub struct PostTable {
    /// Which post: A to E.
    pub post: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Headings.
    pub headings: &'static [&'static str],
    /// Rows, whose first cell is their name.
    pub rows: &'static [&'static [&'static str]],
    /// What to know of it.
    pub note: &'static str,
}

/// What a post concluded, to be looked at with ours.
#[derive(Debug)]
pub struct Post {
    /// Which: A to E.
    pub letter: &'static str,
    /// The workload that repeats it.
    pub workload: &'static str,
    /// Its title and date.
    pub title: &'static str,
    /// Its conclusions.
    pub conclusions: &'static [&'static str],
}

/// The posts.
pub const POSTS: [Post; 5] = [
    Post {
        letter: "A",
        workload: "point",
        title: "TokuMX, MongoDB and InnoDB on IO-bound point queries, April 2014",
        conclusions: &[
            "a clustered primary key reads least: InnoDB 0.83 disk reads a query, MongoDB (index and heap apart) 1.65",
            "small pages with light compression (quicklz, 8 KB) are much faster than large ones (zlib, 64 KB)",
            "MongoDB has the most context switches: a lock is taken twice a query, because it is released around disk reads",
        ],
    },
    Post {
        letter: "B",
        workload: "sysbench",
        title: "MongoDB sysbench-mongo benchmark, June 2015",
        conclusions: &[
            "WiredTiger does about twice mmapv1's rate; write-optimised engines (RocksDB, TokuMX, TokuMXse) do more still",
            "WiredTiger's rate follows its checkpoints: every 900 s instead of 60 s raises the mean and deepens the dips",
            "RocksDB writes by far the least per operation; TokuMX does not gain from more cache",
        ],
    },
    Post {
        letter: "C",
        workload: "kv",
        title: "Finally, the simple comparison of KVSs, August 2012",
        conclusions: &[
            "all in memory, MongoDB reads single rows 3.5 times as fast as MySQL with InnoDB or NDB through SQL",
        ],
    },
    Post {
        letter: "D",
        workload: "linkbench",
        title: "LinkBench: MySQL and Percona Server, May 2013; MongoDB and TokuMX, May 2015",
        conclusions: &[
            "with ten times the data of the pool, flushing decides: Percona Server 5.5 does twice MySQL 5.5's rate",
            "without transactions MongoDB's counts go wrong (said by a later post): compare only runs whose counts are right",
        ],
    },
    Post {
        letter: "E",
        workload: "iibench",
        title: "Read-modify-write optimized, December 2014",
        conclusions: &[
            "a B-tree inserts fastest while its secondary indexes fit in cache, and loses badly when they do not",
            "an LSM tree's rate does not move with the cache; it costs 3.6 times the B-tree's CPU in 144 GB, and 1.04 times in 8 GB",
        ],
    },
];

/// The tables.
pub const TABLES: [PostTable; 6] = [
    PostTable {
        post: "A",
        title: "queries per second by clients",
        headings: &["config", "@8", "@16", "@32", "@64", "@128", "disk reads/query @128", "switches/s @128"],
        rows: &[
            &["InnoDB, 8 KB", "31459", "55988", "92927", "96628", "96771", "0.83", "410279"],
            &["InnoDB, 2x zlib", "21766", "46967", "66423", "72508", "-", "-", "-"],
            &["TokuMX, 8 KB quicklz", "28076", "46139", "64839", "64467", "61686", "1.09", "308911"],
            &["TokuMX, 8 KB zlib", "24592", "41665", "59477", "59817", "-", "-", "-"],
            &["TokuMX, 64 KB zlib", "11109", "18519", "26048", "28594", "-", "-", "-"],
            &["MongoDB 2.6", "18635", "36916", "52523", "63469", "59916", "1.65", "432390"],
        ],
        note: "24 cores, 320 M documents, flash, 8 KB of readahead; MongoDB without the index on k",
    },
    PostTable {
        post: "A",
        title: "CPU of server and client, percent of a core (top)",
        headings: &["config", "@8", "@16", "@32", "@64", "@128"],
        rows: &[
            &["InnoDB, 8 KB", "490+120", "930+216", "1500+320", "1800+390", "1800+400"],
            &["TokuMX, 8 KB quicklz", "490+105", "900+200", "1400+300", "1400+320", "1450+380"],
            &["MongoDB 2.6", "460+100", "800+150", "1200+250", "1450+300", "1600+360"],
        ],
        note: "at 64 clients that is 186, 217 and 228 us of the server a query, and 40, 50 and 47 us of the client",
    },
    PostTable {
        post: "B",
        title: "transactions per second, mean of the second hour, by cache and cap",
        headings: &[
            "cache/cap",
            "mmapv1",
            "WiredTiger, 60 s",
            "WiredTiger, 900 s",
            "RocksDB",
            "TokuMX",
            "TokuMXse",
        ],
        rows: &[
            &["8/16 GB", "26", "53", "58", "81", "107", "89"],
            &["16/32 GB", "31", "61", "67", "91", "107", "100"],
            &["32/48 GB", "35", "67", "72", "104", "102", "84"],
        ],
        note: "640 collections of 1 M documents, 64 clients, six SAS disks; 60 s and 900 s are the checkpoint's period",
    },
    PostTable {
        post: "C",
        title: "reads per second",
        headings: &["system", "reads/s"],
        rows: &[&["MongoDB", "110000"], &["MySQL with InnoDB", "30000"], &["MySQL with NDB", "32000"]],
        note: "105 M rows, all in memory, 100 clients on 8 cores; InnoDB's rows went through SQL, MongoDB's did not",
    },
    PostTable {
        post: "D",
        title: "what is known in numbers: the charts are pictures",
        headings: &["config", "requests/s"],
        rows: &[
            &["best MySQL 5.6, 100 M ids, 30 GB pool", "about 15000"],
            &["Percona Server 5.5 by MySQL 5.5, 100 M ids", "about 2x"],
        ],
        note: "64 and 128 clients, 1800 s; log flushed at each commit",
    },
    PostTable {
        post: "E",
        title: "costs per 200 documents (the post says 200k, which its own sizes rule out)",
        headings: &[
            "engine, cache",
            "switches",
            "(us+sy %) x 10^6",
            "KB written",
            "KB read",
            "reads",
            "end size",
        ],
        rows: &[
            &["WiredTiger B-tree, 144 GB", "29", "42445", "417", "0.49", "0.02", "310 GB"],
            &["WiredTiger B-tree, 32 GB", "306", "67025", "791", "179.0", "17.66", "310 GB"],
            &["WiredTiger B-tree, 8 GB", "1744", "140560", "2524", "1889.0", "215.0", "310 GB"],
            &["WiredTiger LSM, 144 GB", "76", "152235", "294", "0.31", "0.02", "290 GB"],
            &["WiredTiger LSM, 32 GB", "134", "148545", "359", "65.0", "4.02", "290 GB"],
            &["WiredTiger LSM, 8 GB", "137", "146215", "355", "65.0", "4.11", "290 GB"],
            &["mmapv1, 144 GB", "350", "79500", "2414", "3.17", "0.16", "815 GB"],
        ],
        note: "2,000 M documents, 10 clients, three secondary indexes, 40 hardware threads",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_wide_as_their_headings_and_every_post_has_a_table() {
        for table in &TABLES {
            assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{}", table.title);
            assert!(POSTS.iter().any(|post| post.letter == table.post));
        }
        assert!(POSTS.iter().all(|post| TABLES.iter().any(|table| table.post == post.letter)));
    }
}
