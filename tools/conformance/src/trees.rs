//! Trees: created, listed, dropped, and their names used again.

use pando_storage::{BlockingMode, ErrorKind, TreeDescription, TreeOptions};

use crate::subject::{Subject, commit, entry, kind, value};

/// A created tree is empty, listed once, and its name is taken.
pub fn a_created_tree_is_empty_listed_and_its_name_is_taken(subject: &Subject) {
    let engine = subject.open();
    let (first, second) = (engine.tree("first"), engine.tree("second"));
    assert_ne!(first, second);
    assert_eq!(engine.entries(first), vec![]);
    let mut expected = vec![
        TreeDescription { id: first, name: "first".into() },
        TreeDescription { id: second, name: "second".into() },
    ];
    expected.sort_by_key(|tree| tree.id);
    assert_eq!(engine.list_trees().expect("the trees can be listed"), expected);
    let again = engine.create_tree("first", &TreeOptions::default());
    assert_eq!(kind(again), Some(ErrorKind::InvalidInput));
}

/// Names are text: empty, long, with slashes and beyond ASCII.
pub fn any_text_can_be_the_name_of_a_tree(subject: &Subject) {
    let engine = subject.open();
    let names = ["", "a/b", "../up", "ümlaut 樹", " ", &"n".repeat(255)];
    let trees: Vec<_> = names.iter().map(|name| engine.tree(name)).collect();
    for (tree, name) in trees.iter().zip(names) {
        engine.put(*tree, "name", name);
    }
    for (tree, name) in trees.iter().zip(names) {
        assert_eq!(engine.find_tree(name), Some(*tree));
        assert_eq!(engine.value(*tree, "name"), Some(name.as_bytes().to_vec()));
    }
}

/// An option that no engine has is refused, and no tree is made.
pub fn unknown_options_of_a_tree_are_refused(subject: &Subject) {
    let engine = subject.open();
    let options = TreeOptions { entries: vec![("noEngineHasThisOption".into(), "1".into())] };
    assert_eq!(kind(engine.create_tree("t", &options)), Some(ErrorKind::InvalidInput));
    assert_eq!(engine.find_tree("t"), None);
}

/// The same key in two trees is two keys.
pub fn trees_do_not_share_keys(subject: &Subject) {
    let engine = subject.open();
    let (left, right) = (engine.tree("left"), engine.tree("right"));
    let (mut one, mut other) = (engine.writer(), engine.writer());
    one.put(left, b"k", b"l").expect("the put succeeds");
    other.put(right, b"k", b"r").expect("another tree's key is another key");
    commit(one);
    commit(other);
    assert_eq!(engine.entries(left), vec![entry("k", "l")]);
    assert_eq!(engine.entries(right), vec![entry("k", "r")]);
}

/// A dropped tree is gone for every call of a later transaction.
pub fn a_dropped_tree_is_not_found(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    engine.put(tree, "k", "v");
    engine.drop_tree(tree).expect("the tree can be dropped");
    assert_eq!(engine.find_tree("t"), None);
    assert_eq!(kind(engine.drop_tree(tree)), Some(ErrorKind::NotFound));
    assert_eq!(kind(engine.tree_estimate(tree)), Some(ErrorKind::NotFound));
    let mut late = engine.writer();
    assert_eq!(kind(late.get(tree, b"k", BlockingMode::MayBlock)), Some(ErrorKind::NotFound));
    let put = late.put(tree, b"k", b"w");
    assert_eq!(
        kind(put.and_then(|()| late.commit(pando_storage::Durability::None))),
        Some(ErrorKind::NotFound)
    );
}

