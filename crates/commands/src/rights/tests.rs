//! Requests against the rights that they need. `tests/acceptance/test_rights.py` has the comparison with
//! MongoDB.

use std::collections::BTreeSet;

use pando_access::{Action, ActionSet, Authority, Privilege, Resource};
use pando_document::{Document, DocumentWriter, RawDocument, RawDocumentBuf, Value, doc};

use super::{Claim, Denial, not_authorized};
use crate::{CommandError, Request, registry};

/// The judgement of a request of a client with these actions on the database `d`.
fn judge(actions: &[Action], body: &RawDocument) -> Result<(), Denial> {
    let own = Privilege { resource: Resource::Database("d".to_owned()), actions: ActionSet::of(actions) };
    let authority = Authority::new(&[own].into_iter().collect());
    let (request, roles) = (Request::of(body), BTreeSet::new());
    let access_of = |name: &str| registry::find(name).map(|row| row.access);
    let claim = Claim {
        user: None,
        roles: &roles,
        authority: &authority,
        database: "d",
        request: &request,
        access_of,
    };
    let (name, _) = request.command().unwrap();
    claim.check(registry::find(name).expect("a command").access)
}

/// Whether a client with these actions on the database `d` may make a request.
fn may(actions: &[Action], command: &Document) -> bool {
    match judge(actions, &command.to_raw()) {
        Ok(()) => true,
        Err(Denial::Rights) => false,
        Err(Denial::Malformed(error)) => panic!("{command:?}: {error:?}"),
    }
}

#[test]
fn a_stage_needs_its_rights_wherever_it_stands() {
    let aggregate = |stage: Document| doc! { "aggregate": "c", "pipeline": [stage], "cursor": {} };
    let deep = |stage: Document| {
        let within = |stage: Document| doc! { "$lookup": { "from": "c", "as": "x", "pipeline": [stage] } };
        let facet = doc! { "$facet": { "a": [within(within(stage))] } };
        aggregate(doc! { "$unionWith": { "coll": "c", "pipeline": [facet] } })
    };
    let writes: [(Document, &[Action]); 3] = [
        (doc! { "$out": "x" }, &[Action::Find, Action::Insert, Action::Remove]),
        (doc! { "$merge": "x" }, &[Action::Find, Action::Insert, Action::Update]),
        (doc! { "$merge": { "into": "x", "whenNotMatched": "discard" } }, &[Action::Find, Action::Update]),
    ];
    for (stage, actions) in writes {
        for request in [aggregate(stage.clone()), deep(stage.clone())] {
            assert!(may(actions, &request), "{request:?}");
            assert!(!may(&actions[1..], &request) && !may(&actions[..actions.len() - 1], &request));
        }
    }
    for foreign in [
        doc! { "$lookup": { "from": "system.profile", "as": "x" } },
        doc! { "$graphLookup": { "from": "system.profile", "as": "x" } },
        doc! { "$unionWith": "system.profile" },
        doc! { "$lookup": { "from": { "db": "e", "coll": "c" }, "as": "x" } },
        doc! { "$merge": { "into": { "db": "e", "coll": "c" } } },
    ] {
        let all = [Action::AnyAction];
        assert!(!may(&all, &aggregate(foreign.clone())) && !may(&all, &deep(foreign)));
    }
    assert!(may(&[Action::CollStats], &aggregate(doc! { "$collStats": {} })));
    assert!(!may(&[Action::AnyAction], &aggregate(doc! { "$currentOp": { "allUsers": true } })));
}

/// A document of these fields, of which a name may stand several times.
fn fields(fields: &[(&str, &str)]) -> RawDocumentBuf {
    let mut bytes = Vec::new();
    let mut out = DocumentWriter::begin(&mut bytes);
    fields.iter().for_each(|(name, value)| out.append_str(name, value));
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap()
}

