//! The records of the tree `servers`: the members of a shared store, and the barriers that they have raised.
//!
//! ```text
//! key    "m" | member, u64 BE     value  beats u64 BE | seen u64 BE | held u64 BE, any number of them
//! key    "b" | namespace          value  owner u64 BE | number u64 BE
//! key    "s" | member, u64 BE     value  the name of its server
//! key    "q" | question, u64 BE   value  asker u64 BE | number of the asked u32 BE | asked u64 BE … | text
//! key    "n"                      value  the last number of a member or a barrier, u64 BE
//! key    "t"                      value  the last number of a tree, u64 BE
//! key    "v"                      value  the version of the catalog tree, u64 BE
//! key    "w" | question | member  value  the answer of the member, any bytes
//! ```
//!
//! Answers may be large, and stand behind all that the members look at again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use pando_storage::{
    BlockingMode, Cursor, Direction, ErrorKind, KeyRange, StorageError, Transaction, TreeId,
};

pub(super) const LAST_NUMBER: &[u8] = b"n";
pub(super) const LAST_TREE: &[u8] = b"t";
pub(super) const VERSION: &[u8] = b"v";
const MEMBERS: u8 = b'm';
const BARRIERS: u8 = b'b';
const NAMES: u8 = b's';
const QUESTIONS: u8 = b'q';
const ANSWERS: u8 = b'w';

/// A member, as it has told the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberRecord {
    /// How often it has written the record.
    pub beats: u64,
    /// The version of the catalog tree by which it works.
    pub seen: u64,
    /// The numbers of the barriers that it stands behind.
    pub held: Vec<u64>,
}

/// A barrier before a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierRecord {
    /// The member that has raised it.
    pub owner: u64,
    pub number: u64,
}

/// A question of a member to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuestionRecord {
    pub asker: u64,
    pub asked: BTreeSet<u64>,
    pub text: Vec<u8>,
}

/// All of the tree at one snapshot, but for the answers.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub version: u64,
    pub members: BTreeMap<u64, MemberRecord>,
    /// By `database.collection`.
    pub barriers: BTreeMap<String, BarrierRecord>,
    /// The names of the members' servers.
    pub names: BTreeMap<u64, String>,
    pub questions: BTreeMap<u64, QuestionRecord>,
}

impl MemberRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = [self.beats, self.seen].into_iter().chain(self.held.iter().copied());
        numbers.flat_map(u64::to_be_bytes).collect()
    }

    fn decode(bytes: &[u8]) -> Option<MemberRecord> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|number| u64::from_be_bytes(*number));
        let (beats, seen) = (numbers.next()?, numbers.next()?);
        rest.is_empty().then(|| MemberRecord { beats, seen, held: numbers.collect() })
    }
}

impl BarrierRecord {
    pub(super) fn encode(self) -> Vec<u8> {
        [self.owner.to_be_bytes(), self.number.to_be_bytes()].concat()
    }

    fn decode(bytes: &[u8]) -> Option<BarrierRecord> {
        let (owner, number) = bytes.split_first_chunk::<8>()?;
        let number = u64::from_be_bytes(number.try_into().ok()?);
        Some(BarrierRecord { owner: u64::from_be_bytes(*owner), number })
    }
}

impl QuestionRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.asker.to_be_bytes().to_vec();
        let count = u32::try_from(self.asked.len()).expect("a store has fewer servers than four billion");
        bytes.extend(count.to_be_bytes());
        bytes.extend(self.asked.iter().flat_map(|member| member.to_be_bytes()));
        bytes.extend(&self.text);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<QuestionRecord> {
        let (asker, bytes) = bytes.split_first_chunk::<8>()?;
        let (count, bytes) = bytes.split_first_chunk::<4>()?;
        let asked_bytes = usize::try_from(u32::from_be_bytes(*count)).ok()?.checked_mul(8)?;
        let (asked, text) = bytes.split_at_checked(asked_bytes)?;
        let asked = asked.as_chunks::<8>().0.iter().map(|member| u64::from_be_bytes(*member));
        Some(QuestionRecord {
            asker: u64::from_be_bytes(*asker),
            asked: asked.collect(),
            text: text.to_vec(),
        })
    }
}

