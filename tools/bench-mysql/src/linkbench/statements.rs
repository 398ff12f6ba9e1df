//! LinkBench's statements, prepared once per connection.

use mysql::prelude::Queryable;
use mysql::{Conn, Statement};
use std::collections::HashMap;

/// Statements that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    UpsertLink,
    ChangeLink,
    HideLink,
    AddToCount,
    TakeFromCount,
    AddNode,
    ChangeNode,
    DeleteNode,
}

/// Statements that read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    Count,
    List,
    Node,
}

const WRITING: usize = 8;
const READING: usize = 3;

/// All that one client has prepared.
pub struct Statements {
    writing: [Statement; WRITING],
    reading: [Statement; READING],
    /// The visibility of a link, under a lock.
    pub read_for_delete: Statement,
    /// By the number of links.
    multigets: HashMap<usize, Statement>,
}

impl Statements {
    /// Prepares them for the tables of nodes, links and counts.
    pub fn prepare(
        writes: &mut Conn,
        reads: &mut Conn,
        tables: &[String; 3],
    ) -> Result<Statements, mysql::Error> {
        let [nodes, links, counts] = tables;
        let link_key = "id1 = ? AND link_type = ? AND id2 = ?";
        let writing = [
            format!(
                "INSERT INTO {links} (id1, link_type, id2, visibility, data, time, version) VALUES (?, ?, ?, 1, ?, ?, ?) \
                 ON DUPLICATE KEY UPDATE visibility = 1"
            ),
            format!("UPDATE {links} SET data = ?, time = ?, version = ? WHERE {link_key}"),
            format!("UPDATE {links} SET visibility = 0 WHERE {link_key} AND visibility = 1"),
            format!(
                "INSERT INTO {counts} (id, link_type, count, time, version) VALUES (?, ?, ?, ?, 0) \
                 ON DUPLICATE KEY UPDATE count = count + ?, version = version + 1, time = ?"
            ),
            format!(
                "INSERT INTO {counts} (id, link_type, count, time, version) VALUES (?, ?, -1, ?, 0) \
                 ON DUPLICATE KEY UPDATE count = count - 1, version = version + 1, time = ?"
            ),
            format!("INSERT INTO {nodes} (id, type, version, time, data) VALUES (?, ?, ?, ?, ?)"),
            format!("UPDATE {nodes} SET version = ?, time = ?, data = ? WHERE id = ? AND type = ?"),
            format!("DELETE FROM {nodes} WHERE id = ? AND type = ?"),
        ];
        let reading = [
            format!("SELECT count FROM {counts} WHERE id = ? AND link_type = ?"),
            // Time first, which the last link of a list is asked for; all columns are in the index.
            format!(
                "SELECT time, id1, id2, link_type, visibility, data, version FROM {links} FORCE INDEX (id1_type) \
                 WHERE id1 = ? AND link_type = ? AND visibility = 1 AND time >= 0 AND time <= ? \
                 ORDER BY time DESC LIMIT ?, ?"
            ),
            format!("SELECT type, id, version, time, data FROM {nodes} WHERE id = ?"),
        ];
        let for_delete = format!("SELECT visibility FROM {links} WHERE {link_key} FOR UPDATE");
        Ok(Statements {
            writing: all(writes, writing)?,
            reading: all(reads, reading)?,
            read_for_delete: writes.prep(for_delete)?,
            multigets: HashMap::new(),
        })
    }

    /// One that writes.
    pub fn of(&self, which: Writing) -> &Statement {
        &self.writing[which as usize]
    }

    /// One that reads.
    pub fn reading(&self, which: Reading) -> &Statement {
        &self.reading[which as usize]
    }

    /// The one that reads so many links by their keys, prepared when it is wanted first.
    pub fn multiget(
        &mut self,
        reads: &mut Conn,
        links: &str,
        count: usize,
    ) -> Result<Statement, mysql::Error> {
        if let Some(statement) = self.multigets.get(&count) {
            return Ok(statement.clone());
        }
        let places = vec!["?"; count].join(", ");
        let statement = reads.prep(format!(
            "SELECT id1, id2, link_type, visibility, data, time, version FROM {links} \
             WHERE id1 = ? AND link_type = ? AND id2 IN ({places})"
        ))?;
        self.multigets.insert(count, statement.clone());
        Ok(statement)
    }
}

/// Prepares all of these.
fn all<const N: usize>(connection: &mut Conn, texts: [String; N]) -> Result<[Statement; N], mysql::Error> {
    let mut prepared = Vec::with_capacity(N);
    for text in texts {
        prepared.push(connection.prep(text)?);
    }
    Ok(prepared.try_into().expect("there are as many statements as texts"))
}