/// A command with one document in a list.
fn with_listed(command: (&str, &str), list: &str, document: &RawDocument) -> RawDocumentBuf {
    let mut bytes = Vec::new();
    let mut out = DocumentWriter::begin(&mut bytes);
    out.append_str(command.0, command.1);
    let mut listed = out.array(list);
    listed.push_document(document);
    listed.finish();
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap()
}

/// A document with one document within it.
fn around(name: &str, document: &RawDocument) -> RawDocumentBuf {
    let mut bytes = Vec::new();
    let mut out = DocumentWriter::begin(&mut bytes);
    out.append_raw_document(name, document);
    out.finish();
    RawDocumentBuf::from_vec(bytes).unwrap()
}

#[test]
fn a_field_that_stands_twice_is_judged_by_both() {
    let stage = around("$lookup", &fields(&[("from", "c"), ("from", "system.profile")]));
    let request = with_listed(("aggregate", "c"), "pipeline", &stage);
    assert!(matches!(judge(&[Action::Find], &request), Err(Denial::Rights)));
}

#[test]
fn a_name_that_stands_twice_within_a_part_of_a_request_is_refused() {
    let is_refused = |request: RawDocumentBuf| match judge(&[Action::AnyAction], &request) {
        Err(Denial::Malformed(CommandError::Failed(failure))) => matches!(failure.code.code(), 2 | 40_413),
        _ => false,
    };
    for role in [
        fields(&[("role", "root"), ("db", "admin"), ("db", "d")]),
        fields(&[("role", "read"), ("db", "d"), ("role", "root")]),
    ] {
        for command in ["grantRolesToUser", "revokeRolesFromUser", "grantRolesToRole", "createUser"] {
            assert!(is_refused(with_listed((command, "x"), "roles", &role)), "{command}");
        }
        assert!(is_refused(around("rolesInfo", &role)));
    }
    for user in [&[("user", "x"), ("db", "d"), ("user", "y")][..], &[("db", "d"), ("user", "x"), ("db", "e")]]
    {
        assert!(is_refused(around("usersInfo", &fields(user))));
    }
    let merge =
        |options: &RawDocument| with_listed(("aggregate", "c"), "pipeline", &around("$merge", options));
    for options in [
        fields(&[("into", "c"), ("whenMatched", "fail"), ("whenMatched", "replace")]),
        fields(&[("into", "c"), ("whenNotMatched", "discard"), ("whenNotMatched", "insert")]),
        fields(&[("into", "c"), ("into", "x")]),
        around("into", &fields(&[("db", "e"), ("coll", "c"), ("db", "")])),
        around("into", &fields(&[("coll", "x"), ("coll", "c")])),
    ] {
        assert!(is_refused(merge(&options)), "{options:?}");
    }
    let namespace = fields(&[("ns", "d.c"), ("ns", "admin.system.users")]);
    assert!(is_refused(with_listed(("bulkWrite", "1"), "nsInfo", &namespace)));
}

#[test]
fn writes_need_what_they_may_do() {
    let update = |upsert: bool| doc! { "update": "c", "updates": [{ "q": {}, "u": {} }, { "q": {}, "u": {}, "upsert": upsert }] };
    assert!(may(&[Action::Update], &update(false)) && !may(&[Action::Update], &update(true)));
    assert!(may(&[Action::Update, Action::Insert], &update(true)));
    let modify = |name: &str, value: Value| doc! { "findAndModify": "c", "query": {}, name: value };
    assert!(may(&[Action::Find, Action::Remove], &modify("remove", Value::Boolean(true))));
    assert!(!may(&[Action::Find, Action::Update], &modify("remove", Value::Boolean(true))));
    assert!(may(&[Action::Find, Action::Update], &modify("update", Value::Document(doc! {}))));
    assert!(!may(&[Action::Update], &modify("update", Value::Document(doc! {}))));
    let bypass = doc! { "insert": "c", "documents": [{}], "bypassDocumentValidation": true };
    assert!(!may(&[Action::Insert], &bypass));
    assert!(may(&[Action::Insert, Action::BypassDocumentValidation], &bypass));
    let bulk = |ns: &str, upsert: bool| {
        doc! {
            "bulkWrite": 1,
            "ops": [{ "insert": 0, "document": {} }, { "update": 1, "filter": {}, "updateMods": {}, "upsert": upsert }],
            "nsInfo": [{ "ns": "d.c" }, { "ns": ns }],
        }
    };
    let both = [Action::Insert, Action::Update];
    assert!(may(&both, &bulk("d.x", true)) && !may(&both, &bulk("e.x", false)));
    assert!(!may(&[Action::Insert], &bulk("d.x", false)));
    let explained = doc! { "explain": { "delete": "c", "deletes": [] } };
    assert!(may(&[Action::Remove], &explained) && !may(&[Action::Find], &explained));
}