impl Board {
    /// Reads the tree up to the answers.
    pub(super) fn read(transaction: &dyn Transaction, tree: TreeId) -> Result<Board, StorageError> {
        let mut board = Board::default();
        let looked_at = KeyRange { lower: Bound::Unbounded, upper: Bound::Excluded(vec![ANSWERS]) };
        let mut cursor = Cursor::new(tree, looked_at, Direction::Forward);
        while let Some((key, value)) = cursor.next(transaction, BlockingMode::MayBlock)? {
            board.add(key, value).ok_or_else(|| damaged(key))?;
        }
        Ok(board)
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key.split_first()? {
            (&MEMBERS, member) => {
                let member = u64::from_be_bytes(member.try_into().ok()?);
                self.members.insert(member, MemberRecord::decode(value)?);
            }
            (&BARRIERS, namespace) => {
                let namespace = std::str::from_utf8(namespace).ok()?.to_owned();
                self.barriers.insert(namespace, BarrierRecord::decode(value)?);
            }
            (&NAMES, member) => {
                let member = u64::from_be_bytes(member.try_into().ok()?);
                self.names.insert(member, std::str::from_utf8(value).ok()?.to_owned());
            }
            (&QUESTIONS, question) => {
                let question = u64::from_be_bytes(question.try_into().ok()?);
                self.questions.insert(question, QuestionRecord::decode(value)?);
            }
            _ if key == VERSION => self.version = number_of(value)?,
            _ => {}
        }
        Some(())
    }
}

pub(super) fn member_key(member: u64) -> Vec<u8> {
    [&[MEMBERS][..], &member.to_be_bytes()].concat()
}

pub(super) fn barrier_key(namespace: &str) -> Vec<u8> {
    [&[BARRIERS][..], namespace.as_bytes()].concat()
}

pub(super) fn name_key(member: u64) -> Vec<u8> {
    [&[NAMES][..], &member.to_be_bytes()].concat()
}

pub(super) fn question_key(question: u64) -> Vec<u8> {
    [&[QUESTIONS][..], &question.to_be_bytes()].concat()
}

pub(super) fn answer_key(question: u64, member: u64) -> Vec<u8> {
    [&[ANSWERS][..], &question.to_be_bytes(), &member.to_be_bytes()].concat()
}

/// The answers to a question, by member.
pub(super) fn read_answers(
    transaction: &dyn Transaction,
    tree: TreeId,
    question: u64,
) -> Result<BTreeMap<u64, Vec<u8>>, StorageError> {
    let answers_to_it = KeyRange::prefix(&[&[ANSWERS][..], &question.to_be_bytes()].concat());
    let mut cursor = Cursor::new(tree, answers_to_it, Direction::Forward);
    let mut answers = BTreeMap::new();
    while let Some((key, answer)) = cursor.next(transaction, BlockingMode::MayBlock)? {
        let member = key.last_chunk::<8>().ok_or_else(|| damaged(key))?;
        answers.insert(u64::from_be_bytes(*member), answer.to_vec());
    }
    Ok(answers)
}

/// The number at a key; 0 where there is none.
pub(super) fn number_at(
    transaction: &dyn Transaction,
    tree: TreeId,
    key: &[u8],
) -> Result<u64, StorageError> {
    match transaction.get(tree, key, BlockingMode::MayBlock)? {
        None => Ok(0),
        Some(value) => number_of(&value).ok_or_else(|| damaged(key)),
    }
}

fn number_of(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}

fn damaged(key: &[u8]) -> StorageError {
    let key = String::from_utf8_lossy(key).into_owned();
    StorageError::new(ErrorKind::Corrupt, format!("the record {key:?} in the tree of servers makes no sense"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_and_broken_ones_are_told() {
        let member = MemberRecord { beats: 3, seen: 1 << 40, held: vec![7, 9] };
        assert_eq!(MemberRecord::decode(&member.encode()), Some(member));
        let barrier = BarrierRecord { owner: 1, number: u64::MAX };
        assert_eq!(BarrierRecord::decode(&barrier.encode()), Some(barrier));
        assert_eq!(MemberRecord::decode(&[0; 8]), None);
        assert_eq!(MemberRecord::decode(&[0; 17]), None);
        assert_eq!(BarrierRecord::decode(&[0; 15]), None);
        for asked in [vec![], vec![3], vec![2, 5]] {
            let question = QuestionRecord { asker: 9, asked: asked.into_iter().collect(), text: vec![1, 2] };
            let bytes = question.encode();
            assert_eq!(QuestionRecord::decode(&bytes), Some(question));
            assert_eq!(QuestionRecord::decode(&bytes[..bytes.len() - 3]), None);
        }
        let mut board = Board::default();
        assert_eq!(board.add(b"m1", &[0; 16]), None);
        assert_eq!(board.add(&barrier_key("d.c"), &[0; 16]), Some(()));
        assert_eq!(board.add(&member_key(4), &[0; 16]), Some(()));
        assert!(board.members.contains_key(&4) && board.barriers.contains_key("d.c"));
    }
}
