//! Questions of one member to others, and their answers: any bytes, of which the layers above know the
//! meaning.
//!
//! # Steps
//! 1. The asker writes the question, and waits for the answers of the members that it names.
//! 2. A member finds the question at its next look, and writes its answer.
//! 3. The asker removes the question with all answers.
//!
//! # Invariants
//! - An answer stands beside its question only: the member that answers rewrites the question's record, which
//!   conflicts with its removal.
//! - A question is removed by its asker, or by the first member when the asker is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pando_storage::{Begin, BlockingMode, ErrorKind, Operation, OperationWait, StorageError};
use parking_lot::Mutex;

use super::records::{QuestionRecord, answer_key, name_key, question_key, read_answers};
use super::{Board, LAST_NUMBER, Sharing};
use crate::error::CatalogError;

/// The longest wait of an asker. A member looks for questions five times a second.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// The pause between two looks for answers.
const ANSWERS_EVERY: Duration = Duration::from_millis(10);
/// The longest answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The servers that a question is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'n> {
    /// All others.
    Others,
    /// Those of this name.
    Named(&'n str),
}

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The name of the server.
    pub server: String,
    /// The answer.
    pub text: Vec<u8>,
}

/// The answers to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Those that came in time.
    pub given: Vec<Answer>,
    /// The names of servers that have not answered.
    pub silent: Vec<String>,
}

/// A question of another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    number: u64,
    /// The question.
    pub text: Vec<u8>,
}

/// The state of a member's questions.
#[derive(Default)]
pub(super) struct Questions {
    /// The questions that it has asked and not removed.
    asking: Mutex<BTreeSet<u64>>,
    /// The questions of others that the last look has found, and whether each is answered.
    found: Mutex<BTreeMap<u64, Found>>,
}

struct Found {
    text: Vec<u8>,
    is_answered: bool,
}

/// A question under way; it is removed when this is dropped.
struct Asking<'s> {
    sharing: &'s Sharing,
    number: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.sharing.remove_question(self.number) {
            tracing::debug!(%error, "a question to other servers is removed later");
        }
        // From now on a look removes what is left of it.
        self.sharing.questions.asking.lock().remove(&self.number);
    }
}

impl Sharing {
    /// Asks other members, and waits for their answers for two seconds at most. Without a member of the name
    /// there are neither answers nor silent ones.
    pub(crate) fn ask(
        &self,
        asked: Asked<'_>,
        text: &[u8],
        operation: &Operation,
    ) -> Result<Answers, CatalogError> {
        self.check_trusted()?;
        let board = self.read_board()?;
        let name_of = |member: &u64| board.names.get(member).cloned().unwrap_or_default();
        let mut wanted: BTreeMap<u64, String> = board
            .members
            .keys()
            .filter(|member| **member != self.member())
            .map(|member| (*member, name_of(member)))
            .collect();
        if let Asked::Named(name) = asked {
            wanted.retain(|_, named| named == name);
        }
        if wanted.is_empty() {
            return Ok(Answers::default());
        }
        let asking = self.put_question(wanted.keys().copied().collect(), text)?;
        let asked_at = self.now();
        let mut given = operation.wait_for(OperationWait::Servers, || {
            let answers = self.answers_to(asking.number);
            let is_over = self.now().since(asked_at) >= ANSWERED_WITHIN;
            if answers.as_ref().is_ok_and(|answers| answers.len() < wanted.len()) && !is_over {
                std::thread::sleep(ANSWERS_EVERY);
                return None;
            }
            Some(answers)
        })??;
        let mut answers = Answers::default();
        for (member, server) in wanted {
            match given.remove(&member) {
                Some(text) => answers.given.push(Answer { server, text }),
                None => answers.silent.push(server),
            }
        }
        Ok(answers)
    }

    fn put_question(&self, asked: BTreeSet<u64>, text: &[u8]) -> Result<Asking<'_>, StorageError> {
        let record = QuestionRecord { asker: self.member(), asked, text: text.to_vec() }.encode();
        let mut noted = None;
        let put = self.change(|transaction| {
            let number = self.next(transaction, LAST_NUMBER, 0)?;
            // Before the commit: a look removes questions of this member that it does not ask.
            let mut asking = self.questions.asking.lock();
            asking.insert(number);
            if let Some(tried) = noted.replace(number).filter(|tried| *tried != number) {
                asking.remove(&tried);
            }
            transaction.put(self.tree, &question_key(number), &record)?;
            Ok(number)
        });
        match put {
            Ok(number) => Ok(Asking { sharing: self, number }),
            Err(error) => {
                if let Some(number) = noted {
                    self.questions.asking.lock().remove(&number);
                }
                Err(error)
            }
        }
    }

    fn answers_to(&self, question: u64) -> Result<BTreeMap<u64, Vec<u8>>, StorageError> {
        let reader = self.engine.begin(Begin::READ)?;
        let answers = read_answers(&*reader, self.tree, question);
        reader.rollback();
        answers
    }

    fn remove_question(&self, question: u64) -> Result<(), StorageError> {
        self.change(|transaction| {
            for member in read_answers(transaction, self.tree, question)?.into_keys() {
                transaction.delete(self.tree, &answer_key(question, member))?;
            }
            transaction.delete(self.tree, &question_key(question))
        })
    }

    /// Notes the questions to this member that a look has found.
    pub(crate) fn note_questions(&self, board: &Board) {
        let member = self.member();
        let mut found = self.questions.found.lock();
        found.retain(|number, _| board.questions.contains_key(number));
        for (number, question) in board.questions.iter().filter(|(_, one)| one.asked.contains(&member)) {
            let text = || Found { text: question.text.clone(), is_answered: false };
            found.entry(*number).or_insert_with(text);
        }
    }

    /// The questions to this member that it has not answered.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let found = self.questions.found.lock();
        let open = found.iter().filter(|(_, question)| !question.is_answered);
        open.map(|(number, question)| Question { number: *number, text: question.text.clone() }).collect()
    }

    /// Answers a question. One that is gone needs no answer.
    pub(crate) fn answer(&self, question: &Question, text: &[u8]) -> Result<(), StorageError> {
        if text.len() > ANSWER_BYTES_MAX {
            let message = format!("an answer to another server has more than {ANSWER_BYTES_MAX} bytes");
            return Err(StorageError::new(ErrorKind::InvalidInput, message));
        }
        let key = question_key(question.number);
        self.change(|transaction| {
            let Some(record) = transaction.get(self.tree, &key, BlockingMode::MayBlock)? else {
                return Ok(());
            };
            transaction.put(self.tree, &key, &record)?;
            transaction.put(self.tree, &answer_key(question.number, self.member()), text)
        })?;
        if let Some(found) = self.questions.found.lock().get_mut(&question.number) {
            found.is_answered = true;
        }
        Ok(())
    }

    /// Removes the questions and the names of members that are gone, and what is left of this member's own
    /// questions.
    pub(super) fn clear_questions(&self, board: &Board) -> Result<(), StorageError> {
        let (member, is_first) = (self.member(), self.is_first());
        for (number, question) in &board.questions {
            let is_left = match question.asker == member {
                true => !self.questions.asking.lock().contains(number),
                false => is_first && !board.members.contains_key(&question.asker),
            };
            if is_left {
                self.remove_question(*number)?;
            }
        }
        for gone in board.names.keys().filter(|named| is_first && !board.members.contains_key(*named)) {
            self.change(|transaction| transaction.delete(self.tree, &name_key(*gone)))?;
        }
        Ok(())
    }
}