#[test]
fn a_view_needs_the_rights_below_where_its_maker_may_read_it() {
    let view = doc! { "create": "v", "viewOn": "system.profile", "pipeline": [] };
    assert!(may(&[Action::CreateCollection], &view));
    assert!(!may(&[Action::CreateCollection, Action::Find], &view));
    assert!(!may(&[Action::Insert], &view));
    assert!(may(&[Action::Insert], &doc! { "create": "c" }));
    assert!(!may(&[Action::CreateCollection], &doc! { "create": "c", "capped": true }));
    let shown = doc! { "collMod": "v", "viewOn": "c", "pipeline": [{ "$unionWith": "system.profile" }] };
    assert!(!may(&[Action::CollMod, Action::Find], &shown) && may(&[Action::CollMod], &shown));
    // What the view shows cannot be told of a part.
    for part in [
        doc! { "collMod": "v", "pipeline": [{ "$unionWith": "system.profile" }] },
        doc! { "collMod": "v", "viewOn": "c" },
        doc! { "collMod": "v", "viewOn": null, "pipeline": [] },
    ] {
        let judged = judge(&[Action::CollMod, Action::Find], &part.to_raw());
        assert!(matches!(judged, Err(Denial::Malformed(_))), "{part:?}");
    }
}

#[test]
fn keys_of_a_password_are_taken_by_those_who_may_change_it() {
    for change in
        [doc! { "updateUser": "x", "mechanisms": ["SCRAM-SHA-1"] }, doc! { "updateUser": "x", "pwd": "p" }]
    {
        assert!(may(&[Action::ChangePassword], &change) && !may(&[Action::ChangeCustomData], &change));
    }
}

#[test]
fn a_collection_is_not_renamed_into_sight() {
    let rename = |drops: bool| doc! { "renameCollection": "d.a", "to": "d.b", "dropTarget": drops };
    let by_name = [Action::RenameCollectionSameDb];
    assert!(may(&by_name, &rename(false)) && !may(&by_name, &rename(true)));
    assert!(may(&[Action::RenameCollectionSameDb, Action::DropCollection], &rename(true)));
    assert!(!may(&by_name, &doc! { "renameCollection": "d.system.a", "to": "d.b" }));
    assert!(!may(&by_name, &doc! { "renameCollection": "d.a", "to": "e.a" }));
    let by_copy = [Action::Find, Action::DropCollection, Action::Insert, Action::CreateIndex];
    assert!(may(&by_copy, &rename(true)) && !may(&by_copy[1..], &rename(false)));
}

#[test]
fn the_message_shows_the_command_without_its_password() {
    let body = doc! { "createUser": "ada", "pwd": "secret", "$db": "d" }.to_raw();
    let CommandError::Failed(failure) = not_authorized(&Request::of(&body), "d") else { panic!() };
    assert_eq!(
        failure.message,
        "not authorized on d to execute command { createUser: \"ada\", pwd: \"xxx\", $db: \"d\" }"
    );
    assert_eq!(failure.code.code(), 13);
}
