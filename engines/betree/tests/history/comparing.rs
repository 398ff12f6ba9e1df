//! The comparison of an engine's content, after a crash or now, with the effects of the commits.

use std::path::Path;
use std::sync::Arc;

use pando_betree::{Betree, verify_keeping};
use pando_storage::{
    Begin, BlockingMode, Cursor, Direction, Engine, ErrorKind, KeyRange, StorageError, Transaction, TreeId,
};

use super::{ANCHOR, Content, FOLDER, History, Image, NUMBER};

impl History {
    /// Checks the store offline, opens it, and compares what is there with what must and may be.
    pub fn recover(&mut self) {
        let (environment, folder) = (&self.simulation.environment, Path::new(FOLDER));
        if !Betree::exists(environment, folder).expect("the folder can be looked into") {
            assert_eq!(self.synced, 0, "{}: the store is gone", self.label);
            self.forget_all();
            self.open().unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
            return;
        }
        let report = verify_keeping(environment, folder, self.encryption().as_ref(), "")
            .unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
        assert!(report.is_sound(), "{}: {:?}", self.label, report.damage);
        self.slices_seen += report.trees.iter().map(|tree| tree.slices).sum::<u64>();
        self.ranges_seen += report.trees.iter().map(|tree| tree.deleted_ranges).sum::<u64>();
        let engine = Betree::open(environment, folder, self.options());
        self.engine = Some(engine.unwrap_or_else(|error| panic!("{}: {error:?}", self.label)));
        let survived = self.survived();
        assert!(
            survived >= self.synced,
            "{}: {survived} commits survived of {} synced",
            self.label,
            self.synced
        );
        let mut image = match self.images.get(survived) {
            Some(image) => image.clone(),
            None => self
                .attempted
                .clone()
                .unwrap_or_else(|| panic!("{}: commit {survived} never was", self.label)),
        };
        self.compare(&mut image, survived);
        self.check_backups(survived);
        self.images.truncate(survived);
        self.images.push(image);
        self.attempted = None;
        (self.synced, self.logged) = (survived, survived);
        if !self.trees.contains_key(ANCHOR) {
            self.create(ANCHOR).unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
        }
    }

    fn forget_all(&mut self) {
        self.trees.clear();
        self.images = vec![Image::new()];
        self.attempted = None;
        self.created_after.clear();
        self.dropped_after.clear();
    }

    /// The number of commits that the anchor knows of.
    fn survived(&mut self) -> usize {
        let listed = self.engine().list_trees().expect("trees are listed");
        self.trees = listed.into_iter().map(|tree| (tree.name, tree.id)).collect();
        let Some(anchor) = self.trees.get(ANCHOR) else { return 0 };
        let reader = self.engine().begin(Begin::READ).expect("a reader begins");
        let stamp = reader.get(*anchor, NUMBER, BlockingMode::MayBlock);
        let stamp = stamp.unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
        stamp.map_or(0, |stamp| {
            u64::from_le_bytes(*stamp.first_chunk().expect("a number has eight bytes")) as usize
        })
    }

    /// Compares each tree. Entries that may be there or not are taken over into the image as they are.
    fn compare(&self, image: &mut Image, survived: usize) {
        let reader = self.engine().begin(Begin::READ).expect("a reader begins");
        for (name, id) in &self.trees {
            let found =
                scan(reader.as_ref(), *id).unwrap_or_else(|error| panic!("{}: {error:?}", self.label));
            let expected = match (image.get(name), self.dropped_after.get(name)) {
                (Some(content), _) => content.clone(),
                (None, Some((after, content))) if *after >= survived => content.clone(),
                (None, _) => {
                    let created = self.created_after.get(name).copied();
                    assert!(created >= Some(survived), "{}: {name} should not be there", self.label);
                    Content::new()
                }
            };
            let hint = || describe_difference(&found, &expected);
            assert!(found == expected, "{}, {survived} commits: {name} differs: {}", self.label, hint());
            image.insert(name.clone(), found);
        }
        let missing: Vec<String> =
            image.keys().filter(|name| !self.trees.contains_key(*name)).cloned().collect();
        for name in missing {
            let is_dropped = self.dropped_after.get(&name).is_some_and(|(after, _)| *after >= survived);
            let is_young = self.created_after.get(&name).is_some_and(|after| *after >= survived);
            assert!(is_dropped || is_young, "{}, {survived} commits: {name} is missing", self.label);
            image.remove(&name);
        }
    }

    /// Compares the open engine with what every commit so far has made.
    pub fn check_now(&self) {
        let mut image = self.images[self.commits()].clone();
        self.compare(&mut image, self.commits());
    }

    /// Reads every tree and every key, and checks that every read without an error is right. How many errors
    /// there were: all must be of this kind.
    pub fn count_unreadable(&self, kind: ErrorKind) -> usize {
        let reader = self.engine().begin(Begin::READ).expect("a reader begins");
        let image = &self.images[self.commits()];
        let mut unreadable = 0;
        let mut judge = |error: StorageError| {
            assert_eq!(error.kind(), kind, "{}: {error:?}", self.label);
            unreadable += 1;
        };
        for (name, content) in image {
            let id = self.trees[name];
            match scan(reader.as_ref(), id) {
                Ok(found) => assert!(found == *content, "{}: {name} differs", self.label),
                Err(error) => judge(error),
            }
            for number in 0..90 {
                let key = format!("key-{number:03}").into_bytes();
                match reader.get(id, &key, BlockingMode::MayBlock) {
                    Ok(found) => {
                        let expected = content.get(&key).map(|value| value.as_slice());
                        assert_eq!(found.as_deref(), expected, "{}: {name}", self.label);
                    }
                    Err(error) => judge(error),
                }
            }
        }
        unreadable
    }
}

pub(super) fn describe_difference(found: &Content, expected: &Content) -> String {
    let keys = found.keys().chain(expected.keys());
    let wrong = keys.filter(|key| found.get(*key) != expected.get(*key)).take(3);
    let wrong: Vec<_> = wrong.map(|key| String::from_utf8_lossy(key).into_owned()).collect();
    format!("{} found, {} expected, first at {wrong:?}", found.len(), expected.len())
}

pub(super) fn scan(transaction: &dyn Transaction, tree: TreeId) -> Result<Content, StorageError> {
    let mut cursor = Cursor::new(tree, KeyRange::all(), Direction::Forward);
    let mut content = Content::new();
    while let Some((key, value)) = cursor.next(transaction, BlockingMode::MayBlock)? {
        content.insert(key.to_vec(), Arc::new(value.to_vec()));
    }
    Ok(content)
}