/// A tree that never was is not found either.
pub fn an_unknown_tree_is_not_found(subject: &Subject) {
    let engine = subject.open();
    let unknown = pando_storage::TreeId::new(4_000_000);
    let reader = engine.reader();
    assert_eq!(kind(reader.get(unknown, b"k", BlockingMode::MayBlock)), Some(ErrorKind::NotFound));
    let mut batch = pando_storage::Batch::new();
    let scan = reader.scan(
        unknown,
        &pando_storage::KeyRange::all(),
        pando_storage::Direction::Forward,
        pando_storage::BatchLimits::FIRST,
        BlockingMode::MayBlock,
        &mut batch,
    );
    assert_eq!(kind(scan), Some(ErrorKind::NotFound));
    assert_eq!(kind(engine.drop_tree(unknown)), Some(ErrorKind::NotFound));
}

/// A transaction that began before the drop goes on reading the tree.
pub fn an_older_transaction_goes_on_reading_a_dropped_tree(subject: &Subject) {
    let engine = subject.open();
    let tree = engine.tree("t");
    for number in 0..100 {
        engine.put(tree, format!("{number:03}"), "v");
    }
    let older = engine.reader();
    engine.drop_tree(tree).expect("the tree can be dropped");
    let other = engine.tree("t");
    engine.put(other, "000", "other");
    assert_eq!(value(&*older, tree, "099"), Some(b"v".to_vec()));
    assert_eq!(crate::subject::entries(&*older, tree).len(), 100);
    drop(older);
    assert_eq!(kind(engine.reader().get(tree, b"000", BlockingMode::MayBlock)), Some(ErrorKind::NotFound));
}

/// A name may be used again at once, and the number is another.
pub fn the_name_of_a_dropped_tree_can_be_used_again_and_its_number_never(subject: &Subject) {
    let mut engine = subject.open();
    let mut numbers = Vec::new();
    for round in 0..5 {
        let tree = engine.tree("t");
        assert_eq!(engine.entries(tree), vec![], "round {round}: the new tree shows an old one's entries");
        engine.put(tree, "k", format!("{round}"));
        assert!(!numbers.contains(&tree), "round {round}: {tree} was used before");
        numbers.push(tree);
        engine.drop_tree(tree).expect("the tree can be dropped");
        if engine.is_durable() {
            engine = subject.reopen(engine);
        }
    }
}

/// A live transaction may use a tree that was created after its beginning.
pub fn a_new_tree_serves_transactions_that_began_before_it(subject: &Subject) {
    let engine = subject.open();
    let mut writer = engine.writer();
    let tree = engine.tree("t");
    assert_eq!(value(&*writer, tree, "k"), None);
    writer.put(tree, b"k", b"v").expect("the put succeeds");
    commit(writer);
    assert_eq!(engine.entries(tree), vec![entry("k", "v")]);
}

/// A transaction that wrote to a tree which was then dropped neither panics nor brings it back.
pub fn a_write_to_a_tree_that_is_dropped_meanwhile_is_lost(subject: &Subject) {
    let engine = subject.open();
    let (doomed, other) = (engine.tree("doomed"), engine.tree("other"));
    let mut writer = engine.writer();
    writer.put(doomed, b"k", b"v").expect("the put succeeds");
    engine.drop_tree(doomed).expect("the tree can be dropped");
    let outcome = writer.commit(pando_storage::Durability::None);
    assert!(matches!(kind(outcome), None | Some(ErrorKind::NotFound)));
    assert_eq!(engine.find_tree("doomed"), None);
    engine.put(other, "k", "v");
    assert_eq!(engine.entries(other), vec![entry("k", "v")]);
}

/// Many trees at once, as many collections with indexes make them.
pub fn hundreds_of_trees_live_side_by_side(subject: &Subject) {
    let engine = subject.open();
    let trees: Vec<_> = (0..300).map(|number| engine.tree(&format!("tree {number}"))).collect();
    let mut writer = engine.writer();
    for tree in &trees {
        writer.put(*tree, b"own", &tree.get().to_be_bytes()).expect("the put succeeds");
    }
    commit(writer);
    for tree in &trees {
        assert_eq!(engine.value(*tree, "own"), Some(tree.get().to_be_bytes().to_vec()));
    }
    assert_eq!(engine.list_trees().expect("the trees can be listed").len(), 300);
}
